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
    /// The first epoch that was told of.
    first_epoch: Option<u64>,
    /// Every count so far lies where it would if iterations of all epochs were counted in one.
    fits_one_count: bool,
    unit: &'static str,
    total: Option<u64>,
    /// What was done at each look, and when that was.
    looks: VecDeque<(Instant, u64)>,
}

impl Tally {
    pub(super) fn new(attempt: u32) -> Self {
        let (unit, looks) = ("", VecDeque::new());
        let (from_zero, first_epoch, fits_one_count) = (false, None, true);
        Tally { attempt, from_zero, first_epoch, fits_one_count, unit, total: None, looks }
    }

    /// The log was looked at. Says whether it told something new.
    pub(super) fn hear(&mut self, at: Instant, counted: Counted) -> bool {
        let before = (self.looks.back().map(|&(_, done)| done), self.total);
        self.from_zero |= counted.epochs.is_some_and(|epochs| epochs.number == 0);
        self.look_for_one_count(&counted);
        let (done, total, unit) = self.whole(&counted);
        let is_another = unit != self.unit;
        if is_another || self.looks.back().is_some_and(|&(_, before)| done < before) {
            // Another count began: what was said before is no measure of it.
            self.looks.clear();
        }
        (self.unit, self.total) = (unit, total);
        // A log that says the same again lets time pass: what stands still gets slower.
        self.looks.push_back((at, done));
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
        before != (Some(done), self.total)
    }

    /// Epochs that are over.
    fn past(&self, epochs: Count) -> u64 {
        epochs.number.saturating_sub(u64::from(!self.from_zero))
    }

    /// `epoch 3/10 iter 216/800` may mean 800 iterations of each epoch, or of all: then each number lies in its epoch's part.
    fn look_for_one_count(&mut self, counted: &Counted) {
        let (Some(Count { number, total: Some(all) }), Some(epochs)) =
            (counted.iterations, counted.epochs)
        else {
            return;
        };
        let Some(of) = epochs.total.map(u128::from) else { return };
        let past = u128::from(self.past(epochs));
        let scaled = u128::from(number).saturating_mul(of);
        let part = past.saturating_mul(all.into())..=(past + 1).saturating_mul(all.into());
        self.fits_one_count &= part.contains(&scaled);
        self.first_epoch.get_or_insert(epochs.number);
    }

    /// How far it is: as the log says in so many words, else as its counts do.
    fn whole(&self, counted: &Counted) -> (u64, Option<u64>, &'static str) {
        let Counted { iterations, epochs, unit, percent } = *counted;
        let by_epoch = self.by_epoch(counted);
        let in_one = iterations.map(|Count { number, total }| (number, total));
        if let Some(percent) = percent {
            let distance = |&(done, total): &(u64, Option<u64>)| {
                let said = f64::from(percent) / 100.0;
                Some((done as f64 / total? as f64 * 100.0 - said).abs()).filter(|off| *off <= 1.0)
            };
            let counts = [in_one, Some(by_epoch)].into_iter().flatten();
            let near = counts.filter_map(|count| Some((distance(&count)?, count)));
            return match near.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
                Some((_, (done, total))) => (done, total, unit),
                None => (u64::from(percent / 100).min(100), Some(100), "%"),
            };
        }
        let has_moved = epochs.zip(self.first_epoch).is_some_and(|(e, first)| e.number != first);
        let (done, total) = match in_one {
            Some((done, Some(all))) if has_moved && self.fits_one_count => {
                (done, Some(all.max(done)))
            }
            _ => by_epoch,
        };
        (done, total, unit)
    }

    /// Iterations of all epochs, where each has its own count: done, and in all if that can be told.
    fn by_epoch(&self, counted: &Counted) -> (u64, Option<u64>) {
        let Counted { iterations, epochs, .. } = *counted;
        match (iterations, epochs) {
            (Some(Count { number, total: Some(each) }), Some(epochs)) => {
                let done = self.past(epochs).saturating_mul(each).saturating_add(number);
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
            percent: None,
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
    fn what_a_log_says_in_so_many_words_wins_over_its_counts() {
        let epochs = Some((3, Some(10)));
        let said = |percent| Counted { percent, ..iterations(216, Some(800), epochs) };
        let in_one = after(&[said(Some(2700))]);
        assert_eq!((in_one.done, in_one.total), (216, Some(800)));
        let by_epoch = after(&[said(Some(2300))]);
        assert_eq!((by_epoch.done, by_epoch.total), (1816, Some(8000)));
        let neither = after(&[said(Some(6100))]);
        assert_eq!((neither.done, neither.total, &*neither.unit), (61, Some(100), "%"));
    }

    #[test]
    fn iterations_of_all_epochs_in_one_count_are_noticed() {
        let at = |epoch, number| iterations(number, Some(800), Some((epoch, Some(10))));
        let in_one = after(&[at(1, 50), at(2, 130), at(3, 216)]);
        assert_eq!((in_one.done, in_one.total), (216, Some(800)));
        let by_epoch = after(&[at(1, 50), at(1, 700), at(2, 130)]);
        assert_eq!((by_epoch.done, by_epoch.total), (930, Some(8000)));
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
