//! Session credentials of directory buckets. One session serves all requests to a bucket and is replaced before it ends
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateSession.html>).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use http::header::HeaderValue;
use http::{HeaderMap, Method};
use laneway_lanes::{Lanes, Request, Response};
use serde::Deserialize;

use super::signing::S3Signer;
use super::{S3, headers};
use crate::credentials::new_number;
use crate::exchange::{Exchange, HttpDialect, Outgoing};
use crate::judge::ErrorResponse;
use crate::requests::RequestTally;
use crate::timestamp::rfc3339;
use crate::{AccessKey, Error, ErrorKind, Operation, Provider, xml};

/// The lifetime of an S3 session. If S3's answer states a longer one, this maximum is used.
const LASTS: Duration = Duration::from_secs(300);
/// A session is replaced this long before it ends, so that no request that it signed arrives too late.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// A session is used for at least this long. If the clocks differ, its remaining lifetime may be computed as too short.
const USED_MIN: Duration = Duration::from_secs(30);

/// The sessions of all directory buckets.
#[derive(Debug, Default)]
pub(super) struct BucketSessions(Mutex<HashMap<String, Arc<SessionSlot>>>);

/// The session of one bucket. The first request locks it and opens the session, and the other requests wait.
type SessionSlot = tokio::sync::Mutex<Option<BucketSession>>;

#[derive(Clone, Debug)]
pub(super) struct BucketSession {
    pub(super) key: Arc<AccessKey>,
    pub(super) number: u64,
    /// The time at which to replace the session. `ends` is the time at which it expires.
    renewed: Instant,
    ends: Instant,
}

impl BucketSessions {
    fn slot(&self, bucket: &str) -> Arc<SessionSlot> {
        let mut slots = self.0.lock().unwrap_or_else(|e| e.into_inner());
        Arc::clone(slots.entry(bucket.to_owned()).or_default())
    }

    /// Discards a bucket's session if it still has this number, that is, if no newer session has replaced it.
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
struct CreateSessionResult {
    credentials: SessionCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SessionCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

impl S3 {
    /// Returns the credentials of a directory bucket's session, and the time at which they expire.
    ///
    /// # Errors
    /// As for [`session`](Self::session).
    pub(super) async fn session_until(&self, bucket: &str) -> Result<(Arc<AccessKey>, SystemTime), Error> {
        let session = self.session(bucket).await?;
        Ok((session.key, SystemTime::now() + session.ends.saturating_duration_since(Instant::now())))
    }

    /// Returns a directory bucket's session, and opens one if necessary.
    ///
    /// # Errors
    /// Returns the store's error if it doesn't open a session.
    pub(super) async fn session(&self, bucket: &str) -> Result<BucketSession, Error> {
        let slot = self.sessions.slot(bucket);
        let mut held = slot.lock().await;
        let now = Instant::now();
        if let Some(session) = held.as_ref().filter(|session| now < session.renewed) {
            return Ok(session.clone());
        }
        match self.open_session(bucket).await {
            Ok(session) => Ok(held.insert(session).clone()),
            // If no new session can be opened, continue with the old one while it is valid.
            Err(error) => match held.as_ref().filter(|session| now < session.ends) {
                Some(session) => Ok(session.clone()),
                None => Err(error),
            },
        }
    }

    async fn open_session(&self, bucket: &str) -> Result<BucketSession, Error> {
        let opening = SessionOpener(self);
        let exchange = Exchange::bucket(&opening, Operation::Session, bucket);
        // The request names no session mode, so the session has all permissions of the caller.
        let mut outgoing = Outgoing::new(Method::GET, "?session=");
        outgoing.headers = self.session_encryption().map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange.send(&outgoing).await.map_err(|error| {
            let message = format!("the directory bucket didn't open a session: {}", error.message());
            let kind = error.kind();
            error.but(kind, message)
        })?;
        let CreateSessionResult { credentials } = xml::read(&sent.response.body)
            // The answer contains secrets, and the parser's message might quote them, so it is dropped.
            .map_err(|_| {
                exchange.nonsense(&sent, "the answer doesn't contain the credentials of a session")
            })?;
        let (used, lasts) = lifetime(rfc3339(&credentials.expiration), SystemTime::now());
        let now = Instant::now();
        let key = AccessKey::new(credentials.access_key_id, credentials.secret_access_key)
            .session_token(credentials.session_token);
        tracing::debug!(bucket, seconds = lasts.as_secs(), "opened a session of a directory bucket");
        Ok(BucketSession { key: Arc::new(key), number: new_number(), renewed: now + used, ends: now + lasts })
    }

    /// Returns the encryption headers for the session's new objects. In a directory bucket, requests for single objects
    /// can't carry these headers.
    fn session_encryption(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.kms_key {
            let key = HeaderValue::from_str(key)
                .map_err(|_| "the KMS key has characters that a header can't carry")?;
            headers::with_kms_key(&mut headers, &key);
        }
        headers::managed(&mut headers, &self.encryption);
        Ok(headers)
    }
}

/// The store as it opens a session: it signs with the caller's own credentials, because there is no session yet.
struct SessionOpener<'a>(&'a S3);

impl HttpDialect for SessionOpener<'_> {
    const PROVIDER: Provider = Provider::S3;

    const SERVICE: &'static str = "Amazon S3";

    fn lanes(&self) -> &Lanes {
        self.0.lanes()
    }

    fn tally(&self) -> &RequestTally {
        self.0.tally()
    }

    fn endpoint(&self) -> String {
        self.0.endpoint()
    }

    fn added_headers(&self) -> &HeaderMap {
        self.0.added_headers()
    }

    type Signer = S3Signer;

    async fn request(&self, bucket: &str, outgoing: &Outgoing) -> Result<(Request, S3Signer), Error> {
        self.0.signed(bucket, &self.0.regions.of(bucket), outgoing, None).await
    }

    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<ErrorResponse> {
        self.0.failure(outgoing, response)
    }

    fn kind(&self, failure: &ErrorResponse) -> ErrorKind {
        self.0.kind(failure)
    }

    fn learn(&self, _: &str, _: &Outgoing, failure: &ErrorResponse, credential: u64) -> bool {
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
        let CreateSessionResult { credentials } = xml::read(body).expect("an answer");
        assert_eq!((credentials.access_key_id.as_str(), credentials.session_token.as_str()), ("a", "t"));
        assert!(rfc3339(&credentials.expiration).is_some());
    }
}
