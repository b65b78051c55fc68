//! The last rung: a task that keeps memory which was promised to its neighbours goes, and comes back with what it needs.

use super::{Live, Owner};
use crate::hardware::Sighting;
use crate::launch::Farewell;
use crate::outcome;
use crate::record::Phase;
use coloc_gpu::enforce::{Verdict, Watchdog};
use coloc_model::{Bytes, Millis, Placement, TaskId, Time};

/// Allocators overshoot and give back.
const PATIENCE: Millis = Millis::from_secs(10);
/// A context more or less is nobody's fault.
const SLACK: Bytes = Bytes::from_mib(512);

/// Who holds too much. Who was ended for it stands in the records, which outlive this process.
pub(super) struct Greedy {
    dog: Watchdog,
}

impl Default for Greedy {
    fn default() -> Self {
        Greedy { dog: Watchdog::new(PATIENCE, SLACK) }
    }
}

impl Owner {
    /// Ends tasks that hold more than they said and than the ledger can give them.
    pub(super) fn stop_the_greedy(&mut self, now: Time, seen: &Sighting) {
        let mut over = Vec::new();
        for &(task, used) in &seen.tasks {
            let Some(live) = self.tasks.get(&task) else { continue };
            let Some(booked) = self.booked_beside_others(task, live) else {
                self.greedy.dog.forget(task);
                continue;
            };
            if let Verdict::End { by } = self.greedy.dog.observe(now, task, booked, used) {
                over.push((task, used, by));
            }
        }
        for (task, used, by) in over {
            let Some(live) = self.tasks.get_mut(&task) else { continue };
            // Once is enough: the shim sees to it that it goes.
            if live.record.too_greedy.replace(used).is_some() {
                continue;
            }
            let what = format!(
                "is ended by the watchdog: it holds {used}, {by} more than there is beside what its neighbours were promised"
            );
            self.changed(task, Some(what));
            // Whoever finds it dead after a restart has to know why.
            self.flush();
            if let Some(live) = self.tasks.get(&task) {
                self.launcher.stop(&live.record, Farewell::AtOnce);
            }
        }
    }

    /// What the ledger gives a running task that said what it needs, where others were promised the rest. The ledger has
    /// given it all that was free by then.
    fn booked_beside_others(&self, task: TaskId, live: &Live) -> Option<Bytes> {
        let runs = live.record.phase == Phase::Running && live.ending.is_none();
        // Whoever said nothing and has not run out of memory promised nothing.
        let promised = live.spec.gpu_memory.is_some() || live.record.ooms > 0;
        if !runs || !promised {
            return None;
        }
        let gpus = live.record.placement.iter().flat_map(Placement::gpus);
        let booked = |gpu| {
            let residents = self.scheduler.gpus().get(gpu).residents();
            let own = residents.iter().find(|booking| booking.task == task)?;
            (residents.len() > 1 && own.instance.is_none()).then_some(own.bytes)
        };
        gpus.filter_map(booked).min()
    }

    /// Whoever was ended for its memory ran out of it.
    pub(super) fn for_its_memory(
        &mut self,
        task: TaskId,
        verdict: Option<outcome::Verdict>,
    ) -> Option<outcome::Verdict> {
        self.greedy.dog.forget(task);
        let held = self.tasks.get(&task).and_then(|live| live.record.too_greedy);
        match (held, verdict) {
            (Some(held), Some(outcome::Verdict::Stopped | outcome::Verdict::Failed)) => {
                let evidence = "the watchdog ended it".to_owned();
                Some(outcome::Verdict::GpuOutOfMemory { asked: None, held: Some(held), evidence })
            }
            (_, verdict) => verdict,
        }
    }
}
