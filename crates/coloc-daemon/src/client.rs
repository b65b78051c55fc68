//! Talking to a daemon.

use crate::api::{ApiError, Changed, Gpus, Listed, Submitted};
use crate::owner::{Change, StatusView, Submission, TaskDetail, WhyView};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};

/// A daemon that does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers.
    #[error("no daemon answers at {}: {source}; start one with `coloc daemon`", socket.display())]
    Unreachable {
        /// Where.
        socket: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It says no.
    #[error("{message}")]
    Refused {
        /// Its reason as a number.
        status: u16,
        /// Its reason.
        message: String,
    },
    /// The connection broke.
    #[error("the daemon hung up: {0}")]
    Broken(String),
}

/// A connection to a daemon. One request at a time.
pub struct Client {
    runtime: tokio::runtime::Runtime,
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
}

impl Client {
    /// Connects.
    pub fn connect(socket: &Path) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable { socket: socket.to_owned(), source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(unreachable)?;
        let sender = runtime.block_on(async {
            let stream = tokio::net::UnixStream::connect(socket).await.map_err(unreachable)?;
            let connection = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
            let (sender, connection) = connection.map_err(broken)?;
            tokio::spawn(connection);
            Ok(sender)
        })?;
        Ok(Client { runtime, sender })
    }

    /// Submits tasks.
    pub fn submit(&mut self, submission: &Submission) -> Result<Submitted, ClientError> {
        self.post("/v1/tasks", submission)
    }

    /// Lists tasks.
    pub fn list(&mut self, all: bool, since_s: f64) -> Result<Listed, ClientError> {
        self.get(&format!("/v1/tasks?all={all}&since_s={since_s}"))
    }

    /// Shows a task.
    pub fn show(&mut self, id: u32) -> Result<TaskDetail, ClientError> {
        self.get(&format!("/v1/tasks/{id}"))
    }

    /// Asks why a task waits.
    pub fn why(&mut self, id: u32) -> Result<WhyView, ClientError> {
        self.get(&format!("/v1/tasks/{id}/why"))
    }

    /// Waits until a task has ended.
    pub fn wait(&mut self, id: u32) -> Result<TaskDetail, ClientError> {
        loop {
            let task: TaskDetail = self.get(&format!("/v1/tasks/{id}/wait"))?;
            if task.task.state.is_over() {
                return Ok(task);
            }
        }
    }

    /// Does something with tasks.
    pub fn change(&mut self, ids: &[u32], change: Change) -> Result<Changed, ClientError> {
        self.post("/v1/tasks/change", &serde_json::json!({ "ids": ids, "change": change }))
    }

    /// Reads a part of a task's output; says where the task stands.
    pub fn log(&mut self, id: u32, offset: u64) -> Result<(Vec<u8>, String), ClientError> {
        let path = format!("/v1/tasks/{id}/log?offset={offset}");
        let (headers, body) = self.send(Method::GET, &path, Bytes::new())?;
        let state = headers.get("x-state").and_then(|state| state.to_str().ok()).unwrap_or("");
        Ok((body.to_vec(), state.to_owned()))
    }

    /// The GPUs.
    pub fn gpus(&mut self) -> Result<Gpus, ClientError> {
        self.get("/v1/gpus")
    }

    /// How the daemon is.
    pub fn status(&mut self) -> Result<StatusView, ClientError> {
        self.get("/v1/status")
    }

    /// Has the daemon start nothing new, or go on.
    pub fn drain(&mut self, draining: bool) -> Result<(), ClientError> {
        let body = Bytes::from(draining.to_string());
        self.send(Method::POST, "/v1/drain", body).map(|_| ())
    }

    fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        let (_, body) = self.send(Method::GET, path, Bytes::new())?;
        serde_json::from_slice(&body).map_err(broken)
    }

    fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(broken)?;
        let (_, body) = self.send(Method::POST, path, body.into())?;
        serde_json::from_slice(&body).map_err(broken)
    }

    fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(hyper::HeaderMap, Bytes), ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "coloc")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(broken)?;
        let Client { runtime, sender } = self;
        runtime.block_on(async {
            sender.ready().await.map_err(broken)?;
            let answer = sender.send_request(request).await.map_err(broken)?;
            let (parts, body) = answer.into_parts();
            let body = body.collect().await.map_err(broken)?.to_bytes();
            if parts.status == StatusCode::OK {
                return Ok((parts.headers, body));
            }
            let message = match serde_json::from_slice::<ApiError>(&body) {
                Ok(ApiError { error }) => error,
                Err(_) => String::from_utf8_lossy(&body).into_owned(),
            };
            Err(ClientError::Refused { status: parts.status.as_u16(), message })
        })
    }
}

fn broken(error: impl std::fmt::Display) -> ClientError {
    ClientError::Broken(error.to_string())
}
