//! A terminal with the program in it, as a user has one.

use super::home::{Home, coloc, text};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A window in which the program runs.
pub(super) struct Screen {
    master: OwnedFd,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    /// The program in a window of 24 lines.
    pub(super) fn of(home: &Home, arguments: &[&str]) -> Self {
        let mut command = coloc();
        command.args(arguments).env("COLOC_SOCKET", home.socket());
        Screen::with(&[], command)
    }

    /// A program in a window, which others start.
    pub(super) fn with(within: &[&str], command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        let slave = ioctl_tiocgptpeer(&master, flags).expect("its other end");
        resize(&master, 24, 80);
        let same = || slave.try_clone().expect("a descriptor");
        let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let child = Command::new("setsid")
            .args(["--ctty"])
            .args(within)
            .arg(command.get_program())
            .args(command.get_args())
            .envs(variables)
            .env("TERM", "xterm")
            .env("PS1", "$ ")
            .stdin(same())
            .stdout(same())
            .stderr(same())
            .spawn()
            .expect("setsid runs");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (reader, into) = (master.try_clone().expect("a descriptor"), shown.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = rustix::io::read(&reader, &mut piece) {
                into.lock().expect("bytes").extend_from_slice(&piece[..length]);
            }
        });
        // Held by the test, so that the terminal and its modes can be looked at when the program has ended.
        std::mem::forget(slave);
        Screen { master, child, shown }
    }

    pub(super) fn shown(&self) -> String {
        text(&self.shown.lock().expect("bytes"))
    }

    /// Waits until this was shown; nothing of it is looked at again.
    pub(super) fn wait_for(&self, words: &str) {
        let began = Instant::now();
        loop {
            let mut shown = self.shown.lock().expect("bytes");
            let found = shown.windows(words.len()).position(|part| part == words.as_bytes());
            if let Some(at) = found {
                shown.drain(..at + words.len());
                return;
            }
            assert!(began.elapsed() < TIMEOUT, "{words:?} is not in {:?}", text(&shown));
            drop(shown);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn types(&self, keys: &str) {
        let mut left = keys.as_bytes();
        while !left.is_empty() {
            let written = rustix::io::write(&self.master, left).expect("the terminal takes it");
            left = &left[written..];
        }
    }

    pub(super) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.master, rows, columns);
    }

    /// Whether the terminal is as a shell wants it: lines, echo and signals.
    pub(super) fn is_usual(&self) -> bool {
        let modes = tcgetattr(&self.master).expect("modes").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it ends");
    }

    /// Waits until the program has ended; says with which code.
    pub(super) fn code(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status.code();
            }
            assert!(began.elapsed() < TIMEOUT, "it does not end: {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn resize(master: &OwnedFd, ws_row: u16, ws_col: u16) {
    let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("a size");
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
