//! Streams around other streams.

/// A stream that changes what is written is read as the one within it.
macro_rules! read_through {
    ($outer:ident) => {
        impl<S: tokio::io::AsyncRead + Unpin> tokio::io::AsyncRead for $outer<S> {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
                into: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.stream).poll_read(context, into)
            }
        }
    };
}

pub(super) use read_through;
