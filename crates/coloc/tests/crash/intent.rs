//! What the daemon wants of a task is written down before it signals it: the daemon dies at the very moment of a signal,
//! right before it goes out or right after, and the next one carries on from there.
//!
//! `strace` stands at the daemon's signals. It kills the daemon there, or holds the thread until the program was seen to
//! have heard it, so that nothing can be written down afterwards.

use super::checks::{id_of, is_over};
use super::daemon::Daemon;
use super::http::{Answer, ask};
use super::program::{Ledger, Manner, Program, Work};
use super::setup::{SCALE, SETUPS, Setup};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes longer unless something is wrong.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A time limit that comes soon, and two that never come and tell queues which task is shorter.
const SOON_MS: u64 = 500;
const SHORT_MS: u64 = 100_000;
const LONG_MS: u64 = 200_000;

/// When the daemon dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    /// It is about to send a signal.
    Before,
    /// It has sent it, and has done nothing else.
    After,
}

/// Why a task has to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Cancel,
    Requeue,
    Preemption,
    TimeLimit,
}

const SIGNALS: &str = "pidfd_send_signal,kill,tkill,tgkill";

/// The tracer of a daemon's threads. Its children are not traced.
struct Tracer(Child);

impl Tracer {
    /// Stands at the signals of a daemon; `None`, loudly, where that cannot be done.
    fn attach(pid: u32, moment: Moment) -> Option<Self> {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon lives");
        let threads = threads.flatten().map(|entry| entry.file_name());
        let inject = match moment {
            Moment::Before => format!("inject={SIGNALS}:signal=KILL:when=1"),
            Moment::After => format!("inject={SIGNALS}:delay_exit=60000000:when=1"),
        };
        let mut command = Command::new("strace");
        command.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={SIGNALS}"), "-e", &inject]);
        threads.for_each(|thread| {
            command.arg("-p").arg(thread);
        });
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut tracer) = quiet.spawn() else {
            skipped("there is no strace");
            return None;
        };
        let began = Instant::now();
        while !is_traced(pid) {
            let ended = tracer.try_wait().expect("it is ours").is_some();
            if ended || began.elapsed() > TIMEOUT {
                skipped("strace may not trace here");
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Tracer(tracer))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_traced(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        !status.lines().any(|line| line == "TracerPid:\t0")
    })
}

/// Says that nothing was tested, past the test runner's capture.
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {why}").expect("it is heard");
}

fn setup(name: &str) -> Setup {
    *SETUPS.iter().find(|setup| setup.name == name).expect("there is one")
}

fn submit(daemon: &Daemon, program: Program, limit_ms: Option<u64>) -> u32 {
    let mut spec = program.spec(daemon.path(), "intent");
    spec["time_limit"] = json!(limit_ms.map(|limit| limit * SCALE));
    spec["exclusive"] = json!(true);
    let said = daemon.must("POST /v1/tasks", Some(&json!({"spec": spec})));
    said["ids"][0].as_u64().expect("an id") as u32
}

fn wait_for(daemon: &Daemon, what: &str, task: u32, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        let waited = began.elapsed();
        assert!(waited < TIMEOUT, "{what}: waited in vain\n{}", daemon.story(task));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn show(daemon: &Daemon, task: u32) -> Value {
    daemon.must(&format!("GET /v1/tasks/{task}"), None)
}

/// A daemon whose GPUs are all in use by such programs, which never end by themselves; one of them.
fn at_work(cause: Cause, manner: Manner) -> (Daemon, u32) {
    let name = if cause == Cause::Preemption { "srtf" } else { "exclusive-groups" };
    let mut daemon = Daemon::new(setup(name));
    daemon.start();
    let work = if cause == Cause::TimeLimit { Work::Never } else { Work::Wait };
    let limit = match cause {
        Cause::TimeLimit => Some(SOON_MS),
        Cause::Preemption => Some(LONG_MS),
        Cause::Cancel | Cause::Requeue => None,
    };
    let gpus = daemon.must("GET /v1/gpus", None)["gpus"].as_array().map_or(0, Vec::len);
    let tasks = if cause == Cause::Preemption { gpus } else { 1 };
    let tasks: Vec<u32> =
        (0..tasks).map(|_| submit(&daemon, Program { work, manner }, limit)).collect();
    for &task in &tasks {
        wait_for(&daemon, "a start", task, || Ledger::read(daemon.path()).starts(task) == 1);
    }
    (daemon, tasks[0])
}

/// A program was told to go, or is gone.
fn heard(daemon: &Daemon) -> bool {
    let gone = |pid: &u32| !std::path::Path::new(&format!("/proc/{pid}")).exists();
    let ledger = Ledger::read(daemon.path());
    let mut attempts = ledger.tasks.values().flat_map(|attempts| attempts.values());
    attempts.any(|attempt| attempt.told || attempt.starts.iter().any(gone))
}

/// Gives a task a reason to go, and lets the daemon die at that moment; what was acknowledged.
fn die(daemon: &mut Daemon, tracer: Tracer, cause: Cause) -> Answer {
    let socket = daemon.socket();
    let change = |change: &str| json!({"ids": [1], "change": change});
    let short = Program { work: Work::Succeed { millis: 10 }, manner: Manner::Dies };
    let mut spec = short.spec(daemon.path(), "short");
    spec["time_limit"] = json!(SHORT_MS * SCALE);
    let (line, body) = match cause {
        Cause::Cancel => ("POST /v1/tasks/change", change("cancel")),
        Cause::Requeue => ("POST /v1/tasks/change", change("requeue")),
        Cause::Preemption => ("POST /v1/tasks", json!({"spec": spec})),
        Cause::TimeLimit => ("GET /v1/status", Value::Null),
    };
    let asked = std::thread::spawn(move || ask(&socket, line, Some(&body)));
    let began = Instant::now();
    // A daemon that leaves its signals to others does not die of them: the program hears of it all the same.
    while began.elapsed() < TIMEOUT && daemon.lives() && !heard(daemon) {
        std::thread::sleep(Duration::from_millis(2));
    }
    daemon.kill_traced(tracer);
    asked.join().expect("it asks")
}

fn carried_on(cause: Cause, manner: Manner, moment: Moment) {
    let (mut daemon, task) = at_work(cause, manner);
    let Some(tracer) = Tracer::attach(daemon.pid(), moment) else { return };
    let answer = die(&mut daemon, tracer, cause);
    daemon.start();
    let case =
        format!("{cause:?} of one that {manner:?}, killed {moment:?} the signal, {answer:?}");
    let counts = matches!(answer, Answer::Done(_));
    let began = |id: u32| Ledger::read(daemon.path()).starts(id) > 0;
    wait_for(&daemon, &case, task, || {
        // Tasks that have no reason to go, or none that was acknowledged, end when they are let go.
        let may_go = match cause {
            Cause::Preemption => daemon.list().iter().map(id_of).all(began),
            Cause::Cancel | Cause::Requeue => !counts,
            Cause::TimeLimit => false,
        };
        if may_go {
            Program::let_go(daemon.path());
        }
        daemon.list().iter().all(is_over)
    });
    for shown in daemon.list() {
        let id = id_of(&shown);
        let expected: &[&str] = match cause {
            Cause::Cancel if counts => &["cancelled"],
            Cause::Cancel => &["cancelled", "completed"],
            Cause::TimeLimit => &["timed_out"],
            Cause::Requeue | Cause::Preemption => &["completed"],
        };
        let state = shown["state"].as_str().unwrap_or("");
        assert!(expected.contains(&state), "{case}: task {id} is {state}\n{}", daemon.story(id));
    }
    if cause == Cause::Requeue && counts {
        assert_eq!(show(&daemon, task)["attempts"], 2, "{case}\n{}", daemon.story(task));
    }
}

fn carried_on_always(cause: Cause) {
    for moment in [Moment::Before, Moment::After] {
        for manner in [Manner::Saves, Manner::Dies, Manner::Deaf] {
            carried_on(cause, manner, moment);
        }
    }
}

#[test]
fn a_cancel_is_written_down_before_the_signal() {
    carried_on_always(Cause::Cancel);
}

#[test]
fn a_requeue_is_written_down_before_the_signal() {
    carried_on_always(Cause::Requeue);
}

#[test]
fn a_preemption_is_written_down_before_the_signal() {
    carried_on_always(Cause::Preemption);
}

#[test]
fn a_time_limit_is_written_down_before_the_signal() {
    carried_on_always(Cause::TimeLimit);
}
