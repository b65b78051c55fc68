//! What tasks that share a GPU ask of it, told from what each is seen to do there.
//!
//! A task beside others does less than it would alone: it is slowed down by them, and a full device has no more to give.
//! So what is seen of each is turned back into what it asks for.

use crate::belief::{NOTICEABLE, product};
use crate::gpus::{Booking, GpuState};
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
    /// What it did, where a monitor tells.
    share: Option<f64>,
    /// What is expected of it.
    believed: f64,
    /// Its speed is that of the slowest of several GPUs.
    gang: bool,
    /// How often such tasks were seen.
    times: u32,
    /// What was believed of it before was taken into account.
    corrected: bool,
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
            let news = seen.times == 0 || alone || seen.corrected;
            if sure && news {
                self.beliefs.learn(seen.signature, asked);
            }
            if !news || (asked - seen.believed).abs() < NOTICEABLE {
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
        let all: Option<Vec<Seen>> =
            state.residents().iter().map(|booking| self.seen_of(now, state, booking)).collect();
        let mut all = all.filter(|all| !all.is_empty())?;
        let (seen, product) = (state.mean_sm_of_crowd(now), product_on(state));
        let shares: Option<Vec<f64>> = all.iter().map(|one| one.share).collect();
        let (asked, sure) = match shares {
            Some(mut shares) => {
                let sum: f64 = shares.iter().sum();
                if sum <= 0.0 {
                    return None;
                }
                // The device says how much there was, its tasks how it divides; unless others compute there, too.
                if state.foreign == Bytes::ZERO {
                    shares.iter_mut().for_each(|share| *share *= seen / sum);
                }
                by_shares(&all, &shares, seen, product)
            }
            // A gang is as slow here as it is elsewhere.
            None if state.foreign > Bytes::ZERO || all.iter().any(|one| one.gang) => return None,
            None if all.len() < 2 => return None,
            None => {
                all.iter_mut().for_each(|one| one.corrected = true);
                (by_total(&all, seen, product)?, true)
            }
        };
        Some((all.into_iter().zip(asked).collect(), sure))
    }

    /// A task on a GPU, if it was there long enough to tell.
    fn seen_of(&self, now: Time, state: &GpuState, booking: &Booking) -> Option<Seen> {
        let record = self.tasks.get(booking.task)?;
        let run = record.run.as_ref()?;
        if run.seen == Bytes::ZERO || now.since(run.started) < LEAST_WATCH {
            return None;
        }
        let signature = record.task.signature;
        let times = self.beliefs.times_seen(signature);
        Some(Seen {
            task: booking.task,
            signature,
            share: state.mean_own(now, booking),
            believed: booking.load,
            gang: record.task.gpus > 1,
            times,
            corrected: false,
        })
    }
}

fn product_on(state: &GpuState) -> f64 {
    if state.is_partitioned() { 0.0 } else { product(state.share()) }
}

/// What tasks ask for, of which each was seen to do so much.
fn by_shares(all: &[Seen], shares: &[f64], seen: f64, product: f64) -> (Vec<f64>, bool) {
    let mut asked = shares.to_vec();
    if seen < FULL {
        for _ in 0..STEPS {
            let total: f64 = asked.iter().sum();
            for (asked, share) in asked.iter_mut().zip(shares) {
                *asked = (share * (1.0 + product * *asked * (total - *asked))).min(1.0);
            }
        }
        return (asked, true);
    }
    let anchors = all.iter().zip(shares).filter(|(one, _)| one.times > 0 && !one.gang);
    let (known, part) =
        anchors.fold((0.0, 0.0), |sum, (one, share)| (sum.0 + one.believed, sum.1 + share));
    let sure = part > 0.05;
    let scale = if sure { (known / part).max(1.0) } else { ASKED_OF_FULL / seen };
    asked.iter_mut().for_each(|asked| *asked = (*asked * scale).clamp(LEAST, 1.0));
    (asked, sure)
}

/// What tasks ask for that cannot be told apart: what was believed of each, corrected by what all of them do more or less
/// than that. Those that were seen least are corrected most. A full device tells only that they ask for no less.
fn by_total(all: &[Seen], seen: f64, product: f64) -> Option<Vec<f64>> {
    let total: f64 = all.iter().map(|one| one.believed).sum();
    let does = |one: &Seen| one.believed / (1.0 + product * one.believed * (total - one.believed));
    let error = match seen < FULL {
        true => seen - all.iter().map(does).sum::<f64>(),
        false => (ASKED_OF_FULL - total).max(0.0),
    };
    if error.abs() < NOTICEABLE || (seen >= FULL && error == 0.0) {
        return None;
    }
    let doubt = |one: &Seen| 1.0 / f64::from(1 + one.times).powi(2);
    let doubts: f64 = all.iter().map(doubt).sum();
    let asked = all.iter().map(|one| one.believed + error * doubt(one) / doubts);
    Some(asked.map(|asked| asked.clamp(LEAST, 1.0)).collect())
}
