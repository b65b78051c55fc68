//! HTTP/1.1 over one connection, as far as a daemon speaks it: a question with a body, and an answer whose body has a
//! length or comes in chunks.

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The longest head of an answer, in bytes, and the longest line that tells the size of a chunk.
const LONGEST_HEAD: u64 = 64 << 10;
const LONGEST_SIZE: u64 = 256;
/// The status of an answer after which the connection speaks another protocol.
pub(super) const SWITCHED: u16 = 101;
/// A piece of a body is no larger.
const PIECE: usize = 64 << 10;

/// Bytes to a daemon and back.
pub(super) trait Wire: Read + Write + Send {
    fn socket(&self) -> BorrowedFd<'_>;
}

impl Wire for UnixStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Wire for rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.sock.as_fd()
    }
}

/// A connection. One question at a time, each answer read to its end before the next.
pub(super) struct Connection {
    wire: BufReader<Box<dyn Wire>>,
    /// What is left of the answer's body.
    body: Body,
    /// The daemon hangs up after this answer.
    closes: bool,
}

enum Body {
    Exactly(u64),
    /// Chunks, with what is left of this one.
    Chunks(u64),
}

/// What stands before the body of an answer.
pub(super) struct Head {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header by its name, in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn read(text: &str) -> Option<Head> {
        let mut lines = text.lines();
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter(|line| !line.is_empty()).map(header).collect::<Option<_>>()?;
        Some(Head { status, headers })
    }
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Connection {
    pub(super) fn over(wire: impl Wire + 'static) -> Self {
        let wire = BufReader::with_capacity(PIECE, Box::new(wire) as Box<dyn Wire>);
        Connection { wire, body: Body::Exactly(0), closes: false }
    }

    /// To wait for.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.wire.get_ref().socket()
    }

    /// What follows the head of an answer, as it comes.
    pub(super) fn reader(&mut self) -> &mut impl Read {
        &mut self.wire
    }

    /// Where bytes go as they are.
    pub(super) fn writer(&mut self) -> &mut impl Write {
        self.wire.get_mut()
    }

    /// The daemon has hung up, or what it says next is not an answer to the next question.
    pub(super) fn is_over(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let unread = !matches!(self.body, Body::Exactly(0)) || !self.wire.buffer().is_empty();
        let mut socket = [PollFd::from_borrowed_fd(self.socket(), PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.closes || unread || poll(&mut socket, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Asks, and reads the head of the answer.
    pub(super) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Head> {
        // Until the answer has begun, what comes may be anything.
        self.closes = true;
        let mut question = format!("{method} {path} HTTP/1.1\r\nhost: coloc\r\n");
        for (name, value) in headers {
            if value.bytes().any(|byte| byte.is_ascii_control()) {
                return Err(odd("a header of the question has a control character"));
            }
            question.push_str(&format!("{name}: {value}\r\n"));
        }
        question.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut question = question.into_bytes();
        question.extend_from_slice(body);
        let wire = self.wire.get_mut();
        let sent = wire.write_all(&question).and_then(|()| wire.flush());
        // A question that is refused before all of it was sent has an answer nevertheless.
        let head = self.read_head().map_err(|error| sent.err().unwrap_or(error))?;
        let close = |word: &str| word.trim().eq_ignore_ascii_case("close");
        self.closes = head.get("connection").is_some_and(|words| words.split(',').any(close));
        self.body = match (head.get("transfer-encoding"), head.get("content-length")) {
            _ if head.status == SWITCHED => Body::Exactly(0),
            (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Body::Chunks(0),
            (Some(_), _) => return Err(odd("an answer in an unknown coding")),
            (None, length) => {
                let length = length.and_then(|length| length.parse().ok());
                Body::Exactly(length.ok_or_else(|| odd("an answer without a length"))?)
            }
        };
        Ok(head)
    }

    fn read_head(&mut self) -> io::Result<Head> {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            let left = LONGEST_HEAD.saturating_sub(text.len() as u64);
            match patiently(|| (&mut self.wire).take(left).read_line(&mut text))? {
                0 if left == 0 => return Err(odd("the head of an answer without an end")),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
        Head::read(&text).ok_or_else(|| odd("what comes is no HTTP"))
    }

    /// Hands over the next piece of the body; nothing at its end.
    pub(super) fn piece<T>(&mut self, see: impl FnOnce(&[u8]) -> T) -> io::Result<Option<T>> {
        if let Body::Chunks(0) = self.body {
            match self.chunk()? {
                0 => self.body = Body::Exactly(0),
                size => self.body = Body::Chunks(size),
            }
        }
        let (Body::Exactly(left) | Body::Chunks(left)) = self.body;
        if left == 0 {
            return Ok(None);
        }
        patiently(|| self.wire.fill_buf().map(|_| ()))?;
        let there = self.wire.buffer();
        let length = there.len().min(left.try_into().unwrap_or(usize::MAX));
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let seen = see(&there[..length]);
        self.wire.consume(length);
        let (Body::Exactly(left) | Body::Chunks(left)) = &mut self.body;
        *left -= length as u64;
        if matches!(self.body, Body::Chunks(0)) && !self.line()?.is_empty() {
            return Err(odd("a chunk that is longer than its size"));
        }
        Ok(Some(seen))
    }

    /// The size of the next chunk; what follows the last is read and of no use.
    fn chunk(&mut self) -> io::Result<u64> {
        let line = self.line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| odd("a chunk without a size"))?;
        if size == 0 {
            while !self.line()?.is_empty() {}
        }
        Ok(size)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        patiently(|| (&mut self.wire).take(LONGEST_SIZE).read_line(&mut line))?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(odd("a chunk without an end")),
        }
    }
}

/// A signal that comes while a daemon is waited for is seen to afterwards.
fn patiently<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(Error::new(ErrorKind::TimedOut, "it says nothing for two minutes"));
            }
            done => return done,
        }
    }
}

/// How long a connection waits for the next byte.
pub(super) fn set_timeout(socket: impl AsFd, longest: Duration) -> io::Result<()> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(longest))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client makes of these bytes, read to their end.
    fn answer(said: &[u8]) -> io::Result<(u16, Vec<u8>, bool)> {
        let (ours, mut theirs) = UnixStream::pair()?;
        theirs.write_all(said)?;
        theirs.shutdown(std::net::Shutdown::Write)?;
        let mut connection = Connection::over(ours);
        let head = connection.ask("POST", "/x", &[("accept", "a")], b"body")?;
        let mut body = Vec::new();
        while connection.piece(|piece| body.extend_from_slice(piece))?.is_some() {}
        let mut asked = Vec::new();
        let closes = connection.closes;
        drop(connection);
        theirs.read_to_end(&mut asked)?;
        assert!(asked.ends_with(b"content-length: 4\r\n\r\nbody"));
        Ok((head.status, body, closes))
    }

    #[test]
    fn bodies_have_a_length_or_chunks() {
        let exact = answer(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef").expect("read");
        assert_eq!(exact, (200, b"abc".to_vec(), false));
        let chunks = b"HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\nconnection: Close\r\n\r\n\
                       2\r\nab\r\n1;x=y\r\nc\r\n0\r\nx: y\r\n\r\n";
        assert_eq!(answer(chunks).expect("read"), (404, b"abc".to_vec(), true));
        let none = answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("read");
        assert_eq!(none, (200, Vec::new(), false));
    }

    #[test]
    fn what_is_cut_short_or_no_http_is_an_error() {
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(LONGEST_HEAD as usize));
        for wrong in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
            &long,
            chunked,
            &format!("{chunked}2\r\nab"),
            &format!("{chunked}zz\r\n"),
            &format!("{chunked}ffffffffffffffffff\r\n"),
            &format!("{chunked}3\r\nabcd\r\n"),
        ] {
            assert!(answer(wrong.as_bytes()).is_err(), "{}", &wrong[..wrong.len().min(80)]);
        }
    }

    #[test]
    fn a_connection_is_over_when_the_other_end_hung_up() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let connection = Connection::over(ours);
        assert!(!connection.is_over());
        drop(theirs);
        assert!(connection.is_over());
    }
}
