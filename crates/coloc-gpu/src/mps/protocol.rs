//! What a control daemon is told on its standard input, and what it answers.

use crate::device::Uuid;
use coloc_model::Bytes;
use std::fmt;

/// A line to the control daemon.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Start a server for a user.
    StartServer {
        /// The user.
        uid: u32,
    },
    /// PIDs of the servers.
    GetServerList,
    /// How a server is doing.
    GetServerStatus {
        /// The server.
        server: u32,
    },
    /// PIDs of a server's clients.
    GetClientList {
        /// The server.
        server: u32,
    },
    /// The share of SMs that clients of future servers may use, 0 to 100.
    SetDefaultActiveThreadPercentage {
        /// The share.
        percentage: f64,
    },
    /// Reads that share back.
    GetDefaultActiveThreadPercentage,
    /// The share of SMs that new clients of a server may use.
    SetActiveThreadPercentage {
        /// The server.
        server: u32,
        /// The share.
        percentage: f64,
    },
    /// Reads that share back.
    GetActiveThreadPercentage {
        /// The server.
        server: u32,
    },
    /// The device memory that clients of future servers may pin.
    SetDefaultDevicePinnedMemLimit {
        /// The GPU.
        gpu: Uuid,
        /// The limit.
        limit: Bytes,
    },
    /// Reads that limit back.
    GetDefaultDevicePinnedMemLimit {
        /// The GPU.
        gpu: Uuid,
    },
    /// The device memory that new clients of a server may pin.
    SetDevicePinnedMemLimit {
        /// The server.
        server: u32,
        /// The GPU.
        gpu: Uuid,
        /// The limit.
        limit: Bytes,
    },
    /// Reads that limit back.
    GetDevicePinnedMemLimit {
        /// The server.
        server: u32,
        /// The GPU.
        gpu: Uuid,
    },
    /// Ends a client's context in good order, so that the others live on.
    TerminateClient {
        /// The server.
        server: u32,
        /// The client.
        client: u32,
    },
    /// Ends a server.
    ShutdownServer {
        /// The server.
        server: u32,
        /// Even if it has clients.
        force: bool,
    },
    /// Ends the daemon.
    Quit,
}

/// Limits are written in whole mebibytes, rounded up: a limit must not fall short of its promise.
fn mebibytes(limit: Bytes) -> String {
    format!("{}M", limit.0.div_ceil(1 << 20))
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::StartServer { uid } => write!(f, "start_server -uid {uid}"),
            Command::GetServerList => f.write_str("get_server_list"),
            Command::GetServerStatus { server } => write!(f, "get_server_status {server}"),
            Command::GetClientList { server } => write!(f, "get_client_list {server}"),
            Command::SetDefaultActiveThreadPercentage { percentage } => {
                write!(f, "set_default_active_thread_percentage {percentage}")
            }
            Command::GetDefaultActiveThreadPercentage => {
                f.write_str("get_default_active_thread_percentage")
            }
            Command::SetActiveThreadPercentage { server, percentage } => {
                write!(f, "set_active_thread_percentage {server} {percentage}")
            }
            Command::GetActiveThreadPercentage { server } => {
                write!(f, "get_active_thread_percentage {server}")
            }
            Command::SetDefaultDevicePinnedMemLimit { gpu, limit } => {
                write!(f, "set_default_device_pinned_mem_limit {gpu} {}", mebibytes(*limit))
            }
            Command::GetDefaultDevicePinnedMemLimit { gpu } => {
                write!(f, "get_default_device_pinned_mem_limit {gpu}")
            }
            Command::SetDevicePinnedMemLimit { server, gpu, limit } => {
                write!(f, "set_device_pinned_mem_limit {server} {gpu} {}", mebibytes(*limit))
            }
            Command::GetDevicePinnedMemLimit { server, gpu } => {
                write!(f, "get_device_pinned_mem_limit {server} {gpu}")
            }
            Command::TerminateClient { server, client } => {
                write!(f, "terminate_client {server} {client}")
            }
            Command::ShutdownServer { server, force } => {
                write!(f, "shutdown_server {server}{}", if *force { " -f" } else { "" })
            }
            Command::Quit => f.write_str("quit"),
        }
    }
}

/// An answer that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the MPS control daemon answered {reply:?} to `{command}`; expected {expected}")]
pub struct ReplyError {
    /// What it was told.
    pub command: String,
    /// What it said, shortened.
    pub reply: String,
    /// What was expected.
    pub expected: &'static str,
}

impl ReplyError {
    pub(crate) fn new(command: &Command, reply: &str, expected: &'static str) -> Self {
        let reply = reply.trim().chars().take(200).collect();
        ReplyError { command: command.to_string(), reply, expected }
    }
}

/// How a server is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerStatus {
    /// It starts.
    Initializing,
    /// It takes clients.
    Active,
    /// A client's fault must be dealt with first.
    Fault,
}

/// A list of PIDs, one a line. An empty answer is an empty list.
pub fn parse_pids(command: &Command, reply: &str) -> Result<Vec<u32>, ReplyError> {
    let fail = || ReplyError::new(command, reply, "one PID a line");
    reply.split_whitespace().map(|word| word.parse().map_err(|_| fail())).collect()
}

/// A share of 0 to 100.
pub fn parse_percentage(command: &Command, reply: &str) -> Result<f64, ReplyError> {
    let value = reply.trim().trim_end_matches('%').parse().ok();
    value
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| ReplyError::new(command, reply, "a percentage"))
}

/// A limit of memory, such as `10G` or `900M`; `None` stands for no limit.
pub fn parse_limit(command: &Command, reply: &str) -> Result<Option<Bytes>, ReplyError> {
    let text = reply.trim();
    let unlimited = ["", "0", "0G", "0M", "unlimited", "none", "no limit", "n/a", "not set"];
    if unlimited.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Ok(None);
    }
    let fail = || ReplyError::new(command, reply, "an amount such as 10G or 900M");
    text.parse().map(Some).map_err(|_| fail())
}

/// A server's status.
pub fn parse_status(command: &Command, reply: &str) -> Result<ServerStatus, ReplyError> {
    match reply.trim().to_ascii_uppercase().as_str() {
        "INITIALIZING" => Ok(ServerStatus::Initializing),
        "ACTIVE" => Ok(ServerStatus::Active),
        "FAULT" => Ok(ServerStatus::Fault),
        _ => Err(ReplyError::new(command, reply, "INITIALIZING, ACTIVE or FAULT")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_written_as_the_daemon_reads_them() {
        let gpu = Uuid::new("GPU-aa");
        let limit = Bytes(10 * (1 << 30) + 1);
        for (command, line) in [
            (Command::StartServer { uid: 1000 }, "start_server -uid 1000"),
            (
                Command::SetDefaultActiveThreadPercentage { percentage: 37.5 },
                "set_default_active_thread_percentage 37.5",
            ),
            (
                Command::SetDevicePinnedMemLimit { server: 7, gpu: gpu.clone(), limit },
                "set_device_pinned_mem_limit 7 GPU-aa 10241M",
            ),
            (Command::TerminateClient { server: 7, client: 9 }, "terminate_client 7 9"),
            (Command::ShutdownServer { server: 7, force: true }, "shutdown_server 7 -f"),
        ] {
            assert_eq!(command.to_string(), line);
        }
    }

    #[test]
    fn answers_are_read() {
        let command = Command::GetServerList;
        assert_eq!(parse_pids(&command, "12\n34\n"), Ok(vec![12, 34]));
        assert_eq!(parse_pids(&command, "\n"), Ok(vec![]));
        let error = parse_pids(&command, "Cannot find MPS control daemon process\n");
        insta::assert_snapshot!(error.expect_err("no PIDs"), @r#"the MPS control daemon answered "Cannot find MPS control daemon process" to `get_server_list`; expected one PID a line"#);
        assert_eq!(parse_percentage(&command, "37.5\n"), Ok(37.5));
        assert!(parse_percentage(&command, "140").is_err());
        assert_eq!(parse_limit(&command, "10G\n"), Ok(Some(Bytes(10 << 30))));
        assert_eq!(parse_limit(&command, "0G"), Ok(None));
        assert_eq!(parse_status(&command, "Active\n"), Ok(ServerStatus::Active));
    }

    proptest! {
        #[test]
        fn hostile_answers_are_survived(reply in ".{0,60}") {
            let command = Command::GetServerList;
            let _ = parse_pids(&command, &reply);
            let _ = parse_percentage(&command, &reply);
            let _ = parse_limit(&command, &reply);
            let _ = parse_status(&command, &reply);
        }
    }
}
