//! Driving daemons from the command line: a trace played live, and a stage to play it on.

pub(crate) mod emulated_daemon;
pub(crate) mod experiment;
pub(crate) mod live_table;
pub(crate) mod reconnect;
pub(crate) mod replay;
