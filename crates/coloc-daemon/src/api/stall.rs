//! A connection whose other end has stopped reading is given up: it would keep its place for ever.

use super::stream_wrapper::read_through;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// A stream on which no write waits longer than this to be read.
pub(super) struct Stalling<S> {
    stream: S,
    timeout: Duration,
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Stalling { stream, timeout, waits: None }
    }

    /// What a write came to; an error if none has come to anything for too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let timeout = self.timeout;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

read_through!(Stalling);

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(test);
    }

    #[test]
    fn who_does_not_read_is_given_up() {
        run(async {
            let (ours, theirs) = tokio::io::duplex(64);
            let mut ours = Stalling::new(ours, Duration::from_millis(50));
            let error = ours.write_all(&[0; 1000]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            drop(theirs);
        });
    }

    #[test]
    fn who_reads_slowly_is_served() {
        run(async {
            let (ours, mut theirs) = tokio::io::duplex(64);
            let mut ours = Stalling::new(ours, Duration::from_secs(60));
            let reader = tokio::spawn(async move {
                let mut all = Vec::new();
                let mut piece = [0; 7];
                while let Ok(length @ 1..) = theirs.read(&mut piece).await {
                    all.extend_from_slice(&piece[..length]);
                    tokio::task::yield_now().await;
                }
                all.len()
            });
            ours.write_all(&[0; 1000]).await.unwrap();
            ours.shutdown().await.unwrap();
            assert_eq!(reader.await.unwrap(), 1000);
        });
    }
}
