//! What runs of one kind were seen to hold, and how much they grew after they had settled.

use coloc_model::{Bytes, TaskId};

/// Runs of one signature differ a little in memory.
const PADDING: f64 = 0.03;
/// So many runs are remembered: a peak that no later run comes near is forgotten with them.
const REMEMBERED: usize = 8;
/// So many runs that ended well are believed before an estimate is.
const CONVINCING: usize = 3;
/// A kind that did not grow is believed to grow half as much as before.
const FORGETTING: f64 = 0.5;

/// The most memory that tasks of one signature were seen to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenPeak {
    /// As it was seen.
    pub exact: Bytes,
    /// With room for run-to-run variation, and for what a run that goes on may still want.
    pub padded: Bytes,
    /// So many runs ended well that they are believed whatever is estimated.
    pub convincing: bool,
}

/// One run that settled or completed.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    run: TaskId,
    peak: Bytes,
    /// It has ended: it will not hold more.
    ended: bool,
}

/// What is known of a kind's memory.
#[derive(Clone, Default, Debug)]
pub(super) struct Peaks {
    /// The oldest first.
    runs: Vec<Sighting>,
    /// Without a contract: the most ever.
    most: Bytes,
    /// By how much runs outgrew what they held when they had settled.
    late_growth: f64,
}

impl Peaks {
    /// Notes the most that anything of the kind held or wanted; says whether that is news.
    pub(super) fn raise(&mut self, peak: Bytes) -> bool {
        let more = peak > self.most;
        self.most = self.most.max(peak);
        more
    }

    /// Notes what one run held; says whether that is news.
    pub(super) fn teach(&mut self, run: TaskId, peak: Bytes, ended: bool) -> bool {
        let before = self.seen();
        match self.runs.iter_mut().find(|known| known.run == run) {
            Some(known) => *known = Sighting { run, peak: peak.max(known.peak), ended },
            None => {
                if self.runs.len() == REMEMBERED {
                    self.runs.remove(0);
                }
                self.runs.push(Sighting { run, peak, ended });
            }
        }
        self.seen() != before
    }

    /// Notes by how much a run outgrew what it held when it had settled; says whether that is news.
    pub(super) fn grew(&mut self, growth: f64) -> bool {
        let before = self.late_growth;
        self.late_growth = growth.max(before * FORGETTING);
        self.late_growth != before
    }

    pub(super) fn late_growth(&self) -> f64 {
        self.late_growth
    }

    pub(super) fn seen(&self) -> Option<SeenPeak> {
        let mut exact = self.most;
        let mut padded = self.most.scale(1.0 + PADDING);
        for run in &self.runs {
            let more = if run.ended { PADDING } else { self.late_growth.max(PADDING) };
            exact = exact.max(run.peak);
            padded = padded.max(run.peak.scale(1.0 + more));
        }
        let convincing = self.runs.iter().filter(|run| run.ended).count() >= CONVINCING;
        (exact > Bytes::ZERO).then_some(SeenPeak { exact, padded, convincing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_that_no_run_comes_near_is_forgotten() {
        let mut peaks = Peaks::default();
        peaks.teach(TaskId(0), Bytes(1000), true);
        let exact = |peaks: &Peaks| peaks.seen().map(|seen| seen.exact);
        for run in 1..8 {
            peaks.teach(TaskId(run), Bytes(100), true);
            assert_eq!(exact(&peaks), Some(Bytes(1000)), "after {run} more");
        }
        peaks.teach(TaskId(8), Bytes(100), true);
        assert_eq!(exact(&peaks), Some(Bytes(100)));
    }

    #[test]
    fn a_run_counts_once_and_with_its_most() {
        let mut peaks = Peaks::default();
        assert!(peaks.teach(TaskId(0), Bytes(100), false));
        assert!(peaks.teach(TaskId(0), Bytes(200), true));
        assert!(!peaks.teach(TaskId(0), Bytes(150), true));
        assert_eq!(peaks.seen().map(|seen| seen.exact), Some(Bytes(200)));
    }

    #[test]
    fn a_run_that_goes_on_is_padded_by_what_its_kind_grows() {
        let mut peaks = Peaks::default();
        peaks.grew(0.2);
        peaks.teach(TaskId(0), Bytes(1000), false);
        assert_eq!(peaks.seen().map(|seen| seen.padded), Some(Bytes(1200)));
        peaks.teach(TaskId(0), Bytes(1000), true);
        assert_eq!(peaks.seen().map(|seen| seen.padded), Some(Bytes(1030)));
        peaks.grew(0.0);
        assert_eq!(peaks.late_growth(), 0.1, "it is believed to grow less");
    }
}
