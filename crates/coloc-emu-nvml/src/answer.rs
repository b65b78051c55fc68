//! How a call is answered: initialised or not, under the fleet's lock, with NVML's codes.

use coloc_emu::abi::{BadPointer, guard};
use coloc_emu::{AttachError, DriverError, Emulator, ErrorKind, Session};
use nvml_wrapper_sys::bindings::nvmlReturn_t;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An NVML return code other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) nvmlReturn_t);

impl Code {
    pub(crate) const UNINITIALIZED: Code = Code(1);
    pub(crate) const INVALID_ARGUMENT: Code = Code(2);
    pub(crate) const NOT_SUPPORTED: Code = Code(3);
    pub(crate) const NO_PERMISSION: Code = Code(4);
    pub(crate) const NOT_FOUND: Code = Code(6);
    pub(crate) const INSUFFICIENT_SIZE: Code = Code(7);
    pub(crate) const DRIVER_NOT_LOADED: Code = Code(9);
    pub(crate) const TIMEOUT: Code = Code(10);
    pub(crate) const GPU_IS_LOST: Code = Code(15);
    pub(crate) const IN_USE: Code = Code(19);
    pub(crate) const MEMORY: Code = Code(20);
    pub(crate) const INSUFFICIENT_RESOURCES: Code = Code(23);
    pub(crate) const VERSION_MISMATCH: Code = Code(25);
    pub(crate) const UNKNOWN: Code = Code(999);
}

impl From<BadPointer> for Code {
    fn from(_: BadPointer) -> Code {
        Code::INVALID_ARGUMENT
    }
}

impl From<AttachError> for Code {
    fn from(error: AttachError) -> Code {
        match error {
            AttachError::Lock { .. } => Code::TIMEOUT,
            _ => Code::DRIVER_NOT_LOADED,
        }
    }
}

impl From<DriverError> for Code {
    fn from(error: DriverError) -> Code {
        match error.kind {
            ErrorKind::NotFound { .. } => Code::NOT_FOUND,
            ErrorKind::GpuLost | ErrorKind::ContextDestroyed { .. } => Code::GPU_IS_LOST,
            ErrorKind::OutOfMemory { .. } | ErrorKind::TableFull { .. } => Code::MEMORY,
            ErrorKind::InsufficientResources { .. } | ErrorKind::MpsClientsFull { .. } => {
                Code::INSUFFICIENT_RESOURCES
            }
            ErrorKind::InUse { .. } => Code::IN_USE,
            ErrorKind::NotSupported { .. } | ErrorKind::MpsRefused { .. } => Code::NOT_SUPPORTED,
            ErrorKind::NoPermission { .. } => Code::NO_PERMISSION,
            ErrorKind::Invalid { .. } => Code::INVALID_ARGUMENT,
        }
    }
}

/// How often the library was initialised, and the fleet that it found then.
struct Library {
    users: u32,
    emulator: Option<Arc<Emulator>>,
}

static LIBRARY: Mutex<Library> = Mutex::new(Library { users: 0, emulator: None });

fn library() -> MutexGuard<'static, Library> {
    // Two plain fields: a panic in between leaves nothing half done.
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code(result: Result<(), Code>) -> nvmlReturn_t {
    result.map_or_else(|code| code.0, |()| 0)
}

/// `nvmlInit`: joins the fleet, or counts one more user.
pub(crate) fn initialize() -> nvmlReturn_t {
    guard(Code::UNKNOWN.0, || {
        let mut library = library();
        if library.users == 0 {
            match Emulator::from_environment() {
                Ok(emulator) => {
                    if !emulator.lock().is_ok_and(|state| state.is_loaded()) {
                        return Code::DRIVER_NOT_LOADED.0;
                    }
                    library.emulator = Some(Arc::new(emulator));
                }
                Err(error) => return Code::from(error).0,
            }
        }
        library.users += 1;
        0
    })
}

/// `nvmlShutdown`: one user less.
pub(crate) fn shut_down() -> nvmlReturn_t {
    guard(Code::UNKNOWN.0, || {
        let mut library = library();
        if library.users == 0 {
            return Code::UNINITIALIZED.0;
        }
        library.users -= 1;
        if library.users == 0 {
            library.emulator = None;
        }
        0
    })
}

/// The fleet of an initialised library.
pub(crate) fn emulator() -> Result<Arc<Emulator>, Code> {
    library().emulator.clone().ok_or(Code::UNINITIALIZED)
}

/// Answers a call from the fleet's state.
pub(crate) fn answer(body: impl FnOnce(&mut Session<'_>) -> Result<(), Code>) -> nvmlReturn_t {
    answer_alone(|| {
        let emulator = emulator()?;
        let mut session = emulator.lock()?;
        let (delay_ms, timeout) = session.nvml_trouble();
        if delay_ms > 0 {
            drop(session);
            std::thread::sleep(Duration::from_millis(delay_ms.into()));
            session = emulator.lock()?;
        }
        if !session.is_loaded() {
            return Err(Code::DRIVER_NOT_LOADED);
        }
        if timeout { Err(Code::TIMEOUT) } else { body(&mut session) }
    })
}

/// Answers a call that needs no fleet, or takes its lock by itself.
pub(crate) fn answer_alone(body: impl FnOnce() -> Result<(), Code>) -> nvmlReturn_t {
    guard(Code::UNKNOWN.0, || code(body()))
}

/// The answer of every function that is not written.
pub(crate) fn unwritten() -> nvmlReturn_t {
    guard(Code::UNKNOWN.0, || emulator().map_or_else(|code| code.0, |_| Code::NOT_SUPPORTED.0))
}

/// The version field of a struct: its size, and the number of its revision.
pub(crate) fn version<T>(revision: u32) -> u32 {
    size_of::<T>() as u32 | revision << 24
}

/// Refuses a struct of another version.
pub(crate) fn check_version<T>(found: u32, revision: u32) -> Result<(), Code> {
    if found == version::<T>(revision) { Ok(()) } else { Err(Code::VERSION_MISMATCH) }
}
