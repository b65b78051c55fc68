//! A mapped file that another process cuts off: touching what is gone is a signal (SIGBUS), which would end the
//! program. Here it is replaced by empty memory, and the next caller is told.
//!
//! `unsafe` because a signal handler is told to the C library and maps memory.
#![allow(unsafe_code)] // Each block says why it is sound.

use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings of one program at one time; more are not guarded.
const MOST: usize = 16;

struct Slot {
    start: AtomicUsize,
    length: AtomicUsize,
    broken: AtomicBool,
}

static SLOTS: [Slot; MOST] = [const {
    Slot { start: AtomicUsize::new(0), length: AtomicUsize::new(0), broken: AtomicBool::new(false) }
}; MOST];
/// What was done about the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping whose loss is survived, until this is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    slot: Option<usize>,
}

impl Guard {
    /// Guards a mapping.
    pub(crate) fn of(start: NonNull<u8>, length: usize) -> Self {
        BEFORE.get_or_init(install);
        let free = |slot: &Slot| {
            let (taken, order) = (start.addr().get(), Ordering::AcqRel);
            slot.start.compare_exchange(0, taken, order, Ordering::Relaxed).is_ok()
        };
        let slot = SLOTS.iter().position(free);
        if let Some(slot) = slot {
            SLOTS[slot].broken.store(false, Ordering::Release);
            SLOTS[slot].length.store(length, Ordering::Release);
        }
        Guard { slot }
    }

    /// A part of the file was gone when it was touched; what is mapped now is empty.
    pub(crate) fn is_broken(&self) -> bool {
        self.slot.is_some_and(|slot| SLOTS[slot].broken.load(Ordering::Acquire))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            SLOTS[slot].length.store(0, Ordering::Release);
            SLOTS[slot].start.store(0, Ordering::Release);
        }
    }
}

/// Has the signal handled, and returns what was done about it before.
fn install() -> libc::sigaction {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zero is a valid action, which is the default; both live for the call.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        let handler: extern "C" fn(_, _, _) = handle;
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, before.as_mut_ptr());
        before.assume_init()
    }
}

/// Nothing here allocates or locks: the program may be anywhere.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid description.
    let address = unsafe { (*info).si_addr() }.addr();
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        let length = slot.length.load(Ordering::Acquire);
        if start == 0 || !(start..start + length).contains(&address) {
            continue;
        }
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
        );
        // SAFETY: in place of a mapping of ours, of the same length; empty memory is a valid state.
        let place = unsafe {
            libc::mmap(ptr::with_exposed_provenance_mut(start), length, protection, flags, -1, 0)
        };
        if place != libc::MAP_FAILED {
            slot.broken.store(true, Ordering::Release);
            return;
        }
    }
    pass_on(signal, info, context);
}

/// It is not about a mapping of ours: the handler that was there before deals with it.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: a valid action. The fault happens again when we return, and then is what it always was.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, before.unwrap_or(&default), ptr::null_mut());
        }
        return;
    }
    let with_info = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: the address is that of a handler that was installed, and the flag says which kind it is.
    unsafe {
        if with_info {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler)(signal);
        }
    }
}
