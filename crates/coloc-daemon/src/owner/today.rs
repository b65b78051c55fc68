//! What happened today, by days of UTC: how tasks ended, how often memory ran out, what GPUs used; and how good estimates of memory were.

use super::Owner;
use crate::hardware::Sighting;
use crate::journal::{Journal, JournalError};
use crate::record::Record;
use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_api::view::EstimateQuality;
use coloc_model::{GpuId, TaskState};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

const DAY_MS: u64 = 86_400_000;
/// Tasks of today that a restart reads.
const MOST_READ: u32 = 100_000;
/// Ended tasks by which estimates are judged.
const MOST_ESTIMATES: usize = 1000;

/// What happened today.
#[derive(Default, Debug)]
pub(super) struct Today {
    day: u64,
    /// Tasks that ended, by how.
    pub(super) ended: BTreeMap<&'static str, u64>,
    /// Times that memory ran out.
    pub(super) ooms: u64,
    /// Tasks among those that completed.
    pub(super) recovered: u64,
    energy: f64,
    /// What each GPU's counter said last.
    counters: FxHashMap<GpuId, f64>,
    /// Error and whether the bound held, of the last tasks that had an estimate.
    estimates: VecDeque<(f64, bool)>,
}

impl Today {
    /// What the journal tells of today.
    pub(super) fn read(journal: &Journal, now: Moment) -> Result<Self, JournalError> {
        let mut today = Today { day: now.0 / DAY_MS, ..Today::default() };
        for record in journal.ended(Moment(today.day * DAY_MS), MOST_READ)? {
            today.count(&record);
        }
        Ok(today)
    }

    fn turn(&mut self, now: Moment) {
        let day = now.0 / DAY_MS;
        if self.day != day {
            let (counters, estimates) =
                (std::mem::take(&mut self.counters), std::mem::take(&mut self.estimates));
            *self = Today { day, counters, estimates, ..Today::default() };
        }
    }

    fn count(&mut self, record: &Record) {
        *self.ended.entry(record.phase.name()).or_default() += 1;
        self.ooms += u64::from(record.ooms);
        self.recovered += u64::from(record.ooms > 0 && record.phase == TaskState::Completed);
    }

    /// A task has ended.
    pub(super) fn ended(&mut self, now: Moment, record: &Record, spec: &TaskSpec) {
        self.turn(now);
        self.count(record);
        self.judge(record, spec);
    }

    /// Compares what was estimated of a task with what it held.
    pub(super) fn judge(&mut self, record: &Record, spec: &TaskSpec) {
        let Some(estimate) = spec.estimate.filter(|_| record.peak.0 > 0) else { return };
        let peak = record.peak.0 as f64;
        self.estimates
            .push_back(((estimate.peak.0 as f64 - peak) / peak, record.peak <= estimate.bound));
        if self.estimates.len() > MOST_ESTIMATES {
            self.estimates.pop_front();
        }
    }

    /// How good estimates were.
    pub(super) fn quality(&self) -> EstimateQuality {
        let mut errors: Vec<f64> = self.estimates.iter().map(|(error, _)| *error).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let within = self.estimates.iter().filter(|(_, within)| *within).count();
        EstimateQuality {
            error_median: errors.get(errors.len() / 2).copied(),
            within_bound: (!errors.is_empty()).then(|| within as f64 / errors.len() as f64),
            rows: errors.len() as u64,
        }
    }

    /// Energy of all GPUs; `None` if no GPU tells.
    pub(super) fn energy(&self) -> Option<f64> {
        (!self.counters.is_empty()).then_some(self.energy)
    }

    fn add_energy(&mut self, now: Moment, sighting: &Sighting) {
        self.turn(now);
        for sample in &sighting.samples {
            let Some(counter) = sample.vitals.energy_j else { continue };
            let before = self.counters.insert(sample.id, counter);
            // A counter that went back began anew with its driver.
            self.energy += before.map_or(0.0, |before| (counter - before).max(0.0));
        }
    }
}

impl Owner {
    /// Adds up what GPUs used since the last look.
    pub(super) fn add_energy(&mut self, sighting: &Sighting) {
        self.today.add_energy(self.clock.world_now(), sighting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{SpecId, Uid, tests::spec};
    use coloc_model::{Bytes, Estimate, TaskId};

    #[test]
    fn a_day_is_counted_and_the_next_begins_anew() {
        let mut today = Today::default();
        let mut record = Record::new(TaskId(1), SpecId(1), Uid(1), Moment(0));
        (record.phase, record.ooms, record.peak) = (TaskState::Completed, 2, Bytes(100));
        let estimate = Estimate { peak: Bytes(110), bound: Bytes(120), sm: None };
        let spec = TaskSpec { estimate: Some(estimate), ..spec(&["x"]) };
        today.ended(Moment(5), &record, &spec);
        assert_eq!((today.ooms, today.recovered), (2, 1));
        let quality = today.quality();
        assert_eq!(
            (quality.error_median, quality.within_bound, quality.rows),
            (Some(0.1), Some(1.0), 1)
        );
        today.ended(Moment(DAY_MS), &record, &spec);
        assert_eq!((today.ended["completed"], today.ooms), (1, 2), "another day");
        assert_eq!(today.quality().rows, 2, "estimates are judged by more than a day");
    }
}
