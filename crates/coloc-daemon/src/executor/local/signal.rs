//! Signals for the processes of a task that goes on.

use super::LocalExecutor;
use crate::record::{Record, Uid};
use coloc_api::request::SignalRequest;
use coloc_gpu::process::{Attribution, Owner as Whose, ProcessTable, TaskRoots, Users};
use coloc_model::{TaskId, Time};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

impl LocalExecutor {
    /// A signal for an attempt, with the processes that it is for; `None` if they are not there.
    pub(super) fn signalling(&self, record: &Record, request: SignalRequest) -> Option<Signalling> {
        let signal = Signal::from_named_raw(request.signal)?;
        let started = self.run_dir(record).started().ok().flatten()?;
        let roots = self.known.get(&record.id)?;
        if request.is_for_all() {
            return Some(Signalling::All(roots.clone(), record.owner, signal));
        }
        let main = started.main?;
        let main = hold(roots, record.owner, main.pid, Some(main.began))?;
        Some(Signalling::One(main, signal))
    }
}

fn everybody() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A signal, and the processes that it is for.
#[derive(Debug)]
pub(super) enum Signalling {
    /// To one process.
    One(OwnedFd, Signal),
    /// To every process of a task.
    All(TaskRoots, Uid, Signal),
}

/// Sends signals. To look at every process takes a moment: one thread does that, for all tasks at once.
#[derive(Clone, Default, Debug)]
pub(crate) struct Signaller(Arc<Mutex<Waiting>>);

/// Signals that the thread has not sent yet.
#[derive(Default, Debug)]
struct Waiting {
    /// By task and leader: another attempt is another matter.
    tasks: BTreeMap<(TaskId, u32), ForAll>,
    /// The thread is there.
    at_work: bool,
}

#[derive(Debug)]
struct ForAll {
    roots: TaskRoots,
    owner: Uid,
    signals: Vec<Signal>,
}

impl ForAll {
    /// As the kernel does: one that waits is not sent twice, and what stops and what continues annul each other. So the
    /// list is short, however often signals are asked for.
    fn add(&mut self, signal: Signal) {
        let stops = [Signal::STOP, Signal::TSTP, Signal::TTIN, Signal::TTOU];
        if signal == Signal::CONT {
            self.signals.retain(|waits| !stops.contains(waits));
        } else if stops.contains(&signal) {
            self.signals.retain(|waits| *waits != Signal::CONT);
        }
        if !self.signals.contains(&signal) {
            self.signals.push(signal);
        }
    }
}

impl Signaller {
    pub(super) fn send(&self, signalling: Signalling) {
        match signalling {
            Signalling::One(process, signal) => {
                // One that is gone needs no signal.
                let _ = pidfd_send_signal(&process, signal);
            }
            Signalling::All(roots, owner, signal) => {
                let mut waiting = self.waiting();
                let task = waiting.tasks.entry((roots.task, roots.leader));
                let task = task.or_insert_with(|| ForAll { roots, owner, signals: Vec::new() });
                task.add(signal);
                if !waiting.at_work {
                    let ours = self.clone();
                    let thread = std::thread::Builder::new().name("signal".to_owned());
                    waiting.at_work = thread.spawn(move || ours.work()).is_ok();
                }
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Valid between any two statements, so a panicked writer does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let tasks = {
                let mut waiting = self.waiting();
                let tasks = std::mem::take(&mut waiting.tasks);
                waiting.at_work = !tasks.is_empty();
                tasks
            };
            if tasks.is_empty() {
                return;
            }
            for pid in everybody() {
                for ForAll { roots, owner, signals } in tasks.values() {
                    if let Some(process) = hold(roots, *owner, pid, None) {
                        for signal in signals {
                            let _ = pidfd_send_signal(&process, *signal);
                        }
                    }
                }
            }
        }
    }
}

/// Holds a process, if it is one of the task's and its user's. A shim is not: what it hears, it obeys.
fn hold(roots: &TaskRoots, owner: Uid, pid: u32, began: Option<u64>) -> Option<OwnedFd> {
    let table = ProcessTable::default();
    let pidfd = Pid::from_raw(pid as i32).filter(|_| pid != roots.leader)?;
    // Held from now on: the process that is looked at is the one that gets the signal.
    let pidfd = pidfd_open(pidfd, PidfdFlags::empty()).ok()?;
    let facts = table.facts(pid)?;
    let mut attribution = Attribution::new(table, Users::default());
    attribution.set_tasks(vec![roots.clone()]);
    let is_its = matches!(attribution.of(pid, Time::START).owner, Whose::Task { .. })
        && facts.uid == owner.0
        && began.is_none_or(|began| began == facts.started);
    is_its.then_some(pidfd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_are_asked_for_few_wait() {
        let roots = TaskRoots { task: TaskId(1), cgroup: None, leader: 1, leader_started: 0 };
        let mut task = ForAll { roots, owner: Uid(0), signals: Vec::new() };
        for _ in 0..1000 {
            for signal in [Signal::USR1, Signal::STOP, Signal::CONT, Signal::TSTP] {
                task.add(signal);
            }
        }
        assert_eq!(task.signals, [Signal::USR1, Signal::TSTP]);
        task.add(Signal::CONT);
        assert_eq!(task.signals, [Signal::USR1, Signal::CONT]);
    }
}
