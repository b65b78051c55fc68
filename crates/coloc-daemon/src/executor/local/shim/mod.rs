//! The shim: one small process for each running task.
//!
//! It outlives the daemon, so that a restart finds tasks running and learns how tasks ended that did not wait for it.
//! It leads the task's session, keeps its log, minds its time limit, and sees to it that nothing of the task is left
//! when it is over. A root daemon's shim is root to its end: the task can neither stop nor kill it. Only the program
//! becomes the task's user.

mod attach;
mod beside;
mod child;
mod clients;
mod exec;
mod hearers;
mod hooks;
mod input;
mod log;
mod terminal;
mod tree;
mod visit;
mod watch;

pub(crate) use clients::end_clients;
pub(crate) use tree::descendants;

use crate::executor::local::as_user::with_identity;
use crate::executor::local::cgroup::{GroupFiles, TaskGroup};
use crate::executor::local::run::{
    Ended, GroupPlace, Order, RunAs, RunDir, RunError, Started, boot_id,
};
use crate::record::{Exit, Uid};
use child::Program;
use coloc_api::moment::Moment;
use coloc_api::text::RawText;
use coloc_api::view::Process;
use coloc_gpu::process::ProcessTable;
use input::Input;
use log::{Log, Source};
use nix::sys::signal::Signal;
use rustix::process::Pid;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use terminal::Terminal;
use visit::{Host, Visits};
use watch::Watch;

/// What outlives the program may still write this long.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Output that is on its way when nothing of the task is left has this long to get there: a pipe whose reader has stopped
/// must not keep the task from ending.
const LAST_COPY: Duration = Duration::from_secs(2);
/// A run directory that cannot be written for longer than this keeps how the task ended to itself.
const TELL_TIMEOUT: Duration = Duration::from_secs(600);
/// The exit code of a program that could not be started, as shells have it.
const CANNOT_START: i32 = 127;
/// Other tasks wait for the GPUs of a task that has to go: no task gets longer than this to save its work.
pub(crate) const LONGEST_FAREWELL: Duration = Duration::from_secs(300);

/// A shim that could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// A file of the attempt.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It was not told what to run.
    #[error("the order on standard input cannot be read: {0}")]
    Order(io::Error),
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

/// Runs the order on standard input to its end, with its files in a directory.
pub fn run(dir: &RunDir) -> Result<(), ShimError> {
    let done = prepare().and_then(|prepared| prepared.run(dir));
    if let Err(error) = &done {
        // Whatever it was, it was not the task's doing.
        dir.write_fault(&error.to_string());
    }
    done
}

/// A shim that is ready to start its program, and has not.
struct Prepared {
    order: Order,
    asked: Asked,
    group: Option<io::Result<Group>>,
    program: io::Result<(Program, Streams)>,
}

/// Everything that takes no decision: none of it is seen outside.
fn prepare() -> Result<Prepared, ShimError> {
    crate::descriptors::inherit_none();
    let order = read_order().map_err(ShimError::Order)?;
    // Before the claim: from then on the daemon may send them.
    let asked = Asked {
        at_once: on(Signal::SIGTERM)?,
        after_warning: on(Signal::SIGUSR1)?,
        other_limit: on(Signal::SIGUSR2)?,
    };
    let group = order.group.as_ref().map(Group::open);
    rustix::process::setsid().map_err(system("lead a session"))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(system("adopt orphans"))?;
    let group_files =
        group.as_ref().and_then(|group| group.as_ref().ok()).map(|group| &group.group_files);
    let program = Program::bear(&order, group_files);
    Ok(Prepared { order, asked, group, program })
}

/// The order comes by a descriptor that the daemon opened: no user could have changed it on the way.
fn read_order() -> io::Result<Order> {
    let mut body = Vec::new();
    io::stdin().lock().read_to_end(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

impl Prepared {
    fn run(self, dir: &RunDir) -> Result<(), ShimError> {
        let Prepared { order, mut asked, group, program } = self;
        let main = program.as_ref().ok().map(|(program, _)| process(program.pid()));
        let (group, groupless) = match group {
            Some(Ok(group)) => (Some(group), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let group = group.filter(|group| main.is_some_and(|main| group.group.has(main.pid)));
        let mut log = open_log(dir, &order);
        // Before the claim: from then on clients may come.
        let listener = visit::listener_in(dir);
        if !dir.claim(&started(main, group.is_some()))? {
            // The daemon gave this attempt up. The process that waits to become the program goes with its pipe.
            return Ok(());
        }
        let began = Instant::now();
        if let Err(ended) = hooks::before(&order, log.as_mut().ok(), &mut asked) {
            drop(program);
            return hooks::conclude(dir, &order, *ended);
        }
        let begun = log.and_then(|mut log| {
            if let Some(error) = groupless {
                let _ = log.say(&format!("coloc: runs without a control group: {error}\n"));
            }
            if let Err(error) = &listener {
                let _ = log.say(&format!("coloc: no client can come to it: {error}\n"));
            }
            let begun = begin(&order, &mut log, program).map_err(|why| {
                let _ = log.say(&format!("coloc: {why}\n"));
                why
            });
            begun.map(|(program, streams)| (program, streams, log))
        });
        let (program, streams, log) = match begun {
            Ok(begun) => begun,
            Err(why) => return never_started(dir, &order, why),
        };
        // A task that can run may run, with room for its last word or without.
        let _ = dir.make_room_for_the_end();
        let Streams { output, errors, terminal, input } = streams;
        let copies = log.copy(output, errors).map_err(system("copy the output"))?;
        let (order, group) = (Arc::new(order), group.map(Arc::new));
        let visits = visits(listener, &order, &group, terminal, input)?;
        let (visits, its_group, limit) = (visits.as_ref(), group.as_deref(), order.time_limit);
        let (stopped, warned, group, order) = (None, None, its_group, &*order);
        let watch =
            Watch { dir, order, program, asked, stopped, group, visits, limit, began, warned };
        let ended = watch.until_the_end()?;
        visits.inspect(|visits| visits.program_ended());
        finish(order, copies, its_group);
        visits.inspect(|visits| visits.end());
        dir.remove_script();
        let host_memory = its_group.and_then(|group| group.group.host_memory());
        hooks::conclude(dir, order, Ended { host_memory, ..ended })
    }
}

fn process(pid: u32) -> Process {
    let began = ProcessTable::default().started(pid).unwrap_or(0);
    Process { pid, began }
}

/// What a claim says of this shim.
fn started(main: Option<Process>, in_group: bool) -> Started {
    Started {
        shim: process(std::process::id()),
        main,
        at: Moment::now(),
        in_group,
        can_warn: true,
        can_change_limit: true,
        boot: boot_id(),
    }
}

/// Opens the task's output; says what was in the way.
fn open_log(dir: &RunDir, order: &Order) -> Result<Log, String> {
    // A file for its output may not be there either: what is wrong is told as what it is.
    if let Some(why) = no_directory(order) {
        return Err(why);
    }
    Log::open(dir, order).map_err(|(place, error)| {
        format!("cannot write the output to {}: {error}", place.display())
    })
}

/// Says how it ended. The shim alone knows, so a file system that cannot be written just now is tried again.
fn tell_end(dir: &RunDir, ended: &Ended) -> Result<(), ShimError> {
    let (end, mut pause) = (Instant::now() + TELL_TIMEOUT, Duration::from_millis(50));
    loop {
        match dir.write_ended(ended) {
            Err(_) if Instant::now() + pause < end => std::thread::sleep(pause),
            told => return Ok(told?),
        }
        pause = (pause * 2).min(Duration::from_secs(5));
    }
}

/// Lets the program begin, with its files as it wants them; says what was in the way.
fn begin(
    order: &Order,
    log: &mut Log,
    program: io::Result<(Program, Streams)>,
) -> Result<(Pid, Streams), String> {
    if order.truncate {
        log.truncate().map_err(|error| format!("cannot begin its output anew: {error}"))?;
    }
    let begin = |(program, streams): (Program, Streams)| Ok((program.begin()?, streams));
    program.and_then(begin).map_err(|error| why_not(order, &error))
}

/// Says how an attempt ended whose program never began.
fn never_started(dir: &RunDir, order: &Order, why: String) -> Result<(), ShimError> {
    if order.output.is_some() || order.errors.is_some() {
        // The user's own files may be what is wrong: our log always tells.
        let _ = Log::of(dir, order).and_then(|mut log| log.say(&format!("coloc: {why}\n")));
    }
    let exit = Exit::Code(CANNOT_START);
    let at = Moment::now();
    let unstarted = Some(why);
    let (stopped, host_memory, prolog, epilog) = (None, None, None, None);
    let ended = Ended { exit, at, stopped, host_memory, unstarted, prolog, epilog };
    hooks::conclude(dir, order, ended)
}

/// What is wrong with the working directory, as its user sees it. A system says of a directory that is not there what it says
/// of a program.
fn no_directory(order: &Order) -> Option<String> {
    let directory = order.directory.as_path();
    let user = order.user.as_ref().map_or(rustix::process::geteuid().as_raw(), |user| user.uid);
    let problem = match with_identity(Uid(user), || directory.metadata()).map_err(io::Error::from) {
        Ok(Ok(meta)) if meta.is_dir() => return None,
        Ok(Ok(_)) => "it is not a directory".to_owned(),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            "there is no such directory".to_owned()
        }
        Ok(Err(error)) | Err(error) => error.to_string(),
    };
    Some(format!("cannot start in {}: {problem}", directory.display()))
}

fn why_not(order: &Order, error: &io::Error) -> String {
    let program = order.command.first().map_or("".into(), RawText::to_string_lossy);
    format!("cannot start {program}: {error}")
}

/// The program's control group, with what it takes to enter it and to kill every process in it.
struct Group {
    group: TaskGroup,
    group_files: GroupFiles,
}

impl Group {
    fn open(place: &GroupPlace) -> io::Result<Group> {
        let group = TaskGroup::at(place.path.as_path().to_owned(), place.name.clone());
        Ok(Group { group_files: group.open()?, group })
    }
}

/// Kills everything that the shim has started, clients of MPS in the order that is safe for others.
fn kill_all(order: &Order, group: Option<&Group>) {
    if let Err(error) = clients::end(order) {
        // Only an administrator who looks for it reads this: the daemon's own errors go there too.
        let what = "killed without its MPS server's knowledge";
        crate::log::say(&format!("coloc shim: {what}: {error}\n"));
    }
    let killed = group.is_some_and(|group| group.group_files.kill());
    // Without a group, and for processes that are not in it.
    tree::kill_all(killed);
}

/// Gives up root for good. Groups first: afterwards it would not be allowed.
pub(super) fn become_user(user: &RunAs) -> io::Result<()> {
    use nix::unistd::{Gid, Uid, initgroups, setgid, setuid};
    let name = std::ffi::CString::new(user.name.as_str())?;
    initgroups(&name, Gid::from_raw(user.gid))?;
    setgid(Gid::from_raw(user.gid))?;
    Ok(setuid(Uid::from_raw(user.uid))?)
}

/// A stream with a byte in it once that signal was sent.
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
    /// Not yet: the time limit is another, by SIGUSR2.
    other_limit: UnixStream,
}

/// The program's output, its errors where they go elsewhere, its terminal if it has one, and its input if a client sends that.
pub(crate) struct Streams {
    output: Source,
    errors: Option<PipeReader>,
    terminal: Option<Arc<Terminal>>,
    input: Option<PipeWriter>,
}

/// Where clients come, if they can.
fn visits(
    listener: io::Result<UnixListener>,
    order: &Arc<Order>,
    group: &Option<Arc<Group>>,
    terminal: Option<Arc<Terminal>>,
    input: Option<PipeWriter>,
) -> Result<Option<Visits>, ShimError> {
    // Without a listener no client can come, and the input is empty.
    let Ok(listener) = listener else { return Ok(None) };
    let input = input.map(Input::new).transpose().map_err(system("use a pipe"))?;
    let host = Host::new(order.clone(), group.clone(), terminal, input);
    Ok(Some(Visits::listen(listener, host)))
}

/// Waits for the rest of the output. Processes that still hold the pipe then are killed, and what a reader does not take is
/// given up.
fn finish(order: &Order, copies: Vec<JoinHandle<()>>, group: Option<&Group>) {
    let wait_for = |timeout: Duration| {
        let end = Instant::now() + timeout;
        while copies.iter().any(|copy| !copy.is_finished()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    wait_for(LAST_WORDS);
    kill_all(order, group);
    tree::end_all();
    wait_for(LAST_COPY);
}
