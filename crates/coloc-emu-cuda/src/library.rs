//! What this process has done with the driver: its devices, contexts and allocations.

use crate::answer::Code;
use coloc_emu::client::{Client, ClientError};
use coloc_emu::{Emulator, Place, visible_devices};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A context of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) device: usize,
    pub(crate) place: Place,
}

/// A piece of device memory of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) place: Place,
    pub(crate) length: usize,
}

/// The process's own tables. The fleet's are in the shared mapping.
pub(crate) struct Library {
    pid: u32,
    pub(crate) client: Arc<Client>,
    pub(crate) devices: Vec<Place>,
    pub(crate) contexts: BTreeMap<usize, Context>,
    /// Primary contexts by device: handle and how often retained.
    pub(crate) primary: BTreeMap<usize, (usize, u32)>,
    pub(crate) allocations: BTreeMap<usize, Allocation>,
    pub(crate) host_allocations: BTreeMap<usize, usize>,
    /// Events: when recorded, in host nanoseconds.
    pub(crate) events: BTreeMap<usize, Option<u64>>,
    pub(crate) streams: BTreeMap<usize, ()>,
    pub(crate) modules: BTreeMap<usize, ()>,
    last_handle: usize,
}

static LIBRARY: Mutex<Option<Library>> = Mutex::new(None);

thread_local! {
    /// This thread's contexts, the current one last.
    static CURRENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Handles are numbers with a tag, never addresses.
const TAG: usize = 0xC0DA << 32;

fn slot() -> MutexGuard<'static, Option<Library>> {
    // Every change to the tables is one insertion or removal: a panic leaves them whole.
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cuInit`: joins the fleet. In a child that was forked after it, CUDA cannot be used, nor initialised again.
pub(crate) fn initialize() -> Result<(), Code> {
    let mut slot = slot();
    match slot.as_ref() {
        Some(library) if library.pid == std::process::id() => return Ok(()),
        Some(_) => return Err(Code::NOT_INITIALIZED),
        None => {}
    }
    let emulator = Arc::new(Emulator::from_environment()?);
    let variable = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let devices: Vec<Place> = visible_devices(&*emulator.lock()?, variable.as_deref())
        .into_iter()
        .map(|device| device.place)
        .collect();
    if devices.is_empty() {
        return Err(Code::NO_DEVICE);
    }
    let client = Client::join(emulator, &devices)?;
    *slot = Some(Library {
        pid: std::process::id(),
        client: Arc::new(client),
        devices,
        contexts: BTreeMap::new(),
        primary: BTreeMap::new(),
        allocations: BTreeMap::new(),
        host_allocations: BTreeMap::new(),
        events: BTreeMap::new(),
        streams: BTreeMap::new(),
        modules: BTreeMap::new(),
        last_handle: TAG,
    });
    Ok(())
}

/// Works on the process's tables.
pub(crate) fn with<R>(body: impl FnOnce(&mut Library) -> Result<R, Code>) -> Result<R, Code> {
    let mut slot = slot();
    match slot.as_mut() {
        Some(library) if library.pid == std::process::id() => body(library),
        _ => Err(Code::NOT_INITIALIZED),
    }
}

impl Library {
    /// A handle that was never used before.
    pub(crate) fn new_handle(&mut self) -> usize {
        self.last_handle += 16;
        self.last_handle
    }

    /// Whether this is a handle that was given out.
    pub(crate) fn is_handle(&self, handle: usize) -> bool {
        handle > TAG && handle <= self.last_handle
    }

    /// The device of an ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Result<(usize, Place), Code> {
        let index = usize::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        self.devices.get(index).map(|&place| (index, place)).ok_or(Code::INVALID_DEVICE)
    }

    /// This thread's current context.
    pub(crate) fn current(&self) -> Result<Context, Code> {
        let handle = current_handle().ok_or(Code::INVALID_CONTEXT)?;
        self.contexts.get(&handle).copied().ok_or(Code::INVALID_CONTEXT)
    }
}

pub(crate) fn current_handle() -> Option<usize> {
    CURRENT.with_borrow(|stack| stack.last().copied())
}

pub(crate) fn push_current(handle: usize) {
    CURRENT.with_borrow_mut(|stack| stack.push(handle));
}

pub(crate) fn pop_current() -> Option<usize> {
    CURRENT.with_borrow_mut(Vec::pop)
}

impl From<ClientError> for Code {
    fn from(error: ClientError) -> Code {
        match error {
            ClientError::Attach(error) => error.into(),
            ClientError::Driver(error) => error.into(),
            ClientError::MpsSilent { .. } => Code::MPS_CONNECTION_FAILED,
        }
    }
}
