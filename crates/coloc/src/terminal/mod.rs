//! The user's own terminal, while it shows a task's.

mod detach;
mod feed;
mod modes;
mod own;
mod piped;
mod session;
mod waiting;

pub(crate) use detach::DetachKeys;
pub(crate) use feed::{feed, is_fed};
pub(crate) use own::{has_input, on_leaving, size};
pub(crate) use piped::pipe_through;
pub(crate) use session::{End, Session};
