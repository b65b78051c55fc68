//! A command inside a task's allocation whose streams are this program's.

use super::session::End;
use super::waiting::{failed, has_come, heard, wait};
use crate::error::CliError;
use coloc_api::client::Channel;
use coloc_api::frame::{Frame, LARGEST, PING};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A signal that comes again so soon is meant for this program.
const INSISTS: Duration = Duration::from_secs(1);

/// Passes streams and signals through until the command ends; a connection that breaks is an error.
pub(crate) fn pipe_through(mut channel: Channel, stdin: bool) -> Result<End, CliError> {
    let mut signals = Vec::new();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signals.push((signal, heard(signal).map_err(failed)?));
    }
    let streams: Vec<&UnixStream> = signals.iter().map(|(_, stream)| stream).collect();
    let mut last_signal: Option<Instant> = None;
    let (mut reads, mut ping) = (stdin, Instant::now() + PING);
    if !reads {
        channel.send(&Frame::Eof)?;
    }
    loop {
        let is_readable = wait(&channel, &streams, reads, ping)?;
        for (signal, stream) in &signals {
            if has_come(stream) {
                if last_signal.is_some_and(|last| last.elapsed() < INSISTS) {
                    std::process::exit(128 + signal);
                }
                last_signal = Some(Instant::now());
                channel.send(&Frame::Signal(*signal))?;
            }
        }
        if Instant::now() >= ping {
            ping = Instant::now() + PING;
            channel.send(&Frame::Ping)?;
        }
        if is_readable {
            let mut piece = vec![0; LARGEST / 4];
            match rustix::io::read(io::stdin(), &mut piece) {
                Ok(length @ 1..) => channel.send(&Frame::Input(piece[..length].to_vec()))?,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Ok(0) | Err(_) => {
                    reads = false;
                    channel.send(&Frame::Eof)?;
                }
            }
        }
        channel.flush()?;
        while let Some(frame) = channel.receive()? {
            match frame {
                Frame::Output(bytes) => write(&mut io::stdout().lock(), &bytes)?,
                Frame::Errors(bytes) => write(&mut io::stderr().lock(), &bytes)?,
                Frame::Exit(code) => return Ok(End::Ended(code)),
                // It reads no more.
                Frame::Eof => reads = false,
                _ => {}
            }
        }
    }
}

fn write(to: &mut impl io::Write, bytes: &[u8]) -> Result<(), CliError> {
    to.write_all(bytes).and_then(|()| to.flush()).map_err(failed)
}
