//! What can go wrong between a client and a daemon.

use super::Host;
use crate::SCHEMA;
use crate::answer::code::{BUSY, STOPPING};
use crate::tls::TlsError;
use std::io;
use std::path::PathBuf;

/// A daemon that does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon answers.
    #[error("no daemon answers at {}{}: {source}; start one with `coloc daemon`", socket.display(), nor_at(also.as_ref()))]
    Unreachable {
        /// Where.
        socket: PathBuf,
        /// What the system says.
        source: io::Error,
        /// Where else none answers.
        also: Option<PathBuf>,
    },
    /// No daemon answers elsewhere.
    #[error("no daemon answers at {host}: {source}")]
    NoHost {
        /// Where.
        host: Host,
        /// What the system, or TLS, says.
        source: io::Error,
    },
    /// A daemon answers elsewhere, and is not believed to be the one that is meant.
    #[error("the daemon at {host} is not trusted: {problem}")]
    Untrusted {
        /// Where.
        host: Host,
        /// What is wrong with its certificate, and what to do.
        problem: String,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// It says no.
    #[error("{message}")]
    Refused {
        /// Its reason as a number.
        status: u16,
        /// Its reason as a word.
        code: String,
        /// Its reason.
        message: String,
    },
    /// It is of a later time.
    #[error("the daemon answers by schema {0}, this program knows {SCHEMA}: update this program")]
    Newer(u32),
    /// The connection broke.
    #[error("the daemon hung up: {0}")]
    Broken(String),
    /// It says what the client does not understand.
    #[error("the daemon's answer cannot be read: {0}; are both of one version?")]
    Garbled(String),
}

/// ` nor at …`, where another place was tried.
fn nor_at(also: Option<&PathBuf>) -> String {
    also.map_or_else(String::new, |also| format!(" nor at {}", also.display()))
}

impl ClientError {
    /// A word for programs; docs/commands.md lists them.
    pub fn code(&self) -> &str {
        match self {
            ClientError::Unreachable { .. } | ClientError::NoHost { .. } => "unreachable",
            ClientError::Tls(_) | ClientError::Untrusted { .. } => "tls",
            ClientError::Refused { code, .. } if code.is_empty() => "refused",
            ClientError::Refused { code, .. } => code,
            ClientError::Newer(_) | ClientError::Garbled(_) => "schema",
            ClientError::Broken(_) => "hung_up",
        }
    }

    /// Whether a daemon that is started again, or a network that is back, would answer: a question that changes nothing
    /// can then be asked again.
    pub fn may_pass(&self) -> bool {
        use io::ErrorKind::{InvalidData, InvalidInput, PermissionDenied, Unsupported};
        match self {
            ClientError::Unreachable { source, .. } | ClientError::NoHost { source, .. } => {
                // A daemon with another certificate is not believed later, nor is a client without permission let in.
                !matches!(
                    source.kind(),
                    InvalidData | InvalidInput | PermissionDenied | Unsupported
                )
            }
            ClientError::Broken(_) => true,
            ClientError::Refused { code, .. } => [BUSY, STOPPING].contains(&code.as_str()),
            // Another certificate is not believed later.
            ClientError::Tls(_)
            | ClientError::Untrusted { .. }
            | ClientError::Newer(_)
            | ClientError::Garbled(_) => false,
        }
    }
}
