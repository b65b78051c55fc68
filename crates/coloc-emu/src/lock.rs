//! The lock around a fleet's state, shared by processes that trust each other with nothing.
//!
//! Every process that joined can write to it, so no address is ever read from it: a robust mutex of the C library keeps
//! pointers in shared memory, and a process that changes them chooses where another process writes. Here a word names
//! the thread that holds the lock, and one that is dead is taken over from. A process that scribbles on it can make the
//! others wait and get an error, and no more.

use crate::process::Identity;
use crate::sys;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a wait lasts before it is looked whether the owner is still alive.
const LOOK: Duration = Duration::from_millis(20);
/// Bits of the time at which a thread began, in ticks: three centuries. The rest is its id.
const TICKS: u32 = 40;

/// Free when all zero.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lock {
    /// The thread that has it: its id and when it began.
    owner: AtomicU64,
    /// Changes whenever it is let go of.
    turns: AtomicU32,
    /// How many wait; more than that when some died waiting.
    waiting: AtomicU32,
}

/// How a lock was obtained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Locked {
    /// The last owner let go of it.
    Cleanly,
    /// The last owner died with it: what it guards must be checked.
    AfterDeath,
}

impl Lock {
    /// Takes it, waiting at most `timeout`.
    pub(crate) fn take(&self, timeout: Duration) -> io::Result<Locked> {
        let me = own_name();
        if self.swap(0, me) {
            return Ok(Locked::Cleanly);
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let taken = self.wait_for(me, Instant::now() + timeout);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        taken
    }

    fn wait_for(&self, me: u64, deadline: Instant) -> io::Result<Locked> {
        loop {
            let turn = self.turns.load(Ordering::Acquire);
            match self.owner.load(Ordering::Acquire) {
                0 if self.swap(0, me) => return Ok(Locked::Cleanly),
                0 => continue,
                // A signal handler that calls us while we hold the lock gets an error, not a deadlock.
                owner if owner == me => return Err(io::Error::from_raw_os_error(libc::EDEADLK)),
                owner => {
                    sys::wait_for_change(&self.turns, turn, LOOK);
                    let still = self.owner.load(Ordering::Acquire) == owner;
                    if still && !lives(owner) && self.swap(owner, me) {
                        return Ok(Locked::AfterDeath);
                    }
                }
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Lets go of it.
    pub(crate) fn release(&self) {
        // A thread that took it over from us, thinking that we are dead, keeps it.
        self.swap(own_name(), 0);
        self.turns.fetch_add(1, Ordering::AcqRel);
        if self.waiting.load(Ordering::Acquire) > 0 {
            sys::wake(&self.turns, 1);
        }
    }

    fn swap(&self, from: u64, to: u64) -> bool {
        self.owner.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

fn name(thread: Identity) -> u64 {
    (thread.pid as u64) << TICKS | thread.start_ticks & ((1 << TICKS) - 1)
}

fn lives(owner: u64) -> bool {
    let thread = Identity {
        pid: i32::try_from(owner >> TICKS).unwrap_or(0),
        start_ticks: owner & ((1 << TICKS) - 1),
    };
    thread.lives()
}

/// The calling thread, known by its id and the time at which it began.
fn own_name() -> u64 {
    thread_local! {
        /// Of this thread, and of the id that it had then: a child that was forked has another.
        static OWN: Cell<(i32, u64)> = const { Cell::new((0, 0)) };
    }
    let id = sys::thread_id();
    let (known, own) = OWN.get();
    if known == id {
        return own;
    }
    let own = name(Identity::of(id).unwrap_or(Identity { pid: id, start_ticks: 0 }));
    OWN.set((id, own));
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn free() -> Lock {
        Lock { owner: AtomicU64::new(0), turns: AtomicU32::new(0), waiting: AtomicU32::new(0) }
    }

    #[test]
    fn one_at_a_time_and_the_dead_have_no_turn() {
        let lock = Arc::new(free());
        let sum = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (lock, sum) = (Arc::clone(&lock), Arc::clone(&sum));
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        lock.take(Duration::from_secs(60)).expect("free in time");
                        let before = sum.load(Ordering::Relaxed);
                        sum.store(before + 1, Ordering::Relaxed);
                        lock.release();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(sum.load(Ordering::Relaxed), 8000);
        // A thread that ended with it.
        let dying = Arc::clone(&lock);
        let died = std::thread::spawn(move || dying.take(Duration::from_secs(60)).map(drop));
        died.join().expect("no panic").expect("free");
        let taken = lock.take(Duration::from_secs(60)).expect("taken over");
        assert_eq!(taken, Locked::AfterDeath);
        let again = lock.take(Duration::from_millis(1)).expect_err("it is ours");
        assert_eq!(again.raw_os_error(), Some(libc::EDEADLK));
    }

    #[test]
    fn what_others_write_on_it_gives_an_error_or_a_repair() {
        let lock = free();
        // The first process of the machine lives, and will not let go of it.
        lock.owner.store(name(Identity::of(1).expect("there is one")), Ordering::Release);
        let refused = lock.take(Duration::from_millis(60)).expect_err("it is not ours");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        for garbage in [u64::MAX, 1, 1 << 63, 0xdead_beef] {
            lock.owner.store(garbage, Ordering::Release);
            assert_eq!(
                lock.take(Duration::from_secs(60)).expect("no such thread"),
                Locked::AfterDeath
            );
            lock.release();
        }
    }
}
