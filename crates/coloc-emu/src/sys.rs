//! The operating system's ABI, wrapped once so that the rest of the crate stays safe.
#![allow(unsafe_code)] // Each block says why it is sound.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Nanoseconds of a clock that all processes of this machine share and that is never set back.
pub fn host_now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; an unknown clock leaves it zero.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Maps a whole file, shared and writable.
pub(crate) fn map_shared(file: &File, length: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
    let address = unsafe {
        libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))
}

/// Removes a mapping.
///
/// # Safety
/// Nothing may refer into the mapping any more.
pub(crate) unsafe fn unmap(address: NonNull<u8>, length: usize) {
    // SAFETY: the caller vouches for it; failure leaves the mapping in place, which is harmless.
    unsafe { libc::munmap(address.as_ptr().cast(), length) };
}

/// Wakes every thread that waits for `word` to change.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX);
}

/// Wakes some of the threads that wait for `word` to change.
pub(crate) fn wake(word: &AtomicU32, most: i32) {
    // SAFETY: the kernel only looks up waiters by the address of a live word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) };
}

/// The id of the calling thread.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: cannot fail and touches nothing.
    unsafe { libc::gettid() }
}

/// Waits until `word` is no longer `seen`, a signal comes or the time is over.
pub fn wait_for_change(word: &AtomicU32, seen: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(86_400) as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: the word and the timeout outlive the call, and the kernel only reads them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &timeout) };
}

/// Whether a process of this id exists, dead but not waited for included.
pub(crate) fn process_exists(pid: i32) -> bool {
    // Zero and negative numbers are groups of processes.
    if pid <= 0 {
        return false;
    }
    // SAFETY: signal 0 is never delivered.
    let sent = unsafe { libc::kill(pid, 0) };
    sent == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// The user that this process acts for.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: cannot fail and touches nothing.
    unsafe { libc::geteuid() }
}

/// The file that this code was loaded from, by the name that it was loaded by.
pub(crate) fn own_file() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let inside: fn() -> Option<PathBuf> = own_file;
    // SAFETY: all zero is a valid answer, and a name that the loader returns ends with a NUL and stays.
    unsafe {
        if libc::dladdr(inside as *const libc::c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        let name = std::ffi::CStr::from_ptr(name).to_bytes();
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(name)))
    }
}

/// Reads or writes this process's own memory by way of the kernel, which refuses bad addresses instead of
/// killing us. Returns how many bytes went through.
pub(crate) fn copy_checked(local: *mut u8, foreign: *mut u8, length: usize, write: bool) -> Copied {
    let near = libc::iovec { iov_base: local.cast(), iov_len: length };
    let far = libc::iovec { iov_base: foreign.cast(), iov_len: length };
    // SAFETY: `local` is ours, as every caller in `abi` sees to; `foreign` is checked by the kernel.
    let moved = unsafe {
        let pid = libc::getpid();
        if write {
            libc::process_vm_writev(pid, &near, 1, &far, 1, 0)
        } else {
            libc::process_vm_readv(pid, &near, 1, &far, 1, 0)
        }
    };
    match moved {
        moved if moved == length as isize => Copied::All,
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => Copied::BadAddress,
        -1 => Copied::Unavailable,
        _ => Copied::BadAddress,
    }
}

/// What came of a checked copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copied {
    /// Every byte.
    All,
    /// The address is not ours to use.
    BadAddress,
    /// The kernel does not offer checked copies to us.
    Unavailable,
}
