//! Session credentials of directory buckets. One session serves all requests to a bucket and is replaced before it ends
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateSession.html>).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use http::header::HeaderValue;
use http::{HeaderMap, Method};
use laneway_lanes::{Lanes, Request, Response};
use serde::Deserialize;

use super::signer::Signer;
use super::{S3, encryption};
use crate::credentials::new_number;
use crate::exchange::{Exchange, HttpDialect, Outgoing};
use crate::judge::Failure;
use crate::requests::Tally;
use crate::timestamp::rfc3339;
use crate::{AccessKey, Error, ErrorKind, Operation, Provider, xml};

/// The lifetime of an S3 session, and the maximum that is accepted from S3's answer.
const LASTS: Duration = Duration::from_secs(300);
/// Time before its end at which a session is replaced, so that no request signed by it arrives too late.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// Minimum time of use for a session, even if clocks differ.
const USED_MIN: Duration = Duration::from_secs(30);

/// The sessions of all directory buckets.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Arc<Slot>>>);

/// The session of one bucket. The first request opens it while the others wait.
type Slot = tokio::sync::Mutex<Option<Session>>;

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) key: Arc<AccessKey>,
    pub(super) number: u64,
    /// The time of its replacement, and its end.
    renewed: Instant,
    ends: Instant,
}

impl Sessions {
    fn slot(&self, bucket: &str) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap_or_else(|e| e.into_inner());
        Arc::clone(slots.entry(bucket.to_owned()).or_default())
    }

    /// Discards a bucket's session with this number, unless another one has replaced it.
    pub(super) fn replace(&self, bucket: &str, number: u64) {
        // If another task holds the lock, it is already opening a new session.
        if let Ok(mut held) = self.slot(bucket).try_lock() {
            held.take_if(|session| session.number == number);
        }
    }
}

/// Returns how long a session that ends at `until` is used before its replacement, and how long it is valid.
fn lifetime(until: Option<SystemTime>, now: SystemTime) -> (Duration, Duration) {
    let lasts = until.and_then(|until| until.duration_since(now).ok()).unwrap_or_default().min(LASTS);
    (lasts.saturating_sub(RENEWED_BEFORE).max(USED_MIN), lasts.max(USED_MIN))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    credentials: Credentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

impl S3 {
    /// Returns the credentials of a directory bucket's session, and their end.
    ///
    /// # Errors
    /// The errors of [`Self::session`].
    pub(super) async fn session_until(&self, bucket: &str) -> Result<(Arc<AccessKey>, SystemTime), Error> {
        let session = self.session(bucket).await?;
        Ok((session.key, SystemTime::now() + session.ends.saturating_duration_since(Instant::now())))
    }

    /// Returns a directory bucket's session, and opens one if necessary.
    ///
    /// # Errors
    /// The store's error if it opens no session.
    pub(super) async fn session(&self, bucket: &str) -> Result<Session, Error> {
        let slot = self.sessions.slot(bucket);
        let mut held = slot.lock().await;
        let now = Instant::now();
        if let Some(session) = held.as_ref().filter(|session| now < session.renewed) {
            return Ok(session.clone());
        }
        match self.open_session(bucket).await {
            Ok(session) => Ok(held.insert(session).clone()),
            // An old session that is still valid is better than none.
            Err(error) => match held.as_ref().filter(|session| now < session.ends) {
                Some(session) => Ok(session.clone()),
                None => Err(error),
            },
        }
    }

    async fn open_session(&self, bucket: &str) -> Result<Session, Error> {
        let opening = Opening(self);
        let exchange = Exchange::bucket(&opening, Operation::Session, bucket);
        // A session without a mode has the caller's permissions.
        let mut outgoing = Outgoing::new(Method::GET, "?session=");
        outgoing.headers = self.session_encryption().map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange.send(&outgoing).await.map_err(|error| {
            let message = format!("the directory bucket opens no session: {}", error.message());
            let kind = error.kind();
            error.but(kind, message)
        })?;
        let Answer { credentials } = xml::read(&sent.response.body)
            // The answer contains secrets, which the parser's message may repeat.
            .map_err(|_| exchange.nonsense(&sent, "the answer holds no session's credentials"))?;
        let (used, lasts) = lifetime(rfc3339(&credentials.expiration), SystemTime::now());
        let now = Instant::now();
        let key = AccessKey::new(credentials.access_key_id, credentials.secret_access_key)
            .session_token(credentials.session_token);
        tracing::debug!(bucket, seconds = lasts.as_secs(), "a session of a directory bucket begins");
        Ok(Session { key: Arc::new(key), number: new_number(), renewed: now + used, ends: now + lasts })
    }

    /// Returns the encryption headers for the session's new objects. The objects' own requests can't contain these
    /// headers.
    fn session_encryption(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.kms_key {
            let key = HeaderValue::from_str(key)
                .map_err(|_| "the KMS key has characters that a header can't carry")?;
            encryption::with_kms_key(&mut headers, &key);
        }
        encryption::managed(&mut headers, &self.encryption);
        Ok(headers)
    }
}

/// The store while it opens a session. Its requests are signed by the caller's own credentials.
struct Opening<'a>(&'a S3);

impl HttpDialect for Opening<'_> {
    const PROVIDER: Provider = Provider::S3;

    const SERVICE: &'static str = "Amazon S3";

    fn lanes(&self) -> &Lanes {
        self.0.lanes()
    }

    fn tally(&self) -> &Tally {
        self.0.tally()
    }

    fn endpoint(&self) -> String {
        self.0.endpoint()
    }

    fn added_headers(&self) -> &HeaderMap {
        self.0.added_headers()
    }

    type Signer = Signer;

    async fn request(&self, bucket: &str, outgoing: &Outgoing) -> Result<(Request, Signer), Error> {
        self.0.signed(bucket, &self.0.regions.of(bucket), outgoing, None).await
    }

    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<Failure> {
        self.0.failure(outgoing, response)
    }

    fn kind(&self, failure: &Failure) -> ErrorKind {
        self.0.kind(failure)
    }

    fn learn(&self, _: &str, _: &Outgoing, failure: &Failure, credential: u64) -> bool {
        self.0.corrects_clock(failure)
            || (super::failure::is_stale(failure) && self.0.credentials.replaces(credential))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_replaced_before_it_ends() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let after = |s| Some(now + Duration::from_secs(s));
        let s = Duration::from_secs;
        assert_eq!(lifetime(after(300), now), (s(240), s(300)));
        assert_eq!(lifetime(after(3600), now), (s(240), s(300)));
        assert_eq!(lifetime(after(70), now), (s(30), s(70)));
        assert_eq!(lifetime(None, now), (s(30), s(30)));
        assert_eq!(lifetime(Some(SystemTime::UNIX_EPOCH), now), (s(30), s(30)));
    }

    #[test]
    fn the_answer_holds_keys_and_their_end() {
        let body = b"<CreateSessionResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Credentials><SessionToken>t</SessionToken>\
                     <SecretAccessKey>s</SecretAccessKey><AccessKeyId>a</AccessKeyId><Expiration>2026-11-22T00:05:00Z</Expiration>\
                     </Credentials></CreateSessionResult>";
        let Answer { credentials } = xml::read(body).expect("an answer");
        assert_eq!((credentials.access_key_id.as_str(), credentials.session_token.as_str()), ("a", "t"));
        assert!(rfc3339(&credentials.expiration).is_some());
    }
}
