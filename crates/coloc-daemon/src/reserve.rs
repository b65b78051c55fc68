//! Room on the disk that is kept for the day when it is full: what is wanted of running tasks is written down before they hear
//! of it, and a task that fills the disk must be cancelled all the same.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Enough for thousands of records.
const ROOM: usize = 1 << 20;
/// After it was given away, room is looked for this often.
const PERIOD: Duration = Duration::from_secs(10);

/// A file that only takes room.
#[derive(Debug)]
pub(crate) struct Reserve {
    file: PathBuf,
    is_there: bool,
    tried: Instant,
    /// The disk that a test has it on.
    #[cfg(test)]
    disk: Option<std::sync::Arc<crate::journal::disk::Disk>>,
}

impl Reserve {
    /// Takes the room, if it can be had.
    pub(crate) fn new(file: PathBuf, now: Instant) -> Self {
        let mut reserve = Reserve {
            file,
            is_there: false,
            tried: now,
            #[cfg(test)]
            disk: None,
        };
        reserve.is_there = reserve.take().is_ok();
        reserve
    }

    /// On a disk of a test.
    #[cfg(test)]
    pub(crate) fn on(disk: &std::sync::Arc<crate::journal::disk::Disk>, now: Instant) -> Self {
        let reserve = Reserve::new(PathBuf::new(), now);
        Reserve { is_there: !disk.is_full(), disk: Some(disk.clone()), ..reserve }
    }

    /// Gives the room away; false if there is none left to give.
    pub(crate) fn release(&mut self, now: Instant) -> bool {
        self.tried = now;
        #[cfg(test)]
        if let Some(disk) = &self.disk {
            let is_there = std::mem::take(&mut self.is_there);
            if is_there {
                disk.give_room();
            }
            return is_there;
        }
        std::mem::take(&mut self.is_there) && fs::remove_file(&self.file).is_ok()
    }

    /// Takes the room again, now and then.
    pub(crate) fn refill(&mut self, now: Instant) {
        if !self.is_there && now.saturating_duration_since(self.tried) > PERIOD {
            self.tried = now;
            self.is_there = self.take().is_ok();
        }
    }

    fn take(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some(disk) = &self.disk {
            return if disk.is_full() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) };
        }
        take_room(&self.file, ROOM).map(drop)
    }
}

/// Makes a file that takes so much room on the disk, or none at all.
pub(crate) fn take_room(path: &Path, room: usize) -> io::Result<File> {
    let taken = || -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(path)?;
        // Zeros would take no room on some file systems, and repeated bytes little.
        let body: Vec<u8> =
            (0..room as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        file.write_all(&body)?;
        // Some file systems look for room only now.
        file.sync_all()?;
        Ok(file)
    };
    taken().inspect_err(|_| {
        // Half of the room is of no use.
        let _ = fs::remove_file(path);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_once_and_taken_again() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("reserve");
        let mut reserve = Reserve::new(file.clone(), Instant::now());
        assert_eq!(fs::metadata(&file).unwrap().len(), ROOM as u64);
        assert!(reserve.release(Instant::now()) && !file.exists());
        assert!(!reserve.release(Instant::now()), "there is nothing left");
        reserve.refill(Instant::now());
        assert!(!file.exists(), "not at once");
        reserve.tried = Instant::now().checked_sub(PERIOD * 2).unwrap();
        reserve.refill(Instant::now());
        assert!(file.exists());
    }
}
