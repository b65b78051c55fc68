//! What the srun of one task know of each other: the number of the next step, and which GPUs another one has to itself.
//!
//! Files of the user who runs the task, below /tmp: they decide about that user's own processes and nothing else. Where
//! another user has put something in their place, every step is number 0 and sees what it asks for.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What has not been touched for so long is of a task that has ended.
const OLD: Duration = Duration::from_secs(60 * 86_400);

/// The files of one task.
#[derive(Debug)]
pub(super) struct Steps {
    /// Its directory and the name of its attempt.
    place: Option<(PathBuf, String)>,
}

impl Steps {
    pub(super) fn of_task() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let attempt = std::env::var("COLOC_ATTEMPT").or_else(|_| std::env::var("COLOC_TASK_ID"));
        let socket = std::env::var("COLOC_SOCKET").unwrap_or_default();
        let name = attempt.map(|attempt| format!("{}-{attempt}", mark(&socket))).ok();
        let is_plain = |name: &String| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        };
        let name = name.filter(is_plain);
        Steps::below(Path::new("/tmp"), user, name)
    }

    fn below(base: &Path, user: u32, name: Option<String>) -> Self {
        let place = base.join(format!("coloc-steps-{user}"));
        let _ = fs::DirBuilder::new().mode(0o700).create(&place);
        let is_own = fs::symlink_metadata(&place)
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == user && meta.mode() & 0o077 == 0);
        Steps { place: name.filter(|_| is_own).map(|name| (place, name)) }
    }

    /// The number of a step that begins.
    pub(super) fn next(&self) -> u32 {
        self.sweep();
        self.count().unwrap_or(0)
    }

    fn count(&self) -> Option<u32> {
        let mut file = self.open("count")?;
        flock(&file, FlockOperation::LockExclusive).ok()?;
        let mut text = String::new();
        (&file).take(16).read_to_string(&mut text).ok()?;
        let number: u32 = text.trim().parse().unwrap_or(0);
        file.set_len(0).ok()?;
        file.rewind().ok()?;
        write!(file, "{}", number.saturating_add(1)).ok()?;
        Some(number)
    }

    /// Takes a GPU for as long as the file is open; `None` if another srun has it.
    pub(super) fn take(&self, gpu: usize) -> Option<File> {
        let file = self.open(&format!("gpu{gpu}"))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(file)
    }

    /// Whether GPUs can be taken at all.
    pub(super) fn are_known(&self) -> bool {
        self.place.is_some()
    }

    fn open(&self, what: &str) -> Option<File> {
        let (place, name) = self.place.as_ref()?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.open(place.join(format!("{name}.{what}"))).ok()
    }

    /// Removes what tasks that ended long ago have left.
    fn sweep(&self) {
        let Some((place, _)) = &self.place else { return };
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let touched = entry.metadata().and_then(|meta| meta.modified());
            if touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > OLD)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Short, and different for the tasks of another daemon.
fn mark(socket: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:08x}", socket.bytes().fold(0xcbf2_9ce4_8422_2325, mix) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_gpus_taken_once() {
        let base = tempfile::tempdir().expect("a folder");
        let user = rustix::process::geteuid().as_raw();
        let steps = || Steps::below(base.path(), user, Some("x-7.1".to_owned()));
        assert_eq!([steps().next(), steps().next(), steps().next()], [0, 1, 2]);
        let held = steps().take(0).expect("it is free");
        assert!(steps().take(0).is_none() && steps().take(1).is_some());
        drop(held);
        assert!(steps().take(0).is_some());
        let other = Steps::below(base.path(), user + 1, Some("x-7.1".to_owned()));
        assert!(!other.are_known() && other.next() == 0, "what another user owns is not used");
    }
}
