//! Memory that a burst needed, given back to the system. The C library keeps what was freed for later, thread by thread:
//! after lists of a hundred thousand tasks that is more than the daemon has otherwise.
//!
//! `unsafe` because a function of the C library is called that no crate wraps.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Looked at this often.
const PERIOD: Duration = Duration::from_secs(5);

/// There was a burst since the last look.
static BURST: AtomicBool = AtomicBool::new(false);

/// Something needed much memory, and needs it no more.
pub(crate) fn burst_is_over() {
    BURST.store(true, Ordering::Relaxed);
}

/// Gives back what bursts have left, for ever.
pub(crate) async fn give_back() {
    loop {
        tokio::time::sleep(PERIOD).await;
        if BURST.swap(false, Ordering::Relaxed) {
            let _ = tokio::task::spawn_blocking(trim).await;
        }
    }
}

#[cfg(target_env = "gnu")]
fn trim() {
    // SAFETY: it takes the allocator's own locks, and touches free memory alone.
    unsafe { nix::libc::malloc_trim(0) };
}

/// Other C libraries give memory back by themselves.
#[cfg(not(target_env = "gnu"))]
fn trim() {}
