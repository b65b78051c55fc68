//! What the owner counts while it works. Nothing here is written down: counters begin anew with the daemon, as
//! Prometheus expects of them.

use super::histogram::{Histogram, RATIOS, SHORT, WAITS};
use crate::record::{Record, Uid};
use coloc_api::spec::TaskSpec;
use coloc_model::TaskState;
use std::collections::BTreeMap;
use std::time::Duration;

/// Users who have series of their own; all others are counted together.
pub(crate) const MOST_USERS: usize = 100;

/// What is counted of one user's tasks.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OfUser {
    /// Seconds from submission to the first start, by the world's clock.
    pub(crate) waits: Histogram,
    /// Tasks by how they ended.
    pub(crate) ended: BTreeMap<&'static str, u64>,
    pub(crate) ooms: u64,
    /// Tasks that ran out of memory and completed all the same.
    pub(crate) recovered: u64,
    pub(crate) preemptions: u64,
}

impl OfUser {
    fn new() -> Self {
        OfUser {
            waits: Histogram::new(WAITS),
            ended: BTreeMap::new(),
            ooms: 0,
            recovered: 0,
            preemptions: 0,
        }
    }
}

/// What the owner counts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Counters {
    users: BTreeMap<Uid, OfUser>,
    others: OfUser,
    /// Estimates of ended tasks over what these held.
    pub(crate) estimates: Histogram,
    /// Tasks among them that stayed below the bound of their estimate.
    pub(crate) within_bound: u64,
    pub(crate) launches: u64,
    pub(crate) launch_failures: u64,
    pub(crate) journal_writes: Histogram,
    pub(crate) journal_failures: u64,
    /// How long the owner was at work on each batch.
    pub(crate) batches: Histogram,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            users: BTreeMap::new(),
            others: OfUser::new(),
            estimates: Histogram::new(RATIOS),
            within_bound: 0,
            launches: 0,
            launch_failures: 0,
            journal_writes: Histogram::new(SHORT),
            journal_failures: 0,
            batches: Histogram::new(SHORT),
        }
    }
}

impl Counters {
    /// What is counted of each user, `None` for the users who have no place of their own.
    pub(crate) fn users(&self) -> impl Iterator<Item = (Option<Uid>, &OfUser)> {
        let known = self.users.iter().map(|(user, counted)| (Some(*user), counted));
        let others = (self.users.len() >= MOST_USERS).then_some((None, &self.others));
        known.chain(others)
    }

    fn of(&mut self, user: Uid) -> &mut OfUser {
        if self.users.contains_key(&user) || self.users.len() < MOST_USERS {
            return self.users.entry(user).or_insert_with(OfUser::new);
        }
        &mut self.others
    }

    /// Whether a user has series of their own.
    pub(crate) fn knows(&self, user: Uid) -> bool {
        self.users.contains_key(&user)
    }

    /// A task was started.
    pub(crate) fn started(&mut self, record: &Record) {
        self.launches += 1;
        if record.first_started == record.started
            && let Some(started) = record.started
        {
            let waited = started.0.saturating_sub(record.submitted.0) as f64 / 1000.0;
            self.of(record.owner).waits.observe(waited);
        }
    }

    pub(crate) fn ran_out_of_memory(&mut self, user: Uid) {
        self.of(user).ooms += 1;
    }

    pub(crate) fn preempted(&mut self, user: Uid) {
        self.of(user).preemptions += 1;
    }

    /// A task ended for good.
    pub(crate) fn ended(&mut self, record: &Record, spec: &TaskSpec) {
        let user = self.of(record.owner);
        *user.ended.entry(record.phase.name()).or_default() += 1;
        let completed = record.phase == TaskState::Completed;
        user.recovered += u64::from(completed && record.ooms > 0);
        if let Some(estimate) = spec.estimate
            && crate::past::showed_its_peak(record)
        {
            self.estimates.observe(estimate.peak.0 as f64 / record.peak.0.max(1) as f64);
            self.within_bound += u64::from(record.peak <= estimate.bound);
        }
    }

    /// The journal was written, or could not be.
    pub(crate) fn journal_written(&mut self, took: Duration, written: bool) {
        self.journal_writes.observe(took.as_secs_f64());
        self.journal_failures += u64::from(!written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SpecId;
    use crate::record::tests::spec;
    use coloc_api::moment::Moment;
    use coloc_model::{Bytes, Estimate, TaskId};

    fn record(user: u32) -> Record {
        Record::new(TaskId(1), SpecId(1), Uid(user), Moment(1_000))
    }

    #[test]
    fn users_beyond_the_bound_are_counted_together() {
        let mut counters = Counters::default();
        for user in 0..MOST_USERS as u32 + 50 {
            counters.ran_out_of_memory(Uid(user));
        }
        assert_eq!(counters.users().count(), MOST_USERS + 1);
        let others = counters.users().find(|(user, _)| user.is_none()).expect("the others");
        assert_eq!(others.1.ooms, 50);
        assert!(counters.knows(Uid(99)) && !counters.knows(Uid(100)));
    }

    #[test]
    fn a_wait_is_counted_at_the_first_start_only() {
        let mut counters = Counters::default();
        let mut record = record(7);
        record.started = Some(Moment(61_000));
        record.first_started = record.started;
        counters.started(&record);
        record.started = Some(Moment(99_000));
        counters.started(&record);
        let (_, user) = counters.users().next().expect("a user");
        assert_eq!((user.waits.count(), user.waits.sum()), (1, 60.0));
        assert_eq!(counters.launches, 2);
    }

    #[test]
    fn an_estimate_is_compared_with_what_a_completed_task_held() {
        let mut counters = Counters::default();
        let mut spec = spec(&["train"]);
        let mib = Bytes::from_mib;
        spec.estimate = Some(Estimate { peak: mib(1100), bound: mib(1500), sm: None });
        let mut record = record(7);
        record.peak = mib(1000);
        record.phase = TaskState::Failed;
        counters.ended(&record, &spec);
        assert_eq!(counters.estimates.count(), 0, "it may have needed more");
        record.phase = TaskState::Completed;
        record.ooms = 1;
        counters.ended(&record, &spec);
        assert_eq!((counters.estimates.count(), counters.within_bound), (1, 1));
        assert!((counters.estimates.sum() - 1.1).abs() < 1e-9);
        let (_, user) = counters.users().next().expect("a user");
        assert_eq!((user.recovered, user.ended["completed"]), (1, 1));
    }
}
