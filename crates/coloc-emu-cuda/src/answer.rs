//! How a call is answered, and the driver API's codes.

use coloc_emu::abi::{BadPointer, guard};
use coloc_emu::{AttachError, DriverError, ErrorKind};
use std::ffi::c_int;

/// A driver API result other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) c_int);

impl Code {
    pub(crate) const INVALID_VALUE: Code = Code(1);
    pub(crate) const OUT_OF_MEMORY: Code = Code(2);
    pub(crate) const NOT_INITIALIZED: Code = Code(3);
    pub(crate) const DEVICE_UNAVAILABLE: Code = Code(46);
    pub(crate) const NO_DEVICE: Code = Code(100);
    pub(crate) const INVALID_DEVICE: Code = Code(101);
    pub(crate) const INVALID_CONTEXT: Code = Code(201);
    pub(crate) const ECC_UNCORRECTABLE: Code = Code(214);
    pub(crate) const INVALID_HANDLE: Code = Code(400);
    pub(crate) const NOT_FOUND: Code = Code(500);
    pub(crate) const CONTEXT_IS_DESTROYED: Code = Code(709);
    pub(crate) const NOT_PERMITTED: Code = Code(800);
    pub(crate) const NOT_SUPPORTED: Code = Code(801);
    pub(crate) const MPS_CONNECTION_FAILED: Code = Code(805);
    pub(crate) const MPS_MAX_CLIENTS_REACHED: Code = Code(808);
    pub(crate) const UNKNOWN: Code = Code(999);
}

impl From<BadPointer> for Code {
    fn from(_: BadPointer) -> Code {
        Code::INVALID_VALUE
    }
}

impl From<AttachError> for Code {
    fn from(error: AttachError) -> Code {
        match error {
            AttachError::Lock { .. } => Code::DEVICE_UNAVAILABLE,
            _ => Code::NO_DEVICE,
        }
    }
}

impl From<DriverError> for Code {
    fn from(error: DriverError) -> Code {
        match error.kind {
            ErrorKind::OutOfMemory { .. } | ErrorKind::TableFull { .. } => Code::OUT_OF_MEMORY,
            ErrorKind::GpuLost => Code::ECC_UNCORRECTABLE,
            ErrorKind::ContextDestroyed { .. } => Code::CONTEXT_IS_DESTROYED,
            ErrorKind::MpsClientsFull { .. } => Code::MPS_MAX_CLIENTS_REACHED,
            ErrorKind::MpsRefused { .. } => Code::MPS_CONNECTION_FAILED,
            ErrorKind::InUse { .. } | ErrorKind::InsufficientResources { .. } => {
                Code::DEVICE_UNAVAILABLE
            }
            ErrorKind::NotFound { .. } => Code::INVALID_CONTEXT,
            ErrorKind::NotSupported { .. } => Code::NOT_SUPPORTED,
            ErrorKind::NoPermission { .. } => Code::NOT_PERMITTED,
            ErrorKind::Invalid { .. } => Code::INVALID_VALUE,
        }
    }
}

/// Answers a call; no panic leaves it.
pub(crate) fn answer(body: impl FnOnce() -> Result<(), Code>) -> c_int {
    guard(Code::UNKNOWN.0, || body().map_or_else(|code| code.0, |()| 0))
}

/// The answer of every function that is not written.
pub(crate) fn unwritten() -> c_int {
    Code::NOT_SUPPORTED.0
}
