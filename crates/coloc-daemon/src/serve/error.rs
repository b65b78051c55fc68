//! What keeps a daemon from working.

use crate::administration::admins::NoSuchGroup;
use crate::executor::local::cgroup::NoGroups;
use crate::hardware::HardwareError;
use crate::journal::JournalError;
use crate::owner::SetupError;
use crate::tokens::TokenError;
use coloc_api::tls::TlsError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A daemon that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The GPUs.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Weights, quotas and pools.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The administrators' group.
    #[error("admin-group: {0}")]
    AdminGroup(#[from] NoSuchGroup),
    /// Tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// The chosen control group.
    #[error(transparent)]
    Groups(#[from] NoGroups),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The network.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A mistake of ours.
    #[error(
        "the daemon's owner died of a mistake of its own; tasks go on, and are found again at the next start"
    )]
    OwnerDied,
    /// Another one works there.
    #[error("another daemon uses {}: talk to that one, or give this one a --state and a --socket of its own", .0.display())]
    Taken(PathBuf),
    /// Another user could change what the daemon believes, or read what it keeps.
    #[error(
        "{}: another user could change the daemon's state: {} must belong to root or to the daemon's user, and be writable by no other (chown, chmod go-w), or --state names another directory",
        state.display(),
        part.display()
    )]
    OpenState {
        /// The directory.
        state: PathBuf,
        /// The part of its path that others can change.
        part: PathBuf,
    },
    /// The system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}
