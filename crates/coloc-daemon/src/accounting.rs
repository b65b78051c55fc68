//! What each attempt of a task was promised, held and drew on each of its GPUs, added up while it ran.

use coloc_api::moment::Moment;
use coloc_api::report::EnergyKind;
use serde::{Deserialize, Serialize};

/// Attempts that are told apart. The sums of earlier ones are kept together, so that a task which is preempted again and
/// again does not fill the journal.
const MOST_ATTEMPTS: usize = 16;

/// What all attempts of a task used. Seconds are the scheduler's, moments the world's.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accounting {
    /// By attempt, the oldest first.
    pub attempts: Vec<AttemptUsage>,
}

/// What one attempt used; the first of many may stand for several.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttemptUsage {
    /// Its number.
    pub number: u32,
    /// When it began.
    pub from: Moment,
    /// Up to when it was added up; its end, once it has ended.
    pub to: Moment,
    /// Attempts among these that ran out of GPU memory.
    #[serde(default)]
    pub ooms: u32,
    /// Where its energy comes from; `None` if the monitor never saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_kind: Option<EnergyKind>,
    /// What it used of each of its GPUs.
    pub gpus: Vec<GpuUsage>,
}

/// What an attempt used of one GPU.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuUsage {
    /// The GPU's name for good.
    pub uuid: String,
    /// The part of the GPU that was promised, times seconds.
    pub promised_s: f64,
    /// The part of its memory that was held, times seconds.
    pub held_s: f64,
    /// Seconds in which the monitor looked.
    pub watched_s: f64,
    /// SM activity that is the task's own, times seconds.
    pub sm_s: f64,
    /// The task's share of what the GPU drew, in joules.
    pub energy_j: f64,
}

impl GpuUsage {
    /// One that is called so and was not used yet.
    pub fn of(uuid: &str) -> Self {
        GpuUsage { uuid: uuid.to_owned(), ..GpuUsage::default() }
    }

    /// Adds another's sums.
    pub fn add(&mut self, other: &GpuUsage) {
        self.promised_s += other.promised_s;
        self.held_s += other.held_s;
        self.watched_s += other.watched_s;
        self.sm_s += other.sm_s;
        self.energy_j += other.energy_j;
    }

    /// A part of it.
    pub fn times(&self, part: f64) -> Self {
        GpuUsage {
            uuid: self.uuid.clone(),
            promised_s: self.promised_s * part,
            held_s: self.held_s * part,
            watched_s: self.watched_s * part,
            sm_s: self.sm_s * part,
            energy_j: self.energy_j * part,
        }
    }
}

impl AttemptUsage {
    /// Notes where energy comes from. Of several sources the least certain counts.
    pub fn drew(&mut self, kind: EnergyKind) {
        self.energy_kind = self.energy_kind.max(Some(kind));
    }

    /// Sums over its GPUs.
    pub fn total(&self) -> GpuUsage {
        let mut total = GpuUsage::default();
        self.gpus.iter().for_each(|gpu| total.add(gpu));
        total
    }

    /// Takes an earlier attempt's sums. They count as spread over the time of both.
    fn absorb(&mut self, earlier: AttemptUsage) {
        self.from = self.from.min(earlier.from);
        self.ooms += earlier.ooms;
        self.energy_kind = self.energy_kind.max(earlier.energy_kind);
        for gpu in earlier.gpus {
            match self.gpus.iter_mut().find(|known| known.uuid == gpu.uuid) {
                Some(known) => known.add(&gpu),
                None => self.gpus.push(gpu),
            }
        }
    }
}

impl Accounting {
    /// The attempt with this number, which began then; a new one on these GPUs if it is not known.
    pub fn attempt<'a>(
        &mut self,
        number: u32,
        from: Moment,
        uuids: impl Iterator<Item = &'a str>,
    ) -> &mut AttemptUsage {
        let known = self.attempts.iter().rposition(|attempt| attempt.number == number);
        let at = known.unwrap_or_else(|| {
            let gpus = uuids.map(GpuUsage::of).collect();
            let (to, ooms, energy_kind) = (from, 0, None);
            self.attempts.push(AttemptUsage { number, from, to, ooms, energy_kind, gpus });
            if self.attempts.len() > MOST_ATTEMPTS {
                let first = self.attempts.remove(0);
                self.attempts[0].absorb(first);
            }
            self.attempts.len() - 1
        });
        &mut self.attempts[at]
    }

    /// Sums over all attempts and GPUs.
    pub fn total(&self) -> GpuUsage {
        let mut total = GpuUsage::default();
        self.attempts.iter().for_each(|attempt| total.add(&attempt.total()));
        total
    }

    /// Its share of what its GPUs drew; `None` if the monitor never saw it.
    pub fn energy_j(&self) -> Option<f64> {
        self.energy_kind().map(|_| self.total().energy_j)
    }

    /// Where that comes from: of several sources the least certain.
    pub fn energy_kind(&self) -> Option<EnergyKind> {
        self.attempts.iter().filter_map(|attempt| attempt.energy_kind).max()
    }

    /// Its own SM activity, mean over its GPUs and the time in which the monitor looked.
    pub fn smact_mean(&self) -> Option<f64> {
        let total = self.total();
        (total.watched_s > 0.0).then(|| (total.sm_s / total.watched_s).clamp(0.0, 1.0))
    }

    /// How long attempts were on GPUs, in milliseconds of the world's.
    pub fn ran_ms(&self) -> u64 {
        self.attempts.iter().map(|attempt| attempt.to.0.saturating_sub(attempt.from.0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_told_apart_until_they_are_too_many() {
        let mut accounting = Accounting::default();
        assert_eq!((accounting.energy_j(), accounting.smact_mean()), (None, None));
        for number in 1..=40 {
            let from = Moment(u64::from(number) * 10);
            let attempt = accounting.attempt(number, from, ["a", "b"].into_iter());
            attempt.to = Moment(from.0 + 5);
            attempt.drew(if number == 3 { EnergyKind::Modelled } else { EnergyKind::Measured });
            for gpu in &mut attempt.gpus {
                (gpu.energy_j, gpu.watched_s, gpu.sm_s) = (1.0, 2.0, 0.5);
            }
        }
        assert_eq!(accounting.attempts.len(), MOST_ATTEMPTS);
        assert_eq!(accounting.energy_j(), Some(80.0), "nothing is lost");
        assert_eq!(accounting.energy_kind(), Some(EnergyKind::Modelled));
        assert_eq!(accounting.smact_mean(), Some(0.25));
        assert_eq!(accounting.attempts[0].from, Moment(10));
        let kept = serde_json::to_string(&accounting).unwrap();
        assert_eq!(serde_json::from_str::<Accounting>(&kept).unwrap(), accounting);
    }
}
