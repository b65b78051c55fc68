//! Work on many tasks: changes of them, and large arrays that come. It is done a part at a time, so that others are answered in
//! between. Nothing is started before its end: of tasks that are all to be cancelled, none takes the place of another.

use crate::journal::Array;
use crate::owner::{Answer, Caller, Command, Input, Owner, Refused, Reply};
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

/// Work that is under way. There is one at a time.
pub(in crate::owner) struct BulkChange {
    work: Work,
    /// The answer, for when it is done.
    answer: Option<(Reply, Answer)>,
}

enum Work {
    Changes {
        caller: Caller,
        change: Change,
        left: std::vec::IntoIter<TaskId>,
    },
    /// Tasks of an array that is on the disk by the next turn.
    Array {
        array: Arc<Array>,
        spec: Arc<TaskSpec>,
        come: usize,
    },
}

/// It takes more than one turn.
pub(in crate::owner) fn is_bulk(command: &Command) -> bool {
    match command {
        Command::Change(tasks, _) => tasks.len() > CHANGES,
        Command::Submit(submission) => {
            submission.array.as_ref().is_some_and(|array| array.indices.len() > COMERS)
        }
        _ => false,
    }
}

/// Who had such work last, the latest at the end.
#[derive(Default)]
pub(in crate::owner) struct BulkQueue(Vec<Uid>);

impl BulkQueue {
    /// Whose work is next: of all who wait, that of the user who had none for the longest.
    pub(in crate::owner) fn next(&mut self, inputs: &[Input]) -> Option<Uid> {
        let uid = |input: &Input| match input {
            Input::Command(caller, command, _) if is_bulk(command) => Some(caller.uid),
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
    ) {
        let work = Work::Changes { caller, change, left: tasks.into_iter() };
        self.bulk = Some(BulkChange { work, answer: None });
    }

    /// Begins to have the tasks of a large array.
    pub(in crate::owner) fn begin_array(&mut self, array: Arc<Array>, spec: Arc<TaskSpec>) {
        self.bulk = Some(BulkChange { work: Work::Array { array, spec, come: 0 }, answer: None });
    }

    /// Keeps an answer until the work that it is about is done; gives back one that is about no such work.
    pub(in crate::owner) fn answer_later(
        &mut self,
        reply: Reply,
        answer: Answer,
    ) -> Option<(Reply, Answer)> {
        match &mut self.bulk {
            Some(bulk) if bulk.answer.is_none() => {
                bulk.answer = Some((reply, answer));
                None
            }
            _ => Some((reply, answer)),
        }
    }

    /// Does the next part of the work that is under way.
    pub(in crate::owner) fn go_on_with_bulk(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
        answers: &mut Vec<(Reply, Answer)>,
    ) {
        let Some(mut bulk) = self.bulk.take() else { return };
        let more = match &mut bulk.work {
            Work::Changes { caller, change, left } => {
                for task in left.by_ref().take(CHANGES) {
                    let result = self.change(now, *caller, task, change, effects);
                    if let Some((_, Answer::Changed { each, .. })) = &mut bulk.answer {
                        each.push((task, result));
                    }
                }
                left.len() > 0
            }
            Work::Array { array, spec, come } => {
                for record in array.tasks().skip(*come).take(COMERS) {
                    self.have(record, spec);
                }
                *come += COMERS;
                *come < array.ids().len()
            }
        };
        match bulk {
            bulk if more => self.bulk = Some(bulk),
            // It is on the disk, whatever becomes of this turn.
            BulkChange { work: Work::Array { .. }, answer: Some((reply, answer)) } => {
                let _ = reply.send(answer);
            }
            BulkChange { answer, .. } => answers.extend(answer),
        }
    }

    /// A large array that could not be written down never was.
    pub(in crate::owner) fn forget_unwritten_array(&mut self) {
        let is_new = |bulk: &mut BulkChange| matches!(bulk.work, Work::Array { come: 0, .. });
        let Some(BulkChange { work: Work::Array { array, .. }, answer }) =
            self.bulk.take_if(is_new)
        else {
            return;
        };
        array.tasks().for_each(|record| self.never_was(&record));
        if let Some((reply, _)) = answer {
            let _ = reply.send(Answer::Refused(Refused::Journal(self.why_unwritten())));
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
            let (reply, _) = tokio::sync::oneshot::channel();
            let tasks = vec![TaskId(1); CHANGES + 1];
            Input::Command(caller, Command::Change(tasks, Change::Cancel), reply)
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
