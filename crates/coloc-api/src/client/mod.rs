//! Talking to a daemon.

mod address;
mod error;
mod events;
mod http;
mod over_time;
mod report;
mod wanted;

pub use address::{Address, Host, Secret};
pub use error::ClientError;
pub use events::{Event, Events};
pub use wanted::{Wanted, Whose};

use crate::answer::{
    ApiError, Changed, ConfigInForce, Foreseen, Gpus, Listed, RefusedTask, Reload, Served,
    Submitted, TokenList, TokenMade, WebCode,
};
use crate::past::Past;
use crate::request::{
    Change, GpuReservation, GpuService, Submission, Teaching, TokenRequest, WebCodeRequest,
};
use crate::view::{Expected, StatusView, TaskDetail, TaskView, WhyView};
use crate::{LINES, SCHEMA, SCHEMA_HEADER, SILENCE, lines};
use address::open;
use coloc_model::TaskState;
use http::{Connection, Head};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, Instant};
use wanted::push_user;

const JSON: &str = "application/json";
/// So many tasks are changed by one request: others have their turn before the next.
pub const IDS_A_REQUEST: usize = 1_000;
/// Every question is answered sooner, or begun to be; a daemon that is silent for longer is gone.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);

/// A connection to a daemon. One request at a time.
pub struct Client {
    address: Address,
    connection: Connection,
    used: Instant,
}

/// A part of a task's output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogPart {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Where the task stands.
    pub state: Option<TaskState>,
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
        let connection = open(&address)?;
        Ok(Client { address, connection, used: Instant::now() })
    }

    /// Where the daemon is.
    pub fn address(&self) -> &Address {
        &self.address
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
        let mut lines = Lines::default();
        self.stream(&wanted.path(), LINES, |piece| lines.each(piece, &mut read))
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

    /// Does something with tasks, in several requests if they are many. When a later one fails, what was done before is told,
    /// and the first task that was left is refused for that reason.
    pub fn change(&mut self, ids: &[u32], change: Change) -> Result<Changed, ClientError> {
        let mut all = Changed { schema: SCHEMA, done: Vec::new(), refused: Vec::new() };
        // A caller that names no task is told so by the daemon.
        let parts = ids.chunks(IDS_A_REQUEST).chain(ids.is_empty().then_some(ids));
        for part in parts {
            let body = serde_json::json!({ "ids": part, "change": change });
            match self.post::<Changed>("/v1/tasks/change", &body) {
                Ok(changed) => {
                    all.done.extend(changed.done);
                    all.refused.extend(changed.refused);
                }
                Err(error) if all.done.is_empty() => return Err(error),
                Err(error) => {
                    let (code, message) = (error.code().to_owned(), error.to_string());
                    let left = ids.iter().skip(all.done.len() + all.refused.len());
                    let refused = |&id: &u32| RefusedTask {
                        id,
                        code: code.clone(),
                        message: format!("task {id}: {message}"),
                    };
                    all.refused.extend(left.take(1).map(refused));
                    return Ok(all);
                }
            }
        }
        Ok(all)
    }

    /// A part of a task's output: from an offset on, of an attempt or of the last.
    pub fn log(
        &mut self,
        id: u32,
        attempt: Option<u32>,
        offset: u64,
    ) -> Result<LogPart, ClientError> {
        let attempt = attempt.map_or(String::new(), |attempt| format!("&attempt={attempt}"));
        self.log_at(id, &format!("offset={offset}{attempt}"))
    }

    fn log_at(&mut self, id: u32, query: &str) -> Result<LogPart, ClientError> {
        let path = format!("/v1/tasks/{id}/log?{query}");
        let (head, bytes) = self.send("GET", &path, &[])?;
        let word = |name| head.get(name).unwrap_or("");
        Ok(LogPart {
            bytes,
            state: TaskState::named(word("x-state")),
            offset: word("x-offset").parse().unwrap_or(0),
            attempt: word("x-attempt").parse().unwrap_or(0),
            attempts: word("x-attempts").parse().unwrap_or(0),
        })
    }

    /// Has the scheduler believe what was measured.
    pub fn teach(&mut self, teaching: &Teaching) -> Result<(), ClientError> {
        let body = serde_json::to_vec(teaching).map_err(garbled)?;
        self.send("POST", "/v1/teach", &body).map(|_| ())
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
        self.send("POST", "/v1/drain", draining.to_string().as_bytes()).map(|_| ())
    }

    /// Has GPUs take nothing new, or tasks again.
    pub fn serve_gpus(&mut self, request: &GpuService) -> Result<Served, ClientError> {
        self.post("/v1/gpus/service", request)
    }

    /// Has GPUs take only the tasks of some users, or of all again.
    pub fn reserve_gpus(&mut self, request: &GpuReservation) -> Result<Served, ClientError> {
        self.post("/v1/gpus/reserve", request)
    }

    /// The settings in force.
    pub fn config(&mut self) -> Result<ConfigInForce, ClientError> {
        self.get("/v1/config")
    }

    /// Has the daemon read its configuration again.
    pub fn reload(&mut self) -> Result<Reload, ClientError> {
        let (_, body) = self.send("POST", "/v1/config/reload", &[])?;
        serde_json::from_slice(&body).map_err(garbled)
    }

    /// Makes a token.
    pub fn create_token(&mut self, request: &TokenRequest) -> Result<TokenMade, ClientError> {
        self.post("/v1/tokens", request)
    }

    /// Gets a code with which a page signs in.
    pub fn web_code(&mut self, request: &WebCodeRequest) -> Result<WebCode, ClientError> {
        self.post("/v1/web/code", request)
    }

    /// Lists tokens.
    pub fn tokens(&mut self) -> Result<TokenList, ClientError> {
        self.get("/v1/tokens")
    }

    /// Makes a token useless.
    pub fn revoke_token(&mut self, id: u32) -> Result<(), ClientError> {
        self.send("POST", &format!("/v1/tokens/{id}/revoke"), &[]).map(|_| ())
    }

    fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        let (_, body) = self.send("GET", path, &[])?;
        serde_json::from_slice(&body).map_err(garbled)
    }

    fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(garbled)?;
        let (_, body) = self.send("POST", path, &body)?;
        serde_json::from_slice(&body).map_err(garbled)
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<(Head, Vec<u8>), ClientError> {
        let head = self.ask(method, path, JSON, body)?;
        Ok((head, self.whole_body()?))
    }

    /// Hands over an answer piece by piece.
    fn stream(
        &mut self,
        path: &str,
        accept: &str,
        mut see: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        self.ask("GET", path, accept, &[])?;
        while let Some(seen) = self.connection.piece(&mut see).map_err(broken)? {
            seen?;
        }
        Ok(())
    }

    /// Asks, over a new connection if the daemon hung up on this one, and reads the body of the answer only if it is no.
    fn ask(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        body: &[u8],
    ) -> Result<Head, ClientError> {
        if self.used.elapsed() > SILENCE / 2 || self.connection.is_over() {
            self.connection = open(&self.address)?;
        }
        self.used = Instant::now();
        let token = self.address.token().map(|token| format!("Bearer {token}"));
        let schema = SCHEMA.to_string();
        let mut headers =
            vec![("accept", accept), ("content-type", JSON), (SCHEMA_HEADER, &schema)];
        headers.extend(token.iter().map(|token| ("authorization", token.as_str())));
        let head = self.connection.ask(method, path, &headers, body).map_err(broken)?;
        let schema = head.get(SCHEMA_HEADER).and_then(|version| version.parse().ok());
        if let Some(newer) = schema.filter(|&version| version > SCHEMA) {
            return Err(ClientError::Newer(newer));
        }
        if head.status == 200 {
            return Ok(head);
        }
        let body = self.whole_body()?;
        let (message, code) = match serde_json::from_slice::<ApiError>(&body) {
            Ok(ApiError { error, code, .. }) => (error, code),
            Err(_) => (String::from_utf8_lossy(&body).into_owned(), String::new()),
        };
        Err(ClientError::Refused { status: head.status, code, message })
    }

    fn whole_body(&mut self) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        let mut take = |piece: &[u8]| body.extend_from_slice(piece);
        while self.connection.piece(&mut take).map_err(broken)?.is_some() {}
        Ok(body)
    }
}

/// Puts lines together from pieces.
#[derive(Default)]
struct Lines {
    /// A line whose end has not come yet.
    started: Vec<u8>,
}

impl Lines {
    fn each<E>(
        &mut self,
        mut piece: &[u8],
        mut read: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            match self.started.is_empty() {
                true => read(line)?,
                false => {
                    self.started.extend_from_slice(line);
                    read(&self.started)?;
                    self.started.clear();
                }
            }
            piece = rest;
        }
        self.started.extend_from_slice(piece);
        Ok(())
    }
}

fn broken(error: impl std::fmt::Display) -> ClientError {
    ClientError::Broken(error.to_string())
}

fn garbled(error: impl std::fmt::Display) -> ClientError {
    ClientError::Garbled(error.to_string())
}
