//! How far a running attempt is and how fast, from what its log said each time it was looked at.

use crate::executor::{Count, Counted};
use coloc_api::view::Progress;
use std::collections::VecDeque;
use std::time::Instant;

/// Looks that a rate rests on. The more, the steadier; the fewer, the sooner it follows a new neighbour.
const LOOKS: usize = 12;

/// What one attempt's log has said.
#[derive(Clone, Debug)]
pub(in crate::owner) struct Tally {
    /// The attempt.
    pub(super) attempt: u32,
    /// Its epochs are counted from 0: one was called so.
    from_zero: bool,
    unit: &'static str,
    total: Option<u64>,
    /// What was done at each look, and when that was.
    looks: VecDeque<(Instant, u64)>,
}

impl Tally {
    pub(super) fn new(attempt: u32) -> Self {
        let (unit, looks) = ("", VecDeque::new());
        Tally { attempt, from_zero: false, unit, total: None, looks }
    }

    /// The log was looked at.
    pub(super) fn hear(&mut self, at: Instant, counted: Counted) {
        self.from_zero |= counted.epochs.is_some_and(|epochs| epochs.number == 0);
        let (done, total) = self.whole(&counted);
        let is_another = counted.unit != self.unit;
        if is_another || self.looks.back().is_some_and(|&(_, before)| done < before) {
            // Another count began: what was said before is no measure of it.
            self.looks.clear();
        }
        (self.unit, self.total) = (counted.unit, total);
        // A log that says the same again lets time pass: what stands still gets slower.
        self.looks.push_back((at, done));
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
    }

    /// Iterations of all epochs: done, and in all if that can be told.
    fn whole(&self, counted: &Counted) -> (u64, Option<u64>) {
        let Counted { iterations, epochs, .. } = *counted;
        let past = |epochs: Count| epochs.number.saturating_sub(u64::from(!self.from_zero));
        match (iterations, epochs) {
            (Some(Count { number, total: Some(each) }), Some(epochs)) => {
                let done = past(epochs).saturating_mul(each).saturating_add(number);
                (done, epochs.total.map(|all| all.saturating_mul(each).max(done)))
            }
            // Steps that are counted without an end may begin anew with each epoch, or not.
            (Some(Count { number, total: None }), _) => (number, None),
            (Some(Count { number, total }), None) => (number, total.map(|all| all.max(number))),
            (None, Some(Count { number, total })) => (number, total.map(|all| all.max(number))),
            (None, None) => (0, None),
        }
    }

    /// How far it is now.
    pub(in crate::owner) fn progress(&self, now: Instant) -> Option<Progress> {
        let (&(began, first), &(at, done)) = (self.looks.front()?, self.looks.back()?);
        let span = at.saturating_duration_since(began).as_secs_f64();
        let rate = (span > 0.0 && done > first).then(|| (done - first) as f64 / span);
        let since = now.saturating_duration_since(at).as_secs_f64();
        let left = self.total.map(|total| (total - done.min(total)) as f64);
        let eta_s = rate.zip(left).map(|(rate, left)| (left / rate - since).max(0.0));
        Some(Progress { done, total: self.total, unit: self.unit.to_owned(), rate, eta_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn iterations(number: u64, total: Option<u64>, epochs: Option<(u64, Option<u64>)>) -> Counted {
        let count = |(number, total)| Count { number, total };
        Counted {
            iterations: Some(Count { number, total }),
            unit: "iter",
            epochs: epochs.map(count),
        }
    }

    /// What is told after looks five seconds apart.
    fn after(looks: &[Counted]) -> Progress {
        let (mut tally, began) = (Tally::new(1), Instant::now());
        for (index, look) in looks.iter().enumerate() {
            tally.hear(began + Duration::from_secs(5 * index as u64), *look);
        }
        let last = Duration::from_secs(5 * (looks.len() as u64 - 1));
        tally.progress(began + last).expect("some progress")
    }

    #[test]
    fn two_looks_are_a_speed() {
        let one = after(&[iterations(100, Some(1000), None)]);
        assert_eq!((one.done, one.total, one.rate, one.eta_s), (100, Some(1000), None, None));
        let looks = [iterations(100, Some(1000), None), iterations(200, Some(1000), None)];
        let two = after(&looks);
        assert_eq!((two.rate, two.eta_s), (Some(20.0), Some(40.0)));
    }

    #[test]
    fn epochs_add_up_whether_counted_from_one_or_from_zero() {
        let from_one = after(&[iterations(50, Some(100), Some((2, Some(4))))]);
        assert_eq!((from_one.done, from_one.total), (150, Some(400)));
        let looks = [
            iterations(90, Some(100), Some((0, Some(4)))),
            iterations(10, Some(100), Some((1, Some(4)))),
        ];
        let from_zero = after(&looks);
        assert_eq!((from_zero.done, from_zero.rate), (110, Some(4.0)));
        let endless = after(&[iterations(50, Some(100), Some((3, None)))]);
        assert_eq!((endless.done, endless.total), (250, None));
    }

    #[test]
    fn a_count_that_begins_anew_is_no_speed() {
        let looks = [iterations(900, None, None), iterations(10, None, None)];
        assert_eq!(after(&looks).rate, None);
    }

    #[test]
    fn a_log_that_stands_still_gets_slower() {
        let at = |number| iterations(number, Some(1000), None);
        let moving = after(&[at(0), at(100), at(200)]);
        let stuck = after(&[at(0), at(100), at(200), at(200), at(200)]);
        assert!(stuck.rate < moving.rate && stuck.eta_s > moving.eta_s);
    }

    /// Numbers come from a user's log, and are as large as they like.
    #[test]
    fn no_number_is_too_large() {
        let most = Some(u64::MAX);
        let huge = after(&[iterations(u64::MAX, most, Some((u64::MAX, most)))]);
        assert_eq!((huge.done, huge.total), (u64::MAX, most));
    }
}
