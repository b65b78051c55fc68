//! Tasks that do not want to go, and shims that hang: limits and cancels hold all the same, a restart waits for no
//! shim, and what was given up never starts.

use crate::live::home::{Home, skipped};
use crate::live::users::{shared_home, submit_as_nobody};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A restart may take half a second, and ten times that on a busy machine.
const SLOWEST_START: Duration = Duration::from_secs(5);
/// Longer than a shim is ever waited for.
const HANG: Duration = Duration::from_secs(6);
const FLAGS: [&str; 4] = ["--emulate", "1xA100-40GB", "--grace", "0.5"];

/// The user whose daemon it is; its tasks are another user's where it is root's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Daemon {
    Roots,
    Users,
}

/// Gives the state to the user, and becomes that user. The first word is the directory of the state.
const AS_NOBODY: &str = "mkdir -p \"$0\" && chown -R 65534:65534 \"$(dirname \"$0\")\" && \
    exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";

impl Daemon {
    /// A daemon of that kind. A user who is not root has one of its own only.
    fn home(self, flags: &[&str]) -> Option<(Sweep, Home)> {
        let home = match (self, rustix::process::geteuid().is_root()) {
            (Daemon::Roots, _) => shared_home(flags)?,
            (Daemon::Users, true) => Home::within(&["sh", "-c", AS_NOBODY], flags),
            (Daemon::Users, false) => Home::new(flags),
        };
        Some((Sweep(home.path().to_owned()), home))
    }

    fn submit(self, home: &Home, words: &[&str]) -> u32 {
        match rustix::process::geteuid().is_root() {
            true => submit_as_nobody(home, words),
            false => home.submit(words),
        }
    }
}

/// Ends what a daemon left: here are tasks that nothing else ends if a test fails. To be declared before its home.
struct Sweep(PathBuf);

impl Drop for Sweep {
    fn drop(&mut self) {
        crate::live::processes::end_all(&self.0);
    }
}

/// A directory that every user may write to.
struct Yard(tempfile::TempDir);

impl Yard {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.path(), open).expect("it is ours");
        Yard(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pids(&self) -> Vec<Pid> {
        let pids = std::fs::read_to_string(self.path("pids")).unwrap_or_default();
        pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// A pipe with a name that every user may use.
    fn fifo(&self) -> PathBuf {
        let fifo = self.path("fifo");
        let made = Command::new("mkfifo").arg("-m").arg("666").arg(&fifo).status();
        assert!(made.expect("mkfifo runs").success());
        fifo
    }
}

/// A process is there, and is no zombie.
fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.starts_with(" Z"))
}

/// Stops its shim, if it may, and never ends by itself. Its first line is its own PID, its second its shim's.
fn stops_its_shim(yard: &Yard) -> String {
    let pids = yard.path("pids").display().to_string();
    format!(
        "echo $$ >> {pids}; echo $PPID >> {pids}; kill -STOP $PPID; trap '' TERM; sleep 600 & wait; sleep 600"
    )
}

fn started(home: &Home, yard: &Yard) {
    home.wait_for("its start", |_| yard.pids().len() >= 2);
}

fn nothing_runs(home: &Home, yard: &Yard) {
    home.wait_for("the end of its processes", |_| !yard.pids().into_iter().any(lives));
}

/// The GPU is free for others.
fn next_one_runs(home: &Home, daemon: Daemon) {
    let next = daemon.submit(home, &["--", "true"]);
    home.wait_for_state(next, "completed");
}

fn time_limits_hold_for_who_stops_its_shim(daemon: Daemon) {
    let Some((_sweep, home)) = daemon.home(&FLAGS) else { return };
    let yard = Yard::new();
    let id = daemon.submit(&home, &["-t", "1s", "--", "sh", "-c", &stops_its_shim(&yard)]);
    started(&home, &yard);
    home.wait_for_state(id, "timed_out");
    nothing_runs(&home, &yard);
    next_one_runs(&home, daemon);
}

#[test]
fn a_time_limit_holds_for_who_stops_its_shim_under_roots_daemon() {
    time_limits_hold_for_who_stops_its_shim(Daemon::Roots);
}

#[test]
fn a_time_limit_holds_for_who_stops_its_shim_under_ones_own_daemon() {
    time_limits_hold_for_who_stops_its_shim(Daemon::Users);
}

fn cancels_hold_for_who_stops_its_shim(daemon: Daemon) {
    let Some((_sweep, home)) = daemon.home(&FLAGS) else { return };
    let yard = Yard::new();
    let id = daemon.submit(&home, &["--", "sh", "-c", &stops_its_shim(&yard)]);
    started(&home, &yard);
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    nothing_runs(&home, &yard);
    next_one_runs(&home, daemon);
}

#[test]
fn an_administrators_cancel_holds_for_who_stops_its_shim_under_roots_daemon() {
    cancels_hold_for_who_stops_its_shim(Daemon::Roots);
}

#[test]
fn an_administrators_cancel_holds_for_who_stops_its_shim_under_ones_own_daemon() {
    cancels_hold_for_who_stops_its_shim(Daemon::Users);
}

#[test]
fn who_stops_its_shim_is_stopped_across_a_restart_and_requeued() {
    let Some((_sweep, mut home)) = Daemon::Users.home(&FLAGS) else { return };
    let yard = Yard::new();
    let script = format!("test $COLOC_RESTART_COUNT -gt 0 && exit 0; {}", stops_its_shim(&yard));
    let again = Daemon::Users.submit(&home, &["--", "sh", "-c", &script]);
    started(&home, &yard);
    home.run(&["requeue", &again.to_string()]);
    home.kill();
    home.boot();
    home.wait_for_state(again, "completed");
    nothing_runs(&home, &yard);
}

/// A task that writes to a pipe that is not read ends as it must.
fn pipes_hold_nobody_up(daemon: Daemon, is_open: bool) {
    let Some((_sweep, home)) = daemon.home(&FLAGS) else { return };
    let yard = Yard::new();
    let fifo = yard.fifo();
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let open = || File::options().read(true).custom_flags(flags).open(&fifo).expect("a pipe");
    // Open, and never read.
    let _reader = is_open.then(open);
    let fifo = fifo.display().to_string();
    let script = format!("echo $$ >> {}; yes", yard.path("pids").display());
    let words = ["-o", &fifo, "--", "sh", "-c", &script];
    let late = daemon.submit(&home, &[&["-t", "1s"][..], &words].concat());
    // A pipe that no process reads may be refused at the start.
    let ends: &[&str] = if is_open { &["timed_out"] } else { &["timed_out", "failed"] };
    home.wait_for("an end", |home| ends.contains(&home.state(late).as_str()));
    let unwanted = daemon.submit(&home, &words);
    home.wait_for("its start", |home| home.state(unwanted) != "pending");
    home.try_run(&["cancel", &unwanted.to_string()]);
    let ends: &[&str] = if is_open { &["cancelled"] } else { &["cancelled", "failed"] };
    home.wait_for("an end", |home| ends.contains(&home.state(unwanted).as_str()));
    nothing_runs(&home, &yard);
    next_one_runs(&home, daemon);
}

#[test]
fn output_to_a_pipe_that_is_never_opened_ends_under_roots_daemon() {
    pipes_hold_nobody_up(Daemon::Roots, false);
}

#[test]
fn output_to_a_pipe_that_is_never_opened_ends_under_ones_own_daemon() {
    pipes_hold_nobody_up(Daemon::Users, false);
}

#[test]
fn output_to_a_pipe_that_is_not_read_ends_under_roots_daemon() {
    pipes_hold_nobody_up(Daemon::Roots, true);
}

#[test]
fn output_to_a_pipe_that_is_not_read_ends_under_ones_own_daemon() {
    pipes_hold_nobody_up(Daemon::Users, true);
}

#[test]
fn output_can_be_thrown_away_or_read_from_a_pipe() {
    for daemon in [Daemon::Roots, Daemon::Users] {
        let Some((_sweep, home)) = daemon.home(&FLAGS) else { continue };
        let id = daemon.submit(&home, &["-o", "/dev/null", "--", "sh", "-c", "echo words"]);
        home.wait_for_state(id, "completed");
        let id = daemon.submit(&home, &["-e", "/dev/null", "--", "sh", "-c", "echo words >&2"]);
        home.wait_for_state(id, "completed");
        let yard = Yard::new();
        let fifo = yard.fifo();
        let read = {
            let fifo = fifo.clone();
            move || std::fs::read_to_string(fifo)
        };
        let reader = std::thread::spawn(read);
        let fifo = fifo.display().to_string();
        // The reader's open waits for a writer, and a writer that does not wait needs a reader.
        let id = loop {
            let id = daemon.submit(&home, &["-o", &fifo, "--", "sh", "-c", "echo words"]);
            home.wait_for("an end", |home| {
                ["completed", "failed"].contains(&home.state(id).as_str())
            });
            if home.state(id) == "completed" || reader.is_finished() {
                break id;
            }
        };
        assert_eq!(home.state(id), "completed", "{}", home.story(id));
        let words = reader.join().expect("it reads").expect("it reads");
        assert_eq!(words, "words\n");
    }
}

/// A shim as soon as it is one: a child of the daemon that runs something else than the daemon does.
fn newest_shim(daemon: u32, known: &[u32]) -> Option<u32> {
    let command = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let threads = std::fs::read_dir(format!("/proc/{daemon}/task")).ok()?.flatten();
    let children = threads.flat_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    let new = children.filter(|pid| !known.contains(pid));
    new.into_iter().find(|&pid| !command(pid).is_empty() && command(pid) != command(daemon))
}

/// Stops shims before their programs begin, each a little later in its life than the one before; the tasks that hang so.
fn hang_shims(home: &Home, yard: &Yard, script: &str) -> Vec<(u32, Pid)> {
    let (mut known, mut hung, mut delay) = (Vec::new(), Vec::new(), Duration::ZERO);
    let starts = |id: u32| starts(yard).iter().filter(|(task, _)| *task == id).count();
    for _ in 0..100 {
        if hung.len() == 4 {
            break;
        }
        let id = Daemon::Users.submit(home, &["--", "sh", "-c", script]);
        let began = Instant::now();
        let shim = loop {
            match newest_shim(home.pid(), &known) {
                Some(shim) => break shim,
                None => assert!(began.elapsed() < Duration::from_secs(60), "a shim"),
            }
        };
        known.push(shim);
        std::thread::sleep(delay);
        let shim = Pid::from_raw(shim as i32).expect("a PID");
        let _ = kill_process(shim, Signal::STOP);
        // Whether it was in time: what runs already writes its line soon.
        std::thread::sleep(Duration::from_millis(100));
        if starts(id) == 0 && lives(shim) {
            hung.push((id, shim));
            delay += Duration::from_millis(2);
        } else {
            let _ = kill_process(shim, Signal::CONT);
            delay /= 2;
        }
    }
    hung
}

/// Which programs started: task and attempt.
fn starts(yard: &Yard) -> Vec<(u32, u32)> {
    let text = std::fs::read_to_string(yard.path("starts")).unwrap_or_default();
    let start = |line: &str| {
        let (task, restarts) = line.split_once(' ')?;
        Some((task.parse().ok()?, restarts.parse().ok()?))
    };
    text.lines().filter_map(start).collect()
}

#[test]
fn a_shim_that_hangs_delays_no_restart_and_starts_nothing_that_was_given_up() {
    let flags = ["--emulate", "6xA100-40GB", "--share", "exclusive"];
    let Some((_sweep, mut home)) = Daemon::Users.home(&flags) else { return };
    let yard = Yard::new();
    let script =
        format!("echo $COLOC_TASK_ID $COLOC_RESTART_COUNT >> {}", yard.path("starts").display());
    let hung = hang_shims(&home, &yard, &script);
    if hung.is_empty() {
        return skipped("no shim could be stopped before its program began");
    }
    home.kill();
    let began = Instant::now();
    home.boot();
    let took = began.elapsed();
    // Others run meanwhile.
    let other = Daemon::Users.submit(&home, &["--", "true"]);
    home.wait_for_state(other, "completed");
    std::thread::sleep(HANG.saturating_sub(began.elapsed()));
    for (_, shim) in &hung {
        let _ = kill_process(*shim, Signal::CONT);
    }
    for (id, _) in &hung {
        home.wait_for("an end", |home| ["completed", "lost"].contains(&home.state(*id).as_str()));
    }
    home.wait_for("the end of the shims", |_| !hung.iter().any(|(_, shim)| lives(*shim)));
    for (id, _) in &hung {
        let began: Vec<u32> = starts(&yard)
            .iter()
            .filter(|(task, _)| task == id)
            .map(|(_, restarts)| *restarts)
            .collect();
        let task = home.show(*id);
        let last = task["attempts"].as_u64().expect("a number") as u32 - 1;
        match task["state"].as_str() {
            // Once, and by the attempt that counts.
            Some("completed") => assert_eq!(began, [last], "{}", home.story(*id)),
            // What was given up never starts.
            _ => assert_eq!(began, Vec::<u32>::new(), "{}", home.story(*id)),
        }
    }
    assert!(took < SLOWEST_START, "{} shims hang, and a restart took {took:?}", hung.len());
}

/// A process that forks and ends, again and again, in sessions of its own and without an environment, is never long enough
/// where it was seen. Without a control group only its shim, which adopts it each time, can end it.
#[test]
fn a_chain_of_processes_ends_with_its_task_without_control_groups() {
    let home = Home::with_environment(&FLAGS, |_| vec![("COLOC_CGROUP", "none".into())]);
    let (program, alive) = (home.path().join("chain.py"), home.path().join("alive"));
    let text = "import os, sys, time\n\
                end = time.time() + 30\n\
                n = 0\n\
                while time.time() < end:\n\
                \x20   if os.fork():\n\
                \x20       os._exit(0)\n\
                \x20   os.setsid()\n\
                \x20   n += 1\n\
                \x20   if n % 50 == 0:\n\
                \x20       os.utime(sys.argv[1]) if os.path.exists(sys.argv[1]) else open(sys.argv[1], 'w').close()\n";
    std::fs::write(&program, text).expect("a program");
    let script = format!(
        "env -i python3 {} {} & while ! test -e {}; do sleep 0.01; done; sleep 60",
        program.display(),
        alive.display(),
        alive.display()
    );
    let id = home.submit(&["--", "sh", "-c", &script]);
    home.wait_for("the chain", |_| alive.exists());
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    let touched = || std::fs::metadata(&alive).and_then(|meta| meta.modified()).expect("a time");
    let last = touched();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(touched(), last, "the chain goes on");
}
