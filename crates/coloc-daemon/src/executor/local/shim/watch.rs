//! The program while it runs: its time limit, what the daemon asks of it, its end.

use super::hearers::{hearers, is_shell};
use super::visit::Visits;
use super::{Asked, Group, LONGEST_FAREWELL, ShimError, kill_all, system};
use crate::executor::local::run::{Ended, Order, RunDir, Stopped};
use crate::record::Exit;
use coloc_api::moment::Moment;
use coloc_model::Millis;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open, waitpid};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The program while it runs.
pub(super) struct Watch<'a> {
    pub(super) dir: &'a RunDir,
    pub(super) order: &'a Order,
    pub(super) program: Pid,
    pub(super) asked: Asked,
    pub(super) stopped: Option<Stopped>,
    pub(super) group: Option<&'a Group>,
    pub(super) visits: Option<&'a Visits>,
    /// The time limit, which may become another.
    pub(super) limit: Option<Millis>,
    /// When its time began.
    pub(super) began: Instant,
    /// When it heard the signal that it wants to hear before it has to go.
    pub(super) warned: Option<Instant>,
}

/// The end of a program's time, and the signal that it wants to hear before.
type Schedule = (Option<Instant>, Option<(Instant, i32)>);

impl Watch<'_> {
    pub(super) fn until_the_end(mut self) -> Result<Ended, ShimError> {
        let pidfd =
            pidfd_open(self.program, PidfdFlags::empty()).map_err(system("watch the program"))?;
        let began = self.began;
        self.read_limit();
        let (mut end, mut warn) = self.schedule(began);
        let (mut leave, mut kill) = (None, None);
        loop {
            let next = [end, warn.map(|(at, _)| at), leave, kill].into_iter().flatten().min();
            if self.wait(&pidfd, next)? {
                return self.reap();
            }
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
            let told = |from: &mut UnixStream| from.read(&mut [0; 16]).is_ok_and(|bytes| bytes > 0);
            // What is on the disk counts, also if the word of it got lost.
            let may_differ = told(&mut self.asked.other_limit) || due(end);
            if self.stopped.is_none() && may_differ && self.read_limit() {
                (end, warn) = self.schedule(began);
                warn = warn.filter(|(at, _)| self.warned.is_none() || *at > Instant::now());
            }
            if due(warn.map(|(at, _)| at)) {
                self.warn(warn.take().and_then(|(_, signal)| Signal::try_from(signal).ok()));
            }
            if told(&mut self.asked.after_warning) && leave.is_none() && self.stopped.is_none() {
                warn = None;
                leave = Some(self.warn_of_leaving());
            }
            let asked = told(&mut self.asked.at_once) || due(leave);
            if self.stopped.is_none() && (asked || due(end)) {
                let why = if asked { Stopped::Asked } else { Stopped::TimeLimit };
                self.stopped = Some(why);
                leave = None;
                // The daemon wrote down what it asks for; a time limit is asked for by the submission alone.
                if !asked {
                    let _ = self.dir.write_stopping(why);
                }
                self.ask_to_end();
                end = None;
                kill = Some(Instant::now() + Duration::from_millis(self.order.grace.0));
            }
            if due(kill) {
                kill = None;
                kill_all(self.order, self.group);
            }
        }
    }

    /// Takes the time limit from the disk; says whether it is another.
    fn read_limit(&mut self) -> bool {
        match self.dir.limit() {
            Ok(Some(limit)) => std::mem::replace(&mut self.limit, limit) != limit,
            // What cannot be read is what it was.
            Ok(None) | Err(_) => false,
        }
    }

    /// When its time is over, for a program that began then.
    fn schedule(&self, began: Instant) -> Schedule {
        let after = |span: u64| began + Duration::from_millis(span);
        let warn = self.limit.zip(self.order.warning).map(|(limit, warning)| {
            (after(limit.0.saturating_sub(warning.before.0)), warning.signal)
        });
        (self.limit.map(|limit| after(limit.0)), warn)
    }

    /// Sends the program the signal that it wants to hear before it has to go, unless it has heard it; says when it has to
    /// go. Its time to save its work counts from when it heard the signal, and is given once.
    fn warn_of_leaving(&mut self) -> Instant {
        let now = Instant::now();
        let Some(warning) = self.order.warning else { return now };
        if self.warned.is_none() {
            self.warn(Signal::try_from(warning.signal).ok());
        }
        let lead = Duration::from_millis(warning.before.0).min(LONGEST_FAREWELL);
        self.warned.map_or(now, |warned| warned + lead)
    }

    /// Sleeps until the program ended (true), the daemon asks, or the time has come.
    fn wait(&self, pidfd: &OwnedFd, until: Option<Instant>) -> Result<bool, ShimError> {
        let mut watched = vec![
            PollFd::new(pidfd, PollFlags::IN),
            PollFd::new(&self.asked.at_once, PollFlags::IN),
            PollFd::new(&self.asked.after_warning, PollFlags::IN),
            PollFd::new(&self.asked.other_limit, PollFlags::IN),
        ];
        watched.extend(self.visits.map(|visits| PollFd::new(visits.listener(), PollFlags::IN)));
        let timeout = until.map(|at| {
            let span = at.saturating_duration_since(Instant::now());
            rustix::event::Timespec {
                tv_sec: span.as_secs() as i64,
                tv_nsec: i64::from(span.subsec_nanos()),
            }
        });
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {
                let has_come = |fd: &PollFd<'_>| !fd.revents().is_empty();
                if let Some(visits) = self.visits.filter(|_| watched.last().is_some_and(has_come)) {
                    visits.admit();
                }
                Ok(has_come(&watched[0]))
            }
            Err(error) => Err(system("wait for the program")(error)),
        }
    }

    /// A shell at a terminal does not hear SIGTERM: it goes when its terminal does, and tells what it runs.
    fn ask_to_end(&self) {
        self.signal(Some(Signal::SIGTERM));
        if self.order.terminal.is_some() && is_shell(self.program.as_raw_pid() as u32) {
            self.signal(Some(Signal::SIGHUP));
        }
    }

    /// The program alone: its workers would die of a signal that it handles.
    fn signal(&self, signal: Option<Signal>) {
        let pid = nix::unistd::Pid::from_raw(self.program.as_raw_pid());
        if let Some(signal) = signal {
            let _ = nix::sys::signal::kill(pid, signal);
        }
    }

    /// The processes that want to hear it.
    fn warn(&mut self, signal: Option<Signal>) {
        let Some(signal) = signal else { return };
        self.warned = Some(Instant::now());
        for pid in hearers(self.program.as_raw_pid() as u32, signal as i32) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal);
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
            prolog: None,
            epilog: None,
        })
    }
}
