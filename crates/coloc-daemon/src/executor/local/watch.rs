//! Watching shims: a file descriptor for each, which becomes readable when the process ends.

use crate::executor::End;
use coloc_model::TaskId;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Ends that are taken note of at once.
const AT_ONCE: usize = 64;

/// Finds out how an attempt ended whose shim is gone.
pub(super) type HowItEnded = Box<dyn FnOnce() -> End + Send>;

type Watched = Mutex<rustc_hash::FxHashMap<u64, (OwnedFd, HowItEnded)>>;

/// Tells of every shim's end, once.
#[derive(Clone)]
pub struct Watcher {
    epoll: Arc<OwnedFd>,
    watched: Arc<Watched>,
}

impl Watcher {
    /// Starts the thread that waits.
    pub fn start(tell: impl Fn(TaskId, u32, End) + Send + 'static) -> io::Result<Self> {
        let watcher = Watcher {
            epoll: Arc::new(epoll::create(CreateFlags::CLOEXEC)?),
            watched: Arc::default(),
        };
        let Watcher { epoll, watched } = watcher.clone();
        let wait = move || {
            loop {
                let mut events = [MaybeUninit::uninit(); AT_ONCE];
                match epoll::wait(&epoll, &mut events, None) {
                    Ok((ended, _)) => {
                        for event in ended {
                            end(&watched, &epoll, event.data.u64(), &tell);
                        }
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    // Only a mistake of ours can make a wait fail; without waiting no task would ever end.
                    Err(error) => unreachable!("waiting for shims: {error}"),
                }
            }
        };
        std::thread::Builder::new().name("shims".to_owned()).spawn(wait)?;
        Ok(watcher)
    }

    /// Watches a shim.
    pub(super) fn watch(
        &self,
        pidfd: OwnedFd,
        task: TaskId,
        attempt: u32,
        how: HowItEnded,
    ) -> io::Result<()> {
        let key = key(task, attempt);
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // Held while it is added, so that an end at once finds it.
        epoll::add(&*self.epoll, &pidfd, EventData::new_u64(key), EventFlags::IN)?;
        watched.insert(key, (pidfd, how));
        Ok(())
    }
}

impl Watcher {
    /// Sends a signal to a shim that is watched. What it wrote down of itself plays no part.
    pub fn signal(&self, task: TaskId, attempt: u32, signal: Signal) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((pidfd, _)) = watched.get(&key(task, attempt)) {
            // One that is gone needs no signal.
            let _ = pidfd_send_signal(pidfd, signal);
        }
    }
}

fn key(task: TaskId, attempt: u32) -> u64 {
    u64::from(task.0) << 32 | u64::from(attempt)
}

fn end(watched: &Watched, epoll: &OwnedFd, key: u64, tell: &impl Fn(TaskId, u32, End)) {
    let found = watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    if let Some((pidfd, how)) = found {
        let _ = epoll::delete(epoll, &pidfd);
        // A shim that we started is ours to reap; one that was adopted is another process's.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let _ = waitid(WaitId::PidFd(pidfd.as_fd()), options);
        tell(TaskId((key >> 32) as u32), key as u32, how());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn every_end_is_told_once() {
        let (tell, told) = mpsc::channel();
        let watcher = Watcher::start(move |task, attempt, end| {
            let _ = tell.send((task.0, attempt, end == End::Vanished));
        })
        .unwrap();
        for task in 0..20 {
            #[allow(clippy::zombie_processes)] // The watcher reaps it.
            let child = std::process::Command::new("true").spawn().unwrap();
            let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
            watcher.watch(pidfd, TaskId(task), task + 1, Box::new(|| End::Vanished)).unwrap();
        }
        let mut all: Vec<_> =
            (0..20).map(|_| told.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..20).map(|task| (task, task + 1, true)).collect::<Vec<_>>());
        assert!(told.try_recv().is_err());
    }
}
