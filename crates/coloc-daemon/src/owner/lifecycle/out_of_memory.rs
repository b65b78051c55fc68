//! A task ran out of GPU memory: what it wanted, and which task's doing that was.

use crate::executor::outcome::{self, FailedAllocation};
use crate::owner::{Ending, Owner};
use coloc_api::spec::OnOom;
use coloc_model::{Bytes, Outcome, Slot, TaskId, TaskState};

/// Asked for on top of what was seen when a task did not say what it wanted.
const UNSAID: f64 = 1.2;

impl Owner {
    /// Says what the scheduler is told of it.
    pub(in crate::owner) fn ran_out_of_memory(
        &mut self,
        task: TaskId,
        said: &FailedAllocation,
        evidence: &str,
    ) -> Outcome {
        let (seen, capacity) = (self.scheduler.seen(task), self.capacity_under(task));
        let by_contract = self.scheduler.policy().contract.is_some();
        let Some(live) = self.tasks.get_mut(&task) else { return Outcome::Failed };
        let (record, spec) = (&mut live.record, &live.spec);
        let seen = seen.unwrap_or(record.peak);
        let known = outcome::wanted(said, seen, capacity);
        // The monitor may not have looked in time; the process knows what it had.
        let held = said.held.filter(|_| outcome::believable(said, seen, capacity));
        let held = held.unwrap_or(record.peak);
        let expected = spec.gpu_memory.or(spec.estimate.map(|e| e.peak)).unwrap_or_default();
        let wanted = match known {
            Some(wanted) => wanted,
            // By the contract a guess is none: what is not known is doubled.
            None if by_contract => Bytes::ZERO,
            None => record.peak.max(expected).scale(UNSAID),
        };
        let had = self.scheduler.promised(task).map_or(Bytes::ZERO, |promised| promised.bytes);
        // A task that the watchdog ended held more than could be given to it, whatever has become free since.
        let wanted = match record.ended_by_watchdog {
            Some(_) if by_contract => wanted.max(had + Bytes(1)),
            _ => wanted,
        };
        self.counters.ran_out_of_memory(record.owner);
        if self.scheduler.is_wronged(task, wanted) {
            let had = had.max(spec.gpu_memory.unwrap_or_default());
            record.reason = Some("ran out of GPU memory that others took".to_owned());
            let what = format!(
                "ran out of GPU memory with {held} in use, although it was promised {had}: others took it. It starts again, and \
                 this attempt does not count ({evidence})"
            );
            self.changed(task, Some(what));
            return Outcome::OutOfMemory { wanted };
        }
        record.ooms += 1;
        let known = Some(wanted).filter(|&wanted| wanted > Bytes::ZERO);
        record.wanted = record.wanted.max(known);
        let wanting = known.map_or_else(String::new, |wanted| format!(", wanting about {wanted}"));
        let what = format!("ran out of GPU memory with {held} in use{wanting}: {evidence}");
        record.reason = Some(format!("ran out of GPU memory{wanting}"));
        let outcome = match spec.on_oom {
            OnOom::Policy | OnOom::Grow => Outcome::OutOfMemory { wanted },
            OnOom::Exclusive if record.ooms == 1 => {
                live.ending = Some(Ending::Again);
                Outcome::Failed
            }
            OnOom::Exclusive | OnOom::Fail => {
                live.ending = Some(Ending::Over(TaskState::OutOfMemory));
                Outcome::Failed
            }
        };
        self.changed(task, Some(what));
        outcome
    }

    /// The memory of the largest GPU, or instance, that a task has.
    fn capacity_under(&self, task: TaskId) -> Bytes {
        let placement = self.tasks.get(&task).and_then(|live| live.record.placement.as_ref());
        let slots = placement.into_iter().flat_map(|placement| placement.slots.iter());
        let memory = |slot: &Slot| match slot.instance {
            Some(instance) => instance.memory,
            None => self.scheduler.gpus().get(slot.gpu).capacity,
        };
        slots.map(memory).max().unwrap_or(Bytes::MAX)
    }
}
