//! Answers to commands, each of the type that its command has. They are given once a batch is on the disk, or is not.

use super::Refused;
use crate::journal::Trouble;
use coloc_model::TaskId;
use tokio::sync::oneshot;

/// Where the answer to a command goes.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<Result<T, Refused>>);

/// How the journal took a batch.
pub(super) struct Flushed<'a> {
    /// Why it is not on the disk.
    pub(super) unwritten: Option<Trouble>,
    /// Whether what is wanted of a running task is in the intent file instead.
    pub(super) is_noted: &'a dyn Fn(TaskId) -> bool,
}

/// An answer that waits for the end of its batch.
pub(super) struct PendingAnswer(Box<dyn FnOnce(&Flushed<'_>)>);

impl PendingAnswer {
    pub(super) fn give(self, flushed: &Flushed<'_>) {
        (self.0)(flushed);
    }
}

impl<T: 'static> Reply<T> {
    /// Both ends.
    pub fn channel() -> (Self, oneshot::Receiver<Result<T, Refused>>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), receiver)
    }

    /// A caller that has gone hears nothing.
    pub(super) fn send(self, answer: Result<T, Refused>) {
        let _ = self.0.send(answer);
    }

    /// Answers so at the end of the batch, written or not: nothing is promised.
    pub(super) fn anyway(self, answer: Result<T, Refused>) -> PendingAnswer {
        PendingAnswer(Box::new(move |_| self.send(answer)))
    }

    /// Answers so if the batch is on the disk, and is refused otherwise.
    pub(super) fn once_written(
        self,
        answer: Result<T, Refused>,
        refusal: fn(Trouble) -> Refused,
    ) -> PendingAnswer {
        self.unless(answer, move |_, flushed| flushed.unwritten.map(refusal))
    }

    /// Answers so unless what became of the batch speaks against it.
    pub(super) fn unless(
        self,
        answer: Result<T, Refused>,
        refusal: impl FnOnce(&T, &Flushed<'_>) -> Option<Refused> + 'static,
    ) -> PendingAnswer {
        PendingAnswer(Box::new(move |flushed| {
            let refused = answer.as_ref().ok().and_then(|answer| refusal(answer, flushed));
            self.send(refused.map_or(answer, Err));
        }))
    }
}
