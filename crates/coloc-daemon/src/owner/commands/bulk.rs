//! Work on many tasks: changes of them, and large arrays that come. It is done a part at a time, so that others are answered in
//! between. Nothing is started before its end: of tasks that are all to be cancelled, none takes the place of another.

use crate::journal::Array;
use crate::owner::commands::{Changed, Submitted, changed};
use crate::owner::reply::{PendingAnswer, Reply};
use crate::owner::{Caller, Command, Input, Owner, Refused};
use crate::record::Uid;
use coloc_api::request::Change;
use coloc_api::spec::TaskSpec;
use coloc_core::Effect;
use coloc_model::{TaskId, Time};
use std::sync::Arc;

/// So many tasks are changed in a turn. Each takes two rows of the journal.
pub(in crate::owner) const CHANGES: usize = 1_000;
/// So many tasks of an array come in a turn. One row of the journal has all of them.
pub(in crate::owner) const COMERS: usize = 5_000;

/// Work that is under way, with the answer for when it is done. There is one at a time.
pub(in crate::owner) enum Bulk {
    Changes {
        caller: Caller,
        change: Change,
        left: std::vec::IntoIter<TaskId>,
        each: Vec<Changed>,
        reply: Reply<Vec<Changed>>,
    },
    /// Tasks of an array that is on the disk by the next turn.
    Array {
        array: Arc<Array>,
        spec: Arc<TaskSpec>,
        come: usize,
        submitted: Submitted,
        reply: Reply<Submitted>,
    },
}

/// It takes more than one turn.
pub(in crate::owner) fn is_bulk(command: &Command) -> bool {
    match command {
        Command::Change(tasks, ..) => tasks.len() > CHANGES,
        Command::Submit(submission, _) => {
            submission.array.as_ref().is_some_and(|array| array.indices.len() > COMERS)
        }
        _ => false,
    }
}

/// The users who had such work last, the latest at the end.
#[derive(Default)]
pub(in crate::owner) struct BulkQueue(Vec<Uid>);

impl BulkQueue {
    /// The user whose work is next: of all users who wait, the one who had none for the longest.
    pub(in crate::owner) fn next(&mut self, inputs: &[Input]) -> Option<Uid> {
        let uid = |input: &Input| match input {
            Input::Command(caller, command) if is_bulk(command) => Some(caller.uid),
            _ => None,
        };
        let waiting: Vec<Uid> = inputs.iter().filter_map(uid).collect();
        self.0.retain(|had| waiting.contains(had));
        let had = |uid: &Uid| self.0.iter().position(|had| had == uid);
        let next = waiting.into_iter().min_by_key(had)?;
        self.0.retain(|had| *had != next);
        self.0.push(next);
        Some(next)
    }
}

impl Owner {
    /// Begins to change many tasks.
    pub(in crate::owner) fn begin_changes(
        &mut self,
        caller: Caller,
        tasks: Vec<TaskId>,
        change: Change,
        reply: Reply<Vec<Changed>>,
    ) {
        let each = Vec::with_capacity(tasks.len());
        self.bulk = Some(Bulk::Changes { caller, change, left: tasks.into_iter(), each, reply });
    }

    /// Does the next part of the work that is under way.
    pub(in crate::owner) fn go_on_with_bulk(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<PendingAnswer> {
        match self.bulk.take()? {
            Bulk::Changes { caller, change, mut left, mut each, reply } => {
                for task in left.by_ref().take(CHANGES) {
                    each.push((task, self.change(now, caller, task, &change, effects)));
                }
                if left.len() == 0 {
                    return Some(changed(reply, each, change.tells()));
                }
                self.bulk = Some(Bulk::Changes { caller, change, left, each, reply });
            }
            Bulk::Array { array, spec, come, submitted, reply } => {
                for record in array.tasks().skip(come).take(COMERS) {
                    self.have(record, &spec);
                }
                let come = come + COMERS;
                if come >= array.ids().len() {
                    // It is on the disk, whatever becomes of this turn.
                    reply.send(Ok(submitted));
                } else {
                    self.bulk = Some(Bulk::Array { array, spec, come, submitted, reply });
                }
            }
        }
        None
    }

    /// A large array that could not be written down never was.
    pub(in crate::owner) fn forget_unwritten_array(&mut self) {
        let is_new = |bulk: &mut Bulk| matches!(bulk, Bulk::Array { come: 0, .. });
        if let Some(Bulk::Array { array, reply, .. }) = self.bulk.take_if(is_new) {
            array.tasks().for_each(|record| self.never_was(&record));
            reply.send(Err(Refused::Journal(self.why_unwritten())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_take_turns() {
        let input = |uid: u32| {
            let caller = Caller { uid: Uid(uid), admin: false };
            let tasks = vec![TaskId(1); CHANGES + 1];
            Input::Command(caller, Command::Change(tasks, Change::Cancel, Reply::channel().0))
        };
        let mut inputs: Vec<Input> = [1, 1, 1, 2, 2, 3].map(input).into_iter().collect();
        let mut line = BulkQueue::default();
        let mut order = Vec::new();
        while let Some(next) = line.next(&inputs) {
            let is_next = |input: &Input| matches!(input, Input::Command(c, ..) if c.uid == next);
            let at = inputs.iter().position(is_next).expect("it waits");
            inputs.remove(at);
            order.push(next.0);
        }
        assert_eq!(order, [1, 2, 3, 1, 2, 1]);
    }
}
