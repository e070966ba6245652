//! A connection of each protocol, and what is sent on it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request};
use hyper::client::conn::{http1, http2};

use super::outgoing::Outgoing;
use super::{Answer, Error, Lane, Tag, collect, hand_on, patiently};

/// An HTTP/1.1 connection.
pub(crate) struct Http1 {
    pub(super) sender: http1::SendRequest<Outgoing>,
    pub(super) lane: Lane,
}

/// An HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    pub(super) sender: http2::SendRequest<Outgoing>,
    pub(super) lane: Arc<Lane>,
}

impl Http1 {
    /// Whether another request can be sent, once the one before has ended.
    pub(crate) async fn is_usable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// What broke the exchange off.
    pub(crate) async fn send(&mut self, request: Request<Bytes>) -> Result<Answer, Error> {
        let Self { sender, lane } = self;
        let Parcel { request, tag, name, len } = Parcel::new(prepared(request)?.map(Outgoing::from));
        let exchange = patiently(async {
            // The connection may still be putting the exchange before away.
            sender.ready().await?;
            collect(sender.send_request(request).await?).await
        });
        lane.exchange(tag, name, len, exchange).await
    }

    /// Sends a request whose body is a file, and reads the answer.
    ///
    /// # Errors
    /// What broke the exchange off.
    pub(crate) async fn send_file(
        &mut self,
        request: Request<()>,
        file: File,
        len: u64,
    ) -> Result<Answer, Error> {
        let Self { sender, lane } = self;
        let request = prepared(request)?.map(|()| Outgoing::file(file, len));
        let Parcel { request, tag, name, len } = Parcel::new(request);
        let exchange = async {
            sender.ready().await?;
            collect(sender.send_request(request).await?).await
        };
        lane.exchange(tag, name, len, exchange).await
    }

    /// Sends a request and hands a successful answer's body on as it comes; what is given back has none.
    ///
    /// # Errors
    /// What broke the exchange off; what `take` says.
    pub(crate) async fn fetch(
        &mut self,
        request: Request<Bytes>,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Answer, Error> {
        let Self { sender, lane } = self;
        let Parcel { request, tag, name, len } = Parcel::new(prepared(request)?.map(Outgoing::from));
        let exchange = async {
            let response = patiently(async {
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            });
            let response = response.await?;
            hand_on(response, &lane.rival.0.moved, take).await
        };
        lane.exchange(tag, name, len, exchange).await
    }
}

impl Http2 {
    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// What broke the exchange off.
    pub(crate) async fn send(&mut self, request: Request<Bytes>) -> Result<Answer, Error> {
        let Parcel { request, tag, name, len } = Parcel::new(request.map(Outgoing::from));
        // Beyond the server's stream limit a request waits in the connection, however long.
        let exchange = async { collect(self.sender.send_request(request).await?).await };
        self.lane.exchange(tag, name, len, exchange).await
    }

    /// As [`Http1::send_file`].
    ///
    /// # Errors
    /// What broke the exchange off.
    pub(crate) async fn send_file(
        &mut self,
        request: Request<()>,
        file: File,
        len: u64,
    ) -> Result<Answer, Error> {
        let Parcel { request, tag, name, len } = Parcel::new(request.map(|()| Outgoing::file(file, len)));
        let exchange = async { collect(self.sender.send_request(request).await?).await };
        self.lane.exchange(tag, name, len, exchange).await
    }

    /// As [`Http1::fetch`].
    ///
    /// # Errors
    /// What broke the exchange off; what `take` says.
    pub(crate) async fn fetch(
        &mut self,
        request: Request<Bytes>,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Answer, Error> {
        let Parcel { request, tag, name, len } = Parcel::new(request.map(Outgoing::from));
        let moved = &self.lane.rival.0.moved;
        let exchange = async { hand_on(self.sender.send_request(request).await?, moved, take).await };
        self.lane.exchange(tag, name, len, exchange).await
    }
}

/// A request with what the trace says of it.
struct Parcel {
    request: Request<Outgoing>,
    tag: Option<Tag>,
    name: String,
    len: u64,
}

impl Parcel {
    fn new(mut request: Request<Outgoing>) -> Self {
        let tag = request.extensions_mut().remove::<Tag>();
        let name = format!("{} {}", request.method(), request.uri().path());
        let len = request.body().len();
        Self { request, tag, name, len }
    }
}

/// A request as HTTP/1.1 has it: the host in a header and only the path in the request line.
fn prepared<B>(mut request: Request<B>) -> Result<Request<B>, Error> {
    if let Some(authority) = request.uri().authority() {
        let host = HeaderValue::from_str(authority.as_str()).map_err(http::Error::from)?;
        request.headers_mut().insert(HOST, host);
    }
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse().map_err(http::Error::from)?;
    Ok(request)
}
