//! The threads that read outputs. A user's file may lie on a file system that never answers, so it is read neither on the
//! owner's thread nor on one that other requests need, and no user takes all of these.

use crate::record::Uid;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Threads that read.
const THREADS: usize = 8;
/// Of these, threads that read files which users chose. The others read our own logs.
const FOR_CHOSEN: usize = 6;
/// Of these, threads that read files of one user.
const FOR_ONE_USER: usize = 2;
/// Reads that wait, of all users.
const QUEUE: usize = 256;
/// Reads that wait, of one user.
const QUEUE_OF_ONE_USER: usize = 32;

/// The user whose files a read opens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reads {
    /// Logs of the daemon's, for a user.
    Log(Uid),
    /// A file that this user chose.
    Chosen(Uid),
}

/// Why a read was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotRead {
    /// Too many reads wait.
    #[error("too many outputs are being read: try again in a moment")]
    Busy,
    /// The file system has not answered in time.
    #[error("the file does not answer: its file system may hang")]
    Late,
}

impl From<NotRead> for std::io::Error {
    fn from(error: NotRead) -> Self {
        std::io::Error::other(error)
    }
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Work {
    threads: usize,
    queue: VecDeque<(Reads, Job)>,
    /// When each read that runs began.
    running: FxHashMap<Reads, Vec<Instant>>,
}

impl Work {
    fn running_chosen(&self) -> usize {
        let chosen = self.running.iter().filter(|(reads, _)| matches!(reads, Reads::Chosen(_)));
        chosen.map(|(_, began)| began.len()).sum()
    }

    /// Takes the first read that may begin now.
    fn next(&mut self, now: Instant) -> Option<(Reads, Job)> {
        let room_for_chosen = self.running_chosen() < FOR_CHOSEN;
        let may = |reads: &Reads| match reads {
            Reads::Log(_) => true,
            Reads::Chosen(_) => {
                room_for_chosen && self.running.get(reads).map_or(0, Vec::len) < FOR_ONE_USER
            }
        };
        let first = self.queue.iter().position(|(reads, _)| may(reads))?;
        let (reads, job) = self.queue.remove(first)?;
        self.running.entry(reads).or_default().push(now);
        Some((reads, job))
    }

    fn done(&mut self, reads: Reads, began: Instant) {
        if let Some(running) = self.running.get_mut(&reads) {
            if let Some(this) = running.iter().position(|one| *one == began) {
                running.swap_remove(this);
            }
            if running.is_empty() {
                self.running.remove(&reads);
            }
        }
    }

    /// Every read of this user that may run has run for longer than that.
    fn hangs(&self, reads: Reads, timeout: Duration) -> bool {
        let Some(running) = self.running.get(&reads) else { return false };
        running.len() >= FOR_ONE_USER && running.iter().all(|began| began.elapsed() > timeout)
    }
}

/// The pool.
#[derive(Default)]
pub(crate) struct Readers {
    work: Mutex<Work>,
    news: Condvar,
}

/// One pool for the process: its threads are few, and started when they are needed.
pub(crate) static READERS: LazyLock<Readers> = LazyLock::new(Readers::default);

impl Readers {
    /// Has a read done by one of the threads.
    pub(crate) fn begin(
        &'static self,
        reads: Reads,
        read: impl FnOnce() + Send + 'static,
    ) -> Result<(), NotRead> {
        let mut work = self.work();
        let theirs = work.queue.iter().filter(|(queued, _)| *queued == reads).count();
        if theirs >= QUEUE_OF_ONE_USER || work.queue.len() >= QUEUE {
            return Err(NotRead::Busy);
        }
        work.queue.push_back((reads, Box::new(read)));
        if work.threads < THREADS {
            let thread = std::thread::Builder::new().name("reader".to_owned());
            match thread.spawn(|| self.serve()) {
                Ok(_) => work.threads += 1,
                Err(_) if work.threads > 0 => {}
                Err(_) => {
                    work.queue.pop_back();
                    return Err(NotRead::Busy);
                }
            }
        }
        self.news.notify_one();
        Ok(())
    }

    /// Does a read, and waits for it so long; not at all where the same user's reads hang.
    pub(crate) fn wait<T: Send + 'static>(
        &'static self,
        reads: Reads,
        timeout: Duration,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRead> {
        if self.work().hangs(reads, timeout) {
            return Err(NotRead::Late);
        }
        let (tell, told) = mpsc::sync_channel(1);
        self.begin(reads, move || {
            let _ = tell.send(read());
        })?;
        told.recv_timeout(timeout).map_err(|_| NotRead::Late)
    }

    fn serve(&self) {
        let mut work = self.work();
        loop {
            let now = Instant::now();
            match work.next(now) {
                Some((reads, job)) => {
                    drop(work);
                    // A read that panics is a mistake of ours, which must not cost a thread.
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                    work = self.work();
                    work.done(reads, now);
                    // What was held back for this user may begin now.
                    self.news.notify_one();
                }
                None => {
                    work = self.news.wait(work).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        // Nothing panics while it is held.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn pool() -> &'static Readers {
        Box::leak(Box::default())
    }

    #[test]
    fn who_hangs_keeps_two_threads_and_others_read_on() {
        let pool = pool();
        let (hang, hangs) = mpsc::channel::<()>();
        let hangs = std::sync::Arc::new(Mutex::new(hangs));
        let mallory = Reads::Chosen(Uid(1));
        let mut taken = 0;
        while taken < 100 {
            let hangs = hangs.clone();
            let stuck = move || assert!(hangs.lock().unwrap().recv().is_err());
            match pool.begin(mallory, stuck) {
                Ok(()) => taken += 1,
                Err(busy) => {
                    assert_eq!(busy, NotRead::Busy);
                    break;
                }
            }
        }
        assert!((QUEUE_OF_ONE_USER..=QUEUE_OF_ONE_USER + FOR_ONE_USER).contains(&taken), "{taken}");
        for other in [Reads::Chosen(Uid(2)), Reads::Log(Uid(1)), Reads::Log(Uid(2))] {
            assert_eq!(pool.wait(other, TIMEOUT, || 7), Ok(7), "{other:?}");
        }
        let began = Instant::now();
        assert_eq!(pool.wait(mallory, Duration::ZERO, || 7), Err(NotRead::Late));
        assert!(began.elapsed() < TIMEOUT);
        assert_eq!(pool.work().running.get(&mallory).map(Vec::len), Some(FOR_ONE_USER));
        drop(hang);
        // All of them come to an end, and nothing is counted twice.
        while !pool.work().queue.is_empty() || !pool.work().running.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(pool.wait(mallory, TIMEOUT, || 8), Ok(8));
    }

    #[test]
    fn a_late_answer_is_not_waited_for_and_a_panic_costs_nothing() {
        let pool = pool();
        let (hang, hangs) = mpsc::channel::<()>();
        let late = pool.wait(Reads::Log(Uid(1)), Duration::ZERO, move || hangs.recv().is_err());
        assert_eq!(late, Err(NotRead::Late));
        drop(hang);
        for _ in 0..THREADS * 2 {
            let _ = pool.wait(Reads::Chosen(Uid(1)), TIMEOUT, || panic!("on purpose"));
        }
        assert_eq!(pool.wait(Reads::Chosen(Uid(1)), TIMEOUT, || 3), Ok(3));
    }
}
