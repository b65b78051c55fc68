//! Driving daemons from the command line: a trace played live, and a stage to play it on.

pub(crate) mod board;
pub(crate) mod experiment;
pub(crate) mod past_trace;
pub(crate) mod reconnect;
pub(crate) mod replay;
pub(crate) mod stage;
