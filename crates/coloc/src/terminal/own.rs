//! The user's terminal: raw while it shows a task's, and as it was afterwards, however this program ends.

use super::modes::Modes;
use coloc_api::spec::TerminalSize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How the terminal was before, while it is raw, and what was switched on in it. There is one terminal, and whatever ends this program
/// has to leave it well.
static OWN: Mutex<Own> = Mutex::new(Own { before: None, modes: Modes::new(), in_a_line: false });

struct Own {
    before: Option<Termios>,
    modes: Modes,
    /// What was shown last is no end of a line.
    in_a_line: bool,
}

fn own() -> MutexGuard<'static, Own> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a user types here.
pub(crate) fn has_input() -> bool {
    io::stdin().is_terminal()
}

/// The size of the window; `None` without one.
pub(crate) fn size() -> Option<TerminalSize> {
    let size = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin())).ok()?;
    let TerminalSize { rows, columns } = TerminalSize { rows: size.ws_row, columns: size.ws_col };
    (rows > 0 && columns > 0).then_some(TerminalSize { rows, columns })
}

/// The terminal is raw as long as this is there: every key goes to the program inside.
pub(super) struct Raw(());

impl Raw {
    pub(super) fn new() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        own().before = Some(before);
        let raw = tcsetattr(&stdin, OptionalActions::Drain, &raw);
        raw.inspect_err(|_| restore())?;
        Ok(Raw(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back, if it is raw.
pub(super) fn restore() {
    let mut own = own();
    if let Some(before) = own.before.take() {
        let mut undo = own.modes.undo();
        if std::mem::take(&mut own.in_a_line) {
            undo.extend_from_slice(b"\r\n");
        }
        let mut out = io::stdout().lock();
        let _ = out.write_all(&undo).and_then(|()| out.flush());
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &before);
    }
}

/// Shows what a program prints.
pub(super) fn show(bytes: &[u8]) -> io::Result<()> {
    let mut own = own();
    own.modes.see(bytes);
    own.in_a_line = bytes.last().map_or(own.in_a_line, |&last| last != b'\n');
    drop(own);
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Does something when a signal would end this program, which then ends as if it had, with its terminal as it was.
pub(crate) fn on_leaving(farewell: impl Fn(i32) + Send + Sync + 'static) {
    let farewell = std::sync::Arc::new(farewell);
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // Without this, a signal ends this program all the same, only in silence.
        let Ok((mut reader, writer)) = UnixStream::pair() else { return };
        if signal_hook::low_level::pipe::register(signal, writer).is_err() {
            return;
        }
        let farewell = farewell.clone();
        std::thread::spawn(move || {
            if reader.read_exact(&mut [0]).is_ok() {
                restore();
                farewell(signal);
                std::process::exit(128 + signal);
            }
        });
    }
}
