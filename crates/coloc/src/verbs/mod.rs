//! One file a verb.

pub(crate) mod compare;
pub(crate) mod simulate;
pub(crate) mod trace;
