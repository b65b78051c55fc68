//! Which commands are answered in a turn. Most take no time, and all of these are answered. Heavy commands are about
//! many tasks and take a part of a second: of these each user has one in a turn, and all together have a budget. So a
//! user who sends sixty at once keeps others waiting for one.

use crate::owner::commands::bulk::{CHANGES, COMERS};
use crate::owner::{Caller, Command};
use crate::record::Uid;
use rustc_hash::FxHashSet;

/// Commands that are about more tasks than this are heavy.
const HEAVY: usize = 64;
/// The most tasks that the heavy commands of a turn are about, unless a single one is.
const BUDGET: usize = 4_000;
/// Rows of a list take as long as changes of half as many tasks.
const PAGE: usize = 1_000;
/// To explain why a task waits is to ask about all that wait before it.
const EXPLANATION: usize = 500;

/// The heavy commands of a turn.
#[derive(Default)]
pub(in crate::owner) struct BatchBudget {
    users: FxHashSet<Uid>,
    weight: usize,
}

impl BatchBudget {
    /// Whether a command is for this turn. One that is not comes back in the next.
    pub(in crate::owner) fn has_room(
        &mut self,
        caller: Caller,
        command: &Command,
        tasks: usize,
    ) -> bool {
        let weight = weight(command, tasks);
        if weight <= HEAVY {
            return true;
        }
        let fits = self.weight == 0 || self.weight + weight <= BUDGET;
        let has_room = fits && self.users.insert(caller.uid);
        self.weight += if has_room { weight } else { 0 };
        has_room
    }
}

/// How many tasks a command is about, where there are so many.
fn weight(command: &Command, tasks: usize) -> usize {
    match command {
        Command::Change(ids, ..) => ids.len().min(CHANGES),
        Command::Submit(submission, _) => {
            submission.array.as_ref().map_or(1, |array| array.indices.len().min(COMERS))
        }
        Command::Page(..) => PAGE.min(tasks),
        Command::Why(..) => EXPLANATION.min(tasks),
        Command::List(_) | Command::Snapshot(_) | Command::Usage(_) => tasks,
        Command::Show(..)
        | Command::Visit(..)
        | Command::Teach(..)
        | Command::Gpus(_)
        | Command::Status(_)
        | Command::Metrics(_)
        | Command::Unwritten(_)
        | Command::Drain(..)
        | Command::ServeGpus(..)
        | Command::ReserveGpus(..)
        | Command::Settings(_)
        | Command::Reconfigure(..) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::reply::Reply;
    use coloc_api::request::Change;
    use coloc_model::TaskId;

    fn user(uid: u32) -> Caller {
        Caller { uid: Uid(uid), admin: false }
    }

    fn list() -> Command {
        Command::List(Reply::channel().0)
    }

    fn cancel(count: usize) -> Command {
        Command::Change(vec![TaskId(1); count], Change::Cancel, Reply::channel().0)
    }

    #[test]
    fn who_sends_many_has_one_in_a_turn_and_what_is_quick_is_always_answered() {
        let mut batch_budget = BatchBudget::default();
        assert!(
            batch_budget.has_room(user(1), &cancel(10_000), 0),
            "the first, whatever it weighs"
        );
        assert!(!batch_budget.has_room(user(1), &cancel(10_000), 0));
        assert!(!batch_budget.has_room(user(1), &cancel(100), 0));
        assert!((0..1000).all(|_| batch_budget.has_room(user(1), &cancel(1), 0)));
        assert!((0..1000).all(|_| batch_budget.has_room(
            user(1),
            &Command::Status(Reply::channel().0),
            100_000
        )));
        assert!(
            (2..=4).all(|uid| batch_budget.has_room(user(uid), &cancel(10_000), 0)),
            "other users"
        );
        assert!(!batch_budget.has_room(user(5), &cancel(10_000), 0), "the turn is long enough");
        let mut batch_budget = BatchBudget::default();
        assert!(
            batch_budget.has_room(user(3), &list(), 1_000_000),
            "what is heavy has its turn too"
        );
        assert!(!batch_budget.has_room(user(4), &cancel(100), 0));
        let mut batch_budget = BatchBudget::default();
        assert!((0..9).all(|_| batch_budget.has_room(user(3), &list(), 10)), "of few tasks");
    }
}
