//! The bytes of one connection, with or without TLS.

mod carried;
mod platform;
mod watched;

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::dispatch::{Direction, Rules, TcpSample};
pub(crate) use carried::OriginBytes;
use carried::TrafficMeter;
pub(crate) use watched::{IoProgress, WatchedSocket};

/// A connection's byte stream. Readers get a view of the buffer, without a copy.
pub(crate) struct ByteStream(SocketLayers);

enum SocketLayers {
    Plain(Box<BufferedSocket<WatchedSocket>>),
    Tls(Box<RecordBatcher<TlsStream<BufferedSocket<WatchedSocket>>>>),
    /// TLS to an origin, inside the TLS connection to a proxy.
    Nested(Box<RecordBatcher<TlsStream<TlsStream<BufferedSocket<WatchedSocket>>>>>),
}

impl ByteStream {
    pub(crate) fn plain(tcp: BufferedSocket<WatchedSocket>) -> Self {
        Self(SocketLayers::Plain(Box::new(tcp)))
    }

    pub(crate) fn tls(tls: TlsStream<BufferedSocket<WatchedSocket>>) -> Self {
        Self(SocketLayers::Tls(Box::new(RecordBatcher::new(tls))))
    }

    pub(crate) fn nested(tls: TlsStream<TlsStream<BufferedSocket<WatchedSocket>>>) -> Self {
        Self(SocketLayers::Nested(Box::new(RecordBatcher::new(tls))))
    }
}

macro_rules! each {
    ($self:ident, $stream:ident => $do:expr) => {
        match &mut $self.get_mut().0 {
            SocketLayers::Plain(s) => {
                let $stream = Pin::new(s.as_mut());
                $do
            }
            SocketLayers::Tls(s) => {
                let $stream = Pin::new(s.as_mut());
                $do
            }
            SocketLayers::Nested(s) => {
                let $stream = Pin::new(s.as_mut());
                $do
            }
        }
    };
}

impl AsyncRead for ByteStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, s => s.poll_read(cx, buf))
    }
}

impl AsyncBufRead for ByteStream {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        each!(self, s => s.poll_fill_buf(cx))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        each!(self, s => s.consume(amount));
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, s => s.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, s => s.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, s => s.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, s => s.poll_shutdown(cx))
    }
}

/// Implements `AsyncRead` and `AsyncWrite` for `$layer`. Reads take bytes from the buffer of its `AsyncBufRead`. Writes are passed to the
/// layer below, which is the field `$inner`. `$below` is the trait for reading the layer below.
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

/// A socket that is read in large chunks, even if a caller asks for few bytes. Rustls asks only for the rest of a record, which is at most
/// 16 KiB.
#[derive(Debug)]
pub(crate) struct BufferedSocket<S> {
    socket: S,
    held: ReadBuffer,
}

impl<S> BufferedSocket<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, held: ReadBuffer::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncBufRead for BufferedSocket<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { socket, held } = self.get_mut();
        if held.is_empty() {
            let mut read = ReadBuf::new(held.room());
            let outcome = Pin::new(socket).poll_read(cx, &mut read);
            let amount = read.filled().len();
            held.filled(amount);
            ready!(outcome)?;
        }
        Poll::Ready(Ok(held.bytes()))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_mut().held.consume(amount);
    }
}

reads_ahead_and_writes_through!(BufferedSocket, socket, AsyncRead);

/// A TLS connection. A read waits only for the first record, and returns all records that have arrived, up to the buffer's size.
#[derive(Debug)]
pub(crate) struct RecordBatcher<S> {
    tls: S,
    held: ReadBuffer,
    /// The error that ended reading. It is returned once all bytes before it have been consumed.
    failed: Option<io::Error>,
}

impl<S> RecordBatcher<S> {
    pub(crate) fn new(tls: S) -> Self {
        Self { tls, held: ReadBuffer::default(), failed: None }
    }
}

impl<S: AsyncBufRead + Unpin> AsyncBufRead for RecordBatcher<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { tls, held, failed } = self.get_mut();
        if !held.is_empty() {
            return Poll::Ready(Ok(held.bytes()));
        }
        if let Some(e) = failed.take() {
            return Poll::Ready(Err(e));
        }
        while !held.is_full() {
            match Pin::new(&mut *tls).poll_fill_buf(cx) {
                Poll::Ready(Ok([])) => break,
                Poll::Ready(Ok(record)) => {
                    let room = held.room();
                    let amount = record.len().min(room.len());
                    room[..amount].copy_from_slice(&record[..amount]);
                    held.filled(amount);
                    Pin::new(&mut *tls).consume(amount);
                }
                Poll::Ready(Err(e)) if held.is_empty() => return Poll::Ready(Err(e)),
                Poll::Ready(Err(e)) => {
                    *failed = Some(e);
                    break;
                }
                Poll::Pending if held.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(held.bytes()))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_mut().held.consume(amount);
    }
}

reads_ahead_and_writes_through!(RecordBatcher, tls, AsyncBufRead);

/// The size of read buffers. It is small enough for the bytes to stay in a core's second-level cache until they are written. A GiB over TLS
/// on loopback into a memory-backed file took 1.23 s of CPU time with 16 KiB (a TLS record) and 1.14 s with 64 KiB. It took 1.03 s with 128
/// KiB, 0.98 s with 256 KiB and 1.05 s with 1 MiB.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// The maximum number of unused buffers that a thread keeps. A connection needs two at a time.
const SPARE_BUFFERS_MAX: usize = 2;

thread_local! {
    static SPARE_BUFFERS: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that a connection has read but not passed on. The connection has a buffer only until these bytes are consumed. So hundreds of idle
/// connections have no buffer, and the busy connections of a thread use the same buffer, which is still in the cache.
#[derive(Debug, Default)]
struct ReadBuffer {
    /// The buffer. It is empty while the connection doesn't have one.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// Returns the bytes that haven't been consumed yet.
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn is_full(&self) -> bool {
        self.end == READ_BUFFER_BYTES
    }

    /// Returns the free space for the next bytes. The caller must then call [`filled`](Self::filled), even if no bytes came.
    fn room(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            let spare = SPARE_BUFFERS.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
            self.buffer = spare.unwrap_or_else(|| vec![0; READ_BUFFER_BYTES].into());
        }
        &mut self.buffer[self.end..]
    }

    /// Records that the first `amount` bytes of the free space were filled.
    fn filled(&mut self, amount: usize) {
        self.end += amount;
        self.consume(0);
    }

    fn consume(&mut self, amount: usize) {
        self.start += amount;
        if self.is_empty() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        (self.start, self.end) = (0, 0);
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return;
        }
        // This fails only if the thread is ending.
        let _ = SPARE_BUFFERS.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_BUFFERS_MAX {
                spare.push(buffer);
            }
        });
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Returns how many spare buffers this thread has.
#[cfg(test)]
fn spare_buffers() -> usize {
    SPARE_BUFFERS.with(|spare| spare.borrow().len())
}

/// The measurements of one connection's path that the operating system provides. If the system doesn't provide a measurement, its method
/// returns `None`. By default, all methods return `None`.
pub(crate) trait PathSignals: std::fmt::Debug + Send + Sync {
    /// Returns about how many bytes have arrived that the program hasn't read. This includes bytes that can't be read yet because of a lost
    /// packet. Without this number, bytes are counted only when they are read. After each lost packet, many bytes are then counted at once.
    fn waiting(&self) -> Option<u64> {
        None
    }

    /// Returns how many of the written bytes the peer hasn't acknowledged. Without this, the rate of uploads isn't measured.
    fn unacknowledged(&self) -> Option<u64> {
        None
    }

    /// Returns how many segments were retransmitted so far. Without this, `Counters::segments_resent` is 0.
    fn resent(&self) -> Option<u64> {
        None
    }

    /// Returns the present round trip of the connection's packets, and the time since the last packet. Without this, the dispatcher can't
    /// see a queue on the path, so it adds useless lanes and removes them again.
    fn flow(&self, _direction: Direction) -> Option<TcpSample> {
        None
    }
}

/// State that all connections of an origin share.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Counts the bytes that have arrived, and the bytes that the peers have acknowledged. Closed connections are included.
    pub(crate) carried: Arc<TrafficMeter>,
    /// The limit of bytes in flight for each connection that downloads bulk. 0 means no limit but TCP's.
    pub(crate) window: AtomicU32,
    /// The limit of bytes in the send buffer of each connection that uploads bulk. 0 means no limit but TCP's.
    pub(crate) send_buffer: AtomicU32,
    /// The limit of bytes that the kernel accepts but can't send yet, for each connection that uploads bulk.
    pub(crate) unsent: AtomicU32,
    /// The limit on the rate of each connection that uploads bulk, in bytes per second. `u32::MAX` means no limit.
    pub(crate) pace: AtomicU32,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            carried: Arc::default(),
            window: AtomicU32::new(0),
            send_buffer: AtomicU32::new(0),
            unsent: AtomicU32::new(Rules::CHOSEN.unsent_unknown),
            pace: AtomicU32::new(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests;
