//! The memory contract: a promise is a promise.

mod booking;
mod evidence;
mod learning;
mod lending;
mod recovery;
mod restart;
mod waiting;

use crate::testkit::{World, mps, secs};
use coloc_core::Policy;
use coloc_core::policy::{Contract, Place, Queue};
use coloc_model::{Bytes, TaskId};

const CONTRACT: Policy = Policy {
    contract: Some(Contract { share_blind: false, unknown_instance: None }),
    learn: true,
    ..mps(Queue::BestEffort, Place::FirstFit)
};

/// More than long enough for any evidence.
const LONG: u64 = 700;

impl World {
    /// A task is seen to train with this much memory, for a long time.
    fn trains(&mut self, task: TaskId, used: Bytes) {
        self.observe_at_work(task, used, 0.5);
        self.advance(secs(LONG));
    }
}
