//! Sends a verb's request over the lanes, with several attempts if necessary, and turns the last answer into a result
//! or an error.

mod http_dialect;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use laneway_lanes::{
    Alike, Breaks, Call, CallOutcome, Hedge, Kind, Origin, Request, Response, ResponseHead, Sink, Verdict,
};

pub(crate) use self::http_dialect::{HttpDialect, Outgoing, RequestSigner, UnsendableHeader};
use crate::delivery::{DeliveredRange, Delivery, HedgeRequest, RejectedResponse};
use crate::judge::{AttemptResult, ErrorResponse};
use crate::secrets::Secrets;
use crate::{Error, ErrorKind, GetRange, Got, ObjectId, Operation, Provider, Timings, judge};

/// A verb that is being executed, with the names that its errors mention.
pub(crate) struct Exchange<'a, D> {
    pub(crate) dialect: &'a D,
    pub(crate) operation: Operation,
    pub(crate) bucket: &'a str,
    pub(crate) key: Option<&'a str>,
    version: Option<&'a str>,
    /// The prefix of all keys that the request concerns.
    prefix: &'a str,
}

/// The error detail with which a parser reports that the answer is an HTML page.
pub(crate) const HTML: &str = "it is HTML";

/// The maximum number of corrections (a region, a clock, a credential) that one exchange accepts from answers. After
/// each of them, the exchange retries without a pause. A store that sends more corrections contradicts itself.
const LESSONS_MAX: u32 = 3;

/// A request that asks the server how many bytes it has, sent after a failed attempt to upload them.
pub(crate) struct OffsetQuery<'a> {
    pub(crate) outgoing: &'a Outgoing,
    /// Returns true if the answer says that none of the bytes arrived, so that all must be sent again.
    pub(crate) wants_all: &'a (dyn Fn(&ResponseHead) -> bool + Send + Sync),
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct ExchangeResponse {
    pub(crate) response: Response,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
    /// The secrets that the request carried. Errors must not repeat them.
    pub(crate) secrets: Secrets,
}

impl<'a, D: HttpDialect> Exchange<'a, D> {
    pub(crate) fn object(dialect: &'a D, operation: Operation, id: &'a ObjectId) -> Self {
        let version = id.version.as_deref();
        Self { dialect, operation, bucket: &id.bucket, key: Some(&id.key), version, prefix: &id.key }
    }

    pub(crate) fn bucket(dialect: &'a D, operation: Operation, bucket: &'a str) -> Self {
        Self { dialect, operation, bucket, key: None, version: None, prefix: "" }
    }

    /// Returns the same exchange, restricted to keys with this prefix.
    pub(crate) fn below(self, prefix: &'a str) -> Self {
        Self { prefix, ..self }
    }

    /// Returns an error that names this verb and this object.
    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        self.named(Error::new(kind, self.operation, message))
    }

    fn named(&self, error: Error) -> Error {
        let scheme = D::PROVIDER.scheme();
        error.on(match (self.key, self.version) {
            (Some(key), Some(version)) => format!("{scheme}://{}/{key}#{version}", self.bucket),
            (Some(key), None) => format!("{scheme}://{}/{key}", self.bucket),
            (None, _) => format!("{scheme}://{}", self.bucket),
        })
    }

    /// Returns the error for a request that can't be made.
    pub(crate) fn unsendable(&self, error: &UnsendableHeader) -> Error {
        self.error(ErrorKind::Invalid, error.to_string())
    }

    /// Returns the error for an answer that doesn't fit the request.
    pub(crate) fn nonsense(&self, sent: &ExchangeResponse, message: impl Into<String>) -> Error {
        let mut message = message.into();
        if is_html(sent) || message.ends_with(HTML) || message.ends_with("<html>") {
            let (endpoint, service) = (self.dialect.endpoint(), D::SERVICE);
            message = format!("{endpoint} didn't answer like {service}: it sent HTML; check the endpoint");
        }
        self.error(ErrorKind::Server, sent.secrets.cleared(message))
            .answered(sent.response.head.status, None)
            .after(sent.attempts, sent.elapsed)
    }

    /// Sends the request, and retries while the failure may be temporary.
    ///
    /// # Errors
    /// Returns the last failure, or the reason why there is no whole answer.
    pub(crate) async fn send(&self, outgoing: &Outgoing) -> Result<ExchangeResponse, Error> {
        self.run(outgoing, None, None, None, &Arc::default()).await
    }

    /// Sends the request. After a failed attempt, it sends `question` before it sends the bytes again. If the answer
    /// says that none of the bytes arrived, it sends all of them again. Otherwise that answer is the result.
    pub(crate) async fn send_asking(
        &self,
        outgoing: &Outgoing,
        question: OffsetQuery<'_>,
    ) -> Result<ExchangeResponse, Error> {
        self.run(outgoing, Some(question), None, None, &Arc::default()).await
    }

    /// Sends the request. The body of each attempt goes to a new sink. `shown` receives the secrets that the latest
    /// attempt sends.
    pub(crate) async fn send_to_sinks(
        &self,
        outgoing: &Outgoing,
        sinks: &SinkFactory<'_>,
        shown: &Arc<Mutex<Secrets>>,
    ) -> Result<ExchangeResponse, Error> {
        self.run(outgoing, None, None, Some(sinks), shown).await
    }

    /// Sends the request. The answer's body goes to the caller's sink.
    pub(crate) async fn carry(
        &self,
        outgoing: &Outgoing,
        delivery: Option<&Delivery<'_>>,
    ) -> Result<ExchangeResponse, Error> {
        self.run(outgoing, None, delivery, None, &Arc::default()).await
    }

    /// Returns the result of a download from a successful answer.
    pub(crate) fn got(&self, sent: ExchangeResponse, delivery: &Delivery<'_>) -> Result<Got, Error> {
        let rejected = |rejected| self.rejected(rejected).after(sent.attempts, sent.elapsed);
        let described = delivery.described(&sent.response.head).map_err(rejected)?;
        let (body, arrived) = delivery.content(&sent.response, &described).map_err(rejected)?;
        let has_checks = described.has_checks();
        let DeliveredRange { meta, range, .. } = described;
        let ExchangeResponse { response, attempts, elapsed, .. } = sent;
        if !response.stopped && arrived != range.end - range.start {
            let message =
                format!("{arrived} bytes arrived, but the server announced {}", range.end - range.start);
            return Err(self.error(ErrorKind::Transport, message).after(attempts, elapsed).retryable(true));
        }
        Ok(Got {
            meta,
            range,
            body,
            checked: has_checks && !response.stopped,
            sunk: if delivery.maker.is_some() { arrived } else { response.sunk },
            stopped: response.stopped,
            attempts,
            timings: Timings {
                queued: response.queued,
                first_byte: response.first_byte,
                elapsed,
                protocol: response.protocol,
            },
        })
    }

    fn rejected(&self, rejected: RejectedResponse) -> Error {
        self.error(rejected.kind, rejected.message)
            .lacking_size(rejected.lacks_size)
            .retryable(rejected.is_damaged)
    }

    async fn run(
        &self,
        outgoing: &Outgoing,
        question: Option<OffsetQuery<'_>>,
        delivery: Option<&Delivery<'_>>,
        sinks: Option<&SinkFactory<'_>>,
        shown: &Arc<Mutex<Secrets>>,
    ) -> Result<ExchangeResponse, Error> {
        let outgoing = &*self.with_added_headers(outgoing);
        let call = Attempts {
            exchange: self,
            outgoing,
            question,
            asks: AtomicBool::new(false),
            delivery,
            sinks,
            throttle: ThrottleNames::of(
                throttle_key(D::PROVIDER, &self.dialect.endpoint(), self.bucket, first_folder(self.prefix)),
                self.key.map(|key| (key, is_read(&outgoing.method))),
            ),
            lessons: AtomicU32::new(0),
            uncertain: AtomicBool::new(false),
            shown,
        };
        let CallOutcome { outcome, attempts, elapsed, is_origin_away, away_for } = self
            .dialect
            .lanes()
            .run(&call)
            .await
            .map_err(|refusal| self.named(refusal.within(self.operation)))?;
        let uncertain = call.uncertain.load(Ordering::Acquire);
        let secrets = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = match outcome {
            Ok(response) => match self.dialect.failure(outgoing, &response) {
                None => return Ok(ExchangeResponse { response, attempts, elapsed, secrets }),
                Some(_) if self.wants_tls(outgoing, &response) => {
                    let message = "the server uses TLS on this port; use https:// instead of http://";
                    self.error(ErrorKind::Transport, message)
                        .answered(response.head.status, None)
                        .unreachable(true)
                }
                Some(failure) => {
                    let kind = match self.dialect.kind(&failure) {
                        // For a read, 304 means that the caller already has the current state. For a write, it means
                        // that a precondition failed.
                        ErrorKind::NotModified if !is_read(&outgoing.method) => ErrorKind::Precondition,
                        kind => kind,
                    };
                    let passing = kind == ErrorKind::Throttled || judge::is_passing(&failure);
                    let message = match self.long_pause(&failure) {
                        Some(wish) => wish,
                        None => redirection(&failure, &response).unwrap_or(failure.message),
                    };
                    self.error(kind, secrets.cleared(message))
                        .answered(failure.status, secrets.cleared_code(failure.code))
                        .retryable(passing)
                }
            },
            Err(error) => {
                let error = self.broken(error, delivery.is_some_and(Delivery::delivered));
                match is_origin_away && error.kind() == ErrorKind::Transport {
                    true => {
                        let endpoint = self.dialect.endpoint();
                        let from = match error.message().contains(&endpoint) {
                            true => String::new(),
                            false => format!(" from {endpoint}"),
                        };
                        let message = format!(
                            "{}{from}; gave up because the time of --retry-for is over: the server has been away for {:.1} s",
                            error.message(),
                            away_for.as_secs_f64()
                        );
                        error.but(ErrorKind::Transport, message)
                    }
                    false => error,
                }
            }
        };
        let is_unreachable = error.is_unreachable() || is_origin_away;
        Err(error.after(attempts, elapsed).uncertain(uncertain).unreachable(is_unreachable))
    }

    /// Returns a message if the server asked for a longer pause than the time that the caller allows for retries.
    fn long_pause(&self, failure: &ErrorResponse) -> Option<String> {
        let (after, limit) = (failure.after?, self.dialect.lanes().retry_after_max());
        let asked = match after.as_secs() {
            seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
            seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
            seconds => format!("{seconds} s"),
        };
        let limit_s = limit.as_secs();
        (after > limit).then(|| {
            format!("the server asks Laneway to wait {asked} before the next attempt, which is more than --retry-for ({limit_s} s)")
        })
    }

    /// Returns true if the answer shows that a plain HTTP request was sent to a port that expects TLS.
    fn wants_tls(&self, outgoing: &Outgoing, response: &Response) -> bool {
        let is_plain = self.dialect.endpoint().starts_with("http://");
        is_plain && judge::wants_tls(&outgoing.method, &response.head, &response.body)
    }

    /// Returns the request with the caller's headers, except those that the verb sets itself. Requests for credentials
    /// and requests to other hosts, such as the URL of a session, get none of them.
    pub(crate) fn with_added_headers<'o>(&self, outgoing: &'o Outgoing) -> Cow<'o, Outgoing> {
        let added = self.dialect.added_headers();
        let is_elsewhere =
            |origin: &Origin| Origin::parse(&self.dialect.endpoint()).map_or(true, |own| own != *origin);
        if added.is_empty()
            || self.operation == Operation::Session
            || outgoing.origin.as_ref().is_some_and(is_elsewhere)
        {
            return Cow::Borrowed(outgoing);
        }
        let mut headers = added.clone();
        headers.extend(outgoing.headers.clone());
        Cow::Owned(Outgoing { headers, ..outgoing.clone() })
    }

    fn broken(&self, error: laneway_lanes::Error, delivered: bool) -> Error {
        let kind = match error.kind() {
            Kind::Sink => ErrorKind::Sink,
            Kind::Source => ErrorKind::Source,
            Kind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::Transport,
        };
        let (transient, is_last) = (error.is_transient(), error.is_last());
        let unreachable = matches!(
            error.kind(),
            Kind::Resolve | Kind::Connect | Kind::Tls | Kind::Scheme | Kind::Certificate
        );
        let message = error.to_string();
        let answer = self
            .error(kind, message)
            .retryable(transient)
            .interrupted(transient && delivered && !is_last)
            .unreachable(unreachable);
        match error.into_source() {
            Some(source) => match source.downcast::<RejectedResponse>() {
                Ok(rejected) => self.rejected(*rejected),
                Err(source) => answer.because(source),
            },
            None => answer,
        }
    }
}

/// Returns true if the answer is a web page.
fn is_html(sent: &ExchangeResponse) -> bool {
    let body = sent.response.body.trim_ascii_start();
    let begins = |with: &[u8]| body.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    let kind = sent.response.head.header("content-type");
    kind.is_some_and(|kind| kind.contains("html")) || begins(b"<html") || begins(b"<!doctype html")
}

/// Returns a message for a redirect that doesn't come from a store. A store's redirect to another region contains an
/// error code.
fn redirection(failure: &ErrorResponse, response: &Response) -> Option<String> {
    let to = response.head.header("location").filter(|_| failure.status.is_redirection())?;
    // The query and the fragment may contain a token, so the message leaves them out.
    let to = to.split(['?', '#']).next().unwrap_or_default();
    let is_plain = failure.code.is_none() && failure.region.is_none() && !to.contains('@');
    is_plain.then(|| {
        format!(
            "the server redirects to {to}, and Laneway doesn't follow redirects; is there a captive portal?"
        )
    })
}

/// Returns a key that is the same for all requests that Laneway slows down together. A store throttles only the busy
/// part of a bucket. So the key differs for each provider, endpoint, bucket and folder.
fn throttle_key(provider: Provider, endpoint: &str, bucket: &str, folder: &str) -> String {
    // None of the first three parts can contain a space, so different parts never make the same key.
    format!("{} {endpoint} {bucket} {folder}", provider.scheme())
}

/// The names under which requests are slowed down after a server throttles them: the throttle key, then the object and
/// the direction, if there is an object.
struct ThrottleNames {
    names: String,
    key_len: usize,
}

impl ThrottleNames {
    fn of(mut key: String, object: Option<(&str, bool)>) -> Self {
        let key_len = key.len();
        if let Some((object, is_read)) = object {
            // A folder's name has no slash, so this can't be equal to a throttle key.
            key.extend([if is_read { "/read " } else { "/write " }, object]);
        }
        Self { names: key, key_len }
    }
}

/// Returns the first folder of a key, or an empty string if the key has none.
fn first_folder(key: &str) -> &str {
    key.split_once('/').map_or("", |(folder, _)| folder)
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Makes the sink of an attempt.
pub(crate) type SinkFactory<'a> = dyn Fn() -> Box<dyn Sink> + Send + Sync + 'a;

/// The attempts of one exchange.
struct Attempts<'a, D> {
    exchange: &'a Exchange<'a, D>,
    outgoing: &'a Outgoing,
    question: Option<OffsetQuery<'a>>,
    /// True if the next attempt sends the question instead of the request.
    asks: AtomicBool,
    delivery: Option<&'a Delivery<'a>>,
    sinks: Option<&'a SinkFactory<'a>>,
    throttle: ThrottleNames,
    lessons: AtomicU32,
    uncertain: AtomicBool,
    /// The secrets that the latest attempt sends.
    shown: &'a Arc<Mutex<Secrets>>,
}

impl<D: HttpDialect> Call for Attempts<'_, D> {
    type Refusal = Error;

    async fn request(&self, _attempt: u32) -> Result<Request, Error> {
        let question = self.question.as_ref().filter(|_| self.asks.load(Ordering::Acquire));
        let mut request = self.made_of(question.map_or(self.outgoing, |question| question.outgoing)).await?;
        request.sink = match self.sinks {
            Some(sinks) => Some(sinks()),
            None => self.delivery.and_then(Delivery::sink),
        };
        Ok(request)
    }

    fn judge(&self, outcome: &Result<Response, laneway_lanes::Error>) -> Verdict {
        let dialect = self.exchange.dialect;
        let delivered = self.delivery.is_some_and(Delivery::delivered);
        let failure = match outcome {
            Ok(response) => dialect.failure(self.outgoing, response),
            Err(_) => None,
        };
        let ending = match (outcome, &failure) {
            (Err(error), _) => AttemptResult::Broken {
                kind: error.kind(),
                unsent: error.is_unsent(),
                transient: error.is_transient(),
            },
            (Ok(response), Some(failure)) => AttemptResult::Failure {
                failure,
                kind: dialect.kind(failure),
                learned: dialect.learn(self.exchange.bucket, self.outgoing, failure, response.credential)
                    && self.lessons.fetch_add(1, Ordering::AcqRel) < LESSONS_MAX,
            },
            (Ok(_), None) => AttemptResult::Success,
        };
        let verdict = judge::verdict(delivered, ending);
        if judge::may_have_acted(ending) {
            self.uncertain.store(true, Ordering::Release);
        }
        self.after_question(outcome, verdict)
    }

    fn breaks(&self) -> Option<(&Breaks, u64)> {
        self.delivery.and_then(Delivery::breaks).filter(|(_, came)| *came > 0)
    }

    fn throttle_key(&self) -> &str {
        &self.throttle.names[..self.throttle.key_len]
    }

    fn throttle_object(&self) -> Option<&str> {
        let ThrottleNames { names, key_len } = &self.throttle;
        (names.len() > *key_len).then_some(names)
    }

    /// Only reads are hedged. A second write would store the bytes twice, and its condition could fail because the
    /// first write succeeded.
    fn hedged_among(&self) -> Option<Alike> {
        let may_be_hedged = self.delivery.is_none_or(Delivery::may_be_hedged);
        (is_read(&self.outgoing.method) && may_be_hedged).then_some(Alike(self.exchange.operation as u8))
    }

    async fn hedge(&self) -> Hedge {
        let hedged = match self.delivery {
            Some(delivery) => delivery.hedge(),
            None => Some(HedgeRequest { range: None, sink: self.sinks.map(|sinks| sinks()) }),
        };
        let Some(HedgeRequest { range, sink }) = hedged else { return Hedge::Nothing };
        let mut outgoing = self.outgoing.clone();
        if let Some(range) = range {
            outgoing.expected = Some(range.end - range.start);
            outgoing.headers.insert("range", GetRange::from(range).header());
        }
        // If the second request can't be made, keep waiting for the first, which may still succeed.
        let Ok(mut request) = self.made_of(&outgoing).await else { return Hedge::Nothing };
        request.sink = sink;
        Hedge::Send(Box::new(request))
    }
}

impl<D: HttpDialect> Attempts<'_, D> {
    /// Changes a verdict if the request has a question. After a failed attempt, the next attempt sends the question. If
    /// its answer demands all the bytes, they are sent again.
    fn after_question(&self, outcome: &Result<Response, laneway_lanes::Error>, verdict: Verdict) -> Verdict {
        let Some(question) = &self.question else { return verdict };
        match (verdict, outcome) {
            (Verdict::Done, Ok(response)) => {
                let was_asked = self.asks.swap(false, Ordering::AcqRel);
                if was_asked && (question.wants_all)(&response.head) { Verdict::Again } else { verdict }
            }
            (Verdict::Done | Verdict::Again, _) => verdict,
            (_, Err(error)) if error.is_unsent() => verdict,
            _ => {
                self.asks.store(true, Ordering::Release);
                verdict
            }
        }
    }

    async fn made_of(&self, outgoing: &Outgoing) -> Result<Request, Error> {
        let Exchange { dialect, operation, bucket, .. } = *self.exchange;
        let (mut request, signer) = dialect.request(bucket, outgoing).await?;
        let shown = Arc::clone(self.shown);
        let note = move |request: &Request| {
            let secrets = Secrets::of_request(&request.headers, &request.target);
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = secrets;
        };
        note(&request);
        request.renew = Some(Arc::new(move |request: &mut Request| {
            signer.sign_again(request);
            note(request);
        }));
        request.sent = Some(dialect.tally().class(operation, &outgoing.method));
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttles_an_object_per_direction_under_a_name_no_folder_has() {
        let folder = throttle_key(Provider::S3, "https://h", "b", "logs");
        let of = |key, is_read| ThrottleNames::of(folder.clone(), Some((key, is_read))).names;
        let names = [of("logs/a", true), of("logs/a", false), of("logs/b", true)];
        assert!(names.iter().all(|name| name.starts_with(&folder)));
        let folders =
            names.each_ref().map(|name| throttle_key(Provider::S3, "https://h", "b", &name[folder.len()..]));
        let distinct: std::collections::BTreeSet<_> = names.iter().chain(&folders).chain([&folder]).collect();
        assert_eq!(distinct.len(), 7);
    }

    #[test]
    fn what_is_throttled_together_is_one_folder_of_one_bucket_of_one_endpoint() {
        let key =
            |provider, endpoint, bucket, key| throttle_key(provider, endpoint, bucket, first_folder(key));
        let of = key(Provider::S3, "https://h", "b", "logs/2026/a");
        assert_eq!(of, key(Provider::S3, "https://h", "b", "logs/x"));
        let others = [
            key(Provider::Gcs, "https://h", "b", "logs/x"),
            key(Provider::S3, "https://i", "b", "logs/x"),
            key(Provider::S3, "https://h", "c", "logs/x"),
            key(Provider::S3, "https://h", "b", "data/x"),
            key(Provider::S3, "https://h", "b", "logs"),
        ];
        assert!(!others.contains(&of), "{others:?}");
        // Objects outside any folder are slowed down together.
        assert_eq!(
            key(Provider::S3, "https://h", "b", "logs"),
            key(Provider::S3, "https://h", "b", "other.txt")
        );
    }
}
