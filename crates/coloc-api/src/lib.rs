//! What goes over the wire between a daemon and its clients: specifications of tasks, views, requests and answers, and
//! the client. A program that links this crate has neither a database nor a server in it.

pub mod answer;
pub mod client;
pub mod estimated;
pub mod fingerprint;
pub mod lines;
pub mod moment;
pub mod notify;
pub mod past;
pub mod report;
pub mod request;
pub mod resource_limits;
pub mod script;
pub mod signals;
pub mod slurm;
pub mod spec;
pub mod text;
pub mod tls;
pub mod variables;
pub mod view;

use std::time::Duration;

/// The version of every answer.
pub const SCHEMA: u32 = 1;
/// The newest schema that the sender knows: of a client in questions, of the daemon in answers.
pub const SCHEMA_HEADER: &str = "coloc-schema";
/// A list with a row a line and a header, as its media type.
pub const LINES: &str = "text/tab-separated-values";
/// A client that has not asked by then is hung up on. A client that has been silent for long connects anew.
pub const SILENCE: Duration = Duration::from_secs(30);
