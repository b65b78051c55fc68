//! A user at a task's terminal.

use super::detach::{DetachKeys, Scanner};
use super::modes::Modes;
use super::own::{Raw, restore, show, size};
use super::waiting::{failed, has_come, heard, wait};
use crate::error::CliError;
use crate::output::sanitize::Sanitizer;
use coloc_api::client::{Channel, ClientError};
use coloc_api::frame::{Frame, PING};
use signal_hook::consts::SIGWINCH;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// The most that is read of what is typed at once.
const PIECE: usize = 16 << 10;

/// Why a session is over.
#[derive(Debug)]
pub(crate) enum End {
    /// The program ended, with this code where there is one.
    Ended(i32),
    /// The user typed the keys for it.
    Detached,
    /// The connection broke.
    Lost(ClientError),
}

/// A user's terminal that shows a task's. It can be connected again and goes on where it was.
pub(crate) struct Session {
    keys: Scanner,
    /// Neither keys nor the size of the window go to the task.
    read_only: bool,
    resized: UnixStream,
    /// How much of what was printed this session has seen.
    position: Option<u64>,
    is_typed: bool,
}

/// What was printed before: its text and colours are shown, and the modes are switched on that are on at its end.
#[derive(Default)]
struct Replay {
    text: Sanitizer,
    modes: Modes,
    is_new: bool,
}

impl Session {
    pub(crate) fn new(keys: &DetachKeys, read_only: bool) -> Result<Self, CliError> {
        let resized = heard(SIGWINCH).map_err(failed)?;
        let is_typed = super::has_input();
        Ok(Session { keys: Scanner::new(keys), read_only, resized, position: None, is_typed })
    }

    /// What this session has seen.
    pub(crate) fn position(&self) -> Option<u64> {
        self.position
    }

    /// Another attempt prints from the beginning.
    pub(crate) fn begin_anew(&mut self) {
        self.position = None;
    }

    /// Shows the terminal until it ends or the user leaves. The user's own is as it was afterwards.
    pub(crate) fn run(&mut self, mut channel: Channel) -> Result<End, CliError> {
        let raw = match self.is_typed {
            true => Some(Raw::new().map_err(failed)?),
            false => None,
        };
        let end = self.converse(&mut channel);
        drop(raw);
        restore();
        match end {
            Err(CliError::Client(error)) => Ok(End::Lost(error)),
            end => end,
        }
    }

    fn converse(&mut self, channel: &mut Channel) -> Result<End, CliError> {
        if let Some(size) = size().filter(|_| !self.read_only) {
            channel.send(&Frame::Resize(size))?;
        }
        let mut ping = Instant::now() + PING;
        let mut replay = Replay::default();
        loop {
            let until = self.keys.due().map_or(ping, |due| due.min(ping));
            let has_typed = wait(channel, &[&self.resized], self.is_typed, until)?;
            if has_come(&self.resized)
                && let Some(size) = size().filter(|_| !self.read_only)
            {
                channel.send(&Frame::Resize(size))?;
            }
            let now = Instant::now();
            if now >= ping {
                ping = now + PING;
                channel.send(&Frame::Ping)?;
            }
            let late = self.keys.release(now);
            self.send(channel, late)?;
            if has_typed {
                let (typed, is_over) = self.typed(now)?;
                self.send(channel, typed)?;
                if is_over {
                    return Ok(End::Detached);
                }
            }
            channel.flush()?;
            while let Some(frame) = channel.receive()? {
                if let Some(end) = self.hear(frame, &mut replay)? {
                    return Ok(end);
                }
            }
            if std::mem::take(&mut replay.is_new) {
                show(&replay.modes.redo()).map_err(failed)?;
            }
        }
    }

    fn hear(&mut self, frame: Frame, replay: &mut Replay) -> Result<Option<End>, CliError> {
        match frame {
            Frame::Output(bytes) => {
                self.position = self.position.map(|position| position + bytes.len() as u64);
                show(&bytes).map_err(failed)?;
            }
            // What was printed before may have asked the terminal questions, whose answers would be typed now.
            Frame::Replay(bytes) => {
                self.position = self.position.map(|position| position + bytes.len() as u64);
                replay.is_new = true;
                replay.modes.see(&bytes);
                let mut shown = replay.text.filter(&bytes);
                shown.extend_from_slice(replay.text.end());
                show(&shown).map_err(failed)?;
            }
            Frame::At(position) => {
                let missed = self.position.and_then(|seen| position.checked_sub(seen));
                if let Some(missed @ 1..) = missed {
                    let told =
                        format!("\r\ncoloc: {missed} bytes were printed too fast to be shown\r\n");
                    show(told.as_bytes()).map_err(failed)?;
                }
                self.position = Some(position);
            }
            Frame::Exit(code) => return Ok(Some(End::Ended(code))),
            _ => {}
        }
        Ok(None)
    }

    fn typed(&mut self, now: Instant) -> Result<(Vec<u8>, bool), CliError> {
        let mut piece = vec![0; PIECE];
        match rustix::io::read(io::stdin(), &mut piece) {
            // The terminal is gone, and with it the user.
            Ok(0) | Err(rustix::io::Errno::IO) => Ok((Vec::new(), true)),
            Ok(length) => Ok(self.keys.scan(&piece[..length], now)),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok((Vec::new(), false)),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn send(&self, channel: &mut Channel, typed: Vec<u8>) -> Result<(), CliError> {
        match typed.is_empty() || self.read_only {
            true => Ok(()),
            false => Ok(channel.send(&Frame::Input(typed))?),
        }
    }
}
