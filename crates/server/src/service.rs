//! Handles each request: finds its route, applies faults, and passes it to its dialect.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, RETRY_AFTER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use s3s::StdError;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::body::{DocumentBytes, IncomingDocument, RequestBody, ResponseBody, RunningRequest};
use crate::counters::LiveCounters;
use crate::fault::answer::{AnswerFault, is_checksum, of_other_bytes};
use crate::fault::body::{BodyDamage, BodyDirection};
use crate::fault::injector::FaultInjector;
use crate::fault::select::{BodyFault, FaultStatus};
use crate::gcs::answer::ApiError;
use crate::habits::Habits;
use crate::initial::Initial;
use crate::link::pump::Link;
use crate::objects::Objects;
use crate::query::Query;
use crate::route::{Api, RequestRoute};
use crate::socket::Control;
use crate::verb::Verb;
use crate::{azure, cross_origin, gcs, s3};

/// The maximum size of a refused request's body that the server reads to its end, so that the connection can be used
/// again.
const DRAIN_BYTES_MAX: u64 = 1 << 20;

/// The state that all connections of a server share.
pub(crate) struct ServerState {
    pub(crate) gcs: gcs::GcsState,
    pub(crate) s3: s3::S3State,
    pub(crate) azure: azure::AzureState,
    pub(crate) habits: Habits,
    pub(crate) denied_buckets: Arc<BTreeSet<String>>,
    /// The content that a reset restores.
    pub(crate) initial: Mutex<Initial>,
    pub(crate) draws: Arc<FaultInjector>,
    pub(crate) tally: Arc<LiveCounters>,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) rtt: Duration,
    pub(crate) connection_bandwidth: Option<u64>,
    /// The permits for served connections, if their number is limited.
    pub(crate) places: RwLock<Option<Arc<Semaphore>>>,
    pub(crate) reset_surplus: bool,
    pub(crate) idle_max: Option<Duration>,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) streams_max: Option<u32>,
    /// Counts the bytes of documents in memory, for all connections.
    pub(crate) documents: DocumentBytes,
}

/// The state of one connection that its requests share.
pub(crate) struct ConnectionState {
    pub(crate) shared: Arc<ServerState>,
    pub(crate) control: Arc<Control>,
    pub(crate) streams: Arc<AtomicU64>,
    /// Counts the bytes of this connection's documents in memory.
    pub(crate) documents: DocumentBytes,
    pub(crate) h2: bool,
}

impl ConnectionState {
    /// Answers one request. If it returns an error, the stream or connection is reset instead.
    pub(crate) async fn answer(
        self: Arc<ConnectionState>,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, StdError> {
        let shared = &self.shared;
        let under_way = RunningRequest::begin(&shared.tally, &self.streams);
        let (mut head, body) = request.into_parts();
        let query = Query::parse(head.uri.query());
        let route = RequestRoute::of(&head, &query, shared.azure.account());
        let under_way = under_way.asking(route.verb);
        let mut effects = shared.draws.effects(route.verb, route.fault_key(&query));
        let is_head = head.method == http::Method::HEAD;
        let has_ended = body.is_end_stream();
        let is_last = !self.h2 && has_ended && expects_continue(&head.headers);
        let lacks_length =
            lacks_length(&head, &route.call, has_ended) && (shared.habits.lengths_demanded || !has_ended);
        // The bytes of a document count towards the limits on memory until the answer is complete.
        let is_document = !has_ended && !route.verb.uploads();
        let document =
            is_document.then(|| Arc::new(IncomingDocument::new(&shared.documents, &self.documents)));
        if effects.fired == 0 {
            // The usual case: no fault applies to the request.
            let body = RequestBody::incoming(body, None).counted(document.clone());
            if lacks_length {
                let answer = Box::pin(refuse(shared, body, &route, FaultStatus::LENGTH_REQUIRED)).await;
                return Ok(answer.map(|body| body.with(None, under_way)));
            }
            // This future is boxed, because it is large. Otherwise hyper would move it several times before running it.
            let answer = Box::pin(dispatch(shared, Request::from_parts(head, body), query, route)).await;
            return Ok(shown(answer, is_head, is_last).map(|body| body.with(None, under_way)));
        }

        if let Some(delay) = effects.delay {
            tokio::time::sleep(delay).await;
        }
        if effects.refuse_stream {
            return Err(self.reset(h2::Reason::REFUSED_STREAM));
        }
        let wholly =
            |fault| matches!(fault, Some(BodyFault::Reset(0) | BodyFault::Drop(0) | BodyFault::Cut(0)));
        if wholly(effects.request) || wholly(effects.response) {
            match effects.request.or(effects.response) {
                Some(BodyFault::Cut(0)) => {
                    self.control.close();
                    return Err(h2::Error::from(h2::Reason::INTERNAL_ERROR).into());
                }
                Some(BodyFault::Drop(0)) => self.control.kill(),
                _ => {}
            }
            return Err(self.reset(h2::Reason::INTERNAL_ERROR));
        }
        let reset = Arc::new(AtomicBool::new(false));
        let announced = |headers: &http::HeaderMap| {
            headers.get(CONTENT_LENGTH).and_then(|len| len.to_str().ok()?.parse().ok()).unwrap_or(0)
        };
        let damage = |fault, direction, expected| {
            let replaced = Box::pin(shared.draws.replaced(effects.drawn));
            BodyDamage::new(
                fault,
                direction,
                expected,
                self.control.clone(),
                self.h2,
                reset.clone(),
                replaced,
            )
        };
        if effects.replace {
            another_writer(&shared.gcs.objects, &route);
        }
        match (effects.range, &route.call) {
            (None, _) => {}
            // A signature may cover the header, so these dialects apply the fault after they have verified it.
            (Some(fault), Api::S3 | Api::Azure) => drop(head.extensions.insert(fault)),
            (Some(fault), _) => fault.befall(&mut head.headers),
        }
        let request_damage = effects
            .request
            .take()
            .map(|fault| damage(fault, BodyDirection::Request, announced(&head.headers)));
        let body = RequestBody::incoming(body, request_damage).counted(document.clone());
        let is_content = route.verb == Verb::Get;
        let refusal = effects.status.take().or_else(|| effects.throttled.then(|| throttle(&route.call)));
        let refusal = refusal.or_else(|| lacks_length.then_some(FaultStatus::LENGTH_REQUIRED));
        let answer = match refusal {
            Some(refusal) => Box::pin(refuse(shared, body, &route, refusal)).await,
            None => Box::pin(dispatch(shared, Request::from_parts(head, body), query, route)).await,
        };
        let mut answer = shown(answer, is_head, is_last);
        if reset.load(Relaxed) {
            return Err(self.reset(h2::Reason::INTERNAL_ERROR));
        }
        if effects.lose_answer {
            self.control.kill();
            return Err(self.reset(h2::Reason::INTERNAL_ERROR));
        }
        if effects.goaway {
            if self.h2 {
                self.control.go_away();
            } else {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        let mut response = effects.response.take();
        if let Some(fault) = effects.answer {
            let broken;
            (answer, broken) = apply_faults(fault, answer, is_content).await;
            response = response.or(broken);
        }
        let response_damage =
            response.map(|fault| damage(fault, BodyDirection::Response, announced(answer.headers())));
        Ok(answer.map(|body| body.with(response_damage, under_way)))
    }

    fn reset(&self, reason: h2::Reason) -> StdError {
        if !self.h2 {
            self.control.kill();
        }
        h2::Error::from(reason).into()
    }
}

/// Replaces the object of a request, as another writer would. If the object doesn't exist, nothing happens.
fn another_writer(objects: &Objects, route: &RequestRoute) {
    if let Ok(mut bytes) = objects.read(&route.bucket, &route.key) {
        for byte in &mut bytes {
            *byte = !*byte;
        }
        let _ = objects.put(&route.bucket, &route.key, &bytes);
    }
}

/// Returns true if the client waits for `100 Continue` before it sends the body. The library hyper sends this answer
/// only if there is a body. The client botocore also waits for it without a body. It then misreads the next answer on
/// the connection, and waits until a timeout (<https://github.com/boto/botocore/issues/3755>). So the server closes the
/// connection.
fn expects_continue(headers: &http::HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Returns the answer in the form in which it is sent. The body of an answer to a HEAD is removed, because h2 would
/// send it. If `is_last` is true, the answer gets `Connection: close`.
fn shown(answer: Response<ResponseBody>, is_head: bool, is_last: bool) -> Response<ResponseBody> {
    let mut answer = if is_head { answer.map(|_| ResponseBody::empty()) } else { answer };
    if is_last {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Passes a request to its dialect.
async fn dispatch(
    shared: &ServerState,
    request: Request<RequestBody>,
    query: Query,
    route: RequestRoute,
) -> Response<ResponseBody> {
    if let Some(answer) = about_the_server(shared, &request) {
        return answer;
    }
    if shared.denied_buckets.contains(&route.bucket) {
        return refuse(shared, request.into_body(), &route, FaultStatus::status(403)).await;
    }
    let objects = shared.gcs.objects.clone();
    if *request.method() == Method::OPTIONS && route.call == Api::Azure {
        return azure::preflight(&shared.azure, request.headers());
    }
    if *request.method() == Method::OPTIONS {
        return cross_origin::preflight(&objects, &route, request.headers());
    }
    let (head, body) = request.into_parts();
    let asking = cross_origin::CorsRequest::of(&head, &route);
    let mut answer = of_dialect(shared, Request::from_parts(head, body), query, route).await;
    if let Some(asking) = asking {
        asking.tell(&objects, &shared.azure, answer.headers_mut());
    }
    answer
}

/// Answers requests about the server itself: for its health or its reset. Their paths begin with `_`, because no
/// bucket's name does.
fn about_the_server(shared: &ServerState, request: &Request<RequestBody>) -> Option<Response<ResponseBody>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/_laneway/health") => {
            Some(gcs::answer::plain(http::StatusCode::OK, "ok\n"))
        }
        (&Method::POST, "/_laneway/reset") => {
            shared.gcs.sessions.clear();
            shared.gcs.managed_folders.clear();
            shared.azure.clear();
            let initial = shared.initial.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let objects = &shared.gcs.objects;
            Some(match objects.clear().and_then(|()| initial.restore(objects)) {
                Ok(()) => gcs::answer::empty(http::StatusCode::NO_CONTENT),
                Err(refused) => ApiError::refused(refused, "", "").json(),
            })
        }
        _ => None,
    }
}

async fn of_dialect(
    shared: &ServerState,
    request: Request<RequestBody>,
    query: Query,
    route: RequestRoute,
) -> Response<ResponseBody> {
    match route.call {
        Api::Json(resource) => {
            gcs::json(&shared.gcs, request, query, resource, route.verb, &route.bucket, &route.key).await
        }
        Api::Xml if shared.gcs.config.xml => {
            gcs::xml::answer(&shared.gcs, request, query, &route.bucket, &route.key).await
        }
        Api::Xml => gcs::answer::plain(http::StatusCode::NOT_FOUND, "404 page not found\n"),
        Api::S3 => s3::answer(&shared.s3, request, &route.bucket, &route.key).await,
        Api::Azure => azure::answer(&shared.azure, request, query).await,
    }
}

fn throttle(call: &Api) -> FaultStatus {
    FaultStatus::status(if matches!(call, Api::S3 | Api::Azure) { 503 } else { 429 })
}

/// Answers with a status in the dialect of the request.
async fn refuse(
    shared: &ServerState,
    mut body: RequestBody,
    route: &RequestRoute,
    refusal: FaultStatus,
) -> Response<ResponseBody> {
    if body.expected().is_some_and(|expected| expected <= DRAIN_BYTES_MAX) {
        while let Some(Ok(_)) = body.next().await {}
    }
    let reason = refusal.reason.as_deref();
    let mut answer = match route.call {
        Api::Json(_) => gcs::answer::refused(refusal.status, reason),
        Api::Xml | Api::S3 => s3::refused(refusal.status, reason),
        Api::Azure => azure::refused(&shared.azure, refusal.status, reason),
    };
    if refusal.in_200 {
        *answer.status_mut() = http::StatusCode::OK;
    }
    if let Some(wait) = refusal.retry_after {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

/// Returns true if a request must be refused for its missing length. `has_ended` is true if the request has no body. On
/// HTTP/2, a body needs no header with its length.
///
/// GCS returns 411 to a POST, PUT or PATCH without `Content-Length`. A streamed body is an exception
/// (<https://cloud.google.com/storage/docs/json_api/v1/status-codes#411-length-required>). S3 returns
/// `MissingContentLength` even if the body is streamed, unless the request announces its size
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>).
fn lacks_length(head: &Parts, call: &Api, has_ended: bool) -> bool {
    let has_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    has_body && !gives_length(&head.headers, call, has_ended)
}

fn gives_length(headers: &HeaderMap, call: &Api, has_ended: bool) -> bool {
    if headers.contains_key(CONTENT_LENGTH) {
        return true;
    }
    match call {
        Api::Json(_) | Api::Xml => !has_ended || headers.contains_key(TRANSFER_ENCODING),
        // Copies have no body, and S3 accepts them without a length. The crate `object_store` sends copies without a
        // length.
        Api::Azure => false,
        Api::S3 => {
            headers.contains_key("x-amz-decoded-content-length") || headers.contains_key("x-amz-copy-source")
        }
    }
}

/// A web page like that of a captive portal or of a proxy's login.
const WEB_PAGE: &str = "<!doctype html><html><head><title>Welcome</title></head><body>Sign in</body></html>";

/// Applies a fault to an answer. The second result is a fault for the body, if the body must end early. `is_content` is
/// true if the body is an object's content.
///
/// Faults that change the bytes of the body are applied elsewhere.
async fn apply_faults(
    fault: AnswerFault,
    answer: Response<ResponseBody>,
    is_content: bool,
) -> (Response<ResponseBody>, Option<BodyFault>) {
    match fault {
        AnswerFault::Length(by) => mislength(answer, by),
        AnswerFault::WrongChecksum => {
            let (mut head, body) = answer.into_parts();
            for (name, value) in head.headers.iter_mut() {
                if is_checksum(name.as_str())
                    && let Some(wrong) =
                        value.to_str().ok().and_then(|value| of_other_bytes(value).parse().ok())
                {
                    *value = wrong;
                }
            }
            (Response::from_parts(head, body), None)
        }
        AnswerFault::Garbled | AnswerFault::Malformed if is_content => (answer, None),
        AnswerFault::Garbled => {
            let (head, body) = answer.into_parts();
            let page = if is_empty(&body) { "" } else { WEB_PAGE };
            let mut answer = with_document(head, page.into());
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
            (answer, None)
        }
        AnswerFault::Malformed => {
            let (head, body) = answer.into_parts();
            let mut document = body.collect().await.unwrap_or_default();
            document.truncate(document.len() / 2);
            (with_document(head, document), None)
        }
    }
}

fn is_empty(body: &ResponseBody) -> bool {
    body.size_hint().exact() == Some(0)
}

/// Returns the answer with its document replaced.
fn with_document(mut head: http::response::Parts, document: Vec<u8>) -> Response<ResponseBody> {
    head.headers.remove(CONTENT_LENGTH);
    if !document.is_empty() {
        head.headers.insert(CONTENT_LENGTH, document.len().into());
    }
    Response::from_parts(head, ResponseBody::whole(document))
}

/// Returns the answer with a Content-Length that is wrong by this many bytes, or missing.
fn mislength(answer: Response<ResponseBody>, by: Option<i64>) -> (Response<ResponseBody>, Option<BodyFault>) {
    let (mut head, body) = answer.into_parts();
    let said = head.headers.remove(CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
    let len = body.size_hint().exact();
    let mut broken = None;
    if let (Some(by), Some(true_len)) = (by, said.or(len)) {
        head.headers.insert(CONTENT_LENGTH, true_len.saturating_add_signed(by).into());
        // If the body is shorter than its announced length, this fault makes sure that all of it is sent before the
        // connection ends.
        broken = len.filter(|len| by > 0 && *len > 0).map(|len| BodyFault::Truncate(Some(len)));
    }
    (Response::from_parts(head, body.untold()), broken)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::route::JsonResource;

    fn missing(method: &str, call: &Api, headers: &[(&str, &str)], has_ended: bool) -> bool {
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        lacks_length(&request.body(()).unwrap().into_parts().0, call, has_ended)
    }

    #[test]
    fn methods_with_a_body_have_to_tell_its_length() {
        for call in [Api::S3, Api::Xml, Api::Json(JsonResource::Upload)] {
            for method in ["POST", "PUT", "PATCH"] {
                assert!(missing(method, &call, &[], true), "{method}");
                assert!(!missing(method, &call, &[("content-length", "0")], true), "{method}");
            }
            assert!(["GET", "HEAD", "DELETE"].iter().all(|method| !missing(method, &call, &[], true)));
        }
    }

    #[test]
    fn a_streamed_body_is_taken_by_gcs_and_by_s3_only_with_its_decoded_length() {
        let chunked = ("transfer-encoding", "chunked");
        let json = Api::Json(JsonResource::Upload);
        assert!(!missing("PUT", &json, &[chunked], false) && !missing("PUT", &json, &[], false));
        assert!(missing("PUT", &Api::S3, &[chunked], false) && missing("PUT", &Api::S3, &[], false));
        let decoded = ("x-amz-decoded-content-length", "9");
        assert!(!missing("PUT", &Api::S3, &[chunked, decoded], false));
        assert!(!missing("PUT", &Api::S3, &[("x-amz-copy-source", "/bucket/key")], true));
    }
}
