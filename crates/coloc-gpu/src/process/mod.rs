//! Whose a process is: a task's, or somebody else's.

mod attribution;
mod table;
mod users;

pub use attribution::{Attributed, Attribution, By, Owner, TaskRoots};
pub use table::{ProcessFacts, ProcessTable};
pub use users::Users;
