//! Talking to a daemon.

mod address;
mod error;
mod wanted;

pub use address::{Address, Host, Secret};
pub use error::ClientError;
pub use wanted::{Wanted, Whose};

use crate::api::{
    ApiError, Changed, ConfigInForce, Foreseen, Gpus, LINES, Listed, Reload, SCHEMA, SCHEMA_HEADER,
    SILENCE, Submitted, TokenList, TokenMade, TokenRequest,
};
use crate::foresee::Expected;
use crate::owner::{
    Change, StatusView, Submission, TaskDetail, TaskView, Teaching, WhyView, lines,
};
use crate::past::Past;
use crate::record::Phase;
use address::open;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, Instant};
use wanted::push_user;

const JSON: &str = "application/json";
/// Every question is answered sooner, or begun to be; who is silent for longer is gone.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);

/// A connection to a daemon. One request at a time.
pub struct Client {
    runtime: tokio::runtime::Runtime,
    address: Address,
    sender: Sender,
    used: Instant,
    /// The last question was not answered in full: whatever comes on this connection is of no use.
    lost: bool,
}

/// A part of a task's output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogPart {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Where the task stands.
    pub state: Option<Phase>,
    /// Where the part begins: later than asked for where that is gone.
    pub offset: u64,
    /// Which attempt said it; 0 where all of them write to one file.
    pub attempt: u32,
    /// Attempts so far.
    pub attempts: u32,
}

impl Client {
    /// Connects to a daemon on this machine.
    pub fn connect(socket: &Path) -> Result<Self, ClientError> {
        Client::reach(Address::Socket(socket.to_owned()))
    }

    /// Connects to a daemon anywhere.
    pub fn reach(address: Address) -> Result<Self, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(broken)?;
        let sender = runtime.block_on(open(&address))?;
        Ok(Client { runtime, address, sender, used: Instant::now(), lost: false })
    }

    /// Where the daemon is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The connection, a new one if the daemon may have hung up on it.
    fn connection(&mut self) -> Result<Connection<'_>, ClientError> {
        if self.lost || self.used.elapsed() > SILENCE / 2 || self.sender.is_closed() {
            self.sender = self.runtime.block_on(open(&self.address))?;
            self.lost = false;
        }
        self.used = Instant::now();
        let (sender, token) = (&mut self.sender, self.address.token());
        Ok((&mut self.runtime, Line { sender, token }))
    }

    /// Submits tasks.
    pub fn submit(&mut self, submission: &Submission) -> Result<Submitted, ClientError> {
        self.post("/v1/tasks", submission)
    }

    /// Lists tasks.
    pub fn list(&mut self, all: bool, since_s: f64) -> Result<Listed, ClientError> {
        let tasks = self.list_of(&Wanted { all, since_s, whose: Whose::Everybody })?;
        Ok(Listed { schema: SCHEMA, tasks })
    }

    /// Lists some tasks.
    pub fn list_of(&mut self, wanted: &Wanted<'_>) -> Result<Vec<TaskView>, ClientError> {
        let mut tasks: Vec<TaskView> = Vec::new();
        self.each_task(wanted, |task| tasks.push(task.owned()))?;
        Ok(tasks)
    }

    /// Hands over each task of a list as it comes.
    pub fn each_task(
        &mut self,
        wanted: &Wanted<'_>,
        mut see: impl FnMut(TaskView<Cow<'_, str>>),
    ) -> Result<(), ClientError> {
        let mut header = true;
        let mut read = |line: &[u8]| match std::mem::take(&mut header) {
            true if line.starts_with(lines::HEADER.as_bytes()) => Ok(()),
            true => Err(garbled("it lists tasks in another way")),
            false => lines::read(line).map(&mut see).map_err(garbled),
        };
        let mut started = Vec::new();
        self.stream(&wanted.path(), LINES, |mut piece: &[u8]| {
            while let Some(end) = memchr::memchr(b'\n', piece) {
                let (line, rest) = (&piece[..end], &piece[end + 1..]);
                started.extend_from_slice(if started.is_empty() { b"" } else { line });
                let line = if started.is_empty() { line } else { &started };
                read(line)?;
                started.clear();
                piece = rest;
            }
            started.extend_from_slice(piece);
            Ok(())
        })
    }

    /// Hands over the JSON of a list as it comes, unread.
    pub fn list_json(
        &mut self,
        wanted: &Wanted<'_>,
        see: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        self.stream(&wanted.path(), JSON, see)
    }

    /// Shows a task.
    pub fn show(&mut self, id: u32) -> Result<TaskDetail, ClientError> {
        self.get(&format!("/v1/tasks/{id}"))
    }

    /// Asks why a task waits.
    pub fn why(&mut self, id: u32) -> Result<WhyView, ClientError> {
        self.get(&format!("/v1/tasks/{id}/why"))
    }

    /// Asks when a task is expected to start and to end.
    pub fn expected(&mut self, id: u32) -> Result<Expected, ClientError> {
        self.get(&format!("/v1/tasks/{id}/expected"))
    }

    /// The same of every task that has not ended.
    pub fn all_expected(&mut self) -> Result<Foreseen, ClientError> {
        self.get("/v1/expected")
    }

    /// What ran since then, by one user or by all.
    pub fn past(&mut self, since_s: f64, user: Option<&str>) -> Result<Past, ClientError> {
        let mut path = format!("/v1/past?since_s={since_s}");
        push_user(&mut path, user);
        self.get(&path)
    }

    /// Waits until a task has ended.
    pub fn wait(&mut self, id: u32) -> Result<TaskDetail, ClientError> {
        loop {
            let task = self.wait_a_while(id)?;
            if task.task.state.is_over() {
                return Ok(task);
            }
        }
    }

    /// The same, or until the daemon has waited as long as it does for one question.
    pub fn wait_a_while(&mut self, id: u32) -> Result<TaskDetail, ClientError> {
        self.get(&format!("/v1/tasks/{id}/wait"))
    }

    /// Does something with tasks.
    pub fn change(&mut self, ids: &[u32], change: Change) -> Result<Changed, ClientError> {
        self.post("/v1/tasks/change", &serde_json::json!({ "ids": ids, "change": change }))
    }

    /// A part of a task's output: from an offset on, of an attempt or of the last.
    pub fn log(
        &mut self,
        id: u32,
        attempt: Option<u32>,
        offset: u64,
    ) -> Result<LogPart, ClientError> {
        let attempt = attempt.map_or(String::new(), |attempt| format!("&attempt={attempt}"));
        let path = format!("/v1/tasks/{id}/log?offset={offset}{attempt}");
        let (headers, body) = self.send(Method::GET, &path, Bytes::new())?;
        let word = |name| headers.get(name).and_then(|word| word.to_str().ok()).unwrap_or("");
        Ok(LogPart {
            bytes: body.to_vec(),
            state: Phase::named(word("x-state")),
            offset: word("x-offset").parse().unwrap_or(offset),
            attempt: word("x-attempt").parse().unwrap_or(0),
            attempts: word("x-attempts").parse().unwrap_or(0),
        })
    }

    /// Has the scheduler believe what was measured.
    pub fn teach(&mut self, teaching: &Teaching) -> Result<(), ClientError> {
        let body = serde_json::to_vec(teaching).map_err(garbled)?;
        self.send(Method::POST, "/v1/teach", body.into()).map(|_| ())
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

    /// The settings in force.
    pub fn config(&mut self) -> Result<ConfigInForce, ClientError> {
        self.get("/v1/config")
    }

    /// Has the daemon read its configuration again.
    pub fn reload(&mut self) -> Result<Reload, ClientError> {
        let (_, body) = self.send(Method::POST, "/v1/config/reload", Bytes::new())?;
        serde_json::from_slice(&body).map_err(garbled)
    }

    /// Makes a token.
    pub fn create_token(&mut self, request: &TokenRequest) -> Result<TokenMade, ClientError> {
        self.post("/v1/tokens", request)
    }

    /// Lists tokens.
    pub fn tokens(&mut self) -> Result<TokenList, ClientError> {
        self.get("/v1/tokens")
    }

    /// Makes a token useless.
    pub fn revoke_token(&mut self, id: u32) -> Result<(), ClientError> {
        self.send(Method::POST, &format!("/v1/tokens/{id}/revoke"), Bytes::new()).map(|_| ())
    }

    fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        let (_, body) = self.send(Method::GET, path, Bytes::new())?;
        serde_json::from_slice(&body).map_err(garbled)
    }

    fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(garbled)?;
        let (_, body) = self.send(Method::POST, path, body.into())?;
        serde_json::from_slice(&body).map_err(garbled)
    }

    fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(hyper::HeaderMap, Bytes), ClientError> {
        let (runtime, line) = self.connection()?;
        let answer = runtime.block_on(async {
            let (parts, body) = ask(line, method, path, JSON, body).await?;
            Ok((parts.headers, body.collect().await.map_err(broken)?.to_bytes()))
        });
        self.lost = matches!(answer, Err(ClientError::Broken(_)));
        answer
    }

    fn stream(
        &mut self,
        path: &str,
        accept: &str,
        mut see: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let (runtime, line) = self.connection()?;
        let read = runtime.block_on(async {
            let (_, mut body) = ask(line, Method::GET, path, accept, Bytes::new()).await?;
            while let Some(frame) = body.frame().await {
                if let Some(piece) = frame.map_err(broken)?.data_ref() {
                    see(piece)?;
                }
            }
            Ok(())
        });
        self.lost = read.is_err();
        read
    }
}

/// Asks, and reads the answer only if it is no.
async fn ask(
    line: Line<'_>,
    method: Method,
    path: &str,
    accept: &str,
    body: Bytes,
) -> Result<(hyper::http::response::Parts, hyper::body::Incoming), ClientError> {
    let Line { sender, token } = line;
    let mut request = Request::builder();
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request
        .method(method)
        .uri(path)
        .header("host", "coloc")
        .header("accept", accept)
        .header("content-type", JSON)
        .header(SCHEMA_HEADER, SCHEMA)
        .body(Full::new(body))
        .map_err(broken)?;
    sender.ready().await.map_err(broken)?;
    let answer = tokio::time::timeout(LONGEST_SILENCE, sender.send_request(request)).await;
    let answer = answer.map_err(|_| broken("it says nothing for two minutes"))?;
    let (parts, body) = answer.map_err(broken)?.into_parts();
    let schema = parts.headers.get(SCHEMA_HEADER).and_then(|version| version.to_str().ok());
    if let Some(newer) = schema.and_then(|v| v.parse().ok()).filter(|&version| version > SCHEMA) {
        return Err(ClientError::Newer(newer));
    }
    if parts.status == StatusCode::OK {
        return Ok((parts, body));
    }
    let body = body.collect().await.map_err(broken)?.to_bytes();
    let (message, code) = match serde_json::from_slice::<ApiError>(&body) {
        Ok(ApiError { error, code, .. }) => (error, code),
        Err(_) => (String::from_utf8_lossy(&body).into_owned(), String::new()),
    };
    Err(ClientError::Refused { status: parts.status.as_u16(), code, message })
}

/// A connection, and what is shown on it.
struct Line<'a> {
    sender: &'a mut Sender,
    token: Option<&'a str>,
}

type Connection<'a> = (&'a mut tokio::runtime::Runtime, Line<'a>);
type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

fn broken(error: impl std::fmt::Display) -> ClientError {
    ClientError::Broken(error.to_string())
}

fn garbled(error: impl std::fmt::Display) -> ClientError {
    ClientError::Garbled(error.to_string())
}
