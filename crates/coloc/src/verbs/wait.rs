//! `coloc wait` and `coloc run`: stay until tasks have ended, and end as they did.

use crate::args::live::{Selection, SocketArg, in_ranges, resolve};
use crate::args::task::TaskArgs;
use crate::error::{CliError, UsageError};
use crate::live::reconnect::Reconnect;
use crate::output::Answer;
use crate::output::visible::visible;
use crate::submission::batch_script::STDIN;
use crate::submission::presence;
use crate::terminal;
use crate::verbs::attach::{DetachArg, Stay, needs_a_terminal};
use crate::verbs::logs;
use crate::verbs::submit::name_the_last;
use clap::Args;
use coloc_api::client::{Client, ClientError};
use coloc_api::spec::TerminalSize;
use coloc_api::view::{TaskDetail, TaskView};
use coloc_model::TaskState;
use serde::Serialize;
use signal_hook::consts::SIGINT;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Exit codes for ends that have no code of their own; `docs/commands.md` lists them.
const TIMED_OUT: u8 = 124;
const CANCELLED: u8 = 125;
const OUT_OF_MEMORY: u8 = 126;
const LOST: u8 = 123;
/// 128 and the signal, as a shell has it.
const INTERRUPTED: i32 = 128 + SIGINT;
/// A task that waits longer is said to wait.
const SOON: Duration = Duration::from_secs(1);

/// Wait until tasks have ended; the exit code is that of the first that failed
#[derive(Args, Debug)]
pub(crate) struct Wait {
    /// The tasks: 7, 3-9, last or all
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<Selection>,
    /// Print JSON, once all have ended
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
}

/// Waits until all have ended; says how, and with the exit code of the first that failed.
pub(crate) fn until_ended(
    reconnect: Reconnect,
    client: &mut Client,
    ids: &[u32],
) -> Result<(Vec<Ended>, u8), CliError> {
    let (mut code, mut tasks) = (0, Vec::new());
    for &id in ids {
        let detail = reconnect.wait(client, id)?;
        if code == 0 {
            code = exit_code(&detail);
        }
        let TaskView { state, exit_code, reason, .. } = detail.task;
        tasks.push(Ended { id, state, exit_code, reason });
    }
    Ok((tasks, code))
}

/// How a task ended.
#[derive(Serialize)]
pub(crate) struct Ended {
    id: u32,
    state: TaskState,
    /// What the program itself said, if it ended by itself.
    exit_code: Option<i32>,
    reason: Option<String>,
}

impl Wait {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let mut client = self.socket.connect()?;
        let ids = resolve(&mut client, &self.tasks)?;
        let (tasks, code) = until_ended(self.reconnect, &mut client, &ids)?;
        if self.json {
            #[derive(Serialize)]
            struct Body {
                tasks: Vec<Ended>,
                exit_code: u8,
            }
            Answer { body: &Body { tasks, exit_code: code }, wall_s: None }.print()?;
        }
        Ok(ExitCode::from(code))
    }
}

/// Submit a task, show its output, and end as it does
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Run {
    /// Also show of its output what a terminal would obey
    #[arg(long)]
    raw: bool,
    /// Run it on a terminal of its own, which this one shows: job control, Ctrl-C and the size of the window are the program's
    #[arg(long)]
    pty: bool,
    #[command(flatten)]
    keys: DetachArg,
    /// Leave standard input alone. Otherwise a pipe or a file there is the task's
    #[arg(long, conflicts_with = "pty")]
    no_stdin: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
}

impl Run {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        if self.pty {
            return on_a_terminal(self.socket, self.reconnect, self.keys, self.task, "--pty");
        }
        let reads_script = self.task.command().first().is_some_and(|word| word == STDIN);
        let mut submission = self.task.submission()?;
        let is_free = submission.array.is_none() && !reads_script && !self.no_stdin;
        submission.spec.input = is_free && terminal::is_fed();
        if self.socket.host().is_none() {
            presence::check(&submission.spec)?;
        }
        let mut client = self.socket.connect()?;
        name_the_last(&mut client, &mut submission)?;
        let ids = self.reconnect.submit(&mut client, &submission)?.ids;
        say_farewell(&ids);
        if let (true, &[id]) = (submission.spec.input, ids.as_slice()) {
            terminal::feed(self.socket.clone(), self.reconnect, id);
        }
        let watched = std::io::stderr().is_terminal();
        let mut code = 0;
        for id in ids {
            if watched {
                say_start(self.reconnect, &mut client, id)?;
            }
            let all = logs::Wish { attempt: Some(1), lines: None };
            match logs::copy(&mut client, id, all, Some(self.reconnect), self.raw) {
                // A pipe or a device that its output goes to cannot be read: the task runs all the same.
                Err(CliError::Client(ClientError::Refused { message, .. })) => {
                    eprintln!("coloc: the output of task {id} is not shown: {}", visible(&message));
                }
                copied => copied?,
            }
            let task = self.reconnect.wait(&mut client, id)?;
            tell_end(&task);
            if code == 0 {
                code = exit_code(&task);
            }
        }
        Ok(ExitCode::from(code))
    }
}

/// Submits a task that runs on a terminal, and stays there.
pub(crate) fn on_a_terminal(
    socket: SocketArg,
    reconnect: Reconnect,
    keys: DetachArg,
    task: TaskArgs,
    what: &'static str,
) -> Result<ExitCode, CliError> {
    needs_a_terminal(what, "")?;
    if task.array.is_some() {
        return Err(UsageError::flag("--array", "one terminal shows one task".to_owned()).into());
    }
    let mut submission = task.submission()?;
    if socket.host().is_none() {
        presence::check(&submission.spec)?;
    }
    submission.spec.terminal = Some(terminal::size().unwrap_or(TerminalSize::USUAL));
    let mut client = socket.connect()?;
    let ids = reconnect.submit(&mut client, &submission)?.ids;
    let id = ids.first().copied().unwrap_or_default();
    eprintln!("coloc: task {id}");
    let keys = keys.detach_keys;
    Stay { socket, reconnect, keys, read_only: false, cancels: true }.with(client, id)
}

/// Tells how a task ended that did not end well.
pub(crate) fn tell_end(task: &TaskDetail) {
    let TaskView { id, state, reason, .. } = &task.task;
    if *state != TaskState::Completed {
        eprintln!(
            "coloc: task {id} is {state}: {}",
            visible(reason.as_deref().unwrap_or_default())
        );
    }
}

/// A user who leaves by Ctrl-C is told that the tasks stay, and what can be done with them.
fn say_farewell(ids: &[u32]) {
    let (tasks, last) = (in_ranges(ids), ids.last().copied().unwrap_or_default());
    let tasks = tasks.replace(", ", ",");
    let told = format!(
        "\ncoloc: left; what was submitted goes on: `coloc logs -f {last}` shows its output, \
         `coloc cancel {tasks}` ends it"
    );
    // Without this, Ctrl-C ends this program all the same, only in silence.
    let Ok((mut reader, writer)) = UnixStream::pair() else { return };
    if signal_hook::low_level::pipe::register(SIGINT, writer).is_err() {
        return;
    }
    std::thread::spawn(move || {
        if reader.read_exact(&mut [0]).is_ok() {
            eprintln!("{told}");
            std::process::exit(INTERRUPTED);
        }
    });
}

/// Tells a task's id, and that it waits if it does not start soon.
fn say_start(reconnect: Reconnect, client: &mut Client, id: u32) -> Result<(), CliError> {
    eprintln!("coloc: task {id}");
    let began = Instant::now();
    while reconnect.ask(client, |client| client.show(id))?.task.state == TaskState::Pending {
        if began.elapsed() > SOON {
            eprintln!("coloc: task {id} waits for a GPU; `coloc why {id}` says what keeps it");
            break;
        }
        std::thread::sleep(SOON / 10);
    }
    Ok(())
}

/// The exit code that says how a task ended.
pub(crate) fn exit_code(task: &TaskDetail) -> u8 {
    let own = task.task.exit_code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    match task.task.state {
        TaskState::Completed => 0,
        TaskState::TimedOut => TIMED_OUT,
        TaskState::Cancelled => CANCELLED,
        TaskState::OutOfMemory => OUT_OF_MEMORY,
        TaskState::Lost => LOST,
        _ => own.max(1),
    }
}
