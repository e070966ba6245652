//! An HTTP/2 connection: many streams at once, by the `h2` crate.
//!
//! hyper isn't between us and `h2`, because it hides facts that we decide by. These are the server's stream limit, the moment a window is
//! given back, and which errors leave a request unprocessed.

mod coalesce;
mod first_flights;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};

use ::h2::client::{Builder, ResponseFuture, SendRequest};
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Uri, Version};

use coalesce::Coalesce;
use first_flights::FirstFlights;

use crate::body::{Segment, gathered, read_exact_at};
use crate::connection::{BodyEnd, Connection, Fate, Pending, RESTED};
use crate::dispatch::{LaneId, Role};
use crate::error::{Error, Kind};
use crate::h1::INFORMATIONAL_MAX;
use crate::incoming::Incoming;
use crate::shared::{Sending, Shared, with_timeout};
use crate::stream::{Progress, Stream};
use crate::{Body, Head, Protocol, Request, Route};

/// Bytes that a stream may send us before we give its window back. An express body fits whole.
const EXPRESS_STREAM_WINDOW: u32 = 2 << 20;

/// Bytes that an express connection may send us: eight large express bodies, 16 MiB at 50 ms being 2.5 Gbit/s.
const EXPRESS_WINDOW: u32 = 16 << 20;

/// Bytes that a freight stream, and with it its connection, may send us: 16 MiB fill 1 Gbit/s at 128 ms.
const FREIGHT_WINDOW: u32 = 16 << 20;

/// Largest frame that we take. The default of 16 KiB is also the size of a TLS record; larger frames only save headers.
const FREIGHT_FRAME: u32 = 256 * 1024;

/// Longest head, and longest trailers, of an answer; a longer one resets its stream. h2's default is 16 MiB.
const HEAD_MAX: u32 = 64 * 1024;

/// A memory body up to this size is handed to the connection at once; a larger one waits for the window.
const AT_ONCE: usize = 64 * 1024;

/// Bytes of a file that are read at a time for sending.
const SEND_CHUNK: usize = 256 * 1024;

/// A connection without a byte for so long is slow if a hedge on another was sooner. On a far path a connection rests
/// for a round trip between two flights.
const QUIET: Duration = Duration::from_millis(200);

/// A handle to an open connection, for one request. Clones share it.
#[derive(Clone)]
pub(crate) struct H2 {
    send: SendRequest<Bytes>,
    flights: Arc<FirstFlights>,
    progress: Arc<Progress>,
    /// The number of answers that have begun.
    answers: Arc<AtomicU64>,
    /// The same number, and the time without a moved byte, before the handle's request.
    answered: u64,
    rested: Duration,
}

impl H2 {
    /// Starts HTTP/2 on a stream. The connection runs as a task of the current runtime; `ended` is called at its end.
    pub(crate) async fn open(
        stream: Stream,
        progress: Arc<Progress>,
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
        let stream = Coalesce::new(stream, Arc::clone(&flights));
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

impl Connection for H2 {
    const PROTOCOL: Protocol = Protocol::H2;

    type Rest = RecvStream;

    fn progress(&self) -> &Arc<Progress> {
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
            Err(_) => Err(Error::new(Kind::Timeout, format!("no stream within {timeout:?}")).unsent()),
        }
    }

    async fn ask(
        &mut self,
        request: &mut Request,
        incoming: &mut Incoming,
        shared: &Shared,
    ) -> Result<Pending<RecvStream>, Error> {
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
        // By a handle that ends here: one that waits for a stream's turn holds that stream open.
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
        let route = incoming.begin(Head { status: parts.status, headers: parts.headers })?;
        Ok(Pending { rest, route, is_last: false, keeps_idle: None })
    }

    async fn receive(
        &mut self,
        pending: Pending<RecvStream>,
        incoming: &mut Incoming,
        timeout: Duration,
        shared: &Shared,
    ) -> Result<BodyEnd, Error> {
        let Pending { rest: mut body, route, .. } = pending;
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
            // Given back after the sink has taken the bytes: a slow sink slows its own stream, nobody's else.
            body.flow_control().release_capacity(len).map_err(|e| failed(doing, e))?;
            shared.received(len, incoming.is_bulk(), incoming.tally()).await;
            if route == Route::Stop {
                return Ok(BodyEnd { is_stopped: true, is_reusable: true });
            }
        }
        Ok(BodyEnd { is_stopped: false, is_reusable: true })
    }

    fn failed(&self, error: Error, is_hedged: bool, timeout: Duration) -> (Error, Fate) {
        // A connection that had rested, and answered nobody since, was most likely gone before the request came.
        let has_rested = self.rested >= RESTED && self.answered > 0;
        let is_silent = has_rested && self.answers.load(Relaxed) == self.answered;
        let is_stale = is_silent && error.kind() == Kind::Interrupted && !error.is_unsent();
        let error = if is_stale { error.stale() } else { error };
        let fate = match self.progress.is_given_up() {
            true => Fate::Spent,
            false => fate(&error, is_hedged, self.progress.idle(Instant::now()), timeout),
        };
        (error, fate)
    }
}

/// Returns the fate of a connection after an error, when it has moved nothing for `idle`. One that moves nothing any more is not asked
/// again: TCP itself would take a quarter of an hour.
fn fate(error: &Error, is_hedged: bool, idle: Duration, timeout: Duration) -> Fate {
    match error.kind() {
        Kind::Interrupted if error.is_stale() => Fate::Stale,
        Kind::Timeout if idle >= timeout => Fate::Broken,
        // Cancelled because a hedge was sooner.
        Kind::Closed if is_hedged && idle >= QUIET => Fate::Slow,
        _ => Fate::Usable,
    }
}

/// The answer behind informational ones; `None` where those are too many.
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
    let invalid = |e: http::Error| Error::because(Kind::Invalid, "the request can't be put into HTTP/2", e);
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
    progress: &Progress,
    timeout: Duration,
    sending: Sending<'_>,
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

/// Sends bytes as the windows allow.
async fn send_bytes(
    out: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    progress: &Progress,
    timeout: Duration,
    sending: Sending<'_>,
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

/// Marks errors that say by protocol that the server didn't act. These are a refused stream, and a stream above a GOAWAY's last one (RFC
/// 9113, sections 8.7 and 6.8), which `h2` ends with a remote GOAWAY error.
fn unprocessed(e: Error) -> Error {
    let h2 = e
        .cause::<io::Error>()
        .and_then(|io| io.get_ref())
        .and_then(|inner| inner.downcast_ref::<::h2::Error>());
    let refused = h2
        .is_some_and(|h2| h2.is_remote() && (h2.reason() == Some(Reason::REFUSED_STREAM) || h2.is_go_away()));
    if refused { e.unsent() } else { e }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::{FAILED_FOR, SLOW_FOR};

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn after(kind: Kind, is_hedged: bool, idle: Duration) -> Fate {
        fate(&Error::new(kind, "on purpose"), is_hedged, idle, TIMEOUT)
    }

    #[test]
    fn a_loser_on_a_quiet_connection_makes_its_address_slow_and_not_broken() {
        let quiet = after(Kind::Closed, true, QUIET);
        assert_eq!((quiet, quiet.avoided_for()), (Fate::Slow, Some(SLOW_FOR)));
        assert_eq!(after(Kind::Closed, true, QUIET / 2), Fate::Usable, "others come on it");
        assert_eq!(after(Kind::Closed, false, TIMEOUT), Fate::Usable, "the caller has gone");
    }

    #[test]
    fn a_connection_that_is_silent_for_too_long_is_broken() {
        assert_eq!(after(Kind::Timeout, false, TIMEOUT).avoided_for(), Some(FAILED_FOR));
        assert_eq!(after(Kind::Timeout, false, TIMEOUT / 2), Fate::Usable);
    }
}
