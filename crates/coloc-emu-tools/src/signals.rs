//! Signals, taken one at a time instead of in handlers.
#![allow(unsafe_code)] // Each block says why it is sound.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// A set of signals that this process takes when it asks for them.
pub(crate) struct Signals {
    set: libc::sigset_t,
}

impl Signals {
    /// Holds these signals back from now on. To be called before any thread is started. Children inherit it,
    /// unless [`Signals::release_in`] sees to it.
    pub(crate) fn hold(signals: &[i32]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is emptied before it is read, and the mask is this thread's own.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in signals {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let set = set.assume_init();
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) {
                0 => Ok(Signals { set }),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
    }

    /// Lets a child have the signals that we hold back.
    pub(crate) fn release_in(&self, command: &mut Command) {
        let set = self.set;
        // SAFETY: between fork and exec only calls that are safe there are made, and this one is.
        unsafe {
            command.pre_exec(move || {
                match libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) {
                    0 => Ok(()),
                    code => Err(io::Error::from_raw_os_error(code)),
                }
            });
        }
    }

    /// The next signal; `None` when the time is over.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Option<i32> {
        let timeout = timeout.map(|span| libc::timespec {
            tv_sec: span.as_secs().min(86_400) as libc::time_t,
            tv_nsec: libc::c_long::from(span.subsec_nanos() as i32),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the set and the timeout outlive the call; no information is asked for.
        let signal = unsafe { libc::sigtimedwait(&self.set, std::ptr::null_mut(), timeout) };
        (signal > 0).then_some(signal)
    }
}

/// Sends a signal to a process that we started and have not waited for.
pub(crate) fn send(pid: u32, signal: i32) {
    // SAFETY: no memory is involved; a process that ended meanwhile is still ours to signal.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}
