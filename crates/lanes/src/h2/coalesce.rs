//! Gathers the small writes of one turn into one.
//!
//! `h2` writes and flushes each DATA frame by itself. A thousand small uploads would be a thousand TLS records and system calls. At a
//! connection's start they would be packets too, of which only ten may leave before the first acknowledgement (RFC 6928). Here a flush that
//! follows fresh writes is put off to the connection task's next turn, when whatever else was ready has been written too.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::first_flights::FirstFlights;

/// Bytes that are gathered at most: two full TLS records. Larger writes go through as they are.
const GATHERED_MAX: usize = 32 * 1024;

pub(crate) struct Coalesce<S> {
    inner: S,
    gathered: Vec<u8>,
    /// Bytes of it that have been written on.
    written: usize,
    /// True if something was gathered since the last flush was asked for.
    fresh: bool,
    flights: Arc<FirstFlights>,
}

impl<S: AsyncWrite + Unpin> Coalesce<S> {
    pub(crate) fn new(inner: S, flights: Arc<FirstFlights>) -> Self {
        Self { inner, gathered: Vec::new(), written: 0, fresh: false, flights }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.gathered.len() {
            let rest = &self.gathered[self.written..];
            let record = &rest[..rest.len().min(self.flights.record_max())];
            let sent = ready!(Pin::new(&mut self.inner).poll_write(cx, record))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += sent;
            self.flights.left(sent);
        }
        self.gathered.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Makes room for `len` more bytes; true when they are to be gathered.
    fn poll_room(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<io::Result<bool>> {
        if self.gathered.len() + len > GATHERED_MAX {
            ready!(self.poll_drain(cx))?;
        }
        self.fresh = true;
        Poll::Ready(Ok(len <= GATHERED_MAX))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Coalesce<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if ready!(self.poll_room(cx, bytes.len()))? {
            self.gathered.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = parts.iter().map(|p| p.len()).sum();
        if ready!(self.poll_room(cx, len))? {
            parts.iter().for_each(|p| self.gathered.extend_from_slice(p));
            return Poll::Ready(Ok(len));
        }
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flights.written();
        if std::mem::take(&mut self.fresh) && !self.gathered.is_empty() {
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Coalesce<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Remembers each write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl AsyncWrite for Writes {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, b: &[u8]) -> Poll<io::Result<usize>> {
            self.0.push(b.to_vec());
            Poll::Ready(Ok(b.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(c: &mut Coalesce<Writes>, bytes: &[u8]) {
        let written = Pin::new(c).poll_write(&mut Context::from_waker(Waker::noop()), bytes);
        assert!(matches!(written, Poll::Ready(Ok(n)) if n == bytes.len()));
    }

    fn flush(c: &mut Coalesce<Writes>) {
        assert!(Pin::new(c).poll_flush(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[test]
    fn what_is_written_and_flushed_in_one_turn_leaves_as_one_write() {
        let mut c = Coalesce::new(Writes::default(), Arc::new(FirstFlights::new()));
        for part in [b"a".as_slice(), b"bc", b"d"] {
            write(&mut c, part);
            flush(&mut c);
        }
        assert!(c.inner.0.is_empty());
        flush(&mut c);
        assert_eq!(c.inner.0, [b"abcd".to_vec()]);
    }

    #[test]
    fn a_large_write_keeps_its_place_behind_the_small_ones() {
        let mut c = Coalesce::new(Writes::default(), Arc::new(FirstFlights::new()));
        write(&mut c, b"small");
        write(&mut c, &vec![1; GATHERED_MAX + 1]);
        assert_eq!(c.inner.0.iter().map(Vec::len).collect::<Vec<_>>(), [5, GATHERED_MAX + 1]);
    }

    #[test]
    fn a_young_connection_writes_records_that_fit_a_segment() {
        let mut c = Coalesce::new(Writes::default(), Arc::new(FirstFlights::new()));
        write(&mut c, &[1; 5000]);
        flush(&mut c);
        flush(&mut c);
        let records: Vec<_> = c.inner.0.iter().map(Vec::len).collect();
        assert!(
            records.iter().all(|len| *len < 1400) && records.iter().sum::<usize>() == 5000,
            "{records:?}"
        );
    }
}
