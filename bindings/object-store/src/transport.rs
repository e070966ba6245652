//! Sends the requests of OpenDAL's services over Laneway's connections.

use futures_util::StreamExt as _;
use http::header::{HOST, HeaderName, LOCATION};
use http::{Method, Request, Response, StatusCode, Uri};
use laneway::Client;
use laneway_lanes::{Body, Error as LanesError, Origin, Request as LanesRequest, Streamed};
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpRedirect, HttpTransport, Result};
use url::Url;

use crate::expected::expected;

/// The maximum number of redirects that a request follows. Other HTTP clients have the same limit.
const REDIRECTS_MAX: u32 = 10;

/// Sends the requests of OpenDAL's services over the connections of a [`Client`]. For one operator, use
/// `operator.with_context(operator.base_context().with_http_transport(HttpTransporter::new(transport)))`. For all
/// operators, use `HttpTransporter::install_default(transport)`.
///
/// OpenDAL still makes the retries, with its `RetryLayer`. Configure connections, timeouts, proxies and certificates at
/// the [`ClientBuilder`](laneway::ClientBuilder). A request follows up to ten redirects, but never from https to http.
/// Only reads follow a redirect to another host, and they don't send their credentials there. An unread body buffers
/// about 1 MiB. Dropping the body frees its connection for other requests.
#[derive(Clone, Debug)]
pub struct LanewayTransport {
    client: Client,
}

impl LanewayTransport {
    /// Returns a transport that uses this client's engine, proxies and certificates.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn once(&self, request: &Request<Buffer>) -> Result<Response<HttpBody>> {
        let origin = Origin::parse(&request.uri().to_string()).map_err(error)?;
        let mut sent = LanesRequest::new(origin, request.method().clone(), request.uri().clone());
        sent.headers = request.headers().clone();
        sent.headers.remove(HOST);
        sent.expected = expected(request.method(), request.headers());
        sent.body = Iterator::fold(request.body().clone(), Body::empty(), Body::and);
        // Look the connections up for each request, because a forked child process has its own.
        let lanes = laneway::internal::lanes(&self.client)
            .map_err(|e| Error::new(ErrorKind::Unexpected, "the engine has been shut down").set_source(e))?;
        let Streamed { head, body } = lanes.stream(sent).await.map_err(error)?;
        // Laneway keeps only the beginning of an error's body, so this body may be shorter than `Content-Length`.
        let is_whole = request.method() != Method::HEAD && head.status.is_success();
        let size = head.content_length().filter(|_| is_whole);
        let body = HttpBody::new(body.map(|chunk| chunk.map(Buffer::from).map_err(error)), size);
        let mut response = Response::new(body);
        (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
        Ok(response)
    }
}

impl HttpTransport for LanewayTransport {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let asked = request.uri().clone();
        let mut request = match request.extensions().get::<HttpRedirect>().cloned() {
            Some(known) => redirected(&request, StatusCode::TEMPORARY_REDIRECT, known.uri().original_uri()),
            None => None,
        }
        .unwrap_or(request);
        for _ in 0..=REDIRECTS_MAX {
            let mut response = self.once(&request).await?;
            let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let Some(next) = location.and_then(|to| redirected(&request, response.status(), to)) else {
                if *request.uri() != asked {
                    response.extensions_mut().insert(HttpRedirect::new(request.uri().clone()));
                }
                // OpenDAL shows this URI in its errors, so return the URI of the original request.
                response.extensions_mut().insert(asked);
                return Ok(response);
            };
            request = next;
        }
        Err(Error::new(ErrorKind::Unexpected, "too many redirects"))
    }
}

/// Returns the request that follows a redirect (RFC 9110 section 15.4), or `None` if the response is final or the
/// redirect isn't safe to follow. Another host gets only GET and HEAD requests, without credentials.
fn redirected(request: &Request<Buffer>, status: StatusCode, location: &str) -> Option<Request<Buffer>> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let keeps_method = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method() != Method::POST,
        StatusCode::SEE_OTHER => reads,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        _ => return None,
    };
    let from = Url::parse(&request.uri().to_string()).ok()?;
    let to = from.join(location).ok()?;
    let is_elsewhere = from.origin() != to.origin();
    if from.scheme() == "https" && to.scheme() != "https" || is_elsewhere && !reads {
        return None;
    }
    let mut next = Request::new(Buffer::new());
    *next.uri_mut() = to.as_str().parse::<Uri>().ok()?;
    if keeps_method {
        (*next.method_mut(), *next.body_mut()) = (request.method().clone(), request.body().clone());
    }
    let goes_along = |name: &HeaderName| {
        let name = name.as_str();
        let is_of_a_body = name.starts_with("content-") || name == "transfer-encoding";
        let is_plain =
            name.starts_with("accept") || name.starts_with("if-") || name == "range" || name == "user-agent";
        if is_elsewhere { is_plain } else { keeps_method || !is_of_a_body }
    };
    let headers = request.headers().iter().filter(|(name, _)| goes_along(name));
    next.headers_mut().extend(headers.map(|(name, value)| (name.clone(), value.clone())));
    Some(next)
}

/// Converts an error. If another attempt may help, the result is marked as temporary, and OpenDAL's `RetryLayer` decides
/// whether to retry.
fn error(error: LanesError) -> Error {
    let is_transient = error.is_transient();
    let message = if error.is_unsent() {
        "the request couldn't be sent"
    } else {
        "the request failed after it was sent"
    };
    let shown = Error::new(ErrorKind::Unexpected, message).set_source(error);
    if is_transient { shown.set_temporary() } else { shown }
}
