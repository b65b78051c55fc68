//! The terminal: taken for a while, and given back whatever happens. Only cells that changed are written, and nothing
//! is ever cleared as a whole.

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui_core::backend::Backend as _;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_crossterm::CrosstermBackend;
use std::io::{self, Stdout, Write as _};

/// A terminal that is ours until this is dropped.
pub(super) struct Screen {
    backend: CrosstermBackend<Stdout>,
    /// What the terminal shows.
    shown: Buffer,
}

/// Gives the terminal back. Twice does no harm.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), EndSynchronizedUpdate, LeaveAlternateScreen, Show);
}

/// A buffer that differs from everything in every cell: a character that stands for none.
fn nothing(area: Rect) -> Buffer {
    Buffer::filled(area, Cell::new("\u{e000}"))
}

impl Screen {
    pub(super) fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let before = std::panic::take_hook();
        // What is said of a mistake of ours is to be read.
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        let shown = nothing(Rect::default());
        let screen = Screen { backend: CrosstermBackend::new(io::stdout()), shown };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// The terminal's size now.
    pub(super) fn area(&self) -> io::Result<Rect> {
        let (width, height) = crossterm::terminal::size()?;
        Ok(Rect::new(0, 0, width, height))
    }

    /// Everything is written anew at the next drawing.
    pub(super) fn forget(&mut self) {
        self.shown = nothing(self.shown.area);
    }

    /// Writes the cells that differ.
    pub(super) fn show(&mut self, next: Buffer) -> io::Result<()> {
        if next.area != self.shown.area {
            self.shown = nothing(next.area);
        }
        let changed = self.shown.diff(&next);
        if changed.is_empty() {
            return Ok(());
        }
        execute!(io::stdout(), BeginSynchronizedUpdate)?;
        self.backend.draw(changed.into_iter())?;
        execute!(io::stdout(), EndSynchronizedUpdate)?;
        io::stdout().flush()?;
        self.shown = next;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}
