//! An answer whose body the caller reads as it comes.

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
    /// The body. A 2xx answer's comes as it arrives; another's has at most [`Response::ERROR_BODY_MAX`] bytes.
    pub body: BodyStream,
}

/// A body that is read as it comes. Laneway holds at most [`BodyStream::ROOM`] unread bytes, one read of the connection, and over HTTP/2
/// the stream's window. Beyond that it stops reading, so the server stops sending. When this is dropped, its request is cancelled and its
/// lane free.
pub struct BodyStream {
    shared: Arc<BodyBuffer>,
    /// `None` once it has ended. The mutex is never locked. It only lets several threads share a reference to the stream.
    exchange: Mutex<Option<Pin<Box<ExchangeFuture>>>>,
    /// The error that ended it. It is returned after all bytes before it.
    error: Option<Error>,
}

type ExchangeFuture = dyn Future<Output = Result<Response, Error>> + Send;

/// The beginning of an answer.
enum StreamStart {
    /// The first bytes of its body have come.
    Coming(Head),
    /// The answer has ended already.
    Whole(Response),
}

impl Lanes {
    /// Carries out one attempt whose answer's body the caller reads as it comes. The request's own sink is ignored. Dropping the future, or
    /// later the body, cancels the attempt and frees its lane.
    ///
    /// # Errors
    /// The same as [`exchange`](Self::exchange) before the body has begun. Later errors end the body.
    pub async fn stream(&self, mut request: Request) -> Result<Streamed, Error> {
        // If an answer of unknown size turns out to be bulk, it changes its lane's role. If others share the lane, it is requested again.
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
    /// Most bytes that wait to be read. Beyond them the connection isn't read further.
    pub const ROOM: usize = waiting::ROOM;

    fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamStart, Error>> {
        if let Some(head) = self.shared.head_if_any(context) {
            return Poll::Ready(Ok(StreamStart::Coming(head)));
        }
        match std::task::ready!(self.poll_end(context)) {
            Some(ended) => Poll::Ready(ended.map(StreamStart::Whole)),
            // After its end, this is never called.
            None => Poll::Pending,
        }
    }

    /// Returns the end of the exchange. `None` if that was returned before.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Response, Error>>> {
        let exchange = self.exchange.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = exchange else { return Poll::Ready(None) };
        let ended = std::task::ready!(running.as_mut().poll(context));
        *exchange = None;
        Poll::Ready(Some(ended))
    }

    /// Makes the answer of an exchange that has ended.
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
