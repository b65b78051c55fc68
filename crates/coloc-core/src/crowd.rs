//! What tasks that share a GPU ask of it, told from what each is seen to do there.
//!
//! A task beside others does less than it would alone: it is slowed down by them, and a full device has no more to give.
//! So what is seen of each is turned back into what it asks for.

use crate::belief::{NOTICEABLE, product};
use crate::scheduler::SchedulerState;
use coloc_model::{Bytes, GpuId, Millis, SignatureId, TaskId, Time};

/// Activity is believed once it was watched for this long without a task coming or going.
pub(crate) const LEAST_WATCH: Millis = Millis::from_secs(20);
/// Above this a device is full: what is seen is what it gives, not what tasks ask for.
const FULL: f64 = 0.9;
/// What a full device is asked for, of what it gives, where nothing tells.
const ASKED_OF_FULL: f64 = 1.25;
/// The fixed point is reached within so many steps.
const STEPS: usize = 30;
const LEAST: f64 = 0.02;

/// A task on a GPU that was watched.
struct Seen {
    task: TaskId,
    signature: SignatureId,
    /// What it did.
    share: f64,
    /// What is expected of it.
    believed: f64,
    /// Such tasks were seen before, and its speed is that of this GPU alone.
    anchors: bool,
    known: bool,
}

impl SchedulerState {
    /// Learns of a task's GPUs before it leaves them, or once it has warmed up.
    pub(crate) fn learn_of_neighbours(&mut self, now: Time, task: TaskId) {
        let run = self.tasks.get(task).and_then(|record| record.run.as_ref());
        let gpus: Vec<GpuId> = run.into_iter().flat_map(|run| run.placement.gpus()).collect();
        gpus.into_iter().for_each(|gpu| self.learn_of_crowd(now, gpu));
    }

    /// What the tasks on a GPU ask of it, where each was seen since the last one came or went.
    pub(crate) fn learn_of_crowd(&mut self, now: Time, gpu: GpuId) {
        let Some((seen, sure)) = self.asked_of(now, gpu) else { return };
        let version = self.beliefs.version();
        let alone = seen.len() == 1;
        for (seen, asked) in seen {
            if sure && (!seen.known || alone) {
                self.beliefs.learn(seen.signature, asked);
            }
            if (seen.known && !alone) || (asked - seen.believed).abs() < NOTICEABLE {
                continue;
            }
            let run = self.tasks.get(seen.task).and_then(|record| record.run.as_ref());
            let gpus: Vec<GpuId> = run.into_iter().flat_map(|run| run.placement.gpus()).collect();
            gpus.into_iter().for_each(|gpu| self.gpus.expect_load(gpu, seen.task, asked));
        }
        if self.beliefs.version() != version {
            self.forget_refusals();
        }
    }

    /// What each task on a GPU asks for, and whether that is more than a guess.
    fn asked_of(&self, now: Time, gpu: GpuId) -> Option<(Vec<(Seen, f64)>, bool)> {
        let state = self.gpus.get(gpu);
        if !self.policy.learn || now.since(state.crowd_changed) < LEAST_WATCH {
            return None;
        }
        let mut all = Vec::with_capacity(state.residents().len());
        for booking in state.residents() {
            let record = self.tasks.get(booking.task)?;
            let run = record.run.as_ref()?;
            if run.seen == Bytes::ZERO || now.since(run.started) < LEAST_WATCH {
                return None;
            }
            let signature = record.task.signature;
            let known = self.beliefs.knows(signature);
            let share = state.mean_own(now, booking)?;
            let anchors = known && record.task.gpus == 1;
            all.push(Seen {
                task: booking.task,
                signature,
                share,
                believed: booking.load,
                anchors,
                known,
            });
        }
        // The device says how much there was, its tasks how it divides.
        let (seen, sum) = (state.mean_sm_of_crowd(now), all.iter().map(|s| s.share).sum::<f64>());
        if sum <= 0.0 {
            return None;
        }
        // Unless others compute there, too.
        if state.foreign == Bytes::ZERO {
            all.iter_mut().for_each(|one| one.share *= seen / sum);
        }
        let mut asked: Vec<f64> = all.iter().map(|one| one.share).collect();
        let mut sure = true;
        if seen < FULL {
            let product = if state.is_partitioned() { 0.0 } else { product(state.share()) };
            for _ in 0..STEPS {
                let total: f64 = asked.iter().sum();
                for (asked, one) in asked.iter_mut().zip(&all) {
                    *asked = (one.share * (1.0 + product * *asked * (total - *asked))).min(1.0);
                }
            }
        } else {
            let anchors = all.iter().filter(|one| one.anchors);
            let (known, part) =
                anchors.fold((0.0, 0.0), |sum, one| (sum.0 + one.believed, sum.1 + one.share));
            sure = part > 0.05;
            let scale = if sure { (known / part).max(1.0) } else { ASKED_OF_FULL / seen };
            asked.iter_mut().for_each(|asked| *asked = (*asked * scale).clamp(LEAST, 1.0));
        }
        Some((all.into_iter().zip(asked).collect(), sure))
    }
}
