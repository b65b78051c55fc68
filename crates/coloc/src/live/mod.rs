//! Driving a daemon from the command line: a trace played live.

pub(crate) mod replay;
