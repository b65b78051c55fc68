//! Waiting for a task, for what is typed and for signals at once.

use crate::error::CliError;
use coloc_api::client::Channel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

/// Waits until the task says something or can be told more, a signal has come, standard input has something if that is of interest,
/// or the time has come. Says whether there is something to read.
pub(super) fn wait(
    channel: &Channel,
    signals: &[&UnixStream],
    reads: bool,
    until: Instant,
) -> Result<bool, CliError> {
    let stdin = io::stdin();
    let flags = match channel.has_unsent() {
        true => PollFlags::IN | PollFlags::OUT,
        false => PollFlags::IN,
    };
    let mut watched = vec![PollFd::from_borrowed_fd(channel.socket(), flags)];
    watched.extend(signals.iter().map(|stream| PollFd::new(*stream, PollFlags::IN)));
    let reads = reads && !channel.is_full();
    if reads {
        watched.push(PollFd::new(&stdin, PollFlags::IN));
    }
    let span = until.saturating_duration_since(Instant::now());
    let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
    match poll(&mut watched, Some(&span)) {
        Ok(_) => Ok(reads && watched.last().is_some_and(|stdin| !stdin.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(failed(error.into())),
    }
}

/// A stream with a byte in it once that signal was sent.
pub(super) fn heard(signal: i32) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, writer)?;
    Ok(reader)
}

/// Whether that signal was sent since the last look.
pub(super) fn has_come(mut signal: &UnixStream) -> bool {
    io::Read::read(&mut signal, &mut [0; 64]).is_ok_and(|signals| signals > 0)
}

/// The user's terminal, or what stands in its place, does not do what it should.
pub(super) fn failed(source: io::Error) -> CliError {
    CliError::Write { file: PathBuf::from("the terminal"), source }
}
