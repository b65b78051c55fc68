//! A connection that was upgraded: frames both ways, without waiting for either.

use super::http::{Connection, SWITCHED};
use super::{Client, ClientError, JSON, broken, garbled};
use crate::frame::{Frame, LARGEST, PROTOCOL};
use crate::request::{AttachRequest, ExecRequest};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::BorrowedFd;

/// No more is taken from the caller while so much waits to be sent.
const MOST_UNSENT: usize = 4 * LARGEST;

/// Frames to a task and back.
pub struct Channel {
    connection: Connection,
    come: Vec<u8>,
    unsent: Vec<u8>,
}

impl Client {
    /// The terminal of a task. The connection is used up.
    pub fn attach(self, id: u32, request: &AttachRequest) -> Result<Channel, ClientError> {
        let AttachRequest { read_only, rows, columns, from } = request;
        let mut path = format!("/v1/tasks/{id}/attach?read_only={read_only}");
        for (name, value) in [("rows", rows), ("columns", columns)] {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={value}"));
            }
        }
        if let Some(from) = from {
            path.push_str(&format!("&from={from}"));
        }
        self.upgrade("GET", &path, &[])
    }

    /// A command inside a task's allocation. The connection is used up.
    pub fn exec(self, id: u32, request: &ExecRequest) -> Result<Channel, ClientError> {
        let body = serde_json::to_vec(request).map_err(garbled)?;
        self.upgrade("POST", &format!("/v1/tasks/{id}/exec"), &body)
    }

    /// The standard input of a task that was submitted with one. The connection is used up.
    pub fn feed(self, id: u32) -> Result<Channel, ClientError> {
        self.upgrade("GET", &format!("/v1/tasks/{id}/input"), &[])
    }

    fn upgrade(mut self, method: &str, path: &str, body: &[u8]) -> Result<Channel, ClientError> {
        let headers = [("accept", JSON), ("connection", "upgrade"), ("upgrade", PROTOCOL)];
        if self.ask(method, path, &headers, body)?.status != SWITCHED {
            return Err(ClientError::Garbled("the daemon does not upgrade".to_owned()));
        }
        rustix::io::ioctl_fionbio(self.connection.socket(), true).map_err(broken)?;
        Ok(Channel { connection: self.connection, come: Vec::new(), unsent: Vec::new() })
    }
}

impl Channel {
    /// To wait for.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.connection.socket()
    }

    /// Whether something waits to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether more should be sent only later.
    pub fn is_full(&self) -> bool {
        self.unsent.len() >= MOST_UNSENT
    }

    /// Sends a frame, now or when there is room.
    pub fn send(&mut self, frame: &Frame) -> Result<(), ClientError> {
        frame.write(&mut self.unsent);
        self.flush()
    }

    /// Sends what waits, as far as there is room. A daemon that takes nothing any more may have said why: what it said is read first,
    /// and that it hung up is found there.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        let wire = self.connection.writer();
        while !self.unsent.is_empty() {
            match wire.write(&self.unsent) {
                Ok(sent @ 1..) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Ok(0) | Err(_) => self.unsent.clear(),
            }
        }
        match wire.flush() {
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(broken(error)),
            _ => Ok(()),
        }
    }

    /// The next frame, if one has come.
    pub fn receive(&mut self) -> Result<Option<Frame>, ClientError> {
        loop {
            if let Some(frame) = Frame::take(&mut self.come).map_err(garbled)? {
                return Ok(Some(frame));
            }
            let mut piece = [0; 16 << 10];
            match self.connection.reader().read(&mut piece) {
                Ok(0) => return Err(broken("the connection ended")),
                Ok(length) => self.come.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(broken(error)),
            }
        }
    }
}
