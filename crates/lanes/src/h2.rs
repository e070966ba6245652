//! An HTTP/2 connection, which carries many concurrent requests. It uses the crate `h2`.
//!
//! We use `h2` without hyper, because hyper hides three things that we need. The first is the server's limit of streams. The second is
//! control over when a stream's window is extended. The third is the kind of an error, which can show that a request wasn't processed.

mod first_flights;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use ::h2::client::{Builder, ResponseFuture, SendRequest};
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Uri, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::{BodyEnd, ClientConnection, ConnectionFate, PendingBody, RESTED};
use crate::dispatch::{LaneId, Role};
use crate::error::{Error, Kind};
use crate::h1::INFORMATIONAL_MAX;
use crate::incoming::ResponseReceiver;
use crate::request::{Segment, gathered, read_exact_at};
use crate::shared::{BodySender, SharedState, with_timeout};
use crate::stream::{ByteStream, IoProgress};
use crate::{Body, Protocol, Request, ResponseHead, Route};
use first_flights::FirstFlights;

/// The receive window of a stream on an express connection. An express body fits into it.
const EXPRESS_STREAM_WINDOW: u32 = 2 << 20;

/// The receive window of an express connection. It permits eight streams with full windows. 16 MiB per 50 ms are 2.7 Gbit/s.
const EXPRESS_WINDOW: u32 = 16 << 20;

/// The receive window of a stream on a freight connection. The window of the whole connection is twice as large. 16 MiB fill a path of 1
/// Gbit/s at 134 ms.
const FREIGHT_WINDOW: u32 = 16 << 20;

/// The maximum frame size that we accept on a freight connection. The default of 16 KiB is the size of a TLS record. Larger frames only
/// save frame headers.
const FREIGHT_FRAME: u32 = 256 * 1024;

/// The maximum length of an answer's head, and of its trailers. If it is longer, the stream is reset. The default of `h2` is 16 MiB.
const HEAD_MAX: u32 = 64 * 1024;

/// A body in memory up to this size is passed to `h2` at once. `h2` then buffers it until the windows permit sending it. A larger body is
/// passed on only as far as the windows permit.
const AT_ONCE: usize = 64 * 1024;

/// The number of bytes that are read from a file at a time to be sent.
const SEND_CHUNK: usize = 256 * 1024;

/// If a hedge was faster and this connection has moved nothing for this time, the connection counts as slow. The time is long enough for a
/// far path, on which a connection may be silent for a round trip.
const QUIET: Duration = Duration::from_millis(200);

/// A handle to an open connection for one request. Clones share the connection.
#[derive(Clone)]
pub(crate) struct H2 {
    send: SendRequest<Bytes>,
    flights: Arc<FirstFlights>,
    progress: Arc<IoProgress>,
    /// The number of answers that have begun.
    answers: Arc<AtomicU64>,
    /// The number of answers that had begun before this handle's request, and the time without any bytes before it.
    answered: u64,
    rested: Duration,
}

impl H2 {
    /// Starts HTTP/2 on a stream. The connection is driven by a new task on the current runtime. The task calls `ended` when the connection
    /// ends.
    pub(crate) async fn open(
        stream: ByteStream,
        progress: Arc<IoProgress>,
        lane: LaneId,
        role: Role,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let mut builder = Builder::new();
        builder.enable_push(false).max_header_list_size(HEAD_MAX);
        match role {
            Role::Express => builder
                .initial_window_size(EXPRESS_STREAM_WINDOW)
                .initial_connection_window_size(EXPRESS_WINDOW),
            Role::Freight => builder
                .initial_window_size(FREIGHT_WINDOW)
                .initial_connection_window_size(2 * FREIGHT_WINDOW)
                .max_frame_size(FREIGHT_FRAME),
        };
        let failed = |e| interrupted("HTTP/2 begins", io_error(e));
        let flights = Arc::new(FirstFlights::new());
        let stream = WriteCoalescer::new(stream, Arc::clone(&flights));
        let (send, connection) = builder.handshake(stream).await.map_err(failed)?;
        let done = Arc::clone(&flights);
        tokio::spawn(async move {
            if let Err(e) = connection.await {
                tracing::debug!(lane = lane.0, error = %e, "h2 connection ended");
            }
            done.ended();
            ended();
        });
        let answers = Arc::default();
        Ok(Self { send, flights, progress, answers, answered: 0, rested: Duration::ZERO })
    }
}

impl ClientConnection for H2 {
    const PROTOCOL: Protocol = Protocol::H2;

    type Rest = RecvStream;

    fn progress(&self) -> &Arc<IoProgress> {
        &self.progress
    }

    fn requests_max(&self) -> usize {
        self.send.current_max_send_streams()
    }

    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn is_unused(&self) -> bool {
        self.answers.load(Relaxed) == 0
    }

    fn is_first(&self) -> bool {
        self.answered == 0
    }

    async fn ready(&mut self, timeout: Duration) -> Result<(), Error> {
        let waiting = poll_fn(|cx| self.send.poll_ready(cx));
        match tokio::time::timeout(timeout, waiting).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(failed("waiting for a stream", e).unsent()),
            Err(_) => {
                Err(Error::new(Kind::Timeout, format!("no free HTTP/2 stream within {timeout:?}")).unsent())
            }
        }
    }

    async fn ask(
        &mut self,
        request: &mut Request,
        incoming: &mut ResponseReceiver,
        shared: &SharedState,
    ) -> Result<PendingBody<RecvStream>, Error> {
        (self.rested, self.answered) = (self.progress.idle(Instant::now()), self.answers.load(Relaxed));
        let timeout = request.no_progress.unwrap_or(shared.no_progress);
        let head = head(request)?;
        let body = &request.body;
        let at_once = shared.sending(request).at_once(AT_ONCE) as u64;
        let small = if body.len() <= at_once { gathered(body.segments()) } else { None };
        if small.is_some() && !body.is_empty() {
            let late =
                || Error::new(Kind::Timeout, format!("nothing could be sent for {timeout:?}")).unsent();
            tokio::time::timeout(timeout, self.flights.turn()).await.map_err(|_| late())?;
        }
        let lost = |e| {
            self.flights.written();
            failed("sending a request", e)
        };
        // The request is sent by a clone that is dropped at once. Otherwise a handle could keep its stream open longer than needed.
        let sent = self.send.clone().send_request(head, body.is_empty());
        let (answer, mut out) = sent.map_err(lost)?;
        let mut answer = pin!(final_answer(answer));
        let (mut early, sending) = (None, shared.sending(request));
        match small {
            Some(_) if body.is_empty() => {}
            Some(bytes) => {
                let len = bytes.len();
                sending.limit(&self.progress);
                out.send_data(bytes, true).map_err(lost)?;
                sending.sent(len).await;
            }
            None => tokio::select! {
                biased;
                answered = &mut answer => early = Some(answered),
                sent = send_body(&mut out, body, &self.progress, timeout, sending) => sent?,
            },
        }
        let answered = match early {
            Some(answered) => answered.map_err(|e| interrupted("waiting for an answer", e)),
            None => with_timeout(answer, &self.progress, timeout, "waiting for an answer").await,
        };
        let Some(answered) = answered.map_err(unprocessed)? else {
            let why = format!("the server sends more than {INFORMATIONAL_MAX} informational answers");
            return Err(Error::new(Kind::Protocol, why));
        };
        let (parts, rest) = answered.into_parts();
        self.answers.fetch_add(1, Relaxed);
        let route = incoming.begin(ResponseHead { status: parts.status, headers: parts.headers })?;
        Ok(PendingBody { rest, route, is_last: false, keeps_idle: None })
    }

    async fn receive(
        &mut self,
        pending: PendingBody<RecvStream>,
        incoming: &mut ResponseReceiver,
        timeout: Duration,
        shared: &SharedState,
    ) -> Result<BodyEnd, Error> {
        let PendingBody { rest: mut body, route, .. } = pending;
        if route == Route::Stop {
            return Ok(BodyEnd { is_stopped: true, is_reusable: true });
        }
        while !body.is_end_stream() {
            incoming.has_room(&self.progress).await;
            self.progress.receives(incoming.role());
            let next = poll_fn(|cx| body.poll_data(cx));
            let next = async { next.await.transpose().map_err(io_error) };
            let doing = "receiving a body";
            let Some(bytes) = with_timeout(next, &self.progress, timeout, doing).await? else { break };
            let len = bytes.len();
            let route = incoming.take_whole(bytes)?;
            // The window is extended only after the sink has taken the bytes. So a slow sink slows only its own stream.
            body.flow_control().release_capacity(len).map_err(|e| failed(doing, e))?;
            shared.received(len, incoming.is_bulk(), incoming.tally()).await;
            if route == Route::Stop {
                return Ok(BodyEnd { is_stopped: true, is_reusable: true });
            }
        }
        Ok(BodyEnd { is_stopped: false, is_reusable: true })
    }

    fn failed(&self, error: Error, is_hedged: bool, timeout: Duration) -> (Error, ConnectionFate) {
        // If the connection was idle before the request, and no answer has begun since, the server had most likely closed the connection
        // before the request.
        let has_rested = self.rested >= RESTED && self.answered > 0;
        let is_silent = has_rested && self.answers.load(Relaxed) == self.answered;
        let is_stale = is_silent && error.kind() == Kind::Interrupted && !error.is_unsent();
        let error = if is_stale { error.stale() } else { error };
        let fate = match self.progress.is_given_up() {
            true => ConnectionFate::Spent,
            false => fate(&error, is_hedged, self.progress.idle(Instant::now()), timeout),
        };
        (error, fate)
    }
}

/// Returns the fate of a connection after an error. `idle` is the time since it last moved bytes. If no byte moves on a connection, it
/// gets no further request. TCP alone would take a quarter of an hour to end such a connection.
fn fate(error: &Error, is_hedged: bool, idle: Duration, timeout: Duration) -> ConnectionFate {
    match error.kind() {
        Kind::Interrupted if error.is_stale() => ConnectionFate::Stale,
        Kind::Timeout if idle >= timeout => ConnectionFate::Broken,
        // The request was cancelled because its hedge was faster.
        Kind::Closed if is_hedged && idle >= QUIET => ConnectionFate::Slow,
        _ => ConnectionFate::Usable,
    }
}

/// Returns the final answer, after any informational ones (1xx). Returns `None` if there are too many
/// informational answers.
async fn final_answer(mut answer: ResponseFuture) -> io::Result<Option<http::Response<RecvStream>>> {
    let mut informational = 0;
    let answered = poll_fn(|cx| {
        while let Poll::Ready(Some(skipped)) = answer.poll_informational(cx) {
            informational += 1;
            if let Err(e) = skipped {
                return Poll::Ready(Err(e));
            }
            if informational > INFORMATIONAL_MAX {
                return Poll::Ready(Ok(None));
            }
        }
        Pin::new(&mut answer).poll(cx).map_ok(Some)
    });
    answered.await.map_err(io_error)
}

fn head(request: &mut Request) -> Result<http::Request<()>, Error> {
    let invalid = |e: http::Error| Error::because(Kind::Invalid, "the request can't be sent over HTTP/2", e);
    let authority = match request.headers.remove(HOST) {
        Some(host) => host.to_str().map(str::to_owned).unwrap_or_else(|_| request.origin.authority()),
        None => request.origin.authority(),
    };
    if let Some(length) = request.undeclared_length() {
        request.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let target = request.target.path_and_query().map_or("/", |t| t.as_str());
    let uri = Uri::builder()
        .scheme("https")
        .authority(authority)
        .path_and_query(target)
        .build()
        .map_err(invalid)?;
    let mut head = http::Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = uri;
    *head.version_mut() = Version::HTTP_2;
    *head.headers_mut() = std::mem::take(&mut request.headers);
    Ok(head)
}

async fn send_body(
    out: &mut SendStream<Bytes>,
    body: &Body,
    progress: &IoProgress,
    timeout: Duration,
    sending: BodySender<'_>,
) -> Result<(), Error> {
    for segment in body.segments() {
        match segment {
            Segment::Memory(bytes) => send_bytes(out, bytes.clone(), progress, timeout, sending).await?,
            Segment::File { file, offset, len } => {
                let (mut at, end) = (*offset, offset + len);
                while at < end {
                    let want = SEND_CHUNK.min(usize::try_from(end - at).unwrap_or(SEND_CHUNK));
                    let mut chunk = vec![0; want];
                    read_exact_at(file, &mut chunk, at)?;
                    send_bytes(out, chunk.into(), progress, timeout, sending).await?;
                    at += want as u64;
                }
            }
        }
    }
    out.send_data(Bytes::new(), true).map_err(|e| failed("sending a body", e))
}

/// Sends bytes as fast as the stream's and the connection's windows allow.
async fn send_bytes(
    out: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    progress: &IoProgress,
    timeout: Duration,
    sending: BodySender<'_>,
) -> Result<(), Error> {
    let doing = "sending a body";
    while !bytes.is_empty() {
        out.reserve_capacity(bytes.len());
        let granted = poll_fn(|cx| out.poll_capacity(cx));
        let granted = async { granted.await.transpose().map_err(io_error) };
        let Some(granted) = with_timeout(granted, progress, timeout, doing).await? else {
            return Err(Error::new(Kind::Interrupted, "the stream was closed while sending a body"));
        };
        sending.limit(progress);
        let part = bytes.split_to(granted.min(sending.at_once(bytes.len())));
        let len = part.len();
        out.send_data(part, false).map_err(|e| failed(doing, e))?;
        sending.sent(len).await;
    }
    Ok(())
}

fn io_error(e: ::h2::Error) -> io::Error {
    io::Error::other(e)
}

fn interrupted(doing: &str, e: io::Error) -> Error {
    crate::shared::interrupted(doing, e)
}

fn failed(doing: &str, e: ::h2::Error) -> Error {
    unprocessed(interrupted(doing, io_error(e)))
}

/// Marks the errors by which HTTP/2 guarantees that the server didn't process the request. There are two such errors: a refused stream, and
/// a stream whose number is above the last one in a GOAWAY (RFC 9113, sections 8.7 and 6.8). For a stream above the last one, `h2` returns
/// a remote GOAWAY error.
fn unprocessed(e: Error) -> Error {
    let h2 = e
        .cause::<io::Error>()
        .and_then(|io| io.get_ref())
        .and_then(|inner| inner.downcast_ref::<::h2::Error>());
    let refused = h2
        .is_some_and(|h2| h2.is_remote() && (h2.reason() == Some(Reason::REFUSED_STREAM) || h2.is_go_away()));
    if refused { e.unsent() } else { e }
}

// `WriteCoalescer` gathers the small writes that the connection's task makes during one poll, and passes them on together.
//
// `h2` writes and flushes each DATA frame by itself. A thousand small uploads would need a thousand TLS records and system calls. At the
// start of a connection they would also need a thousand packets, of which only ten may be sent before the first acknowledgement (RFC 6928).
// So a flush after new writes is delayed to the next poll of the connection's task. By then, `h2` has also written all other frames that
// are ready.

/// The maximum number of bytes that are combined: two full TLS records. Larger writes are passed on directly.
const GATHERED_MAX: usize = 32 * 1024;

pub(crate) struct WriteCoalescer<S> {
    inner: S,
    gathered: Vec<u8>,
    /// The number of bytes in `gathered` that have been passed on.
    written: usize,
    /// True if bytes were added to `gathered` since the last flush.
    fresh: bool,
    flights: Arc<FirstFlights>,
}

impl<S: AsyncWrite + Unpin> WriteCoalescer<S> {
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

    /// Makes room for `len` more bytes. Returns true if they must be added to `gathered`, and false if they must be written directly.
    fn poll_room(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<io::Result<bool>> {
        if self.gathered.len() + len > GATHERED_MAX {
            ready!(self.poll_drain(cx))?;
        }
        self.fresh = true;
        Poll::Ready(Ok(len <= GATHERED_MAX))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteCoalescer<S> {
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

impl<S: AsyncRead + Unpin> AsyncRead for WriteCoalescer<S> {
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
    use crate::addresses::{FAILED_FOR, SLOW_FOR};

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn after(kind: Kind, is_hedged: bool, idle: Duration) -> ConnectionFate {
        fate(&Error::new(kind, "on purpose"), is_hedged, idle, TIMEOUT)
    }

    #[test]
    fn a_loser_on_a_quiet_connection_makes_its_address_slow_and_not_broken() {
        let quiet = after(Kind::Closed, true, QUIET);
        assert_eq!((quiet, quiet.avoided_for()), (ConnectionFate::Slow, Some(SLOW_FOR)));
        assert_eq!(after(Kind::Closed, true, QUIET / 2), ConnectionFate::Usable, "other answers come on it");
        assert_eq!(after(Kind::Closed, false, TIMEOUT), ConnectionFate::Usable, "the caller has gone");
    }

    #[test]
    fn a_connection_that_is_silent_for_too_long_is_broken() {
        assert_eq!(after(Kind::Timeout, false, TIMEOUT).avoided_for(), Some(FAILED_FOR));
        assert_eq!(after(Kind::Timeout, false, TIMEOUT / 2), ConnectionFate::Usable);
    }

    /// Records each write.
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

    fn write(c: &mut WriteCoalescer<Writes>, bytes: &[u8]) {
        let written = Pin::new(c).poll_write(&mut Context::from_waker(Waker::noop()), bytes);
        assert!(matches!(written, Poll::Ready(Ok(n)) if n == bytes.len()));
    }

    fn flush(c: &mut WriteCoalescer<Writes>) {
        assert!(Pin::new(c).poll_flush(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[test]
    fn what_is_written_and_flushed_in_one_turn_leaves_as_one_write() {
        let mut c = WriteCoalescer::new(Writes::default(), Arc::new(FirstFlights::new()));
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
        let mut c = WriteCoalescer::new(Writes::default(), Arc::new(FirstFlights::new()));
        write(&mut c, b"small");
        write(&mut c, &vec![1; GATHERED_MAX + 1]);
        assert_eq!(c.inner.0.iter().map(Vec::len).collect::<Vec<_>>(), [5, GATHERED_MAX + 1]);
    }

    #[test]
    fn a_young_connection_writes_records_that_fit_a_segment() {
        let mut c = WriteCoalescer::new(Writes::default(), Arc::new(FirstFlights::new()));
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
