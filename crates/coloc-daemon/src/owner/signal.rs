//! Signals for the processes of a task that goes on.

use super::{Owner, Refused};
use crate::record::{Phase, Uid};
use crate::run::Process;
use coloc_gpu::process::{Attribution, Owner as Whose, ProcessTable, TaskRoots, Users};
use coloc_model::{TaskId, Time};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A signal, and for whom it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// Its number.
    pub signal: i32,
    /// For all processes of the task, and not for the program alone. STOP, CONT and KILL always are.
    #[serde(default)]
    pub full: bool,
}

impl Owner {
    /// Sends a signal; what becomes of the task is the task's own affair.
    pub(super) fn signal(&mut self, task: TaskId, request: SignalRequest) -> Result<(), Refused> {
        let SignalRequest { signal: number, full } = request;
        let Some(live) = self.tasks.get(&task) else { return Err(Refused::NoSuchTask(task)) };
        let signal = Signal::from_named_raw(number).ok_or_else(|| {
            Refused::Invalid(format!("there is no signal {number} that could be sent"))
        })?;
        let (phase, owner) = (live.record.phase, live.record.owner);
        let started = self.launcher.run_dir(&live.record).started().ok().flatten();
        let roots = self.launcher.known.get(&task);
        let (Some(started), Some(roots), Phase::Running | Phase::Preempting) =
            (started, roots, phase)
        else {
            return Err(Refused::NotRunning { task, phase });
        };
        // No program hears these, so that its workers would go on by themselves.
        let whole = full || [Signal::STOP, Signal::CONT, Signal::KILL].contains(&signal);
        if whole {
            let roots = roots.clone();
            // To look at every process takes a moment.
            let send = move || {
                everybody().for_each(|pid| {
                    send(&roots, owner, pid, None, signal);
                });
            };
            let thread = std::thread::Builder::new().name("signal".to_owned()).spawn(send);
            thread.map_err(|error| Refused::Invalid(format!("cannot send a signal: {error}")))?;
        } else {
            let Process { pid, began } = started.main;
            if !send(roots, owner, pid, Some(began), signal) {
                return Err(Refused::NotRunning { task, phase });
            }
        }
        let name = crate::signals::name(number);
        let whom = if whole { "its processes" } else { "it" };
        self.changed(task, Some(format!("somebody sent {whom} {name}")));
        Ok(())
    }
}

fn everybody() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Sends a signal to a process, if it is one of the task's and its user's; says whether it was. A shim is not: what it
/// hears, it obeys.
fn send(roots: &TaskRoots, owner: Uid, pid: u32, began: Option<u64>, signal: Signal) -> bool {
    let table = ProcessTable::default();
    let held = Pid::from_raw(pid as i32).filter(|_| pid != roots.leader);
    // Held from now on: whoever is looked at is whoever gets it.
    let held = held.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let (Some(pidfd), Some(facts)) = (held, table.facts(pid)) else { return false };
    let mut attribution = Attribution::new(table, Users::default());
    attribution.set_tasks(vec![roots.clone()]);
    let is_its = matches!(attribution.of(pid, Time::START).owner, Whose::Task { .. })
        && facts.uid == owner.0
        && began.is_none_or(|began| began == facts.started);
    is_its && pidfd_send_signal(&pidfd, signal).is_ok()
}
