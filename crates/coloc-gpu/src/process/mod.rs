//! What a process belongs to: a task, or something that coloc did not start.

mod attribution;
mod table;
mod users;

pub use attribution::{Attributed, Attribution, By, Owner, TaskRoots};
pub use table::{ProcessFacts, ProcessTable};
pub use users::Users;
