//! What keeps an attempt from being started here.

use super::run::RunError;
use super::sharing::{PartitionError, SharingError};
use crate::executor::Blame;
use std::io;

/// A task that could not be started here.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    /// Its directory could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The shim could not be started.
    #[error("cannot start a shim: {0}")]
    Shim(#[from] io::Error),
    /// Its MIG instance could not be had.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// MPS is not ready for it.
    #[error(transparent)]
    Mps(SharingError),
    /// Its user is not known here.
    #[error("user {0} is not known on this machine")]
    NoSuchUser(u32),
}

impl NotStarted {
    pub(super) fn blame(&self) -> Blame {
        match self {
            NotStarted::Mps(_) => Blame::Setup,
            NotStarted::Partition(PartitionError::Notes { .. }) => Blame::Machine,
            NotStarted::Partition(partition) if partition.may_pass() => Blame::Moment,
            NotStarted::Partition(_) => Blame::Task,
            NotStarted::Run(RunError::Exists(_)) => Blame::Number,
            NotStarted::Run(_) | NotStarted::Shim(_) => Blame::Machine,
            NotStarted::NoSuchUser(_) => Blame::Account,
        }
    }
}
