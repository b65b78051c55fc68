//! Fair shares: the user who has had the least GPU time for its weight goes first, among one user's tasks
//! the oldest. Past usage is forgotten with a half-life. No task is preempted, and a task that does not fit
//! is passed over, as by best effort.

use crate::scheduler::SchedulerState;
use coloc_model::{Time, UserId};

/// When a user's turn is: scores are not negative, so their bits compare as they do.
pub(super) fn due(scheduler: &SchedulerState, now: Time, user: UserId) -> u64 {
    scheduler.holdings.score(now, user).to_bits()
}
