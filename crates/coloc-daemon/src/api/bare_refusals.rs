//! Refusals that hyper makes by itself, of what is no HTTP or too long, have no body. Here they get the one that every
//! other refusal has.

use super::stream_wrapper::read_through;
use coloc_api::{SCHEMA, SCHEMA_HEADER};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// A stream on which a refusal without words gets some.
pub(super) struct BareRefusals<S> {
    stream: S,
    /// What is written instead, and how much of it is.
    instead: Option<(Vec<u8>, usize)>,
    /// What passes is not HTTP any more.
    speaks_frames: Arc<AtomicBool>,
}

impl<S> BareRefusals<S> {
    pub(super) fn new(stream: S, speaks_frames: Arc<AtomicBool>) -> Self {
        BareRefusals { stream, instead: None, speaks_frames }
    }
}

/// A whole answer in the form of our refusals.
pub(super) fn refusal(status: &str, code: &str, error: &str) -> Vec<u8> {
    let body = serde_json::json!({ "schema": SCHEMA, "error": error, "code": code }).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{SCHEMA_HEADER}: {SCHEMA}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// What is to be written in place of these bytes, if they are all of an answer by hyper itself: all of ours name their
/// schema.
fn with_body(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() < 1024)?;
    let status = text.strip_prefix("HTTP/1.1 ").or_else(|| text.strip_prefix("HTTP/1.0 "))?;
    let (status, head) = status.split_once("\r\n")?;
    let empty = head.contains("content-length: 0\r\n") && head.ends_with("\r\n\r\n");
    if !empty || !status.starts_with('4') || head.contains(SCHEMA_HEADER) {
        return None;
    }
    let error = match status.get(..3)? {
        "414" => "the path is too long",
        "431" => "the head of the request is too large: at most 128 KiB, and 100 headers",
        _ => "this is no HTTP request",
    };
    Some(refusal(status, "malformed", error))
}

impl<S: AsyncWrite + Unpin> BareRefusals<S> {
    /// Writes what is to be written instead; says how many of these bytes that was.
    fn write_instead(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<Option<usize>>> {
        if self.instead.is_none() && !self.speaks_frames.load(Ordering::Acquire) {
            self.instead = with_body(bytes).map(|instead| (instead, 0));
        }
        let Some((instead, done)) = &mut self.instead else { return Poll::Ready(Ok(None)) };
        while *done < instead.len() {
            let written =
                ready!(Pin::new(&mut self.stream).poll_write(context, &instead[*done..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *done += written;
        }
        self.instead = None;
        Poll::Ready(Ok(Some(bytes.len())))
    }
}

read_through!(BareRefusals);

impl<S: AsyncWrite + Unpin> AsyncWrite for BareRefusals<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match ready!(self.write_instead(context, bytes))? {
            Some(written) => Poll::Ready(Ok(written)),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut said = parts.iter().filter(|part| !part.is_empty());
        if let (Some(only), None) = (said.next(), said.next())
            && let Some(written) = ready!(self.write_instead(context, only))?
        {
            return Poll::Ready(Ok(written));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_without_words_gets_some() {
        let bare = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                    date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        let text = String::from_utf8(with_body(bare.as_bytes()).expect("words")).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        let body: coloc_api::answer::ApiError = serde_json::from_str(body).expect("our form");
        assert_eq!(body.code, "malformed");
        let ours = bare.replace("date:", "coloc-schema: 1\r\ndate:");
        let fine = bare.replace("431", "200");
        let more = format!("{bare}more");
        let long = format!("{}{bare}", " ".repeat(2000));
        for other in [ours.as_str(), &fine, &more, &long, "HTTP/1.1 4", ""] {
            assert!(with_body(other.as_bytes()).is_none(), "{other}");
        }
    }
}
