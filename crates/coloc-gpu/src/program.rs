//! Running another program and waiting for its end, but not for ever.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

const LONGEST_REPLY: u64 = 1 << 20;
const POLL: Duration = Duration::from_millis(10);
const FIRST_POLL: Duration = Duration::from_micros(500);

/// Variables that a vendor's program may need; the others of our environment are not its business.
const PASSED_ON: [&str; 6] = ["PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "TZ"];
const PASSED_ON_PREFIXES: [&str; 4] = ["CUDA_", "NVIDIA_", "DCGM_", "COLOC_EMU"];

/// A program that is started with what it needs of our environment, and no more: what it starts inherits it in turn.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            PASSED_ON.contains(&name)
                || PASSED_ON_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    }));
    command
}

/// What a program said, where its output is piped.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// What it complains of: errors first.
    pub(crate) fn complaint(&self) -> String {
        format!("{} {}", self.stderr.trim(), self.stdout.trim()).trim().to_owned()
    }
}

/// A program that said nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// It cannot be run.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It took too long, and was ended.
    #[error("it did not end within {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Runs a program to its end, with this on its standard input where that is piped; ends it if it takes too long.
pub(crate) fn run(
    command: &mut Command,
    input: Option<&str>,
    deadline: Duration,
) -> Result<Said, ProgramError> {
    let mut child = command.spawn()?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // One that is gone closes the pipe; its exit says so.
        let _ = stdin.write_all(input.as_bytes());
    }
    let (stdout, stderr) = (read_aside(child.stdout.take()), read_aside(child.stderr.take()));
    let end = Instant::now() + deadline;
    let status = wait(&mut child, end)?.ok_or(ProgramError::TimedOut(deadline))?;
    Ok(Said { status, stdout: stdout.text(end), stderr: stderr.text(end) })
}

/// Waits for a child; one that takes too long is killed and collected.
fn wait(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    // Most answers take a few milliseconds, and the caller waits for them.
    let mut pause = FIRST_POLL;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            // It may have ended this moment; either way it is collected.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
        pause = POLL.min(pause * 2);
    }
}

/// A pipe that is read on a thread of its own, so that a child that writes much never waits for us.
struct Aside(std::sync::mpsc::Receiver<String>);

fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Aside {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is still worth having.
            let _ = pipe.take(LONGEST_REPLY).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    Aside(receiver)
}

impl Aside {
    /// What was written. A grandchild that keeps the pipe open makes it empty rather than late.
    fn text(self, end: Instant) -> String {
        let timeout = end.saturating_duration_since(Instant::now()).max(POLL);
        self.0.recv_timeout(timeout).unwrap_or_default()
    }
}
