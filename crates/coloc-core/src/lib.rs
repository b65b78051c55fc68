//! The scheduler. Events go in with their time, effects come out; there is no clock, no I/O, no
//! randomness and no thread in here, so the daemon and the simulator run the very same decisions.
//!
//! A scheduling pass is a pipeline: [`queue`] orders the waiting tasks, [`demand`] says what each needs,
//! [`screen`] says which GPUs may take it, `choose` picks among them by a [`place`]ment, and `commit` books
//! what was promised in the ledger of [`gpus`]. [`Scheduler::explain`] answers on demand why a task waits.

pub mod accounts;
mod admission;
mod adopt;
pub mod belief;
mod choose;
mod commit;
pub mod contract;
mod crowd;
mod decided;
pub mod demand;
pub mod eligibility;
mod ending;
mod event;
mod explain;
mod gate;
pub mod gpus;
mod host;
mod inherit;
mod models;
mod note;
mod pass;
pub mod place;
pub mod policy;
mod pools;
mod preempt;
pub mod preset;
pub mod queue;
mod recovery;
mod sanity;
mod scheduler;
pub mod screen;
pub mod service;
mod speeds_seen;
mod starvation;
mod tasks;
mod watch;
mod window;

pub use admission::RejectedTask;
pub use contract::{Promised, SettlingCounts};
pub use decided::{Decided, Opinion};
pub use event::{Effect, Event};
pub use explain::{Explanation, GpuVerdict, Hindrance};
pub use host::{HostCapacity, HostRefusal};
pub use pass::{PassCounts, PassTotals};
pub use policy::Policy;
pub use pools::Pool;
pub use preset::Preset;
pub use scheduler::Scheduler;
pub use screen::{Measure, Refusal};
pub use tasks::Attempts;
