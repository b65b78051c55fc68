//! A task that needs an empty GPU, because nothing is known of it or for another reason, is not overtaken for ever.

use crate::queue::Ticket;
use crate::scheduler::SchedulerState;
use coloc_model::{TaskId, Time};

/// After so many later tasks were started before it, a GPU is reserved for it.
const MOST: u32 = 16;

/// How often the first of the tasks that wait for an empty GPU was overtaken.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Overtaking {
    waits: Option<(TaskId, Ticket)>,
    times: u32,
}

impl Overtaking {
    /// A task could not be started: it needs a GPU to itself until it has settled.
    pub(crate) fn refused(&mut self, task: TaskId, ticket: Ticket) {
        if self.waits.is_none_or(|(_, first)| ticket < first) {
            *self = Overtaking { waits: Some((task, ticket)), times: 0 };
        }
    }

    /// A task was started.
    pub(crate) fn started(&mut self, task: TaskId, ticket: Ticket) {
        match self.waits {
            Some((first, _)) if first == task => *self = Overtaking::default(),
            Some((_, first)) if ticket.number > first.number => self.times += 1,
            _ => {}
        }
    }

    /// A task waits no longer for an empty GPU.
    pub(crate) fn forget(&mut self, task: TaskId) {
        if self.waits.is_some_and(|(first, _)| first == task) {
            *self = Overtaking::default();
        }
    }
}

impl SchedulerState {
    /// Reserves a GPU for a task that needs an empty one, once it was overtaken too often.
    pub(crate) fn bound_overtaking(&mut self, now: Time) {
        let Some((task, _)) = self.overtaking.waits.filter(|_| self.overtaking.times >= MOST)
        else {
            return;
        };
        let waits = self.tasks.get(task).is_some_and(|record| record.run.is_none());
        // Meanwhile something may have been learned of its kind.
        if !waits || !self.demand(task).idle_only {
            self.overtaking.forget(task);
        } else if self.reserved.is_none() {
            self.reserve_for(now, Some(task));
        }
    }
}
