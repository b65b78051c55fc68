//! `coloc attach`: come to a task's terminal, and stay with it.

use crate::args::live::{Selection, SocketArg, resolve_one};
use crate::error::{CliError, UsageError};
use crate::live::reconnect::Reconnect;
use crate::output::visible::visible;
use crate::terminal::{self, DetachKeys, End, Session};
use crate::verbs::queue::clock;
use crate::verbs::wait::{exit_code, tell_end};
use clap::Args;
use coloc_api::client::{Channel, Client, ClientError};
use coloc_api::moment::Moment;
use coloc_api::request::{AttachRequest, Change};
use coloc_api::view::TaskDetail;
use coloc_model::TaskState;
use signal_hook::consts::SIGINT;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a task is looked at that does not run.
const PERIOD: Duration = Duration::from_millis(100);
/// A task that waits longer is said to wait.
const SOON: Duration = Duration::from_secs(1);
/// What keeps it waiting is told again after this long, if it is something else by then.
const AGAIN: Duration = Duration::from_secs(15);
/// Refusals by a task that has just begun, or is about to end.
const PASSES: [&str; 3] = ["wrong_state", "ended", "no_shim"];
/// So many of them are looked past.
const MOST_TRIES: u32 = 100;

/// The keys that leave a terminal.
#[derive(Args, Clone, Debug)]
pub(crate) struct DetachArg {
    /// Keys that leave the terminal and let the task go on, such as ctrl-a,d; none for no such keys
    #[arg(long, value_name = "KEYS", env = "COLOC_DETACH_KEYS", default_value = "ctrl-p,ctrl-q")]
    pub(crate) detach_keys: DetachKeys,
}

/// Come to the terminal of a task that runs on one (run --pty, shell)
///
/// Several clients may be there at once: all see what is printed, and what any of them types is typed. The window has the size of
/// the client that came, or was resized, last. Ctrl-P Ctrl-Q leaves.
#[derive(Args, Debug)]
pub(crate) struct Attach {
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
    #[command(flatten)]
    keys: DetachArg,
    /// Only look: what is typed, and the size of this window, make no difference to the task
    #[arg(long)]
    read_only: bool,
    /// The task
    task: Selection,
}

impl Attach {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        if !self.read_only {
            needs_a_terminal("attach", "; --read-only needs none")?;
        }
        let mut client = self.socket.connect()?;
        let id = resolve_one(&mut client, &self.task)?;
        let Attach { socket, reconnect, keys, read_only, .. } = self;
        Stay { socket, reconnect, keys: keys.detach_keys, read_only, cancels: false }
            .with(client, id)
    }
}

/// Refuses what cannot be done without a terminal.
pub(crate) fn needs_a_terminal(what: &'static str, advice: &str) -> Result<(), CliError> {
    match terminal::has_input() {
        true => Ok(()),
        false => {
            Err(UsageError::flag(what, format!("standard input is not a terminal{advice}")).into())
        }
    }
}

/// Staying at a task's terminal until it ends or the user leaves.
pub(crate) struct Stay {
    pub(crate) socket: SocketArg,
    pub(crate) reconnect: Reconnect,
    pub(crate) keys: DetachKeys,
    pub(crate) read_only: bool,
    /// A user who leaves before it has started does not want it any more.
    pub(crate) cancels: bool,
}

impl Stay {
    /// Stays with a task; the exit code is its own, as that of `run`.
    pub(crate) fn with(self, mut client: Client, id: u32) -> Result<ExitCode, CliError> {
        let has_started = Arc::new(AtomicBool::new(!self.cancels));
        self.on_leaving(id, has_started.clone());
        let mut session = Session::new(&self.keys, self.read_only)?;
        let (mut attempt, mut tries) = (0, 0);
        loop {
            let detail = self.until_it_runs(&mut client, id)?;
            if detail.task.state.is_over() {
                tell_end(&detail);
                return Ok(ExitCode::from(exit_code(&detail)));
            }
            has_started.store(true, Ordering::Release);
            if std::mem::replace(&mut attempt, detail.task.attempts) != detail.task.attempts {
                session.begin_anew();
            }
            let end = match self.attach(id, &session) {
                Ok(channel) => {
                    tries = 0;
                    session.run(channel)?
                }
                Err(CliError::Client(ClientError::Refused { code, .. }))
                    if PASSES.contains(&code.as_str()) && tries < MOST_TRIES =>
                {
                    tries += 1;
                    End::Ended(0)
                }
                Err(error) => return Err(error),
            };
            match end {
                End::Detached => {
                    eprintln!(
                        "coloc: left; task {id} goes on: `coloc attach {id}` comes back, `coloc cancel {id}` ends it"
                    );
                    return Ok(ExitCode::SUCCESS);
                }
                End::Lost(error) if !error.may_pass() => return Err(error.into()),
                End::Lost(_) => {}
                End::Ended(_) => std::thread::sleep(PERIOD),
            }
        }
    }

    fn attach(&self, id: u32, session: &Session) -> Result<Channel, CliError> {
        let size = terminal::size();
        let request = AttachRequest {
            read_only: self.read_only,
            rows: size.map(|size| size.rows),
            columns: size.map(|size| size.columns),
            from: session.position(),
        };
        self.reconnect.again(|| Ok(self.socket.connect()?.attach(id, &request)?))
    }

    /// A user who leaves is told what becomes of the task.
    fn on_leaving(&self, id: u32, has_started: Arc<AtomicBool>) {
        let socket = self.socket.clone();
        terminal::on_leaving(move |signal| {
            if has_started.load(Ordering::Acquire) {
                if signal == SIGINT {
                    eprintln!(
                        "\ncoloc: left; task {id} goes on: `coloc attach {id}` comes back, `coloc cancel {id}` ends it"
                    );
                }
                return;
            }
            let cancel = |mut client: Client| client.change(&[id], Change::Cancel).ok();
            match socket.connect().ok().and_then(cancel) {
                Some(_) => eprintln!("\ncoloc: task {id} is cancelled: it had not started"),
                None => {
                    eprintln!("\ncoloc: left; task {id} waits: `coloc cancel {id}` takes it back")
                }
            }
        });
    }

    /// Waits until a task runs or has ended. What keeps it is told to a user who waits for longer than a moment.
    fn until_it_runs(&self, client: &mut Client, id: u32) -> Result<TaskDetail, CliError> {
        let began = Instant::now();
        let mut told: Option<(Instant, String)> = None;
        loop {
            let detail = self.reconnect.ask(client, |client| client.show(id))?;
            let state = detail.task.state;
            if state.is_over() || matches!(state, TaskState::Running | TaskState::Preempting) {
                return Ok(detail);
            }
            let is_due = told.as_ref().is_none_or(|(at, _)| at.elapsed() > AGAIN);
            if state != TaskState::Launching && began.elapsed() > SOON && is_due {
                let why = self.reconnect.ask(client, |client| Ok(client.why(id).ok()))?;
                let why = why.map_or_else(|| state.to_string(), |why| why.summary);
                if told.as_ref().is_none_or(|(_, before)| *before != why) {
                    eprintln!("coloc: task {id} waits: {}{}", visible(&why), expected(client, id));
                }
                told = Some((Instant::now(), why));
            }
            std::thread::sleep(PERIOD);
        }
    }
}

/// When a task is expected to start, as the end of a sentence.
fn expected(client: &mut Client, id: u32) -> String {
    let start = client.expected(id).ok().and_then(|expected| expected.expected_start_s);
    match start.map(|at| at - Moment::now().secs()) {
        None => String::new(),
        Some(left) if left < 1.0 => "; it is expected to start soon".to_owned(),
        Some(left) => format!("; it is expected to start in {}", clock(left)),
    }
}
