//! The common part of the two layers that read ahead, below TLS and above it.

/// Makes a layer that reads ahead a stream. Its reads take from the buffer that it offers by `AsyncBufRead`. Its writes go straight to the
/// layer below, the named field. `$below` is what that layer has to be for reading.
macro_rules! reads_ahead_and_writes_through {
    ($layer:ident, $inner:ident, $below:path) => {
        impl<S: $below + Unpin> tokio::io::AsyncRead for $layer<S> {
            fn poll_read(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                use tokio::io::AsyncBufRead;
                let read = std::task::ready!(self.as_mut().poll_fill_buf(cx))?;
                let taken = read.len().min(buf.remaining());
                buf.put_slice(&read[..taken]);
                self.consume(taken);
                std::task::Poll::Ready(Ok(()))
            }
        }

        impl<S: tokio::io::AsyncWrite + Unpin> tokio::io::AsyncWrite for $layer<S> {
            fn poll_write(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.$inner).poll_write(cx, buf)
            }

            fn poll_write_vectored(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::pin::Pin::new(&mut self.$inner).poll_write_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                self.$inner.is_write_vectored()
            }

            fn poll_flush(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.$inner).poll_flush(cx)
            }

            fn poll_shutdown(
                mut self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::pin::Pin::new(&mut self.$inner).poll_shutdown(cx)
            }
        }
    };
}

pub(super) use reads_ahead_and_writes_through;
