//! An HTTP/1.1 connection. It carries one request at a time.
//!
//! `httparse` parses heads and chunk sizes. This module moves the bodies. It lends parts of the connection's read buffer to the sink, on
//! the thread that belongs to the lane's role. A connection can change its role in the middle of a body. We don't use hyper's client,
//! because it returns bodies as owned frames and drives the socket in a task of its own. This would cost a copy and a wake-up for each
//! frame.

mod framing;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod head;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::CONTENT_LENGTH;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::connection::{BodyEnd, ClientConnection, ConnectionFate, PendingBody, RESTED};
use crate::error::{Error, Kind};
use crate::incoming::ResponseReceiver;
use crate::proxy::Proxy;
use crate::request::Segment;
use crate::shared::{BodySender, SharedState, interrupted, with_timeout};
use crate::stream::{ByteStream, IoProgress};
use crate::{Protocol, Request, ResponseHead, Route, Scheme};
use framing::{ChunkDecoder, Framing};
use head::Heads;
pub(crate) use head::INFORMATIONAL_MAX;

/// A body in memory up to this size is sent in one write with its head. So it uses one TLS record, and often one packet.
const ONE_WRITE: usize = 16 * 1024;

/// The number of bytes that are read from a file at a time to be sent.
const SEND_CHUNK: usize = 256 * 1024;

/// The number of bytes of a body that are sent and counted at a time. TLS writes this many to the socket at once.
const COUNTED: usize = 64 * 1024;

/// After a failed write, we wait for this time for an answer that may explain the failure.
const EARLY_ANSWER: Duration = Duration::from_secs(2);

/// An open connection.
pub(crate) struct H1 {
    stream: ByteStream,
    progress: Arc<IoProgress>,
    proxy: Option<Proxy>,
    /// The number of requests so far, including the current one.
    asked: u64,
    /// True if bytes of the answer to the last request have come. `rested` is the time without any bytes before that request.
    is_answered: bool,
    rested: Duration,
    /// The idle timeout that the server has last announced.
    announced: Option<Duration>,
}

impl ClientConnection for H1 {
    const PROTOCOL: Protocol = Protocol::H1;

    type Rest = Framing;

    fn progress(&self) -> &Arc<IoProgress> {
        &self.progress
    }

    /// Returns false if the connection is readable: the server has closed it or sent unexpected bytes.
    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        self.progress.wake_at(1);
        // Without `unconstrained`, tokio would return `Pending` to a task that has used up its cooperative budget, even if bytes have
        // arrived.
        pin!(tokio::task::unconstrained(self.stream.fill_buf())).poll(cx).is_pending()
    }

    fn is_unused(&self) -> bool {
        self.asked == 0
    }

    fn is_first(&self) -> bool {
        self.asked == 1
    }

    async fn ask(
        &mut self,
        request: &mut Request,
        incoming: &mut ResponseReceiver,
        shared: &SharedState,
    ) -> Result<PendingBody<Framing>, Error> {
        let timeout = request.no_progress.unwrap_or(shared.no_progress);
        let mut heads = Heads::default();
        self.asked += 1;
        self.is_answered = false;
        self.rested = self.progress.idle(Instant::now());
        let early = match self.send(request, &mut heads, shared).await {
            Ok(early) => early,
            // A server that refuses a body answers and closes the connection. Its answer explains more than the error of the
            // failed write.
            Err(e) if e.kind() == Kind::Interrupted => match self.read_head(&mut heads, EARLY_ANSWER).await {
                Ok(head) => Some(head),
                // An error that shows a wrong scheme or a refused client certificate also explains more than
                // the failed write.
                Err(said) if matches!(said.kind(), Kind::Scheme | Kind::Certificate) => return Err(said),
                Err(_) => return Err(e),
            },
            Err(e) => return Err(e),
        };
        let whole_body_sent = early.is_none();
        let head = match early {
            Some(head) => head,
            None => match self.read_head(&mut heads, timeout).await {
                Err(e) if self.may_want_tls(&e, request) => return Err(unanswered(e)),
                head => head?,
            },
        };
        self.begin(request, head, whole_body_sent, incoming)
    }

    async fn receive(
        &mut self,
        pending: PendingBody<Framing>,
        incoming: &mut ResponseReceiver,
        timeout: Duration,
        shared: &SharedState,
    ) -> Result<BodyEnd, Error> {
        let keep_alive = !pending.is_last;
        if pending.route == Route::Stop {
            let is_reusable = pending.rest == Framing::Sized(0) && keep_alive;
            return Ok(BodyEnd { is_stopped: true, is_reusable });
        }
        match pending.rest {
            Framing::Sized(mut left) => {
                let mut gathering = incoming.is_bulk().then(|| BodyPacing::new(Instant::now()));
                while left > 0 {
                    incoming.has_room(&self.progress).await;
                    if let Some(gathering) = &mut gathering {
                        self.gather(left, gathering).await?;
                    }
                    let (taken, route) = self.take_some(left, incoming, timeout, shared, true).await?;
                    if let Some(gathering) = &mut gathering {
                        gathering.took(Instant::now(), taken);
                    }
                    left -= taken as u64;
                    if route == Route::Stop {
                        return Ok(BodyEnd { is_stopped: true, is_reusable: left == 0 && keep_alive });
                    }
                }
            }
            Framing::Chunked => {
                let mut chunked = ChunkDecoder::default();
                loop {
                    let left = self.next_chunk(&mut chunked, timeout).await?;
                    if left == 0 {
                        break;
                    }
                    let (taken, route) = self.take_some(left, incoming, timeout, shared, true).await?;
                    chunked.took(taken as u64);
                    if route == Route::Stop {
                        return Ok(BodyEnd { is_stopped: true, is_reusable: false });
                    }
                }
            }
            Framing::UntilClose => loop {
                let (taken, route) = self.take_some(u64::MAX, incoming, timeout, shared, false).await?;
                if taken == 0 || route == Route::Stop {
                    return Ok(BodyEnd { is_stopped: route == Route::Stop, is_reusable: false });
                }
            },
        }
        Ok(BodyEnd { is_stopped: false, is_reusable: keep_alive })
    }

    fn failed(&self, error: Error, _is_hedged: bool, _timeout: Duration) -> (Error, ConnectionFate) {
        if self.progress.is_given_up() {
            // The driver has closed the connection because it was silent. If this was the connection's first request, it is sent again on
            // another connection, and this attempt doesn't count.
            return (if self.is_first() { error.stale() } else { error }, ConnectionFate::Spent);
        }
        let fate = fate(&error, self.rested());
        (if fate == ConnectionFate::Stale { error.stale() } else { error }, fate)
    }
}

impl H1 {
    pub(crate) fn new(stream: ByteStream, progress: Arc<IoProgress>, proxy: Option<Proxy>) -> Self {
        Self {
            stream,
            progress,
            proxy,
            asked: 0,
            is_answered: false,
            rested: Duration::ZERO,
            announced: None,
        }
    }

    /// Returns the server's idle timeout if the head announces one that differs from the last.
    fn keeps_idle(&mut self, head: &ResponseHead) -> Option<Duration> {
        let announced = head::keep_alive_timeout(head.header("keep-alive")?)?;
        (self.announced.replace(announced) != Some(announced)).then_some(announced)
    }

    /// Returns how long the connection was idle before the current request. Returns `None` if this is its first request, or if bytes of the
    /// answer have come.
    fn rested(&self) -> Option<Duration> {
        (self.asked > 1 && !self.is_answered).then_some(self.rested)
    }

    /// Returns whether a connection without TLS ended before any bytes came. Most servers that require TLS end a connection in this way if
    /// the request comes without TLS.
    fn may_want_tls(&self, error: &Error, request: &Request) -> bool {
        error.kind() == Kind::Interrupted
            && self.asked == 1
            && !self.is_answered
            && self.proxy.is_none()
            && request.origin.scheme == Scheme::Http
    }

    fn begin(
        &mut self,
        request: &mut Request,
        head: head::H1Head,
        whole_body_sent: bool,
        incoming: &mut ResponseReceiver,
    ) -> Result<PendingBody<Framing>, Error> {
        let framing = Framing::of(&request.method, &head.head)?;
        // If an answer has both a length and chunks, a proxy may find another end of the answer (RFC 9112, section 6.3). So the connection
        // isn't used again.
        let ambiguous = framing == Framing::Chunked && head.head.headers.contains_key(CONTENT_LENGTH);
        let keep_alive = head.keep_alive && whole_body_sent && framing != Framing::UntilClose && !ambiguous;
        let keeps_idle = self.keeps_idle(&head.head);
        Ok(PendingBody { rest: framing, is_last: !keep_alive, keeps_idle, route: incoming.begin(head.head)? })
    }

    /// Sends head and body. Returns the answer's head if the server answered before the whole body was sent.
    async fn send(
        &mut self,
        request: &mut Request,
        heads: &mut Heads,
        shared: &SharedState,
    ) -> Result<Option<head::H1Head>, Error> {
        let timeout = request.no_progress.unwrap_or(shared.no_progress);
        let mut out = head::encode(request, self.proxy.as_ref());
        let inline = request.body.len() <= shared.sending(request).at_once(ONE_WRITE) as u64
            && request.body.segments().iter().all(|s| matches!(s, Segment::Memory(_)));
        if inline {
            for segment in request.body.segments() {
                if let Segment::Memory(bytes) = segment {
                    out.extend_from_slice(bytes);
                }
            }
        }
        if let Some(early) = self.write_all(&out, heads, timeout).await? {
            return Ok(Some(early));
        }
        let sending = shared.sending(request);
        if inline {
            sending.sent(request.body.len() as usize).await;
        } else {
            for segment in request.body.segments() {
                if let Some(early) = self.send_segment(segment, heads, timeout, sending).await? {
                    return Ok(Some(early));
                }
            }
        }
        with_timeout(self.stream.flush(), &self.progress, timeout, "sending a request").await?;
        Ok(None)
    }

    async fn send_segment(
        &mut self,
        segment: &Segment,
        heads: &mut Heads,
        timeout: Duration,
        sending: BodySender<'_>,
    ) -> Result<Option<head::H1Head>, Error> {
        match segment {
            Segment::Memory(bytes) => {
                return self.send_counting(bytes, heads, timeout, sending).await;
            }
            Segment::File { file, offset, len } => {
                let mut buffer = vec![0; SEND_CHUNK.min(usize::try_from(*len).unwrap_or(SEND_CHUNK))];
                let (mut at, end) = (*offset, offset + len);
                while at < end {
                    let want = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
                    crate::request::read_exact_at(file, &mut buffer[..want], at)?;
                    let sent = self.send_counting(&buffer[..want], heads, timeout, sending).await?;
                    if sent.is_some() {
                        return Ok(sent);
                    }
                    at += want as u64;
                }
            }
        }
        Ok(None)
    }

    /// Sends a part of a body, and counts the bytes that the socket has taken. It also applies the limit on bulk in the socket's buffer.
    async fn send_counting(
        &mut self,
        bytes: &[u8],
        heads: &mut Heads,
        timeout: Duration,
        sending: BodySender<'_>,
    ) -> Result<Option<head::H1Head>, Error> {
        for chunk in bytes.chunks(sending.at_once(COUNTED)) {
            sending.limit(&self.progress);
            if let Some(early) = self.write_all(chunk, heads, timeout).await? {
                return Ok(Some(early));
            }
            sending.sent(chunk.len()).await;
        }
        Ok(None)
    }

    /// Writes all bytes. If an answer comes before the end, it stops and returns the answer's head. Informational answers (1xx) are
    /// skipped.
    async fn write_all(
        &mut self,
        mut bytes: &[u8],
        heads: &mut Heads,
        timeout: Duration,
    ) -> Result<Option<head::H1Head>, Error> {
        while !bytes.is_empty() {
            let stream = &mut self.stream;
            let step = poll_fn(|cx| {
                if let Poll::Ready(written) = Pin::new(&mut *stream).poll_write(cx, bytes) {
                    return Poll::Ready(written.map(Some));
                }
                match Pin::new(&mut *stream).poll_fill_buf(cx) {
                    Poll::Ready(Ok([])) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                    Poll::Ready(Ok(_)) => Poll::Ready(Ok(None)),
                    Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
                    Poll::Pending => Poll::Pending,
                }
            });
            match with_timeout(step, &self.progress, timeout, "sending a request").await? {
                Some(written) => bytes = &bytes[written..],
                None => {
                    if let Some(answer) = self.next_head(heads, timeout).await? {
                        return Ok(Some(answer));
                    }
                }
            }
        }
        Ok(None)
    }

    async fn read_head(&mut self, heads: &mut Heads, timeout: Duration) -> Result<head::H1Head, Error> {
        loop {
            if let Some(answer) = self.next_head(heads, timeout).await? {
                return Ok(answer);
            }
        }
    }

    /// Reads the next head. Returns `None` if it was an informational one (1xx).
    async fn next_head(
        &mut self,
        heads: &mut Heads,
        timeout: Duration,
    ) -> Result<Option<head::H1Head>, Error> {
        let doing = "waiting for an answer";
        loop {
            let read = with_timeout(self.stream.fill_buf(), &self.progress, timeout, doing).await?;
            if read.is_empty() {
                return Err(interrupted(doing, io::ErrorKind::UnexpectedEof.into()));
            }
            self.is_answered = true;
            let (used, answer) = heads.feed(read)?;
            Pin::new(&mut self.stream).consume(used);
            if answer.is_some() || heads.is_between() {
                return Ok(answer);
            }
        }
    }

    /// Waits until enough bytes of a body have come for an efficient read.
    async fn gather(&mut self, left: u64, gathering: &mut BodyPacing) -> Result<(), Error> {
        let low_water = gathering.low_water(left, self.progress.window());
        self.progress.wake_at(low_water);
        if low_water > 1 {
            match tokio::time::timeout(WAIT_MAX, self.stream.fill_buf()).await {
                Ok(Ok(_)) => {}
                Ok(Err(e)) => return Err(interrupted("receiving a body", e)),
                Err(_) => {
                    gathering.was_in_vain();
                    self.progress.wake_at(1);
                }
            }
        }
        Ok(())
    }

    /// Passes at most `limit` bytes to the incoming answer. If the read buffer is empty, reads into it first.
    async fn take_some(
        &mut self,
        limit: u64,
        incoming: &mut ResponseReceiver,
        timeout: Duration,
        shared: &SharedState,
        end_is_error: bool,
    ) -> Result<(usize, Route), Error> {
        let doing = "receiving a body";
        incoming.has_room(&self.progress).await;
        self.progress.receives(incoming.role());
        let read = with_timeout(self.stream.fill_buf(), &self.progress, timeout, doing).await;
        let (taken, route) = match read {
            Ok([]) if end_is_error => return Err(interrupted(doing, io::ErrorKind::UnexpectedEof.into())),
            Ok([]) => return Ok((0, Route::Stay)),
            Ok(read) => {
                let taken = read.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
                (taken, incoming.take(&read[..taken])?)
            }
            Err(e) => return Err(e),
        };
        Pin::new(&mut self.stream).consume(taken);
        shared.received(taken, incoming.is_bulk(), incoming.tally()).await;
        Ok((taken, route))
    }

    /// Returns how many bytes of the current chunk are left. Returns 0 after the last chunk.
    async fn next_chunk(&mut self, chunked: &mut ChunkDecoder, timeout: Duration) -> Result<u64, Error> {
        loop {
            if let Some(left) = chunked.left() {
                return Ok(left);
            }
            let doing = "receiving a body";
            let read = with_timeout(self.stream.fill_buf(), &self.progress, timeout, doing).await?;
            if read.is_empty() {
                return Err(interrupted(doing, io::ErrorKind::UnexpectedEof.into()));
            }
            let used = chunked.feed(read)?;
            Pin::new(&mut self.stream).consume(used);
        }
    }
}

/// Returns the fate of a connection after an error. `rested` is `Some` if earlier requests on the connection were answered, but no byte of
/// this answer has come. Its value is the idle time before this request. If that time was long, the server has most likely closed the
/// connection because it was idle.
fn fate(error: &Error, rested: Option<Duration>) -> ConnectionFate {
    let was_idle = rested.is_some_and(|rested| rested >= RESTED);
    match error.kind() {
        Kind::Timeout if was_idle => ConnectionFate::Lost,
        Kind::Timeout => ConnectionFate::Broken,
        Kind::Interrupted if was_idle => ConnectionFate::Stale,
        // A used connection that ends without an answer isn't `Broken`. Some servers close a connection after a number of requests, so its
        // address still works.
        Kind::Interrupted if rested.is_none() && !error.is_unsent() => ConnectionFate::Broken,
        _ => ConnectionFate::Spent,
    }
}

/// Returns the error for a connection without TLS that ended before any bytes came. The server may be restarting, or may require TLS.
fn unanswered(error: Error) -> Error {
    let doing = "the server closed the connection without an answer; if it requires TLS, use https:// instead of http://";
    match error.into_source() {
        Some(source) => Error::because(Kind::Interrupted, doing, source),
        None => Error::new(Kind::Interrupted, doing),
    }
}

/// Each read of a fast body waits for at least this many bytes. Smaller reads cause more context switches, and also more and smaller writes
/// to the file. Without this minimum, a GiB over TLS on loopback took 0.96 s and 5,000 to 13,000 reads, because our thread could wake up
/// after any packet. With it, the GiB took 0.91 s and 5,000 reads.
const GATHERED: u32 = 128 * 1024;

/// A body is fast if [`GATHERED`] bytes come within this time, which is a rate of 6 MiB/s. The time includes the thread's work for other
/// connections.
const FAST: Duration = Duration::from_millis(20);

/// The maximum time to wait for [`GATHERED`] bytes.
const WAIT_MAX: Duration = Duration::from_millis(40);

/// The last part of a body, of this many bytes, is read as it comes. Otherwise a read near the body's end could wait for bytes that never
/// come.
const REST: u64 = 8 * GATHERED as u64;

/// The minimum receive window for reads of [`GATHERED`] bytes. While one half of the window is read, the other half can arrive.
const WINDOW_MIN: u32 = 2 * GATHERED;

/// Measures if a body is fast, and chooses the size of its reads.
#[derive(Debug)]
struct BodyPacing {
    since: Instant,
    came: u64,
    is_fast: bool,
}

impl BodyPacing {
    fn new(now: Instant) -> Self {
        Self { since: now, came: 0, is_fast: false }
    }

    /// Records bytes that were read.
    fn took(&mut self, now: Instant, bytes: usize) {
        self.came += bytes as u64;
        if self.came >= u64::from(GATHERED) {
            self.is_fast = now.saturating_duration_since(self.since) <= FAST;
            (self.since, self.came) = (now, 0);
        }
    }

    /// Records that not enough bytes came within [`WAIT_MAX`].
    fn was_in_vain(&mut self) {
        self.is_fast = false;
    }

    /// Returns how many bytes to wait for before the next read. `left` is the number of bytes of the body that are still to come. The
    /// result is [`GATHERED`] if the body is fast, more than [`REST`] bytes of it are left and the window is large enough. Otherwise it is
    /// 1. `window` is the connection's receive window, where 0 means that the kernel chooses it.
    fn low_water(&self, left: u64, window: u32) -> u32 {
        let fits = window == 0 || window >= WINDOW_MIN;
        if self.is_fast && left > REST && fits { GATHERED } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::FAILED_FOR;

    #[test]
    fn a_connection_that_breaks_off_is_its_address_s_fault_unless_it_was_idle() {
        let error = |kind| Error::new(kind, "on purpose");
        let after = |error: Error, rested| fate(&error, rested).avoided_for();
        assert_eq!(after(error(Kind::Interrupted), None), Some(FAILED_FOR));
        assert_eq!(fate(&error(Kind::Interrupted), Some(RESTED / 2)), ConnectionFate::Spent);
        assert_eq!(fate(&error(Kind::Interrupted), Some(RESTED)), ConnectionFate::Stale);
        assert_eq!(after(error(Kind::Interrupted), Some(RESTED)), None);
        assert_eq!(after(error(Kind::Interrupted).unsent(), None), None);
        assert_eq!(
            after(error(Kind::Timeout), Some(RESTED)),
            Some(FAILED_FOR),
            "a closed one would have said so"
        );
        assert_eq!(after(error(Kind::Sink), None), None);
    }

    const MIB: usize = 1 << 20;

    #[test]
    fn only_a_fast_body_is_waited_for_and_not_its_end() {
        let mut now = Instant::now();
        let mut gathering = BodyPacing::new(now);
        assert_eq!(gathering.low_water(100 << 20, 0), 1, "nothing is known yet");
        now += Duration::from_millis(1);
        gathering.took(now, MIB / 16);
        assert_eq!(gathering.low_water(100 << 20, 0), 1, "too little to tell");
        gathering.took(now, MIB / 16);
        assert_eq!(gathering.low_water(100 << 20, 0), GATHERED);
        assert_eq!(gathering.low_water(REST, 0), 1);
        assert_eq!(gathering.low_water(100 << 20, WINDOW_MIN), GATHERED);
        assert_eq!(gathering.low_water(100 << 20, WINDOW_MIN - 1), 1, "it may never come");
        now += 2 * FAST;
        gathering.took(now, MIB / 8);
        assert_eq!(gathering.low_water(100 << 20, 0), 1, "it has become slow");
    }

    #[test]
    fn a_body_that_stops_is_read_as_it_comes_until_it_is_fast_again() {
        let now = Instant::now();
        let mut gathering = BodyPacing::new(now);
        gathering.took(now, MIB);
        gathering.was_in_vain();
        assert_eq!(gathering.low_water(100 << 20, 0), 1);
        gathering.took(now + FAST, MIB);
        assert_eq!(gathering.low_water(100 << 20, 0), GATHERED);
    }
}
