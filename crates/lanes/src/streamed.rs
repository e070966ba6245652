//! Answers whose body the caller reads as a stream.

pub(crate) mod waiting;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::Method;

use crate::dispatch::Rules;
use crate::{Error, Lanes, Request, Response, ResponseHead, Route, Sink, SinkError};
use waiting::BodyBuffer;

/// An answer whose head has come, and whose body can be read.
#[derive(Debug)]
pub struct Streamed {
    /// Status and headers.
    pub head: ResponseHead,
    /// The body. The whole body of a 2xx answer can be read while it arrives. For other answers, it is cut off after
    /// [`Response::ERROR_BODY_MAX`] bytes.
    pub body: BodyStream,
}

/// A body that the caller reads while it arrives. Laneway buffers at most [`BodyStream::ROOM`] unread bytes, plus one read of the
/// connection, and over HTTP/2 the stream's window. When this buffer is full, Laneway stops reading, so the server stops sending.
/// Dropping this cancels the request and frees its lane.
pub struct BodyStream {
    shared: Arc<BodyBuffer>,
    /// The running exchange, or `None` once it has ended. The mutex is never locked. It only makes the stream `Sync`.
    exchange: Mutex<Option<Pin<Box<ExchangeFuture>>>>,
    /// The error that ended the body. It is returned after all bytes that came before it.
    error: Option<Error>,
}

type ExchangeFuture = dyn Future<Output = Result<Response, Error>> + Send;

/// The beginning of an answer.
enum StreamStart {
    /// The first bytes of the body have come.
    Coming(ResponseHead),
    /// The answer has ended already.
    Whole(Response),
}

impl Lanes {
    /// Carries out a single attempt, whose body the caller reads while it arrives. The request's own sink is ignored. Dropping the future,
    /// or later the body, cancels the attempt and frees its lane.
    ///
    /// # Errors
    /// Returns the same errors as [`exchange`](Self::exchange) until the body begins. Later errors are the last item of the body.
    pub async fn stream(&self, mut request: Request) -> Result<Streamed, Error> {
        // If the answer to a request of unknown size turns out to be bulk, its lane becomes freight. If other requests share the lane,
        // Laneway stops this request and sends it again as bulk.
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
    /// The maximum number of bytes that wait for the reader. While this many wait, the connection isn't read further.
    pub const ROOM: usize = waiting::ROOM;

    fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamStart, Error>> {
        if let Some(head) = self.shared.head_if_any(context) {
            return Poll::Ready(Ok(StreamStart::Coming(head)));
        }
        match std::task::ready!(self.poll_end(context)) {
            Some(ended) => Poll::Ready(ended.map(StreamStart::Whole)),
            // This function isn't called again after the exchange has ended.
            None => Poll::Pending,
        }
    }

    /// Returns the outcome of the exchange. Returns `None` if it was returned before.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Response, Error>>> {
        let exchange = self.exchange.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = exchange else { return Poll::Ready(None) };
        let ended = std::task::ready!(running.as_mut().poll(context));
        *exchange = None;
        Poll::Ready(Some(ended))
    }

    /// Converts the response of an exchange that has ended. Its body becomes the stream's only chunk.
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
            // The exchange may end during this poll. Then the loop first returns the last bytes.
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

/// The sink that passes bytes from the connection to the buffer.
struct BufferSink {
    shared: Arc<BodyBuffer>,
    may_move: bool,
}

impl Sink for BufferSink {
    fn begin(&mut self, head: &ResponseHead) -> Result<Route, SinkError> {
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
