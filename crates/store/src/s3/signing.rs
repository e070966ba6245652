//! Signs the requests to a bucket, and URLs with a signature in the query.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use http::header::{ACCEPT_ENCODING, USER_AGENT};
use http::request::Parts;
use laneway_lanes::Request;

use super::address::{RequestAddress, is_directory};
use super::get::object_target;
use super::session::BucketSession;
use super::{S3, headers};
use crate::credentials::{AwsCredentials, Key};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, RequestSigner};
use crate::presign::{as_text, ending};
use crate::{Error, ErrorKind, Method, ObjectId, Operation, SignOptions, SignedUrl};

/// If S3 refuses a request without a reason and the clocks differ by at least this many seconds, Laneway assumes that
/// the clock is the cause. The answer to a HEAD never has a reason, because it has no body. The value is a minute less
/// than S3's tolerance.
const SKEW_SILENT_S: i64 = 14 * 60;

/// The tolerance in seconds when the `Date` headers of two answers are compared. A `Date` has whole seconds, and some
/// time has passed when Laneway reads it.
const DATES_DIFFER_S: i64 = 60;

/// This machine's clock, corrected by the `Date` headers of the endpoint's answers.
///
/// S3 refuses signatures that are 15 minutes off
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>, `RequestTimeTooSkewed`).
#[derive(Debug, Default)]
pub(super) struct Clock {
    ahead_s: AtomicI64,
}

impl Clock {
    /// Returns the endpoint's time for the local time `local`.
    pub(super) fn at(&self, local: SystemTime) -> SystemTime {
        let ahead_s = self.ahead_s.load(Ordering::Acquire);
        let ahead = Duration::from_secs(ahead_s.unsigned_abs());
        let corrected = if ahead_s < 0 { local.checked_sub(ahead) } else { local.checked_add(ahead) };
        corrected.unwrap_or(local)
    }

    /// Corrects the clock by the `Date` of an answer that refused a signature because of its time, or without a reason.
    /// Returns true if the request can succeed with a new signature. `date` is compared with this machine's uncorrected
    /// clock, because another request may already have made the correction.
    pub(super) fn correct(&self, date: SystemTime, local: SystemTime, is_silent: bool) -> bool {
        let ahead_s = seconds_between(local, date);
        if is_silent && ahead_s.abs() < SKEW_SILENT_S {
            return false;
        }
        if seconds_between(self.at(local), date).abs() >= DATES_DIFFER_S {
            self.ahead_s.store(ahead_s, Ordering::Release);
            tracing::info!(
                ahead_s,
                "this machine's clock differs from the store's, so requests are signed with the store's time"
            );
        }
        true
    }
}

fn seconds_between(from: SystemTime, to: SystemTime) -> i64 {
    let signed = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match to.duration_since(from) {
        Ok(later) => signed(later),
        Err(earlier) => -signed(earlier.duration()),
    }
}

/// Signs requests for one service in one region.
pub(crate) struct S3Signer {
    pub(super) credentials: Arc<AwsCredentials>,
    pub(super) clock: Arc<Clock>,
    pub(super) service: &'static str,
    pub(super) region: String,
    pub(super) session: Option<BucketSession>,
}

impl S3Signer {
    /// Signs a request and returns the credential's number. Anonymous requests aren't changed.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials, `Invalid` for headers that can't be signed.
    pub(super) async fn sign(&self, request: &mut Parts) -> Result<u64, Error> {
        let key = match &self.session {
            Some(_) => None,
            None => self.credentials.credential().await?,
        };
        self.sign_by(key.as_ref(), request)
    }

    fn sign_by(&self, key: Option<&Key>, request: &mut Parts) -> Result<u64, Error> {
        let (scope, now) = ((&*self.region, self.service), self.clock.at(SystemTime::now()));
        match (&self.session, key) {
            (Some(session), _) => {
                AwsCredentials::sign_by_session(&session.key, scope, now, request)?;
                Ok(session.number)
            }
            (None, Some(key)) => AwsCredentials::sign(key, scope, now, request),
            (None, None) => Ok(0),
        }
    }
}

impl RequestSigner for S3Signer {
    fn sign_again(&self, request: &mut Request) {
        let key = self.credentials.held();
        if key.is_none() && self.session.is_none() {
            return;
        }
        let Ok(uri) = format!("{}{}", request.origin, request.target).parse() else { return };
        let (mut parts, ()) = http::Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) = (request.method.clone(), uri, request.headers.clone());
        // Proxies may change these headers, which would break the signature, so they aren't signed.
        let unsigned = [USER_AGENT, ACCEPT_ENCODING].map(|name| (parts.headers.remove(&name), name));
        if let Ok(credential) = self.sign_by(key.as_ref(), &mut parts) {
            for (value, name) in unsigned {
                parts.headers.extend(value.map(|value| (name, value)));
            }
            (request.headers, request.credential) = (parts.headers, credential);
        }
    }
}

impl S3 {
    /// Returns a URL of an object, signed at `now` of this machine's clock. It sends a request only to find out the
    /// bucket's region, or to open the session of a directory bucket.
    pub(crate) async fn sign_url(
        &self,
        id: &ObjectId,
        options: &SignOptions,
        now: SystemTime,
    ) -> Result<SignedUrl, Error> {
        let exchange = Exchange::object(self, Operation::Sign, id);
        let invalid = |why: String| exchange.error(ErrorKind::Invalid, why);
        let on = |error: Error| error.on_object(crate::Provider::S3, id);
        let expires_s = options.expires_s().map_err(invalid)?;
        if self.encryption.customer_key.is_some() {
            return Err(invalid(
                "a signed URL can't carry a customer's key; sign it without the key".to_owned(),
            ));
        }
        let mut query = QueryString::new();
        for (name, value) in options.own_query("X-Amz-").map_err(invalid)? {
            query = query.and(name, value);
        }
        // The requester-pays setting may be in the query instead of a header, so that the URL's user needn't send the
        // header (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ObjectsinRequesterPaysBuckets.html).
        for (name, value) in &self.headers {
            query = query.and(name.as_str(), value.to_str().unwrap_or_default());
        }
        let mut headers = options.signed_headers(&self.added_headers).map_err(invalid)?;
        if matches!(options.method, Method::Put | Method::Post) {
            if let Some(key) = &self.kms_key {
                let key = http::HeaderValue::from_str(key).map_err(|_| {
                    invalid("the KMS key has characters that a header can't carry".to_owned())
                })?;
                headers::with_kms_key(&mut headers, &key);
            }
            headers::apply_encryption(&mut headers, KeyUse::New, &self.encryption);
        }
        // The region must be known before signing. S3 would redirect a URL with the wrong region, but the signature is
        // valid for one region only.
        let region = self.region(&id.bucket, true).await;
        let RequestAddress { origin, target, service, region } =
            self.address.locate(&id.bucket, &region, &object_target(id, &query)).map_err(on)?;
        let session = match is_directory(&id.bucket) && !self.credentials.is_anonymous() {
            true => Some(self.session_until(&id.bucket).await.map_err(on)?),
            false => None,
        };
        if session.is_some() {
            headers::without_managed(&mut headers);
        }
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.method = http::Method::from_bytes(options.method.name().as_bytes()).unwrap_or_default();
        parts.uri = format!("{origin}{target}").parse().map_err(|e| invalid(format!("no URL: {e}")))?;
        parts.headers = headers;
        let at = self.clock.at(now);
        let (url, end) = self
            .credentials
            .presign(session.as_ref(), (service, &region), expires_s, at, &parts)
            .await
            .map_err(on)?;
        let (expires_at, ends_early) =
            ending(now, expires_s, end, "the credentials that signed it expire at that time");
        let headers = as_text(&parts.headers).map_err(invalid)?;
        Ok(SignedUrl { url, expires_at, ends_early, headers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_corrected_by_the_date_and_only_where_it_is_wrong() {
        let local = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let hour = Duration::from_secs(3600);
        for date in [local + hour, local - hour] {
            let clock = Clock::default();
            assert_eq!(clock.at(local), local);
            assert!(clock.correct(date, local, false));
            assert_eq!(clock.at(local), date);
            assert!(clock.correct(date + Duration::from_secs(5), local, false), "others of the same burst");
            assert_eq!(clock.at(local + hour), date + hour);
        }
    }

    #[test]
    fn a_silent_refusal_is_about_the_clock_only_where_that_is_far_off() {
        let (clock, local) = (Clock::default(), SystemTime::now());
        assert!(!clock.correct(local + Duration::from_secs(13 * 60), local, true));
        assert!(clock.correct(local + Duration::from_secs(16 * 60), local, true));
    }
}
