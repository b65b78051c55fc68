//! The fleet's state as a file that every process maps.
//!
//! A user who may write to the file can falsify the fleet, and cut the file off. So it is its maker's alone unless
//! other users share it, nothing in it is taken for an address, and every use begins with a look whether it is whole.
#![allow(unsafe_code)] // Each block says why it is sound.

use crate::board::Board;
use crate::error::AttachError;
use crate::fleet::layout::{MAX_GPUS, State, VERSION};
use crate::guard::Guard;
use crate::lock::{Lock, Locked};
use crate::sys;
use coloc_model::Fleet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The state's file in its directory.
pub const STATE_FILE: &str = "fleet.state";
const MAGIC: u64 = u64::from_le_bytes(*b"colocemu");
/// How long a live but stopped owner may keep other processes waiting.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The whole file.
#[repr(C)]
struct Shared {
    magic: AtomicU64,
    version: AtomicU32,
    /// Counts changes that a process may be waiting for.
    changes: AtomicU32,
    /// Counts critical events.
    events: AtomicU32,
    unused: AtomicU32,
    lock: Lock,
    state: State,
}

/// How a new fleet behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Fleet seconds in one second.
    pub time_scale: f64,
    /// The fleet's clock stands still.
    pub frozen: bool,
    /// Other users' processes may use it, and so falsify it.
    pub shared: bool,
}

impl Options {
    /// A fleet for a daemon that runs tasks of all users if it is root's, and else of its own.
    pub fn for_daemon(time_scale: f64) -> Self {
        Options { time_scale, frozen: false, shared: sys::effective_user() == 0 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { time_scale: 1.0, frozen: false, shared: false }
    }
}

/// An emulated fleet, joined by this process.
#[derive(Debug)]
pub struct Emulator {
    shared: NonNull<Shared>,
    guard: Guard,
    /// Kept to see whether it is whole.
    file: File,
    /// What file that was, if the program closes it behind our back.
    identity: (u64, u64),
    directory: PathBuf,
}

// SAFETY: the mapping is shared between processes anyway; all access goes through its lock or atomics.
unsafe impl Send for Emulator {}
// SAFETY: as above.
unsafe impl Sync for Emulator {}

impl Emulator {
    /// Makes a fleet in a directory that exists. It lives until its file is removed.
    pub fn create(directory: &Path, fleet: &Fleet, options: Options) -> Result<Self, AttachError> {
        if fleet.len() > MAX_GPUS {
            return Err(AttachError::TooManyGpus { gpus: fleet.len(), limit: MAX_GPUS });
        }
        let no_gpu = |model: &coloc_model::GpuModel| Board::of(*model).is_none();
        if let Some(model) = fleet.gpus().iter().map(|gpu| gpu.model).find(no_gpu) {
            return Err(AttachError::NotAGpu { model });
        }
        let fail = |source| AttachError::File { directory: directory.to_owned(), source };
        // The file appears under its name only when it is complete.
        let part = directory.join(format!("{STATE_FILE}.{}.part", std::process::id()));
        let _ = std::fs::remove_file(&part);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)
            .map_err(fail)?;
        // Written out: a page that is not there yet could not be had on a disk that is full by then.
        file.write_all(&vec![0; size_of::<Shared>()]).map_err(fail)?;
        if options.shared {
            // Other users' processes share the devices, as they would real ones.
            file.set_permissions(std::fs::Permissions::from_mode(0o666)).map_err(fail)?;
        }
        let emulator = Self::map(file, directory).map_err(fail)?;
        // SAFETY: no other process has the mapping, and zeros are a valid `State`.
        let state = unsafe { &mut (*emulator.shared.as_ptr()).state };
        state.begin(fleet, options, sys::host_now_ns());
        let shared = emulator.shared();
        shared.version.store(VERSION, Ordering::Release);
        shared.magic.store(MAGIC, Ordering::Release);
        std::fs::rename(&part, directory.join(STATE_FILE)).map_err(fail)?;
        Ok(emulator)
    }

    /// Joins the fleet whose state lies in `directory`.
    pub fn open(directory: &Path) -> Result<Self, AttachError> {
        let fail = |source| AttachError::File { directory: directory.to_owned(), source };
        let version = || AttachError::Version { directory: directory.to_owned() };
        let path = directory.join(STATE_FILE);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(fail)?;
        if file.metadata().map_err(fail)?.len() != size_of::<Shared>() as u64 {
            return Err(version());
        }
        let emulator = Self::map(file, directory).map_err(fail)?;
        let shared = emulator.shared();
        let right = shared.magic.load(Ordering::Acquire) == MAGIC
            && shared.version.load(Ordering::Acquire) == VERSION;
        if right && emulator.is_whole() { Ok(emulator) } else { Err(version()) }
    }

    /// Joins the fleet that the environment names; without one, that in whose directory this library lies.
    pub fn from_environment() -> Result<Self, AttachError> {
        let named = std::env::var_os(crate::DIR_VARIABLE).filter(|dir| !dir.is_empty());
        let directory = named.map(PathBuf::from).or_else(directory_of_library);
        Self::open(&directory.ok_or(AttachError::NoDirectory)?)
    }

    fn map(file: File, directory: &Path) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let place = sys::map_shared(&file, size_of::<Shared>())?;
        let guard = Guard::of(place, size_of::<Shared>());
        let identity = (metadata.dev(), metadata.ino());
        Ok(Emulator {
            shared: place.cast(),
            guard,
            file,
            identity,
            directory: directory.to_owned(),
        })
    }

    /// The file has all of the state, and none of it was gone when it was touched.
    fn is_whole(&self) -> bool {
        if self.guard.is_broken() {
            return false;
        }
        // A program that closed all of its files may have others by that number.
        let now = self.file.metadata().ok();
        let now = now.filter(|now| (now.dev(), now.ino()) == self.identity);
        now.is_none_or(|now| now.len() >= size_of::<Shared>() as u64)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: mapped for as long as `self` lives. Through this reference only atomics are used; the
        // state is reached by `lock` alone.
        unsafe { self.shared.as_ref() }
    }

    /// The directory that names this fleet.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Counts changes to the fleet; wait for it with [`crate::wait_for_change`].
    pub fn changes(&self) -> &AtomicU32 {
        &self.shared().changes
    }

    /// Counts critical events, apart from all that changes more often.
    pub fn critical_events(&self) -> &AtomicU32 {
        &self.shared().events
    }

    /// Ends the fleet: a process that is still on it gets errors from now on.
    pub fn close(&self) -> Result<(), AttachError> {
        let mut session = self.lock()?;
        session.closed = 1;
        session.touched = 1;
        Ok(())
    }

    /// Wakes every process that waits for a change, though nothing changed.
    pub fn nudge(&self) {
        self.changes().fetch_add(1, Ordering::AcqRel);
        sys::wake_all(self.changes());
    }

    /// Takes the fleet's lock and brings its state up to now: the dead are buried, what a dead owner left
    /// half done is repaired, energy and progress are accounted for.
    pub fn lock(&self) -> Result<Session<'_>, AttachError> {
        let cut = || AttachError::Cut { directory: self.directory.clone() };
        if !self.is_whole() {
            return Err(cut());
        }
        let locked = self.shared().lock.take(TIMEOUT);
        let locked = locked.map_err(|source| AttachError::Lock { source })?;
        let host_now_ns = sys::host_now_ns();
        let mut session =
            Session { emulator: self, host_now_ns, events: 0, thread_bound: PhantomData };
        let shared = self.shared();
        let right = shared.magic.load(Ordering::Acquire) == MAGIC
            && shared.version.load(Ordering::Acquire) == VERSION;
        if !right || self.guard.is_broken() {
            return Err(cut());
        }
        if locked == Locked::AfterDeath {
            session.repair(host_now_ns);
        }
        if session.closed != 0 {
            return Err(AttachError::Closed);
        }
        session.bring_up_to(host_now_ns);
        session.events = session.event_count();
        Ok(session)
    }
}

/// A program may open `DIR/lib/libnvidia-ml.so.1` by its path.
fn directory_of_library() -> Option<PathBuf> {
    let directory = sys::own_file()?.parent()?.parent()?.to_owned();
    directory.join(STATE_FILE).is_file().then_some(directory)
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the emulator, so none is left.
        unsafe { sys::unmap(self.shared.cast(), size_of::<Shared>()) };
    }
}

/// The fleet's state while we hold its lock.
#[derive(Debug)]
pub struct Session<'a> {
    emulator: &'a Emulator,
    host_now_ns: u64,
    /// Critical events that there had been by then.
    events: u64,
    /// The thread that took the lock must be the one that lets go of it.
    thread_bound: PhantomData<*const ()>,
}

impl Session<'_> {
    /// The machine's time at which the lock was taken.
    pub fn host_now_ns(&self) -> u64 {
        self.host_now_ns
    }
}

impl Deref for Session<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        // SAFETY: we hold the lock, so no other thread writes.
        unsafe { &(*self.emulator.shared.as_ptr()).state }
    }
}

impl DerefMut for Session<'_> {
    fn deref_mut(&mut self) -> &mut State {
        // SAFETY: we hold the lock, so no other thread reads or writes.
        unsafe { &mut (*self.emulator.shared.as_ptr()).state }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Whatever was half done is as if its owner had died.
            let now = self.host_now_ns;
            self.repair(now);
        }
        let touched = std::mem::take(&mut self.touched) != 0;
        let reported = self.event_count() != self.events;
        self.emulator.shared().lock.release();
        if touched {
            self.emulator.nudge();
        }
        if reported {
            self.emulator.critical_events().fetch_add(1, Ordering::AcqRel);
            sys::wake_all(self.emulator.critical_events());
        }
    }
}
