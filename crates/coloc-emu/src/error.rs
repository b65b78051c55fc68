//! What can go wrong between a process and the emulated driver.

use coloc_model::{Bytes, GpuModel};
use std::io;
use std::path::PathBuf;

/// A fleet could not be made or joined.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No fleet was named.
    #[error(
        "no emulated fleet: {} is not set; start the program with `coloc emu run --fleet SPEC -- …`",
        crate::DIR_VARIABLE
    )]
    NoDirectory,
    /// The state file cannot be used.
    #[error("emulated fleet in {}: {source}", directory.display())]
    File {
        /// Where the fleet's state was looked for.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The state file was written by another version.
    #[error(
        "emulated fleet in {}: its state is not of this version of coloc; start the fleet again",
        directory.display()
    )]
    Version {
        /// Where the fleet's state was looked for.
        directory: PathBuf,
    },
    /// The state file is no longer whole.
    #[error(
        "emulated fleet in {}: its state was cut off or overwritten; start the fleet again",
        directory.display()
    )]
    Cut {
        /// Where the fleet's state is.
        directory: PathBuf,
    },
    /// The fleet is larger than the emulator takes.
    #[error("an emulated driver has at most {limit} GPUs, not {gpus}")]
    TooManyGpus {
        /// What was asked for.
        gpus: usize,
        /// The most there can be.
        limit: usize,
    },
    /// Something in the fleet is no NVIDIA device.
    #[error("{model} has no NVIDIA driver to emulate")]
    NotAGpu {
        /// The model that was named.
        model: GpuModel,
    },
    /// The fleet was there when we joined.
    #[error("the emulated fleet is gone: the process that started it has ended it")]
    Closed,
    /// The lock could not be taken.
    #[error("the emulated fleet does not answer: {source}")]
    Lock {
        /// What the system said.
        source: io::Error,
    },
}

/// The driver refused a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind}")]
pub struct DriverError {
    /// Why.
    pub kind: ErrorKind,
}

/// Why the driver refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ErrorKind {
    /// There is no such device, instance or process.
    #[error("no such {what}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
    },
    /// The GPU has fallen off the bus.
    #[error("the GPU is lost")]
    GpuLost,
    /// The device, the instance or the process's limit has less memory left than was asked for.
    #[error("out of memory: {wanted} wanted, {free} free")]
    OutOfMemory {
        /// What was asked for.
        wanted: Bytes,
        /// What was left.
        free: Bytes,
    },
    /// A table of the shared state is full.
    #[error("the emulator has no room for more {what}")]
    TableFull {
        /// Of what.
        what: &'static str,
    },
    /// Nothing of the kind fits beside what is there.
    #[error("insufficient resources: {what}")]
    InsufficientResources {
        /// What does not fit.
        what: &'static str,
    },
    /// Something still uses it.
    #[error("in use by {by}")]
    InUse {
        /// What uses it.
        by: &'static str,
    },
    /// The device cannot do that, or not in its present mode.
    #[error("not supported: {what}")]
    NotSupported {
        /// What cannot be done.
        what: &'static str,
    },
    /// Only root may do this.
    #[error("insufficient permissions: {what}")]
    NoPermission {
        /// What was tried.
        what: &'static str,
    },
    /// An argument makes no sense.
    #[error("invalid {what}")]
    Invalid {
        /// Which argument.
        what: &'static str,
    },
    /// The device has as many MPS clients as it can have.
    #[error("the MPS server has its {limit} clients")]
    MpsClientsFull {
        /// The most there can be.
        limit: u32,
    },
    /// The MPS server serves another user, or is going down.
    #[error("the MPS server does not take this client: {why}")]
    MpsRefused {
        /// Why not.
        why: &'static str,
    },
    /// The process's context was ended from outside.
    #[error("the context was destroyed: {why}")]
    ContextDestroyed {
        /// By what.
        why: &'static str,
    },
}

impl From<ErrorKind> for DriverError {
    fn from(kind: ErrorKind) -> Self {
        DriverError { kind }
    }
}
