//! The page: its files, how one signs in, and what keeps other pages out.

mod codes;
mod files;
mod guard;
mod session;

pub use codes::Codes;
pub(super) use files::accepts_gzip;
pub(super) use guard::{Door, is_this_machine, with_page};
pub(super) use session::{SESSION, code, session};
