//! `coloc logs`: what a task says.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::live::reconnect::Reconnect;
use crate::output::sanitize::Sanitizer;
use clap::Args;
use coloc_api::client::Client;
use coloc_model::TaskState;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// How often a log is asked for more.
const PERIOD: Duration = Duration::from_millis(100);

/// Print a task's output
#[derive(Args, Debug)]
pub(crate) struct Logs {
    /// Go on until the task has ended
    #[arg(short, long)]
    follow: bool,
    /// Only the last so many lines
    #[arg(short = 'n', long, visible_alias = "tail", value_name = "LINES")]
    lines: Option<usize>,
    /// What it said in this attempt, the first being 1 [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Also what a terminal would obey, such as commands to its clipboard; where it is not shown on one, everything is written
    /// as it is
    #[arg(long)]
    raw: bool,
    /// The task
    task: Selection,
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
}

impl Logs {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let follow = self.follow.then_some(self.reconnect);
        for id in resolve(&mut client, &[self.task])? {
            let part = Wish { attempt: self.attempt, lines: self.lines };
            copy(&mut client, id, part, follow, self.raw)?;
        }
        Ok(())
    }
}

/// What of a log is wanted.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Wish {
    /// From this attempt on; the last unless it is said.
    pub(crate) attempt: Option<u32>,
    /// Of what is there already, the last so many lines.
    pub(crate) lines: Option<usize>,
}

/// The end of a log, as far as it was read: what comes before its last lines is forgotten.
struct Tail {
    lines: usize,
    bytes: Vec<u8>,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let begins = self.begins();
        self.bytes.drain(..begins);
    }

    /// Where the last lines begin. The last may have no end yet.
    fn begins(&self) -> usize {
        let whole = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        if self.lines == 0 {
            return self.bytes.len();
        }
        let mut ends = whole.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        ends.nth(self.lines - 1).map_or(0, |(at, _)| at + 1)
    }
}

/// Copies a log to standard output, without what a terminal would obey unless it is to be raw, to its end or, through all attempts from the given one on and through restarts of
/// the daemon, to the task's.
pub(crate) fn copy(
    client: &mut Client,
    id: u32,
    wish: Wish,
    follow: Option<Reconnect>,
    raw: bool,
) -> Result<(), CliError> {
    let mut filter = Sanitizer::for_stdout(raw);
    let copied = copy_parts(client, id, wish, follow, &mut filter);
    // What is shown after it has the colours of before, whatever happened.
    let end = filter.as_mut().map_or(&b""[..], Sanitizer::end);
    let mut out = std::io::stdout().lock();
    let ended = out.write_all(end).and_then(|()| out.flush());
    copied.and(ended.map_err(failed))
}

fn failed(source: std::io::Error) -> CliError {
    CliError::Write { file: PathBuf::from("standard output"), source }
}

fn copy_parts(
    client: &mut Client,
    id: u32,
    Wish { mut attempt, lines }: Wish,
    follow: Option<Reconnect>,
    filter: &mut Option<Sanitizer>,
) -> Result<(), CliError> {
    let mut offset = 0;
    let mut tail = lines.map(|lines| Tail { lines, bytes: Vec::new() });
    loop {
        let part = match follow {
            Some(reconnect) => reconnect.ask(client, |client| client.log(id, attempt, offset))?,
            None => client.log(id, attempt, offset)?,
        };
        if part.offset > offset && tail.is_none() {
            eprintln!(
                "coloc: {} bytes of output are gone: its log was too long",
                part.offset - offset
            );
        }
        (offset, attempt) = (part.offset + part.bytes.len() as u64, Some(part.attempt));
        match &mut tail {
            Some(tail) if !part.bytes.is_empty() => tail.push(&part.bytes),
            _ => {
                // What was there when it was asked for has been read, or all of it is wanted.
                let last = tail.take().map(|tail| tail.bytes);
                show(last.as_ref().unwrap_or(&part.bytes), filter)?;
            }
        }
        if !part.bytes.is_empty() {
            continue;
        }
        // Where all attempts write to one file, there is but one to follow.
        if follow.is_some() && part.attempt > 0 && part.attempts > part.attempt {
            eprintln!("coloc: task {id} is started again, attempt {}", part.attempt + 1);
            (offset, attempt) = (0, Some(part.attempt + 1));
            continue;
        }
        if follow.is_none() || part.state.is_some_and(TaskState::is_over) {
            return Ok(());
        }
        std::thread::sleep(PERIOD);
    }
}

/// Writes a part of a log to standard output.
fn show(bytes: &[u8], filter: &mut Option<Sanitizer>) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let shown = filter.as_mut().map(|filter| filter.filter(bytes));
    let shown = shown.as_deref().unwrap_or(bytes);
    out.write_all(shown).and_then(|()| out.flush()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(lines: usize, parts: &[&str]) -> String {
        let mut tail = Tail { lines, bytes: Vec::new() };
        parts.iter().for_each(|part| tail.push(part.as_bytes()));
        String::from_utf8(tail.bytes).expect("text")
    }

    #[test]
    fn the_last_lines_are_kept_however_they_come() {
        assert_eq!(tail(2, &["a\nb\n", "c\nd", "e\n"]), "c\nde\n");
        assert_eq!(tail(2, &["a\nb\nc"]), "b\nc", "a line without an end is one");
        assert_eq!(tail(1, &["a\n", "\n"]), "\n", "an empty line is one");
        assert_eq!(tail(9, &["a\nb\n"]), "a\nb\n");
        assert_eq!(tail(0, &["a\nb"]), "");
    }
}
