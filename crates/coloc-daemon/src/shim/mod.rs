//! The shim: one small process for each running task.
//!
//! It outlives the daemon, so that a restart finds tasks running and learns how those ended that did not
//! wait for it. It leads the task's session, keeps its log, minds its time limit, and sees to it that
//! nothing of the task is left when it is over.

mod child;
mod clients;
mod log;
mod tree;

use crate::cgroup::{Doors, TaskGroup};
use crate::record::{Exit, Moment};
use crate::run::{
    Claim, Ended, GroupPlace, Order, Process, RunAs, RunDir, RunError, Started, Stopped,
};
use crate::text::RawText;
use child::Program;
use coloc_gpu::process::ProcessTable;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open, waitpid};
use std::io::{self, PipeReader, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What outlives the program may still write this long.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// The exit code of a program that could not be started, as shells have it.
const CANNOT_START: i32 = 127;
/// Others wait for the GPUs of a task that has to go: nobody gets longer than this to save its work.
const LONGEST_FAREWELL: Duration = Duration::from_secs(300);

/// A shim that could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// A file of the attempt.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The system says no.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> ShimError {
    move |source| ShimError::System { what, source: source.into() }
}

/// Runs the order in a directory to its end.
pub fn run(dir: &RunDir) -> Result<(), ShimError> {
    let order = dir.order()?;
    // As root, where the daemon is root: the group is not its user's to change.
    let group = order.group.as_ref().map(Group::open);
    rustix::process::setsid().map_err(system("lead a session"))?;
    let doors = group.as_ref().and_then(|group| group.as_ref().ok()).map(|group| &group.doors);
    let program = Program::bear(&order, doors);
    if let Some(user) = &order.user {
        become_user(user)?;
    }
    if dir.claim()? == Claim::Taken {
        // The daemon gave this attempt up, or another shim has it.
        return Ok(());
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(system("adopt orphans"))?;
    let asked = Asked { at_once: on(Signal::SIGTERM)?, after_warning: on(Signal::SIGUSR1)? };
    // A file for its output may be there too: what is wrong is told as what it is.
    if let Some(why) = no_directory(&order) {
        if let Ok(mut log) = log::Log::of(dir, &order) {
            let _ = log.say(&format!("coloc: {why}\n"));
        }
        return Ok(dir.write_ended(&never_started(why))?);
    }
    let mut log = match log::Log::open(dir, &order) {
        Ok(log) => log,
        Err((place, error)) => {
            let why = format!("cannot write the output to {}: {error}", place.display());
            return Ok(dir.write_ended(&never_started(why))?);
        }
    };
    if let Some(Err(error)) = &group {
        let _ = log.say(&format!("coloc: runs without a control group: {error}\n"));
    }
    let group = group.and_then(Result::ok);
    let begin = |(program, streams): (Program, Streams)| Ok((program.begin()?, streams));
    let (program, streams) = match program.and_then(begin) {
        Ok(begun) => begun,
        Err(error) => {
            let why = why_not(&order, &error);
            let _ = log.say(&format!("coloc: {why}\n"));
            return Ok(dir.write_ended(&never_started(why))?);
        }
    };
    let began = |pid| ProcessTable::default().started(pid).unwrap_or(0);
    let process = |pid| Process { pid, began: began(pid) };
    let (shim, main) = (process(std::process::id()), process(program.as_raw_pid() as u32));
    let group = group.filter(|group| group.group.holds(main.pid));
    let (at, in_group) = (Moment::now(), group.is_some());
    dir.write_started(&Started { shim, main, at, in_group, can_warn: true })?;
    // A task that can run may run, with room for its last word or without.
    let _ = dir.make_room_for_the_end();
    let copies = log.copy(streams);
    let watch = Watch { order: &order, program, asked, stopped: None, group: group.as_ref() };
    let ended = watch.until_the_end()?;
    finish(&order, copies, group.as_ref());
    let host_memory = group.as_ref().and_then(|group| group.group.host_memory());
    Ok(dir.write_ended(&Ended { host_memory, ..ended })?)
}

fn never_started(why: String) -> Ended {
    let exit = Exit::Code(CANNOT_START);
    Ended { exit, at: Moment::now(), stopped: None, host_memory: None, unstarted: Some(why) }
}

/// A system says of a directory that is not there what it says of a program.
fn no_directory(order: &Order) -> Option<String> {
    let directory = order.directory.as_path();
    let problem = match directory.metadata() {
        Ok(meta) if meta.is_dir() => return None,
        Ok(_) => "it is not a directory".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "there is no such directory".to_owned()
        }
        Err(error) => error.to_string(),
    };
    Some(format!("cannot start in {}: {problem}", directory.display()))
}

fn why_not(order: &Order, error: &io::Error) -> String {
    let program = order.command.first().map_or("".into(), RawText::to_string_lossy);
    format!("cannot start {program}: {error}")
}

/// The program's control group, with what it takes to enter it and to kill everybody in it.
struct Group {
    group: TaskGroup,
    doors: Doors,
}

impl Group {
    fn open(place: &GroupPlace) -> io::Result<Group> {
        let group = TaskGroup::at(place.path.as_path().to_owned(), place.name.clone());
        Ok(Group { doors: group.open()?, group })
    }
}

/// Kills everything that the shim has started, clients of MPS in the order that is safe for others.
fn kill_all(order: &Order, group: Option<&Group>) {
    if let Err(error) = clients::end(order) {
        // Nobody reads this but who looks for it: the daemon's own errors go there too.
        eprintln!("coloc shim: killed without its MPS server's knowledge: {error}");
    }
    let killed = group.is_some_and(|group| group.doors.kill());
    // Without a group, and for whoever is not in it.
    tree::kill_all(killed);
}

/// Gives up root for good. Groups first: afterwards it would not be allowed.
fn become_user(user: &RunAs) -> Result<(), ShimError> {
    use nix::unistd::{Gid, Uid, initgroups, setgid, setuid};
    let name = std::ffi::CString::new(user.name.as_str())
        .map_err(|error| system("use the user's name")(io::Error::other(error)))?;
    initgroups(&name, Gid::from_raw(user.gid)).map_err(system("join the user's groups"))?;
    setgid(Gid::from_raw(user.gid)).map_err(system("take the user's group"))?;
    setuid(Uid::from_raw(user.uid)).map_err(system("become the user"))
}

/// A stream with a byte in it once somebody sent that signal.
fn on(signal: Signal) -> Result<UnixStream, ShimError> {
    let (reader, writer) = UnixStream::pair().map_err(system("make a pipe"))?;
    reader.set_nonblocking(true).map_err(system("use a pipe"))?;
    signal_hook::low_level::pipe::register(signal as i32, writer)
        .map_err(system("catch a signal"))?;
    Ok(reader)
}

/// How the daemon tells a shim to end its program.
struct Asked {
    /// At once, by SIGTERM.
    at_once: UnixStream,
    /// After the warning that the program wants, by SIGUSR1.
    after_warning: UnixStream,
}

/// The program's output, and its errors where they go elsewhere.
pub(crate) struct Streams {
    pub(crate) output: PipeReader,
    pub(crate) errors: Option<PipeReader>,
}

/// The program while it runs.
struct Watch<'a> {
    order: &'a Order,
    program: Pid,
    asked: Asked,
    stopped: Option<Stopped>,
    group: Option<&'a Group>,
}

impl Watch<'_> {
    fn until_the_end(mut self) -> Result<Ended, ShimError> {
        let pidfd =
            pidfd_open(self.program, PidfdFlags::empty()).map_err(system("watch the program"))?;
        let began = Instant::now();
        let after = |span: coloc_model::Millis| began + Duration::from_millis(span.0);
        let limit = self.order.time_limit;
        let mut end = limit.map(after);
        let mut warn = limit.zip(self.order.warning).map(|(limit, warning)| {
            (after(coloc_model::Millis(limit.0.saturating_sub(warning.before.0))), warning.signal)
        });
        let (mut leave, mut kill) = (None, None);
        loop {
            let next = [end, warn.map(|(at, _)| at), leave, kill].into_iter().flatten().min();
            if self.wait(&pidfd, next)? {
                return self.reap();
            }
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
            if due(warn.map(|(at, _)| at)) {
                self.signal(warn.take().and_then(|(_, signal)| Signal::try_from(signal).ok()));
            }
            let told = |from: &mut UnixStream| from.read(&mut [0; 16]).is_ok_and(|bytes| bytes > 0);
            if told(&mut self.asked.after_warning) && leave.is_none() && self.stopped.is_none() {
                let lead = self.warn_of_leaving(&mut warn);
                leave = Some(Instant::now() + lead);
            }
            let asked = told(&mut self.asked.at_once) || due(leave);
            if self.stopped.is_none() && (asked || due(end)) {
                self.stopped = Some(if asked { Stopped::Asked } else { Stopped::TimeLimit });
                leave = None;
                self.signal(Some(Signal::SIGTERM));
                end = None;
                kill = Some(Instant::now() + Duration::from_millis(self.order.grace.0));
            }
            if due(kill) {
                kill = None;
                kill_all(self.order, self.group);
            }
        }
    }

    /// Sends the program the signal that it wants to hear before it has to go, unless it has heard it; says how long it
    /// has from now on.
    fn warn_of_leaving(&self, due: &mut Option<(Instant, i32)>) -> Duration {
        let Some(warning) = self.order.warning else { return Duration::ZERO };
        let heard = self.order.time_limit.is_some() && due.take().is_none();
        if !heard {
            self.signal(Signal::try_from(warning.signal).ok());
        }
        Duration::from_millis(warning.before.0).min(LONGEST_FAREWELL)
    }

    /// Sleeps until the program ended (true), somebody asks, or the time has come.
    fn wait(&self, pidfd: &OwnedFd, until: Option<Instant>) -> Result<bool, ShimError> {
        let mut watched = [
            PollFd::new(pidfd, PollFlags::IN),
            PollFd::new(&self.asked.at_once, PollFlags::IN),
            PollFd::new(&self.asked.after_warning, PollFlags::IN),
        ];
        let timeout = until.map(|at| {
            let span = at.saturating_duration_since(Instant::now());
            rustix::event::Timespec {
                tv_sec: span.as_secs() as i64,
                tv_nsec: i64::from(span.subsec_nanos()),
            }
        });
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!watched[0].revents().is_empty()),
            Err(error) => Err(system("wait for the program")(error)),
        }
    }

    /// The program alone: its workers would die of a signal that it handles.
    fn signal(&self, signal: Option<Signal>) {
        let pid = nix::unistd::Pid::from_raw(self.program.as_raw_pid());
        if let Some(signal) = signal {
            let _ = nix::sys::signal::kill(pid, signal);
        }
    }

    fn reap(self) -> Result<Ended, ShimError> {
        let reaped = waitpid(Some(self.program), WaitOptions::empty());
        let status = reaped.map_err(system("wait for the program"))?.map(|(_, status)| status);
        let exit = match status.and_then(WaitStatus::exit_status) {
            Some(code) => Exit::Code(code),
            None => Exit::Signal(status.and_then(WaitStatus::terminating_signal).unwrap_or(0)),
        };
        Ok(Ended {
            exit,
            at: Moment::now(),
            stopped: self.stopped,
            host_memory: None,
            unstarted: None,
        })
    }
}

/// Waits for the rest of the output; whoever still holds the pipe then is killed.
fn finish(order: &Order, copies: Vec<JoinHandle<()>>, group: Option<&Group>) {
    let patience = Instant::now() + LAST_WORDS;
    while copies.iter().any(|copy| !copy.is_finished()) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_all(order, group);
    for copy in copies {
        let _ = copy.join();
    }
}
