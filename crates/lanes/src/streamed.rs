//! An answer whose body is read as it comes, by whoever asked for it.

pub(crate) mod waiting;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::Method;

use crate::dispatch::Rules;
use crate::{Error, Head, Lanes, Request, Response, Route, Sink, SinkError};
use waiting::BodyBuffer;

/// An answer whose head has come.
#[derive(Debug)]
pub struct Streamed {
    /// Status and headers.
    pub head: Head,
    /// The body: of a 2xx answer as it comes, of another at most [`Response::ERROR_BODY_MAX`] bytes.
    pub body: BodyStream,
}

/// A body as it comes. Laneway holds at most [`BodyStream::ROOM`] unread bytes and one read of the connection, and over HTTP/2 the stream's
/// window. The connection is then read no further, and the server stops sending. Dropped, its request is cancelled and its lane free.
pub struct BodyStream {
    shared: Arc<BodyBuffer>,
    /// `None` once it has ended. In a mutex, which nobody locks, because a stream may be looked at from several threads.
    exchange: Mutex<Option<Pin<Box<ExchangeFuture>>>>,
    /// The error that ended it, which is told once all that came before is taken.
    error: Option<Error>,
}

type ExchangeFuture = dyn Future<Output = Result<Response, Error>> + Send;

/// The begin of an answer.
enum StreamStart {
    /// With the first bytes of its body.
    Coming(Head),
    /// All at once, with its end.
    Whole(Response),
}

impl Lanes {
    /// Carries out one attempt whose answer's body is read as it comes; the request's own sink is not asked. Dropping the future, or
    /// later the body, cancels it and frees its lane.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange) before the body has begun; afterwards the body ends with the error.
    pub async fn stream(&self, mut request: Request) -> Result<Streamed, Error> {
        // An answer of unknown size that turns out to be bulk changes the lane, or where others share that is asked for anew.
        let may_move = request.method == Method::GET && request.expected.is_none();
        let again = may_move.then(|| request.again());
        let mut body = self.begin(request, may_move);
        match std::future::poll_fn(|context| body.poll_begun(context)).await? {
            StreamStart::Coming(head) => return Ok(Streamed { head, body }),
            StreamStart::Whole(response) => match (again, response.head.content_length()) {
                (Some(again), Some(len)) if response.stopped && response.head.status.is_success() => {
                    request = Request { expected: Some(len), ..again };
                }
                _ => return Ok(body.whole(response)),
            },
        }
        let mut body = self.begin(request, false);
        Ok(match std::future::poll_fn(|context| body.poll_begun(context)).await? {
            StreamStart::Coming(head) => Streamed { head, body },
            StreamStart::Whole(response) => body.whole(response),
        })
    }

    fn begin(&self, mut request: Request, may_move: bool) -> BodyStream {
        let shared = Arc::<BodyBuffer>::default();
        request.sink = Some(Box::new(BufferSink { shared: Arc::clone(&shared), may_move }));
        let lanes = self.clone();
        let exchange = Box::pin(async move { lanes.exchange(request).await });
        BodyStream { shared, exchange: Mutex::new(Some(exchange)), error: None }
    }
}

impl BodyStream {
    /// Bytes that may wait to be read before the connection is read no further.
    pub const ROOM: usize = waiting::ROOM;

    fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamStart, Error>> {
        if let Some(head) = self.shared.head_if_any(context) {
            return Poll::Ready(Ok(StreamStart::Coming(head)));
        }
        match std::task::ready!(self.poll_end(context)) {
            Some(ended) => Poll::Ready(ended.map(StreamStart::Whole)),
            // Nobody asks how it began after its end.
            None => Poll::Pending,
        }
    }

    /// The end of the exchange; `None` where that was told before.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Response, Error>>> {
        let exchange = self.exchange.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = exchange else { return Poll::Ready(None) };
        let ended = std::task::ready!(running.as_mut().poll(context));
        *exchange = None;
        Poll::Ready(Some(ended))
    }

    /// An answer that has ended: what its sink took, or what was collected of it.
    fn whole(self, response: Response) -> Streamed {
        let Response { head, body, .. } = response;
        if !body.is_empty() {
            self.shared.fill(body);
        }
        Streamed { head, body: self }
    }
}

impl Stream for BodyStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(chunk) = self.shared.take(context) {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if let Some(error) = self.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            // The last bytes came before the end.
            match std::task::ready!(self.poll_end(context)) {
                Some(ended) => self.error = ended.err(),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyStream").field("waiting", &self.shared.bytes()).finish_non_exhaustive()
    }
}

/// The sink on the connection's side.
struct BufferSink {
    shared: Arc<BodyBuffer>,
    may_move: bool,
}

impl Sink for BufferSink {
    fn begin(&mut self, head: &Head) -> Result<Route, SinkError> {
        self.shared.begin(head.clone());
        let is_bulk = head.content_length().is_some_and(|len| len > Rules::CHOSEN.freight_above);
        Ok(if is_bulk && self.may_move { Route::Freight } else { Route::Stay })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        self.shared.fill(Bytes::copy_from_slice(bytes));
        Ok(Route::Stay)
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.shared.poll_room(context)
    }
}
