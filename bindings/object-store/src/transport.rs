//! Laneway's lanes for OpenDAL's services.

use futures_util::StreamExt as _;
use http::header::{HOST, HeaderName, LOCATION};
use http::{Method, Request, Response, StatusCode, Uri};
use laneway::Client;
use laneway_lanes::{Body, Error as LanesError, Origin, Request as LanesRequest, Streamed};
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpRedirect, HttpTransport, Result};
use url::Url;

use crate::expected::expected;

/// The limit of other clients.
const REDIRECTS_MAX: u32 = 10;

/// Sends the requests of OpenDAL's services over a client's lanes. For one operator, use
/// `operator.with_context(operator.base_context().with_http_transport(HttpTransporter::new(transport)))`. For all
/// operators, use `HttpTransporter::install_default(transport)`.
///
/// OpenDAL still makes the retries, by its `RetryLayer`. Connections, timeouts, proxies and certificates are the
/// engine's own, configured at the [`ClientBuilder`](laneway::ClientBuilder). Up to ten redirects are followed. To
/// another host, only reads follow a redirect, without credentials, and never from https to http. A body that isn't
/// read holds about a MiB. Dropping it frees its lane.
#[derive(Clone, Debug)]
pub struct LanewayTransport {
    client: Client,
}

impl LanewayTransport {
    /// Returns a transport over this client's engine, with its proxies and certificates.
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
        // Fetched for each request, because a child of a fork has its own lanes.
        let lanes = laneway::internal::lanes(&self.client)
            .map_err(|e| Error::new(ErrorKind::Unexpected, "the engine has been shut down").set_source(e))?;
        let Streamed { head, body } = lanes.stream(sent).await.map_err(error)?;
        // Only the beginning of an error's page is kept, enough for the message.
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
                // OpenDAL's errors name the request.
                response.extensions_mut().insert(asked);
                return Ok(response);
            };
            request = next;
        }
        Err(Error::new(ErrorKind::Unexpected, "too many redirects"))
    }
}

/// Returns the request that a redirect demands (RFC 9110 section 15.4), or `None` if the answer is final. Another host
/// gets only the request itself without credentials, and only if it changes nothing there.
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

/// Converts an error. It is temporary if another attempt may help; OpenDAL decides about that attempt.
fn error(error: LanesError) -> Error {
    let is_transient = error.is_transient();
    let message = if error.is_unsent() { "a request couldn't be sent" } else { "an exchange failed" };
    let shown = Error::new(ErrorKind::Unexpected, message).set_source(error);
    if is_transient { shown.set_temporary() } else { shown }
}
