//! The last rung: a task that keeps memory which was promised to its neighbours goes, and comes back with what it needs.

use crate::executor::outcome;
use crate::hardware::{Sighting, TaskSighting};
use crate::owner::Owner;
use crate::record::Intent;
use coloc_gpu::enforce::{Verdict, Watchdog};
use coloc_model::{Bytes, Millis, TaskId, Time};

/// Allocators overshoot and give back.
const TIMEOUT: Millis = Millis::from_secs(10);
/// A context more or less is no task's fault.
const SLACK: Bytes = Bytes::from_mib(512);

/// Tasks that hold too much. Tasks that were ended for it stand in the records, which outlive this process.
pub(in crate::owner) struct MemoryWatchdog {
    dog: Watchdog,
}

impl Default for MemoryWatchdog {
    fn default() -> Self {
        MemoryWatchdog { dog: Watchdog::new(TIMEOUT, SLACK) }
    }
}

impl Owner {
    /// Ends tasks that hold more than they were promised and than the ledger can give them.
    pub(in crate::owner) fn run_memory_watchdog(&mut self, now: Time, seen: &Sighting) {
        let mut over = Vec::new();
        for &TaskSighting { task, used, .. } in &seen.tasks {
            let Some(live) = self.tasks.get(&task) else { continue };
            let Some(booked) = self.booked_beside_others(task, live) else {
                self.memory_watchdog.dog.forget(task);
                continue;
            };
            if let Verdict::End { by } = self.memory_watchdog.dog.observe(now, task, booked, used) {
                over.push((task, used, by));
            }
        }
        for (task, used, by) in over {
            let Some(live) = self.tasks.get_mut(&task) else { continue };
            // Once is enough: the shim sees to it that it goes.
            if live.record.ended_by_watchdog.replace(used).is_some() {
                continue;
            }
            let what = format!(
                "is ended by the watchdog: it holds {used}, {by} more than there is beside what its neighbours were promised"
            );
            self.intend(task, Intent::Memory, what);
            self.stop(task);
        }
    }

    /// A task that was ended for its memory ran out of it.
    pub(in crate::owner) fn for_its_memory(
        &mut self,
        task: TaskId,
        verdict: Option<outcome::Verdict>,
    ) -> Option<outcome::Verdict> {
        self.memory_watchdog.dog.forget(task);
        let held = self.tasks.get(&task).and_then(|live| live.record.ended_by_watchdog);
        match (held, verdict) {
            (Some(held), None | Some(outcome::Verdict::Stopped | outcome::Verdict::Failed)) => {
                let evidence = "the watchdog ended it".to_owned();
                let said = outcome::FailedAllocation {
                    held: Some(held),
                    asked: Some(Bytes::ZERO),
                    ..Default::default()
                };
                Some(outcome::Verdict::GpuOutOfMemory { said, evidence })
            }
            (_, verdict) => verdict,
        }
    }
}
