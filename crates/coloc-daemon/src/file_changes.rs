//! Hearing from the kernel that files change, for clients who read on. One inotify instance serves all of them: a user may have few.

use rustc_hash::FxHashMap;
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::watch;

/// Room for some hundred events at a time.
const BUFFER: usize = 16 << 10;

/// Says that files changed.
#[derive(Default, Debug)]
pub struct FileChanges(OnceLock<Option<Arc<Watcher>>>);

#[derive(Debug)]
struct Watcher {
    inotify: OwnedFd,
    /// What tells readers of a file or a folder, by the kernel's number for it.
    watched: Mutex<FxHashMap<i32, watch::Sender<()>>>,
}

/// A file or a folder that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    number: i32,
    changes: watch::Receiver<()>,
    watcher: Arc<Watcher>,
}

impl FileChanges {
    /// Watches a file, or a folder with what is in it.
    pub(crate) fn watch(&self, path: &Path) -> io::Result<Watched> {
        let begin = || match Watcher::start() {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                tracing::warn!("outputs are looked at every second: inotify: {error}");
                None
            }
        };
        match self.0.get_or_init(begin) {
            Some(watcher) => watcher.watch(path),
            None => Err(io::Error::other("inotify is not there")),
        }
    }
}

impl Watcher {
    fn start() -> io::Result<Arc<Self>> {
        let inotify = inotify::init(CreateFlags::CLOEXEC)?;
        let watcher = Arc::new(Watcher { inotify, watched: Mutex::default() });
        let listener = watcher.clone();
        std::thread::Builder::new().name("inotify".to_owned()).spawn(move || listener.listen())?;
        Ok(watcher)
    }

    fn watched(&self) -> MutexGuard<'_, FxHashMap<i32, watch::Sender<()>>> {
        // No thread leaves it half changed.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(self: &Arc<Self>, path: &Path) -> io::Result<Watched> {
        // Held while the kernel is asked: the last watch of the same file may be dropped at this moment.
        let mut watched = self.watched();
        let flags = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF;
        let number = inotify::add_watch(&self.inotify, path, flags)?;
        let sender = watched.entry(number).or_insert_with(|| watch::channel(()).0);
        Ok(Watched { number, changes: sender.subscribe(), watcher: self.clone() })
    }

    /// Passes on what the kernel tells, for ever.
    fn listen(&self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!("inotify: {error}");
                    // Without a sender, readers look by themselves.
                    return self.watched().clear();
                }
            };
            let (flags, mut watched) = (event.events(), self.watched());
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                watched.values().for_each(|sender| sender.send_replace(()));
            } else if flags.contains(ReadFlags::IGNORED) {
                // It is gone, and its readers hear that they have to watch another.
                watched.remove(&event.wd());
            } else if let Some(sender) = watched.get(&event.wd()) {
                sender.send_replace(());
            }
        }
    }
}

impl Watched {
    /// Waits until something changes; false once nothing can change any more.
    pub(crate) async fn changed(&mut self) -> bool {
        self.changes.changed().await.is_ok()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watched = self.watcher.watched();
        if watched.get(&self.number).is_some_and(|sender| sender.receiver_count() <= 1) {
            watched.remove(&self.number);
            // If the kernel has forgotten it already, so much the better.
            let _ = inotify::remove_watch(&self.watcher.inotify, self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    async fn hears(watched: &mut Watched) -> Option<bool> {
        tokio::time::timeout(Duration::from_secs(10), watched.changed()).await.ok()
    }

    #[test]
    fn readers_hear_of_changes_and_the_last_one_ends_the_watch() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let place = tempfile::tempdir().unwrap();
            let file = place.path().join("log");
            let changes = FileChanges::default();
            let mut folder = changes.watch(place.path()).unwrap();
            fs::write(&file, "one").unwrap();
            assert_eq!(hears(&mut folder).await, Some(true), "a new file");
            let mut first = changes.watch(&file).unwrap();
            let mut second = changes.watch(&file).unwrap();
            fs::write(&file, "two").unwrap();
            assert_eq!(hears(&mut first).await, Some(true));
            assert_eq!(hears(&mut second).await, Some(true));
            let count = || first.watcher.watched().len();
            assert_eq!(count(), 2);
            drop(second);
            assert_eq!(count(), 2, "another reads it");
            fs::remove_file(&file).unwrap();
            while hears(&mut first).await == Some(true) {}
            assert_eq!(hears(&mut first).await, Some(false), "it is gone");
            drop(first);
            assert_eq!(folder.watcher.watched().len(), 1);
            assert!(changes.watch(&file).is_err(), "it is not there");
        });
    }
}
