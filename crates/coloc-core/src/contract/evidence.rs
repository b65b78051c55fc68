//! Evidence that a task has all the memory that it wants: its memory stays level while it is seen to train.
//!
//! A task that loads data holds little and trains nothing; one whose GPU is busy with others may train nothing
//! either. So time counts only while SM activity of its own was seen, or between two signs of progress.

use coloc_model::{Basis, Bytes, Fraction, Millis, Time};

/// Above this, SMs are at work for a task.
const AT_WORK: Fraction = Fraction::new(0.01);
/// Memory that grows by less than this is level.
const LEVEL: f64 = 1.02;
/// The most that two signs of progress vouch for between them.
const PROGRESS_REACH: Millis = Millis::from_secs(60);

/// For how long a task must be seen to train at one level of memory. A first evaluation comes within minutes; waiting for
/// it costs next to nothing where the task may have company meanwhile.
pub(crate) const fn long_enough(basis: Basis) -> Millis {
    Millis::from_secs(match basis {
        // What is lent may be wanted back.
        Basis::Declared => 600,
        Basis::Estimated => 300,
        // A GPU that no other task may use is dear.
        Basis::Unknown => 180,
        // Runs before it have shown the most of it.
        Basis::History => 120,
    })
}

/// What a booking keeps above what was seen, unless such tasks are known to grow more.
pub(crate) const fn least_margin(basis: Basis) -> f64 {
    match basis {
        Basis::Declared | Basis::Unknown => 0.1,
        Basis::Estimated | Basis::History => 0.05,
    }
}

/// A level of memory, and for how long its task was seen to train at it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Plateau {
    level: Bytes,
    trained: Millis,
    /// Up to then `trained` is counted.
    counted: Time,
    at_work: bool,
    /// SM activity of the task itself, where a monitor can tell.
    own: Option<Fraction>,
    progressed: Option<Time>,
    /// When the evidence will be complete, if nothing changes; what [`super::Settling`] has of it.
    pub(crate) due: Option<Time>,
}

impl Plateau {
    pub(crate) fn new(now: Time) -> Self {
        Plateau {
            level: Bytes::ZERO,
            trained: Millis::ZERO,
            counted: now,
            at_work: false,
            own: None,
            progressed: None,
            due: None,
        }
    }

    /// A monitor saw what the task holds, and its own activity if it can tell.
    pub(crate) fn see(&mut self, now: Time, used: Bytes, own: Option<Fraction>) {
        self.count(now);
        self.own = own;
        if used > self.level.scale(LEVEL) {
            *self = Plateau { level: used, due: self.due, own, ..Plateau::new(now) };
        }
    }

    /// A monitor can tell what the task itself does.
    pub(crate) fn is_told(&self) -> bool {
        self.own.is_some()
    }

    /// The task got further in its training.
    pub(crate) fn progress(&mut self, now: Time) {
        self.count(now);
        if let Some(before) = self.progressed.replace(now)
            && !self.at_work
        {
            self.trained += now.since(before).min(PROGRESS_REACH);
        }
    }

    /// From now on the GPU's activity is known to be the task's (and how much), or it is not. What a monitor says of
    /// the task itself is better. Activity counts from `since` on.
    pub(crate) fn attribute(&mut self, now: Time, of_gpu: Option<Fraction>, since: Time) {
        self.count(now);
        let counts_from = if self.own.is_some() { now } else { now.max(since) };
        self.at_work = self.level > Bytes::ZERO && self.own.or(of_gpu) >= Some(AT_WORK);
        self.counted = counts_from;
    }

    /// Nothing is known of what the task does until it is seen again.
    pub(crate) fn lose_sight(&mut self, now: Time) {
        self.count(now);
        self.at_work = false;
        self.own = None;
    }

    /// When it will have trained for `span` at this level, as things are.
    pub(crate) fn complete_at(&self, span: Millis) -> Option<Time> {
        let left = Millis(span.0.saturating_sub(self.trained.0));
        match left {
            Millis::ZERO => Some(self.counted),
            _ => self.at_work.then_some(self.counted + left),
        }
    }

    /// It trained for `span` at this level.
    pub(crate) fn is_complete(&mut self, now: Time, span: Millis) -> bool {
        self.count(now);
        self.level > Bytes::ZERO && self.trained >= span
    }

    fn count(&mut self, now: Time) {
        if self.at_work {
            self.trained += now.since(self.counted);
        }
        self.counted = self.counted.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Millis = Millis::from_secs(60);

    fn at(secs: u64) -> Time {
        Time::START + Millis::from_secs(secs)
    }

    fn busy(sm: f64) -> Option<Fraction> {
        Some(Fraction::new(sm))
    }

    #[test]
    fn time_alone_is_no_evidence() {
        let mut plateau = Plateau::new(at(0));
        plateau.see(at(1), Bytes(500), None);
        plateau.attribute(at(1), None, at(0));
        assert!(!plateau.is_complete(at(100_000), SPAN));
        assert_eq!(plateau.complete_at(SPAN), None);
    }

    #[test]
    fn training_at_one_level_is() {
        let mut plateau = Plateau::new(at(0));
        plateau.see(at(10), Bytes(1000), busy(0.5));
        plateau.attribute(at(10), None, at(0));
        assert_eq!(plateau.complete_at(SPAN), Some(at(70)));
        // A little more is the same level; much more is another one.
        plateau.see(at(20), Bytes(1010), busy(0.5));
        plateau.attribute(at(20), None, at(0));
        assert_eq!(plateau.complete_at(SPAN), Some(at(70)));
        plateau.see(at(30), Bytes(2000), busy(0.5));
        plateau.attribute(at(30), None, at(0));
        assert_eq!(plateau.complete_at(SPAN), Some(at(90)));
        assert!(!plateau.is_complete(at(89), SPAN));
        assert!(plateau.is_complete(at(90), SPAN));
    }

    #[test]
    fn idle_spells_do_not_count() {
        let mut plateau = Plateau::new(at(0));
        for (from, sm) in [(0, 0.5), (30, 0.0), (500, 0.5)] {
            plateau.see(at(from), Bytes(1000), busy(sm));
            plateau.attribute(at(from), None, at(0));
        }
        assert_eq!(plateau.complete_at(SPAN), Some(at(530)));
    }

    #[test]
    fn what_a_gpu_did_before_is_not_counted() {
        let mut plateau = Plateau::new(at(0));
        plateau.see(at(0), Bytes(1000), None);
        plateau.attribute(at(0), busy(0.9), at(15));
        assert_eq!(plateau.complete_at(SPAN), Some(at(75)));
        // Its activity can no longer be told from that of others.
        plateau.attribute(at(45), None, at(45));
        assert!(!plateau.is_complete(at(1000), SPAN));
    }

    #[test]
    fn progress_vouches_for_the_time_between_its_signs() {
        let mut plateau = Plateau::new(at(0));
        plateau.see(at(0), Bytes(1000), None);
        for step in [10, 40, 70] {
            plateau.progress(at(step));
        }
        assert!(plateau.is_complete(at(70), SPAN));
        let mut stalled = Plateau::new(at(0));
        stalled.see(at(0), Bytes(1000), None);
        stalled.progress(at(10));
        assert!(!stalled.is_complete(at(10_000), SPAN), "one sign says nothing of what follows");
    }
}
