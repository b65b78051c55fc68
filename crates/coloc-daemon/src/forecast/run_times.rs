//! How long tasks take: as the past has shown, else as they said they would at most.

use crate::clock::Clock;
use crate::journal::{Journal, JournalError};
use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_model::{Millis, TaskState, Time};
use rustc_hash::FxHashMap;

/// Ended tasks that are looked at.
const MOST_ENDED: u32 = 2_000;

/// What a task's expected run time rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// How fast it gets on, as its log tells.
    Progress,
    /// The median of so many earlier runs.
    History(usize),
    /// What it may take at most.
    Limit,
    /// It has run longer than any of its kind, and may end any moment.
    Outlasted,
    /// Nothing.
    Unknown,
}

/// Run times of completed tasks, by what they ran, in ascending order.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct RunTimes {
    by_signature: FxHashMap<String, Vec<Millis>>,
}

impl RunTimes {
    /// From the journal's newest tasks.
    pub fn read(journal: &Journal, clock: &Clock) -> Result<Self, JournalError> {
        let mut signatures = FxHashMap::default();
        let mut times = RunTimes::default();
        for record in journal.ended(Moment(0), MOST_ENDED)? {
            let (TaskState::Completed, Some(started), Some(ended)) =
                (record.phase, record.started, record.left_its_gpus())
            else {
                continue;
            };
            let signature =
                journal.once_of(record.spec, &mut signatures, |spec| spec.signature())?;
            times.add(signature, clock.time(ended).since(clock.time(started)));
        }
        Ok(times)
    }

    /// One more run.
    pub fn add(&mut self, signature: &str, ran: Millis) {
        let runs = self.by_signature.entry(signature.to_owned()).or_default();
        runs.insert(runs.partition_point(|run| *run <= ran), ran);
    }

    /// How long a task will take that starts.
    pub fn of_new(&self, spec: &TaskSpec) -> (Option<Millis>, Basis) {
        let runs = self.by_signature.get(&spec.signature()).map_or(&[][..], Vec::as_slice);
        let limit = |run: Millis| spec.time_limit.map_or(run, |limit| run.min(limit));
        match (median(runs), spec.time_limit) {
            (Some(run), _) => (Some(limit(run)), Basis::History(runs.len())),
            (None, Some(limit)) => (Some(limit), Basis::Limit),
            (None, None) => (None, Basis::Unknown),
        }
    }

    /// When a task will end that has run since `started`, and has so much `left` by its own log. Tasks of its kind that took
    /// no longer so far tell nothing.
    pub fn end_of(
        &self,
        spec: &TaskSpec,
        started: Time,
        now: Time,
        left: Option<Millis>,
    ) -> (Option<Time>, Basis) {
        let runs = self.by_signature.get(&spec.signature()).map_or(&[][..], Vec::as_slice);
        let so_far = now.since(started);
        let longer = &runs[runs.partition_point(|run| *run <= so_far)..];
        let at_most = spec.time_limit.map(|limit| started + limit);
        if let Some(left) = left {
            let end = now + left;
            return (Some(at_most.map_or(end, |most| end.min(most))), Basis::Progress);
        }
        match (median(longer), at_most) {
            (Some(run), at_most) => {
                let end = started + run;
                (Some(at_most.map_or(end, |most| end.min(most))), Basis::History(longer.len()))
            }
            (None, Some(at_most)) => (Some(at_most.max(now)), Basis::Limit),
            (None, None) if !runs.is_empty() => (Some(now), Basis::Outlasted),
            (None, None) => (None, Basis::Unknown),
        }
    }
}

/// The middle of sorted values; the lower of two.
fn median(sorted: &[Millis]) -> Option<Millis> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::spec;

    fn secs(seconds: u64) -> Millis {
        Millis::from_secs(seconds)
    }

    #[test]
    fn the_past_tells_more_than_a_limit_and_a_limit_more_than_nothing() {
        let mut times = RunTimes::default();
        let known = TaskSpec { time_limit: Some(secs(1000)), ..spec(&["train", "--seed=1"]) };
        assert_eq!(times.of_new(&known), (Some(secs(1000)), Basis::Limit));
        assert_eq!(times.of_new(&spec(&["other"])), (None, Basis::Unknown));
        for run in [90, 300, 100] {
            times.add(&known.signature(), secs(run));
        }
        let again = spec(&["train", "--seed=2"]);
        assert_eq!(times.of_new(&again), (Some(secs(100)), Basis::History(3)));
        let short = TaskSpec { time_limit: Some(secs(60)), ..again };
        assert_eq!(times.of_new(&short), (Some(secs(60)), Basis::History(3)));
    }

    #[test]
    fn who_has_run_for_long_is_compared_with_those_who_ran_longer() {
        let mut times = RunTimes::default();
        let task = spec(&["train"]);
        for run in [90, 100, 300] {
            times.add(&task.signature(), secs(run));
        }
        let end_with = |after: u64, task: &TaskSpec, left: Option<Millis>| {
            let (end, basis) = times.end_of(task, Time::START, Time::START + secs(after), left);
            (end.map(|end| end.since(Time::START)), basis)
        };
        let end = |after: u64, task: &TaskSpec| end_with(after, task, None);
        assert_eq!(end_with(10, &task, Some(secs(5))), (Some(secs(15)), Basis::Progress));
        assert_eq!(end(10, &task), (Some(secs(100)), Basis::History(3)));
        assert_eq!(end(150, &task), (Some(secs(300)), Basis::History(1)));
        assert_eq!(end(400, &task), (Some(secs(400)), Basis::Outlasted));
        let limited = TaskSpec { time_limit: Some(secs(500)), ..task };
        assert_eq!(end(400, &limited), (Some(secs(500)), Basis::Limit));
        assert_eq!(end_with(400, &limited, Some(secs(900))), (Some(secs(500)), Basis::Progress));
        assert_eq!(end(1, &spec(&["new"])), (None, Basis::Unknown));
    }
}
