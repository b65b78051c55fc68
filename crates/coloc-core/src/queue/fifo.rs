//! In order of arrival. The head blocks all tasks behind it, and while nothing but improved GPUs can
//! help it, only those are looked at.

use crate::place::Search;
use crate::scheduler::{Pass, SchedulerState};

pub(crate) fn run(scheduler: &mut SchedulerState, pass: &mut Pass) {
    let mut improved = std::mem::take(&mut scheduler.improved);
    scheduler.gpus.take_improved(&mut improved);
    while let Some(head) = scheduler.head()
        && !pass.is_over()
    {
        let known_blocked =
            scheduler.blocked_head == Some(head) && !scheduler.policy.time_matters();
        let search = if known_blocked { Search::Only(&improved) } else { Search::Everywhere };
        if !scheduler.try_start(pass, head, search) {
            scheduler.blocked_head = Some(head);
            break;
        }
    }
    if pass.is_over() {
        // The next head may have been refused before one of a higher priority came: what improved must be offered to it.
        scheduler.blocked_head = None;
    }
    scheduler.improved = improved;
}
