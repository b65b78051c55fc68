//! HTTP by hand, so that what another program would see is what is tested.

use super::home::Home;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// An answer as it came.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    pub(super) fn read(mut stream: impl Read) -> Self {
        let mut all = Vec::new();
        // Some peers are hung up on: what was said before counts.
        let _ = stream.read_to_end(&mut all);
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(all.len());
        let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let rest = all.get(end + 4..).unwrap_or_default();
        let chunked = head.contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(rest) } else { rest.to_vec() };
        Reply { status, head, body }
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    body
}

/// Asks over any stream; lines of headers end with `\r\n`.
pub(super) fn ask_over(stream: impl Read + Write, line: &str, headers: &str, body: &[u8]) -> Reply {
    ask_host("coloc", stream, line, headers, body)
}

/// The same by another name of the daemon's machine.
pub(super) fn ask_host(
    host: &str,
    mut stream: impl Read + Write,
    line: &str,
    headers: &str,
    body: &[u8],
) -> Reply {
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n"
    );
    // A daemon that refuses early may have stopped listening.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    Reply::read(stream)
}

/// Asks a daemon over its socket: `ask(&home, "GET /v1/gpus", "", b"")`.
pub(super) fn ask(home: &Home, line: &str, headers: &str, body: &[u8]) -> Reply {
    ask_over(UnixStream::connect(home.socket()).expect("a place"), line, headers, body)
}
