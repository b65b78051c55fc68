//! Sending a task what this program reads from standard input.

use super::waiting::wait;
use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::live::reconnect::Reconnect;
use crate::output::visible::visible;
use coloc_api::answer::code::NO_SUCH_TASK;
use coloc_api::client::{Channel, ClientError};
use coloc_api::frame::{Frame, LARGEST, PING};
use coloc_model::TaskState;
use rustix::fs::FileType;
use std::io;
use std::time::{Duration, Instant};

/// So much may be on its way: it is kept, to be sent again where a daemon lost it.
const WINDOW: usize = 4 * LARGEST;
/// How often a task is looked at that has not started.
const PERIOD: Duration = Duration::from_millis(100);
/// Refusals that say that what is left of the input is of no use.
const IS_OVER: [&str; 5] = ["ended", "fed", "no_input", "not_yours", NO_SUCH_TASK];

/// Whether standard input is one that a task should read: a pipe, a file or a socket.
pub(crate) fn is_fed() -> bool {
    let kind = rustix::fs::fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile | FileType::Socket))
}

/// Sends a task its input on a thread of its own, through restarts of the daemon, until it has read enough or there is no more.
pub(crate) fn feed(socket: SocketArg, reconnect: Reconnect, id: u32) {
    std::thread::spawn(move || {
        if let Err(error) = Feed::default().run(&socket, reconnect, id) {
            let error = visible(&error.to_string()).into_owned();
            eprintln!("coloc: the standard input of task {id} is not sent any more: {error}");
        }
    });
}

/// What was read, as far as the task has not taken it.
#[derive(Default)]
struct Feed {
    unread: Vec<u8>,
    /// The position of its first byte.
    taken: u64,
    is_over: bool,
}

impl Feed {
    fn run(&mut self, socket: &SocketArg, reconnect: Reconnect, id: u32) -> Result<(), CliError> {
        let mut client = socket.connect()?;
        loop {
            let task = reconnect.ask(&mut client, |client| client.show(id))?.task;
            match task.state {
                // A second attempt has no input.
                state if state.is_over() || task.attempts > 1 => return Ok(()),
                TaskState::Running => {}
                _ => {
                    std::thread::sleep(PERIOD);
                    continue;
                }
            }
            let sent = reconnect
                .again(|| Ok(socket.connect()?.feed(id)?))
                .and_then(|channel| self.send(channel));
            match sent {
                Err(CliError::Client(ClientError::Refused { code, .. }))
                    if IS_OVER.contains(&code.as_str()) =>
                {
                    return Ok(());
                }
                // Its daemon went away, or it has just begun or ended.
                Err(CliError::Client(error))
                    if error.may_pass() || matches!(error, ClientError::Refused { .. }) =>
                {
                    std::thread::sleep(PERIOD);
                }
                sent => return sent,
            }
        }
    }

    /// Sends until the task wants no more.
    fn send(&mut self, mut channel: Channel) -> Result<(), CliError> {
        // Where the task is says how much of what was read has to be sent again.
        let mut sent: Option<usize> = None;
        let (mut told_end, mut ping) = (false, Instant::now() + PING);
        loop {
            let reads = sent.is_some() && !self.is_over && self.unread.len() < WINDOW;
            if wait(&channel, &[], reads, ping)? {
                self.read();
            }
            if Instant::now() >= ping {
                ping = Instant::now() + PING;
                channel.send(&Frame::Ping)?;
            }
            channel.flush()?;
            while let Some(frame) = channel.receive()? {
                match frame {
                    Frame::At(position) => {
                        let more = position.saturating_sub(self.taken) as usize;
                        let more = more.min(self.unread.len());
                        self.unread.drain(..more);
                        self.taken = position;
                        sent = Some(sent.map_or(0, |sent| sent.saturating_sub(more)));
                    }
                    Frame::Eof => return Ok(()),
                    _ => {}
                }
            }
            let Some(sent) = &mut sent else { continue };
            if *sent < self.unread.len() && !channel.is_full() {
                channel.send(&Frame::Input(self.unread[*sent..].to_vec()))?;
                *sent = self.unread.len();
            }
            if self.is_over && *sent == self.unread.len() && !told_end {
                channel.send(&Frame::Eof)?;
                told_end = true;
            }
        }
    }

    fn read(&mut self) {
        let mut piece = vec![0; LARGEST / 4];
        match rustix::io::read(io::stdin(), &mut piece) {
            Ok(length @ 1..) => self.unread.extend_from_slice(&piece[..length]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Ok(0) | Err(_) => self.is_over = true,
        }
    }
}
