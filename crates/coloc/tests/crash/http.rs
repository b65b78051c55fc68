//! Requests to a daemon that may die at any moment.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A daemon that lives answers sooner, on a busy machine too.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What came of a request.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Answer {
    /// It was never sent: nothing listens there.
    Unsent,
    /// It was sent, and the client does not know whether it counted.
    Unanswered,
    /// It counts.
    Done(Value),
    /// It does not.
    Refused { code: String, message: String },
}

/// Sends one request on a connection of its own.
pub(super) fn ask(socket: &Path, line: &str, body: Option<&Value>) -> Answer {
    let Ok(mut stream) = UnixStream::connect(socket) else { return Answer::Unsent };
    let timeout = stream.set_read_timeout(Some(TIMEOUT));
    timeout.and_then(|()| stream.set_write_timeout(Some(TIMEOUT))).expect("sockets have timeouts");
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: coloc\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut reply = Vec::new();
    let _ = stream.write_all(request.as_bytes());
    // A daemon that dies hangs up: what was said before is looked at below.
    let _ = stream.read_to_end(&mut reply);
    read(&reply).unwrap_or(Answer::Unanswered)
}

/// An answer, if all of it is there: half a JSON document is none.
fn read(reply: &[u8]) -> Option<Answer> {
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&reply[..end]).to_lowercase();
    let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
    let rest = &reply[end + 4..];
    let chunked = head.contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(rest)? } else { rest.to_vec() };
    let body: Value = serde_json::from_slice(&body).ok()?;
    Some(match status {
        200..300 => Answer::Done(body),
        _ => Answer::Refused {
            code: body["code"].as_str().unwrap_or("").to_owned(),
            message: body["error"].as_str().unwrap_or("").to_owned(),
        },
    })
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 4 + size..)?;
    }
}
