//! The scheduler. Events go in with their time, effects come out; there is no clock, no I/O, no
//! randomness and no thread in here, so the daemon and the simulator run the very same decisions.
//!
//! A scheduling pass is a pipeline: [`queue`] orders the waiting tasks, [`demand`] says what each needs,
//! [`screen`] says which GPUs may take it, [`place`] chooses among them, and the ledger in [`gpus`] books
//! what was promised. [`Scheduler::explain`] answers on demand why a task is still waiting.

pub mod belief;
pub mod demand;
mod event;
mod explain;
pub mod gpus;
mod pass;
pub mod place;
pub mod policy;
mod preempt;
pub mod preset;
pub mod queue;
mod recovery;
mod sanity;
mod scheduler;
pub mod screen;
pub mod service;
mod tasks;
mod watch;
mod window;

pub use event::{Effect, Event};
pub use explain::{Explanation, GpuVerdict};
pub use pass::PassCounts;
pub use policy::Policy;
pub use preset::Preset;
pub use scheduler::{RejectedTask, Scheduler};
pub use screen::Refusal;
