//! A connection of either protocol, and its requests.

use std::fs::File;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};

use super::{Answer, Error, Lane, Rival, collect, hand_on, patiently};
use crate::trace::Role;

/// An HTTP/1.1 connection.
pub(crate) type Http1 = Connection<http1::SendRequest<Outgoing>>;

/// An HTTP/2 connection; clones share it.
pub(crate) type Http2 = Connection<http2::SendRequest<Outgoing>>;

/// A connection. `S` is hyper's type for sending requests over one of the two protocols.
#[derive(Clone)]
pub(crate) struct Connection<S> {
    pub(super) sender: S,
    pub(super) lane: Arc<Lane>,
}

/// The differences between HTTP/1.1 and HTTP/2 for sending a request.
pub(crate) trait Sender: Send {
    /// `true` if the connection queues requests above the server's limit of streams. A request may then wait for any
    /// length of time.
    const QUEUES: bool;

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// Returns the error that ended the exchange.
    fn head(
        &mut self,
        request: Request<Outgoing>,
    ) -> impl Future<Output = Result<Response<Incoming>, Error>> + Send;
}

impl Sender for http1::SendRequest<Outgoing> {
    const QUEUES: bool = false;

    async fn head(&mut self, request: Request<Outgoing>) -> Result<Response<Incoming>, Error> {
        let request = prepared(request)?;
        // The connection may still be finishing the previous exchange.
        self.ready().await?;
        Ok(self.send_request(request).await?)
    }
}

impl Sender for http2::SendRequest<Outgoing> {
    const QUEUES: bool = true;

    async fn head(&mut self, request: Request<Outgoing>) -> Result<Response<Incoming>, Error> {
        Ok(self.send_request(request).await?)
    }
}

impl Http1 {
    /// Waits until the previous exchange has ended. Returns whether the connection can then carry another request.
    pub(crate) async fn is_usable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }
}

impl<S: Sender> Connection<S> {
    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// Returns the error that ended the exchange.
    pub(crate) async fn send(&mut self, request: Request<Bytes>) -> Result<Answer, Error> {
        let Self { sender, lane } = self;
        let Parcel { request, role, len } = Parcel::new(request.map(Outgoing::from));
        let exchange = in_time::<S, _>(async { collect(sender.head(request).await?).await });
        lane.exchange(role, len, async {
            let answer = exchange.await?;
            lane.rival.moves(len);
            Ok(answer)
        })
        .await
    }

    /// Sends a request with a file as its body, and reads the answer. The exchange has no time limit.
    ///
    /// # Errors
    /// Returns the error that ended the exchange.
    pub(crate) async fn send_file(
        &mut self,
        request: Request<()>,
        file: File,
        len: u64,
    ) -> Result<Answer, Error> {
        let Self { sender, lane } = self;
        let body = Outgoing::file(file, len, lane.rival.clone());
        let Parcel { request, role, len } = Parcel::new(request.map(|()| body));
        let exchange = async { collect(sender.head(request).await?).await };
        lane.exchange(role, len, exchange).await
    }

    /// Sends a request, and passes the body of a successful answer to `take` as it arrives. The returned answer has no
    /// body.
    ///
    /// # Errors
    /// Returns the error that ended the exchange, or the error of `take`.
    pub(crate) async fn fetch(
        &mut self,
        request: Request<Bytes>,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Answer, Error> {
        let Self { sender, lane } = self;
        let Parcel { request, role, len } = Parcel::new(request.map(Outgoing::from));
        let exchange = async {
            let response = in_time::<S, _>(sender.head(request)).await?;
            hand_on(response, &lane.rival, take).await
        };
        lane.exchange(role, len, exchange).await
    }
}

/// Applies the time limit, unless the request may wait in the connection's own queue. Such a wait isn't the server's
/// fault.
async fn in_time<S: Sender, T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    if S::QUEUES { work.await } else { patiently(work).await }
}

/// A request, with the role and the body length that are recorded in the trace.
struct Parcel {
    request: Request<Outgoing>,
    role: Role,
    len: u64,
}

impl Parcel {
    fn new(mut request: Request<Outgoing>) -> Self {
        let role = request.extensions_mut().remove::<Role>().unwrap_or_default();
        let len = request.body().len();
        if len == 0 && (request.method() == Method::POST || request.method() == Method::PUT) {
            // For an empty body, hyper omits `Content-Length`, and stores answer 411 (Length Required).
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Self { request, role, len }
    }
}

/// Prepares a request for HTTP/1.1, with the host in a header and only the path in the request line.
fn prepared<B>(mut request: Request<B>) -> Result<Request<B>, Error> {
    if let Some(authority) = request.uri().authority() {
        let host = HeaderValue::from_str(authority.as_str()).map_err(http::Error::from)?;
        request.headers_mut().insert(HOST, host);
    }
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse().map_err(http::Error::from)?;
    Ok(request)
}

/// Bytes of a file that are read at a time.
const CHUNK: u64 = 256 << 10;

pub(crate) enum Outgoing {
    Bytes(Bytes),
    /// A file, its remaining bytes, and the client that counts sent bytes. The file is in the page cache, so a blocking
    /// read takes only microseconds.
    File(File, u64, Rival),
}

impl Outgoing {
    pub(crate) fn file(file: File, len: u64, rival: Rival) -> Self {
        Self::File(file, len, rival)
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, left, _) => *left,
        }
    }
}

impl From<Bytes> for Outgoing {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.len() == 0 {
            return Poll::Ready(None);
        }
        let chunk = match &mut *self {
            Self::Bytes(bytes) => Ok(std::mem::take(bytes)),
            Self::File(file, left, rival) => {
                let mut chunk = vec![0; CHUNK.min(*left) as usize];
                *left -= chunk.len() as u64;
                rival.moves(chunk.len() as u64);
                file.read_exact(&mut chunk).map(|()| Bytes::from(chunk))
            }
        };
        Poll::Ready(Some(chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::site::Origin;

    #[test]
    fn a_file_counts_as_it_goes_and_not_when_it_is_answered() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; CHUNK as usize + 5]).unwrap();
        let rival = Rival::at(Origin { https: false, host: "h".to_owned(), port: 1 }, None);
        let mut body = Outgoing::file(File::open(file.path()).unwrap(), CHUNK + 5, rival.clone());
        let mut context = Context::from_waker(std::task::Waker::noop());
        for (moved, is_last) in [(CHUNK, false), (CHUNK + 5, true)] {
            assert!(matches!(Pin::new(&mut body).poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
            assert_eq!((rival.moved(), body.is_end_stream()), (moved, is_last));
        }
    }
}
