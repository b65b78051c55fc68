//! Least expected work first: the SM seconds that a task is expected to take, by what was learned of its kind, its user
//! and all tasks. Waiting makes work count less, so that no task is passed over for ever.

mod preemption;

use crate::scheduler::SchedulerState;
use crate::tasks::Record;
use coloc_model::{TaskId, Time};

/// A task that hardly computes holds memory all the same.
const LEAST_DEMAND: f64 = 0.1;
/// Goes after every task of a user who holds no more than its share.
const MORE_THAN_ITS_SHARE: u64 = 1 << 63;

/// When a task's turn is: ranks are not negative, so their bits compare as they do and leave the highest one free.
pub(super) fn due(scheduler: &SchedulerState, now: Time, task: TaskId) -> u64 {
    let record = scheduler.tasks.live(task);
    let greedy = scheduler.holdings.has_more_than_its_share(record.task.user);
    scheduler.rank(now, record).to_bits() | if greedy { MORE_THAN_ITS_SHARE } else { 0 }
}

impl SchedulerState {
    /// SM seconds that a task is still expected to take, on all of its GPUs.
    pub(crate) fn expected_work(&self, task: TaskId) -> f64 {
        let record = self.tasks.live(task);
        let task = &record.task;
        let done = record.service_record.done;
        self.width(record) * self.beliefs.expected_left(task.signature, task.user, done)
    }

    /// Work by which tasks are put in order: of a task that can be interrupted, the least for which it may be done.
    fn rank(&self, now: Time, record: &Record) -> f64 {
        let task = &record.task;
        let done = record.service_record.done(now, record.run.is_some());
        let seconds = match self.preempts() && task.checkpoint.is_some() {
            true => self.beliefs.gittins(task.signature, task.user, done),
            false => self.beliefs.expected_left(task.signature, task.user, done),
        };
        let waited = now.since(record.ticket.submitted).secs() - done.secs();
        let age = self.policy.ageing.map_or(0.0, |ageing| waited.max(0.0) / ageing.secs());
        self.width(record) * seconds / (1.0 + age)
    }

    /// Devices that a task keeps busy.
    fn width(&self, record: &Record) -> f64 {
        let task = &record.task;
        let demand = self.beliefs.shared_sm_demand(task.signature, task.sm);
        f64::from(task.gpus) * demand.max(LEAST_DEMAND)
    }

    fn preempts(&self) -> bool {
        let preemption = self.policy.preemption;
        preemption.is_some_and(|preemption| self.beliefs.ends() >= preemption.after_ends)
    }
}
