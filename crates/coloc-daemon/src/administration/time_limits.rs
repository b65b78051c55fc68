//! How long tasks may run.

use coloc_model::Millis;

/// How long tasks may run, in the tasks' own time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimeLimits {
    /// A task that says nothing is stopped after this long; without it, after the largest.
    pub default: Option<Millis>,
    /// No task may have longer.
    pub largest: Option<Millis>,
}

impl TimeLimits {
    /// The same where a pool has its own largest limit.
    #[must_use]
    pub fn within(self, pool: Option<Millis>) -> TimeLimits {
        let largest = self.largest.into_iter().chain(pool).min();
        TimeLimits { largest, ..self }
    }

    /// The limit of a task that asks for this one, or says nothing. Zero asks for none at all.
    pub fn given(self, asked: Option<Millis>) -> Option<Millis> {
        match asked {
            Some(Millis::ZERO) => None,
            Some(limit) => Some(limit),
            None => self.default.into_iter().chain(self.largest).min(),
        }
    }

    /// Whether a task may have this limit, or none.
    pub fn allow(self, limit: Option<Millis>) -> bool {
        self.largest.is_none_or(|largest| limit.is_some_and(|limit| limit <= largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_says_nothing_gets_what_it_may_have() {
        let span = |hours: u64| Some(Millis::from_secs(3600 * hours));
        let none = TimeLimits::default();
        assert_eq!((none.given(None), none.allow(None)), (None, true));
        let limits = TimeLimits { default: span(4), largest: span(24) };
        assert_eq!((limits.given(None), limits.given(span(9))), (span(4), span(9)));
        assert!(limits.allow(span(24)) && !limits.allow(span(25)) && !limits.allow(None));
        assert_eq!(limits.given(Some(Millis::ZERO)), None, "no limit was asked for");
        let pool = limits.within(span(2));
        assert_eq!((pool.given(None), pool.allow(span(4))), (span(2), false));
        let only_largest = TimeLimits { default: None, largest: span(24) };
        assert_eq!(only_largest.given(None), span(24));
    }
}
