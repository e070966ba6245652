//! Sends the requests of object_store's own clients over Laneway's connections.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use http_body::{Body as _, Frame, SizeHint};
use laneway::Client;
use laneway_lanes::{Body, BodyStream, Error as LanesError, Kind, Origin, Request, Scheme, Streamed};
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, Error, Result};
use object_store_0_14 as object_store;

use crate::expected::expected;

/// Sends the requests of object_store's clients over the connections of a [`Client`]. All of them share the client's
/// engine with the rest of the program. The engine decides on the number of connections, uses HTTP/1.1 and HTTP/2, and
/// sends small requests before large transfers.
///
/// object_store still makes the retries. The timeout in `ClientOptions` (`read_timeout`, or `timeout` if that isn't
/// set) limits the time without any progress. A transfer that makes progress never times out. The options for the
/// connection pool, keep-alive, `http1_only` and `connect_timeout` have no effect, because the engine decides these
/// itself. Configure proxies, certificates and addresses at the [`ClientBuilder`](laneway::ClientBuilder). If
/// `ClientOptions` set any of these, or `http2_only`, the connector returns an error. The connector can't see
/// certificates that `with_root_certificate` adds, so it ignores them without an error.
///
/// An unread body buffers about 1 MiB. On HTTP/2 it also buffers the bytes in its window (16 MiB at most). Dropping the
/// body frees its connection for other requests. As with any client, many unread HTTP/2 bodies block the other requests
/// on their connection.
#[derive(Clone, Debug)]
pub struct LanewayConnector {
    client: Client,
}

impl LanewayConnector {
    /// Returns a connector that uses this client's engine, proxies and certificates.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

/// Options that only Laneway's `ClientBuilder` can set, and their default values.
const ELSEWHERE: [(ClientConfigKey, &str); 6] = [
    (ClientConfigKey::ProxyUrl, ""),
    (ClientConfigKey::ProxyCaCertificate, ""),
    (ClientConfigKey::ProxyExcludes, ""),
    (ClientConfigKey::AllowInvalidCertificates, "false"),
    (ClientConfigKey::NoSystemCertificates, "false"),
    (ClientConfigKey::Http2Only, "false"),
];

impl HttpConnector for LanewayConnector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let value = |key: ClientConfigKey| options.get_config_value(&key);
        for (key, usual) in ELSEWHERE {
            if value(key).is_some_and(|value| value != usual) {
                return Err(refused(format!("{} must be set on Laneway's client instead", key.as_ref())));
            }
        }
        if options.dns_resolver().is_some() {
            return Err(refused("a DNS resolver must be set on Laneway's client instead".to_owned()));
        }
        let mut headers = options.get_default_headers().cloned().unwrap_or_default();
        if let Some(agent) = value(ClientConfigKey::UserAgent) {
            let agent = HeaderValue::try_from(agent)
                .map_err(|e| refused(format!("the user agent can't be a header's value: {e}")))?;
            headers.insert(USER_AGENT, agent);
        }
        let no_progress = value(ClientConfigKey::ReadTimeout).or_else(|| value(ClientConfigKey::Timeout));
        let no_progress = no_progress.map(|text| duration(&text)).transpose()?;
        let allow_http = value(ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client = self.client.clone();
        Ok(HttpClient::new(Service { client, headers, no_progress, allow_http }))
    }
}

fn refused(why: String) -> Error {
    Error::NotSupported { source: why.into() }
}

/// Parses a duration in object_store's format.
fn duration(text: &str) -> Result<Duration> {
    let invalid = |e| refused(format!("{text:?} isn't a timeout: {e}"));
    humantime::parse_duration(text).map_err(invalid)
}

#[derive(Debug)]
struct Service {
    client: Client,
    /// The default headers of each request.
    headers: HeaderMap,
    no_progress: Option<Duration>,
    allow_http: bool,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = self.request(request).await?;
        let has_body = request.method != Method::HEAD;
        // Look the connections up for each call, because a forked child process has its own.
        let lanes = laneway::internal::lanes(&self.client);
        let lanes = lanes.map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        let Streamed { head, body } = lanes.stream(request).await.map_err(http_error)?;
        let left = head.content_length().filter(|_| has_body && head.status.is_success());
        let mut response = HttpResponse::new(HttpResponseBody::new(ResponseStream { body, left }));
        (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
        Ok(response)
    }
}

impl Service {
    async fn request(&self, request: HttpRequest) -> Result<Request, HttpError> {
        let (parts, body) = request.into_parts();
        let origin = Origin::parse(&parts.uri.to_string()).map_err(http_error)?;
        if !self.allow_http && origin.scheme == Scheme::Http {
            // The message shows only the host, because the URL may contain a password.
            let why = LanewayError(format!(
                "the request to {} uses http://, and allow_http isn't set",
                origin.host
            ));
            return Err(HttpError::new(HttpErrorKind::Unknown, why));
        }
        let mut request = Request::new(origin, parts.method, parts.uri);
        request.headers = self.headers.clone();
        for name in parts.headers.keys().filter(|name| *name != HOST) {
            request.headers.remove(name);
        }
        for (name, value) in &parts.headers {
            request.headers.append(name, value.clone());
        }
        request.expected = expected(&request.method, &request.headers);
        request.no_progress = self.no_progress;
        request.body = segments(body).await?;
        Ok(request)
    }
}

/// Returns the chunks of a body that is in memory, without copying them.
async fn segments(mut body: HttpRequestBody) -> Result<Body, HttpError> {
    let mut segments = Body::empty();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(bytes) = frame?.into_data() {
            segments = segments.and(bytes);
        }
    }
    Ok(segments)
}

/// Converts an error to one of object_store's kinds. The kind decides whether object_store retries. object_store
/// retries every request after `Connect` and `Request`, and only idempotent requests after `Timeout` and
/// `Interrupted`. It never retries after the other kinds.
fn http_error(error: LanesError) -> HttpError {
    let kind = match error.kind() {
        Kind::Certificate | Kind::Scheme | Kind::Invalid | Kind::Sink | Kind::Source | Kind::Closed => {
            HttpErrorKind::Unknown
        }
        Kind::Resolve | Kind::Connect => HttpErrorKind::Connect,
        _ if error.is_unsent() => HttpErrorKind::Request,
        Kind::Timeout => HttpErrorKind::Timeout,
        Kind::Tls | Kind::Interrupted => HttpErrorKind::Interrupted,
        Kind::Protocol => HttpErrorKind::Decode,
    };
    HttpError::new(kind, error)
}

/// The error for a request that the connector itself refuses.
#[derive(Debug)]
struct LanewayError(String);

impl std::fmt::Display for LanewayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LanewayError {}

/// A response's body in the form that object_store reads.
struct ResponseStream {
    body: BodyStream,
    /// The number of bytes that haven't come yet, if known.
    left: Option<u64>,
}

impl http_body::Body for ResponseStream {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let next = std::task::ready!(self.body.poll_next_unpin(context));
        Poll::Ready(next.map(|chunk| {
            let chunk = chunk.map_err(http_error)?;
            self.left = self.left.map(|left| left.saturating_sub(chunk.len() as u64));
            Ok(Frame::data(chunk))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
