//! Talking to control daemons: the thin part that touches the world.

use super::cancel::{CancelPlan, CancelStep};
use super::control::{ControlStep, StartPlan};
use super::layout::DaemonLayout;
use super::protocol::{Command, ReplyError, parse_limit, parse_percentage, parse_pids};
use crate::device::Uuid;
use crate::enforce::{ReadBack, Rung};
use crate::program::{self, ProgramError};
use coloc_model::Bytes;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The daemon's program, by name or path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program(pub PathBuf);

impl Default for Program {
    fn default() -> Self {
        Program(PathBuf::from("nvidia-cuda-mps-control"))
    }
}

/// MPS could not be set up, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum MpsError {
    /// The program is not there, or cannot be run.
    #[error("cannot run {}: {source}; it comes with the NVIDIA driver's compute utilities", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder could not be made.
    #[error("cannot make {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The daemon did not answer in time.
    #[error("the MPS control daemon in {} did not answer `{command}` within {} s", pipe.display(), after.as_secs())]
    TimedOut {
        /// Its folder.
        pipe: PathBuf,
        /// What it was told.
        command: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The daemon refused.
    #[error("the MPS control daemon refused `{command}`: {detail}")]
    Refused {
        /// What it was told.
        command: String,
        /// What it said.
        detail: String,
    },
    /// The daemon said something that cannot be read.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// A limit does not read back as it was set: it would not hold.
    #[error("MPS is not ready: `{command}` reads {read}, and {set} was set")]
    NotReady {
        /// The question.
        command: String,
        /// What it answers.
        read: String,
        /// What was set.
        set: String,
    },
}

/// A connection to the control daemon of a layout.
#[derive(Clone, Debug)]
pub struct Control<'a> {
    program: &'a Program,
    layout: &'a DaemonLayout,
    deadline: Duration,
}

const POLL: Duration = Duration::from_millis(10);

impl<'a> Control<'a> {
    /// A connection whose every answer must come within `deadline`.
    pub fn new(program: &'a Program, layout: &'a DaemonLayout, deadline: Duration) -> Self {
        Control { program, layout, deadline }
    }

    fn command(&self) -> std::process::Command {
        let mut command = program::command(&self.program.0);
        let gpus: Vec<&str> = self.layout.gpus.iter().map(|gpu| gpu.as_str()).collect();
        command
            .env("CUDA_MPS_PIPE_DIRECTORY", &self.layout.pipe)
            .env("CUDA_MPS_LOG_DIRECTORY", &self.layout.log)
            .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            .env("CUDA_VISIBLE_DEVICES", gpus.join(","))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Tells the daemon something and reads its answer.
    pub fn tell(&self, command: &Command) -> Result<String, MpsError> {
        self.tell_all(&[command])
    }

    /// Tells the daemon several things at once and reads all that it answers: to start a program takes longer than to
    /// be answered.
    fn tell_all(&self, commands: &[&Command]) -> Result<String, MpsError> {
        let mut command = self.command();
        command.stdin(Stdio::piped());
        let what: Vec<String> = commands.iter().map(|command| command.to_string()).collect();
        self.answer(command, &what.join("; "), Some(&(what.join("\n") + "\n")))
    }

    /// Runs the program to its end.
    fn answer(
        &self,
        mut command: std::process::Command,
        what: &str,
        input: Option<&str>,
    ) -> Result<String, MpsError> {
        let said =
            program::run(&mut command, input, self.deadline).map_err(|error| match error {
                ProgramError::Io(source) => self.no_program(source),
                ProgramError::TimedOut(after) => MpsError::TimedOut {
                    pipe: self.layout.pipe.clone(),
                    command: what.to_owned(),
                    after,
                },
            })?;
        match said.status.success() {
            true => Ok(said.stdout),
            false => Err(MpsError::Refused { command: what.to_owned(), detail: said.complaint() }),
        }
    }

    fn no_program(&self, source: io::Error) -> MpsError {
        MpsError::Program { program: self.program.0.clone(), source }
    }

    /// PIDs of the servers.
    pub fn servers(&self) -> Result<Vec<u32>, MpsError> {
        let command = Command::GetServerList;
        Ok(parse_pids(&command, &self.tell(&command)?)?)
    }

    /// The clients of all servers: server and client.
    pub fn clients(&self) -> Result<Vec<(u32, u32)>, MpsError> {
        let mut clients = Vec::new();
        for server in self.servers()? {
            let command = Command::GetClientList { server };
            let list = parse_pids(&command, &self.tell(&command)?)?;
            clients.extend(list.into_iter().map(|client| (server, client)));
        }
        Ok(clients)
    }

    /// Whether a daemon answers in these folders.
    pub fn is_running(&self) -> bool {
        self.servers().is_ok()
    }

    /// Carries out a plan to start the layout's daemon.
    pub fn start(&self, plan: &StartPlan) -> Result<(), MpsError> {
        self.carry_out(&plan.steps)
    }

    /// Carries out steps in order, up to the first that fails.
    pub fn carry_out(&self, steps: &[ControlStep]) -> Result<(), MpsError> {
        let mut to_tell: Vec<&Command> = Vec::new();
        for step in steps {
            if let ControlStep::Tell(command) = step {
                to_tell.push(command);
                continue;
            }
            let told = std::mem::take(&mut to_tell);
            match step {
                ControlStep::Tell(_) => {}
                ControlStep::MakeFolder(folder) => make_folder(folder)?,
                ControlStep::StartDaemon if self.is_running() => {}
                ControlStep::StartDaemon => self.start_daemon()?,
                ControlStep::ExpectThreads { command, percentage } => {
                    self.expect(&told, command, &percentage.to_string(), |reply| {
                        let read = parse_percentage(command, reply)?;
                        Ok(((read - percentage).abs() < 0.1, read.to_string()))
                    })?;
                }
                ControlStep::ExpectLimit { command, limit } => {
                    self.expect_limit(&told, command, *limit)?;
                }
            }
        }
        if to_tell.is_empty() { Ok(()) } else { self.tell_all(&to_tell).map(drop) }
    }

    fn start_daemon(&self) -> Result<(), MpsError> {
        let mut command = self.command();
        // The daemon keeps what it inherits; it must not keep our pipes open.
        command.arg("-d").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.answer(command, "nvidia-cuda-mps-control -d", None).map(drop)
    }

    /// Asks for a limit of memory until it reads as set.
    fn expect_limit(
        &self,
        told: &[&Command],
        command: &Command,
        limit: Bytes,
    ) -> Result<(), MpsError> {
        self.expect(told, command, &limit.to_string(), |reply| {
            let read = parse_limit(command, reply)?;
            // The daemon may round to its own unit, never below what was promised.
            let near = |read: Bytes| read.0.abs_diff(limit.0) <= 1 << 20;
            let says = read.map_or("no limit".to_owned(), |read| read.to_string());
            Ok((read.is_some_and(near), says))
        })
    }

    /// The limit of memory that clients of future servers have on a GPU, against the one that was set.
    pub fn read_back(&self, gpu: &Uuid, set: Bytes) -> Result<ReadBack, MpsError> {
        let command = Command::GetDefaultDevicePinnedMemLimit { gpu: gpu.clone() };
        let read = parse_limit(&command, &self.tell(&command)?)?;
        Ok(ReadBack { rung: Rung::MpsPinnedLimit, set, read })
    }

    /// Tells it what is `told`, then asks until the answer is as it should be.
    fn expect(
        &self,
        told: &[&Command],
        command: &Command,
        set: &str,
        judge: impl Fn(&str) -> Result<(bool, String), ReplyError>,
    ) -> Result<(), MpsError> {
        let end = Instant::now() + self.deadline;
        let all: Vec<&Command> = told.iter().copied().chain([command]).collect();
        let replies = self.tell_all(&all)?;
        // The last line answers the last of them; if it does not, the question is asked alone.
        let last = replies.trim_end().lines().last().unwrap_or("");
        if judge(last).is_ok_and(|(holds, _)| holds) {
            return Ok(());
        }
        loop {
            let (holds, read) = judge(&self.tell(command)?)?;
            if holds {
                return Ok(());
            }
            if Instant::now() >= end {
                let (command, set) = (command.to_string(), set.to_owned());
                return Err(MpsError::NotReady { command, read, set });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Ends the daemon and its servers.
    pub fn quit(&self) -> Result<(), MpsError> {
        self.tell(&Command::Quit).map(drop)
    }

    /// Carries out a plan to end a task's processes; returns those that are still alive at its end.
    pub fn cancel(&self, plan: &CancelPlan, pids: &[u32]) -> Result<Vec<u32>, MpsError> {
        let left = || -> Vec<u32> { pids.iter().copied().filter(|&pid| is_alive(pid)).collect() };
        for step in &plan.steps {
            if left().is_empty() {
                break;
            }
            match step {
                CancelStep::Terminate { pids } => signal(pids, Signal::TERM),
                CancelStep::Kill { pids } => signal(pids, Signal::KILL),
                CancelStep::Wait(span) => {
                    let end = Instant::now() + Duration::from_millis(span.0);
                    while !left().is_empty() && Instant::now() < end {
                        std::thread::sleep(POLL);
                    }
                }
                CancelStep::Tell(commands) => {
                    for command in commands {
                        let over = matches!(command, Command::TerminateClient { client, .. } if !is_alive(*client));
                        // A server that does not answer must not keep a task from ending.
                        if !over && matches!(self.tell(command), Err(MpsError::TimedOut { .. })) {
                            break;
                        }
                    }
                }
            }
        }
        Ok(left())
    }
}

fn make_folder(folder: &Path) -> Result<(), MpsError> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| MpsError::Folder { folder: folder.to_owned(), source })
}

fn as_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended: only its parent has not looked yet.
    let zombie = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')));
    as_pid(pid).is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH)) && !zombie
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|&pid| as_pid(pid)) {
        // One that has ended in the meantime needs no signal.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
#[path = "executor_test.rs"]
mod tests;
