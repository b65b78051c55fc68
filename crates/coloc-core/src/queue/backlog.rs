//! The waiting tasks in one dense list: backfilling looks through hundreds of them in every pass.

use super::Ticket;
use coloc_model::{Millis, Task, TaskId};

/// A waiting task, as far as it decides whether a closer look is worth it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    ticket: Ticket,
    pub(super) task: TaskId,
    pub(super) gpus: u32,
    /// How long it says it runs.
    pub(super) span: Option<Millis>,
    gone: bool,
}

/// Tasks in order of arrival. Those that left stay as gaps until half of the list is gaps.
#[derive(Clone, Default, Debug)]
pub(super) struct Backlog {
    entries: Vec<Entry>,
    /// Only gaps before it.
    first: usize,
    gaps: usize,
}

impl Backlog {
    pub(super) fn insert(&mut self, ticket: Ticket, task: &Task) {
        let (gpus, span) = (task.gpus, task.duration);
        let entry = Entry { ticket, task: task.id, gpus, span, gone: false };
        let at = self.entries.partition_point(|other| other.ticket < ticket);
        self.entries.insert(at, entry);
        self.first = self.first.min(at);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) {
        let at = self.entries.partition_point(|other| other.ticket < ticket);
        match self.entries.get_mut(at) {
            Some(entry) if entry.ticket == ticket && !entry.gone => entry.gone = true,
            _ => return,
        }
        self.gaps += 1;
        while self.entries.get(self.first).is_some_and(|entry| entry.gone) {
            self.first += 1;
        }
    }

    /// Closes the gaps once they are half of the list.
    pub(super) fn tidy(&mut self) {
        if 2 * self.gaps > self.entries.len() {
            self.entries.retain(|entry| !entry.gone);
            (self.first, self.gaps) = (0, 0);
        }
    }

    /// The first task at or after a place, and its place.
    pub(super) fn from(&self, at: usize) -> Option<(usize, Entry)> {
        let at = at.max(self.first);
        let next = at + self.entries.get(at..)?.iter().position(|entry| !entry.gone)?;
        Some((next, self.entries[next]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::{SignatureId, Time, UserId};

    fn tasks(backlog: &Backlog) -> Vec<u32> {
        let mut at = 0;
        let next = || {
            let (place, entry) = backlog.from(at)?;
            at = place + 1;
            Some(entry.task.0)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn gaps_are_passed_over_and_closed() {
        let task = |id: u32| Task {
            id: TaskId(id),
            signature: SignatureId(0),
            user: UserId(0),
            gpus: 1,
            exclusive: true,
            estimate: None,
            duration: None,
            priority: 0,
        };
        let ticket = |id: u32| Ticket { rank: 0, submitted: Time(id.into()), number: id.into() };
        let mut backlog = Backlog::default();
        (0..10).for_each(|id| backlog.insert(ticket(id), &task(id)));
        let mut left: Vec<u32> = (0..10).collect();
        for gone in [0, 5, 1, 9, 4, 4, 2, 8, 3] {
            backlog.remove(ticket(gone));
            left.retain(|&id| id != gone);
            assert_eq!(tasks(&backlog), left);
            backlog.tidy();
            assert_eq!(tasks(&backlog), left);
            assert!(2 * backlog.gaps <= backlog.entries.len());
        }
        // One that comes back takes its old place.
        backlog.insert(ticket(0), &task(0));
        assert_eq!(tasks(&backlog)[0], 0);
    }
}
