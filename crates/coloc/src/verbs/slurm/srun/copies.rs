//! The copies of a command: started together, told of signals, waited for.

use super::output::Mode;
use super::wrong;
use crate::error::CliError;
use crate::submission::environment::exported;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Signals that are passed on.
const PASSED_ON: [i32; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGCONT,
];
/// From a polite request to end to a kill.
const GRACE: Duration = Duration::from_secs(5);
/// Variables that a copy has whatever is exported.
const KEPT: [&str; 6] = ["SLURM", "COLOC_", "CUDA_", "NVIDIA_", "MASTER_", "OMP_NUM_THREADS"];

/// When copies are ended although they would go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    /// When one of them failed.
    pub(super) on_failure: bool,
    /// So long after the first of them ended.
    pub(super) after_first: Option<Duration>,
    /// After so long in any case.
    pub(super) limit: Option<Duration>,
}

/// Copies of a command that are to be run.
pub(super) struct Copies {
    pub(super) command: Vec<OsString>,
    pub(super) directory: Option<PathBuf>,
    /// Which copy reads, or a file that all read; all, if nothing is said.
    pub(super) input: Option<String>,
    /// Of each copy.
    pub(super) environment: Vec<Vec<(OsString, OsString)>>,
    pub(super) mode: Mode,
    pub(super) ends: Ends,
}

/// The program with its arguments and variables.
pub(super) fn command(words: &[OsString], environment: &[(OsString, OsString)]) -> Command {
    let mut command = Command::new(words.first().cloned().unwrap_or_default());
    command.args(words.iter().skip(1)).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

/// The variables that copies inherit: all, or those that are named and those that tell them what they are.
pub(super) fn inherited(export: Option<&str>) -> Vec<(OsString, OsString)> {
    let Some(export) = export else { return std::env::vars_os().collect() };
    let words: Vec<OsString> = export.split(',').map(OsString::from).collect();
    let named = exported(Some(&words));
    let mut all: Vec<(OsString, OsString)> = named
        .into_iter()
        .map(|(name, value)| (name.as_os_str().to_owned(), value.as_os_str().to_owned()))
        .collect();
    for (name, value) in std::env::vars_os() {
        let is_kept = KEPT.iter().any(|kept| name.as_encoded_bytes().starts_with(kept.as_bytes()));
        if is_kept && all.iter().all(|(known, _)| *known != name) {
            all.push((name, value));
        }
    }
    all
}

/// The copies that have not been waited for, by their process groups.
#[derive(Clone, Default)]
struct Alive(Arc<Mutex<Vec<Pid>>>);

impl Alive {
    fn groups(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, signal: Signal) {
        for &group in self.groups().iter() {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Waits for a copy. It is forgotten before its number can be another's.
    fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
        self.groups().retain(|&known| known != pid);
        child.wait()
    }
}

impl Copies {
    /// Runs them; says the highest of their exit codes.
    pub(super) fn run(self) -> Result<u8, CliError> {
        let alive = Alive::default();
        pass_signals_on(&alive).map_err(|error| wrong("signals", error.to_string()))?;
        let (tell, told) = channel();
        let (mut inputs, mut labels) = (Vec::new(), Vec::new());
        for rank in 0..self.environment.len() as u32 {
            let started = self.start(rank, &alive);
            let mut child = started.inspect_err(|_| alive.tell(Signal::KILL))?;
            inputs.extend(child.stdin.take());
            let errors = child.stderr.take();
            labels.extend(errors.map(|errors| self.mode.label(rank, errors, true)));
            let output = child.stdout.take();
            labels.extend(output.map(|output| self.mode.label(rank, output, false)));
            wait_for(rank, child, alive.clone(), tell.clone());
        }
        drop(tell);
        feed(inputs);
        let code = self.until_all_ended(&alive, &told);
        // What they wrote last is shown; what they left running may hold the pipe for ever.
        let end = Instant::now() + GRACE;
        for label in labels {
            while !label.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(code)
    }

    fn start(&self, rank: u32, alive: &Alive) -> Result<Child, CliError> {
        let program = self.command.first().cloned().unwrap_or_default();
        let failed = |error: io::Error| wrong(&program.to_string_lossy(), error.to_string());
        let streams = self.mode.streams(rank).map_err(failed)?;
        let environment = &self.environment[rank as usize];
        let mut command = command(&self.command, environment);
        // A group of its own: what a terminal sends to srun is passed on once.
        command.stdin(self.input_of(rank)?).stdout(streams.output).stderr(streams.errors);
        command.process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let mut groups = alive.groups();
        let child = command.spawn().map_err(failed)?;
        groups.push(Pid::from_child(&child));
        Ok(child)
    }

    fn input_of(&self, rank: u32) -> Result<Stdio, CliError> {
        let fed = || match is_nothing(&io::stdin()) {
            true => Stdio::null(),
            false => Stdio::piped(),
        };
        match self.input.as_deref() {
            None | Some("all") => Ok(fed()),
            Some("none") => Ok(Stdio::null()),
            Some(text) => match text.parse::<u32>() {
                Ok(only) if only == rank => Ok(fed()),
                Ok(_) => Ok(Stdio::null()),
                Err(_) => {
                    let file = std::fs::File::open(text);
                    let file = file.map_err(|error| wrong("--input", format!("{text}: {error}")));
                    Ok(file?.into())
                }
            },
        }
    }

    /// Waits for all, and ends those that must not go on.
    fn until_all_ended(
        &self,
        alive: &Alive,
        told: &std::sync::mpsc::Receiver<(u32, io::Result<ExitStatus>)>,
    ) -> u8 {
        let began = Instant::now();
        let mut end = self.ends.limit.map(|limit| began + limit);
        let (mut kill, mut code) = (None, 0);
        loop {
            let next = [end, kill].into_iter().flatten().min();
            let patience = next.map_or(Duration::from_secs(3600), |at| {
                at.saturating_duration_since(Instant::now())
            });
            match told.recv_timeout(patience) {
                Ok((rank, status)) => {
                    let ended = tell_end(rank, status);
                    code = code.max(ended);
                    if ended != 0 && self.ends.on_failure {
                        end = Some(Instant::now());
                    }
                    let later = self.ends.after_first.map(|span| Instant::now() + span);
                    end = end.or(later);
                }
                Err(RecvTimeoutError::Disconnected) => return code,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
            if due(kill) {
                alive.tell(Signal::KILL);
                kill = Some(Instant::now() + GRACE);
            } else if due(end) && kill.is_none() {
                alive.tell(Signal::TERM);
                kill = Some(Instant::now() + GRACE);
                end = None;
            }
        }
    }
}

/// Says how a copy ended that did not end well.
fn tell_end(rank: u32, status: io::Result<ExitStatus>) -> u8 {
    let host = std::env::var("SLURMD_NODENAME").unwrap_or_else(|_| "localhost".to_owned());
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(0), _) => 0,
            (Some(code), _) => {
                eprintln!("srun: error: {host}: task {rank}: Exited with exit code {code}");
                u8::try_from(code).unwrap_or(1)
            }
            (None, signal) => {
                let signal = signal.unwrap_or(0);
                eprintln!("srun: error: {host}: task {rank}: Ended by signal {signal}");
                u8::try_from(128 + signal).unwrap_or(1)
            }
        },
        Err(error) => {
            eprintln!("srun: error: {host}: task {rank}: {error}");
            1
        }
    }
}

fn wait_for(
    rank: u32,
    mut child: Child,
    alive: Alive,
    tell: Sender<(u32, io::Result<ExitStatus>)>,
) {
    std::thread::spawn(move || {
        let status = alive.wait(&mut child);
        let _ = tell.send((rank, status));
    });
}

/// Passes signals on to all copies, instead of ending.
fn pass_signals_on(alive: &Alive) -> io::Result<()> {
    for signal in PASSED_ON {
        let (mut heard, writer) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(signal, writer)?;
        let alive = alive.clone();
        let Some(signal) = Signal::from_named_raw(signal) else { continue };
        std::thread::spawn(move || {
            while heard.read_exact(&mut [0]).is_ok() {
                alive.tell(signal);
            }
        });
    }
    Ok(())
}

/// Standard input is /dev/null: there is nothing to pass on.
fn is_nothing(input: &io::Stdin) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let null = std::fs::metadata("/dev/null").map(|meta| meta.rdev());
    let own = rustix::fs::fstat(input).map(|stat| stat.st_rdev);
    null.is_ok_and(|null| own.is_ok_and(|own| own == null))
}

/// Gives every copy what comes on standard input.
fn feed(mut inputs: Vec<ChildStdin>) {
    if inputs.is_empty() {
        return;
    }
    std::thread::spawn(move || {
        let mut part = [0; 8192];
        while let Ok(length @ 1..) = io::stdin().lock().read(&mut part) {
            // A copy that reads no more is passed over.
            inputs.retain_mut(|input| input.write_all(&part[..length]).is_ok());
            if inputs.is_empty() {
                return;
            }
        }
    });
}
