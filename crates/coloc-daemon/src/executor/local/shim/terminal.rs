//! A terminal: the shim holds its one end, and the program and all that it starts have the other.
//!
//! What is printed goes through the shim, which keeps the last of it for clients that come later. Clients read from there, each at
//! its own pace: one that does not read holds up neither the program nor the others.

use coloc_api::spec::TerminalSize;
use nix::sys::signal::{Signal, kill};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So much of what was printed is kept for clients that come later or lag behind.
const KEPT: usize = 256 << 10;
/// So much of it a new client is shown.
const REPLAYED: u64 = 64 << 10;
/// A terminal that no process has open is looked at again after this long: one may open it.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a reader looks whether its program has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Our end of a terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    master: OwnedFd,
    printed: Mutex<Printed>,
    changed: Condvar,
    /// The program has ended: what is printed from now on is left over.
    ended: AtomicBool,
}

/// What was printed, as far as it is kept.
#[derive(Debug, Default)]
struct Printed {
    bytes: VecDeque<u8>,
    /// How many bytes were printed.
    end: u64,
    /// A client has seen some of it.
    is_seen: bool,
    /// Nothing more comes.
    is_over: bool,
}

impl Printed {
    fn begin(&self) -> u64 {
        self.end - self.bytes.len() as u64
    }

    fn from(&self, position: u64, most: usize) -> Vec<u8> {
        let skipped = position.saturating_sub(self.begin()) as usize;
        self.bytes.iter().skip(skipped).take(most).copied().collect()
    }
}

/// What a client is told next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// These bytes, which begin at this position.
    Bytes(u64, Vec<u8>),
    /// Nothing more comes.
    Over,
    /// The client has gone.
    Left,
}

impl Terminal {
    /// Makes a terminal for a user, and the end that a program gets. It is the user's, so that programs can open it by name.
    pub(super) fn open(size: TerminalSize, user: Option<u32>) -> io::Result<(Arc<Self>, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = match ioctl_tiocgptpeer(&master, flags) {
            Ok(slave) => slave,
            // A kernel before 4.13.
            Err(_) => {
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                rustix::fs::open(ptsname(&master, Vec::new())?, flags, Mode::empty())?
            }
        };
        if let Some(user) = user {
            rustix::fs::fchown(&slave, Some(rustix::fs::Uid::from_raw(user)), None)?;
        }
        rustix::fs::fchmod(&slave, Mode::RUSR | Mode::WUSR)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        let terminal = Terminal {
            master,
            printed: Mutex::default(),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
        };
        terminal.resize(size);
        Ok((Arc::new(terminal), slave))
    }

    /// Has another size. The kernel tells the program by SIGWINCH.
    pub(super) fn resize(&self, size: TerminalSize) {
        let TerminalSize { rows, columns } = size;
        if rows > 0 && columns > 0 {
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            let _ = tcsetwinsize(&self.master, size);
        }
    }

    /// Has the program draw itself again, for a client that has not seen it.
    pub(super) fn redraw(&self) {
        if let Ok(group) = tcgetpgrp(&self.master) {
            let group = nix::unistd::Pid::from_raw(-group.as_raw_pid());
            let _ = kill(group, Signal::SIGWINCH);
        }
    }

    /// Where what is typed goes.
    pub(super) fn input(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// The program has ended: what is left is read, and that is all.
    pub(super) fn program_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Nothing more comes: clients are told so.
    pub(super) fn close(&self) {
        self.printed().is_over = true;
        self.changed.notify_all();
    }

    /// Wakes whatever waits for more, so that it sees that its client has left.
    pub(super) fn wake(&self) {
        drop(self.printed());
        self.changed.notify_all();
    }

    /// Where a client begins that has seen what was printed before this byte, and whether that is shown as something of before: what
    /// no client has seen yet is as good as new.
    pub(super) fn place_of(&self, seen: Option<u64>) -> (u64, u64) {
        let mut printed = self.printed();
        let fresh = !std::mem::replace(&mut printed.is_seen, true) && printed.begin() == 0;
        let end = printed.end;
        match seen {
            Some(seen) => (seen.clamp(printed.begin(), end), 0),
            None if fresh => (0, 0),
            None => {
                let from = end.saturating_sub(REPLAYED).max(printed.begin());
                (printed.line_after(from), end)
            }
        }
    }

    /// The bytes from a position on, at most so many, as soon as there are some.
    pub(super) fn next(&self, position: u64, most: usize, left: &AtomicBool) -> Next {
        let waits = |printed: &mut Printed| {
            printed.end <= position && !printed.is_over && !left.load(Ordering::Acquire)
        };
        let printed =
            self.changed.wait_while(self.printed(), waits).unwrap_or_else(PoisonError::into_inner);
        if left.load(Ordering::Acquire) {
            return Next::Left;
        }
        match printed.end > position {
            true => Next::Bytes(position.max(printed.begin()), printed.from(position, most)),
            false => Next::Over,
        }
    }

    fn printed(&self) -> MutexGuard<'_, Printed> {
        // Valid between any two statements, so a panicked writer does no harm.
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, bytes: &[u8]) {
        let mut printed = self.printed();
        printed.end += bytes.len() as u64;
        printed.bytes.extend(bytes);
        let more = printed.bytes.len().saturating_sub(KEPT);
        printed.bytes.drain(..more);
        drop(printed);
        self.changed.notify_all();
    }
}

impl Printed {
    /// The first line that begins after a position; the position itself if there is none, or it is the first.
    fn line_after(&self, position: u64) -> u64 {
        let skipped = (position - self.begin()) as usize;
        if position == 0 {
            return 0;
        }
        let rest = self.bytes.iter().skip(skipped);
        let end = rest.take(4096).position(|&byte| byte == b'\n');
        position + end.map_or(0, |end| end as u64 + 1)
    }
}

/// Reads what is printed, and keeps it for clients. It ends once the program has, and nothing is left.
#[derive(Debug)]
pub(crate) struct Printing(pub(super) Arc<Terminal>);

impl Read for Printing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let terminal = &self.0;
        loop {
            let ended = terminal.ended.load(Ordering::Acquire);
            match rustix::io::read(&terminal.master, &mut *into) {
                Ok(0) | Err(rustix::io::Errno::IO) if ended => return Ok(0),
                // No process has it open at the moment.
                Ok(0) | Err(rustix::io::Errno::IO) => std::thread::sleep(PAUSE),
                Ok(length) => {
                    terminal.keep(&into[..length]);
                    return Ok(length);
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                    let mut watched = [PollFd::new(&terminal.master, PollFlags::IN)];
                    let _ = poll(&mut watched, Some(&LOOK));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Writes to a program that may not read, as long as the client is there; says how much was written. It is an error where no
/// program will ever read it.
pub(super) fn write_while(
    client: impl AsFd,
    to: BorrowedFd<'_>,
    bytes: &[u8],
) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(to, &bytes[written..]) {
            Ok(length) => written += length,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                let mut watched = [
                    PollFd::from_borrowed_fd(to, PollFlags::OUT),
                    PollFd::new(&client, PollFlags::RDHUP),
                ];
                let _ = poll(&mut watched, None);
                if !watched[1].revents().is_empty() {
                    break;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal() -> (Arc<Terminal>, OwnedFd) {
        Terminal::open(TerminalSize::USUAL, None).unwrap()
    }

    #[test]
    fn who_comes_first_sees_all_and_who_comes_later_the_last_lines() {
        let (terminal, _slave) = terminal();
        terminal.keep(b"one\ntwo\n");
        assert_eq!(terminal.place_of(None), (0, 0), "no client has seen it");
        assert_eq!(terminal.place_of(None), (0, 8), "all of it is of before");
        assert_eq!(terminal.place_of(Some(4)), (4, 0), "a client that comes back goes on");
        assert_eq!(terminal.place_of(Some(99)), (8, 0), "not beyond the end");
        let left = AtomicBool::new(false);
        assert_eq!(terminal.next(4, 2, &left), Next::Bytes(4, b"tw".to_vec()));
        terminal.keep(&b"0123456789\n".repeat(KEPT / 11 + 1));
        let (from, end) = terminal.place_of(None);
        assert!((REPLAYED - 11..=REPLAYED).contains(&(end - from)), "{}", end - from);
        assert_eq!(terminal.next(from, 11, &left), Next::Bytes(from, b"0123456789\n".to_vec()));
        let Next::Bytes(at, _) = terminal.next(0, 1, &left) else { panic!("there is more") };
        assert_eq!(at, end - KEPT as u64, "what is gone is skipped");
        assert_eq!(terminal.printed().bytes.len(), KEPT);
        terminal.close();
        assert_eq!(terminal.next(u64::MAX, 1, &left), Next::Over);
        left.store(true, Ordering::Release);
        assert_eq!(terminal.next(u64::MAX, 1, &left), Next::Left);
    }

    #[test]
    fn a_program_that_does_not_read_holds_its_client_alone() {
        let (reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let (client, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let gone = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(other);
        });
        let written = write_while(&client, writer.as_fd(), &vec![0; 1 << 20]).unwrap();
        assert!(written > 0 && written < 1 << 20, "{written}");
        gone.join().unwrap();
        drop(reader);
        assert!(write_while(&client, writer.as_fd(), b"x").is_err(), "it will never be read");
    }
}
