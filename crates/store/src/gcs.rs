//! Google Cloud Storage: the JSON API, and the XML API for parallel multipart uploads.

mod acl;
mod batch;
mod bucket_settings;
mod buckets;
mod compose;
mod delete;
mod dialect;
mod encryption;
mod failure;
mod folders;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod get;
mod head;
mod list;
mod move_to;
mod multipart;
mod put;
pub(crate) mod resource;
mod restore;
mod resumable;
mod rewrite;
mod set_meta;
mod sign;
mod text_fields;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, StatusCode};
use laneway_lanes::{Lanes, Protocol, Request, Response};

pub(crate) use self::dialect::CAPABILITIES;
use crate::credentials::{GoogleCredentials, google_endpoint};
use crate::encryption::KeyUse;
use crate::endpoint::{Endpoint, is_private};
use crate::exchange::{HttpDialect, Outgoing, RequestSigner};
use crate::judge::ErrorResponse;
use crate::requests::RequestTally;
use crate::{Encryption, Error, ErrorKind, Operation, Provider, Settings};

/// The GCS dialect with its endpoint and credentials.
#[derive(Debug)]
pub(crate) struct Gcs {
    lanes: Lanes,
    tally: RequestTally,
    endpoint: Endpoint,
    credentials: Arc<GoogleCredentials>,
    /// The headers that every request carries.
    headers: HeaderMap,
    added_headers: HeaderMap,
    project: Option<String>,
    kms_key: Option<String>,
    encryption: Encryption,
    /// Remembers that the server doesn't support XML multipart uploads.
    lacks_multipart: BucketRefusals,
    /// The buckets in which the credentials don't permit multipart uploads.
    multipart_refused: BucketRefusals,
    /// Remembers that the server doesn't support batches.
    lacks_batch: BucketRefusals,
    /// The buckets in which the credentials don't permit moves, and the endpoint if the server doesn't support them.
    lacks_move: BucketRefusals,
    /// Records for each bucket if it has a hierarchical namespace. This property of a bucket never changes.
    namespaces: Mutex<BTreeMap<String, bool>>,
}

/// The key of a refusal that concerns the whole endpoint. No bucket has this name.
const ENDPOINT: &str = "";

/// After this time, a refused kind of request is tried again. The refusal may have come from a proxy or from a server
/// that is being replaced, and a missing role may have been granted since. Trying again every ten minutes costs a long
/// job almost nothing.
const BELIEVED: Duration = Duration::from_secs(600);

/// The buckets that have refused one kind of request, with the time of each refusal.
#[derive(Debug, Default)]
struct BucketRefusals(Mutex<BTreeMap<String, Instant>>);

impl BucketRefusals {
    fn has(&self, bucket: &str, now: Instant) -> bool {
        self.lock().get(bucket).is_some_and(|since| now.saturating_duration_since(*since) < BELIEVED)
    }

    fn add(&self, bucket: &str, now: Instant) {
        self.lock().insert(bucket.to_owned(), now);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gcs {
    pub(crate) fn new(settings: &Settings, lanes: Lanes) -> Result<Arc<Self>, Error> {
        let endpoint = google_endpoint(settings)?;
        if endpoint.is_tls() {
            lanes.expect(&endpoint.origin, Protocol::H2);
        }
        check(settings, &endpoint)?;
        let mut headers = HeaderMap::new();
        if let Some(project) = &settings.user_project {
            let invalid = |_| {
                Error::new(ErrorKind::Invalid, Operation::Open, format!("{project:?} isn't a valid project"))
            };
            headers.insert("x-goog-user-project", HeaderValue::try_from(project).map_err(invalid)?);
        }
        let credentials = Arc::new(GoogleCredentials::new(settings, &endpoint, &lanes));
        Ok(Arc::new(Self {
            lanes,
            tally: RequestTally::default(),
            endpoint,
            credentials,
            headers,
            added_headers: settings.added_headers()?,
            project: settings.project.clone(),
            kms_key: settings.kms_key.clone(),
            encryption: settings.encryption.clone(),
            lacks_multipart: BucketRefusals::default(),
            multipart_refused: BucketRefusals::default(),
            lacks_batch: BucketRefusals::default(),
            lacks_move: BucketRefusals::default(),
            namespaces: Mutex::default(),
        }))
    }

    fn namespaces(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the parameter that asks a JSON call for an answer without indentation. GCS indents by default
/// (<https://cloud.google.com/storage/docs/json_api/v1/parameters#query>).
fn compact(target: &str) -> Cow<'_, str> {
    let is_json = target.starts_with("/storage/v1/") || target.starts_with("/upload/storage/v1/");
    if !is_json || target.contains("?alt=media") {
        return target.into();
    }
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{target}{separator}prettyPrint=false").into()
}

/// Returns an error for settings that GCS doesn't support, and for a customer's key that would be sent unencrypted.
fn check(settings: &Settings, endpoint: &Endpoint) -> Result<(), Error> {
    let Encryption { algorithm, customer_key, source_customer_key, .. } = &settings.encryption;
    let invalid = |why: String| Err(Error::new(ErrorKind::Invalid, Operation::Open, why));
    if let Some(algorithm) = algorithm {
        return invalid(format!(
            "{} is an algorithm of S3; GCS supports a KMS key or a customer's key",
            algorithm.name()
        ));
    }
    if let Some(why) = settings.encryption.contradiction(settings.kms_key.as_deref()) {
        return invalid(why.to_owned());
    }
    if (customer_key.is_some() || source_customer_key.is_some()) && !is_private(&endpoint.origin) {
        return invalid(format!(
            "a customer's key would go to {} unencrypted: use https://",
            endpoint.origin
        ));
    }
    Ok(())
}

/// Renews the token of a request, if the request has one.
pub(crate) struct GcsSigner(Option<Arc<GoogleCredentials>>);

impl RequestSigner for GcsSigner {
    fn sign_again(&self, request: &mut Request) {
        if let Some(google) = &self.0 {
            request.credential = google.authorize_again(&mut request.headers).unwrap_or(request.credential);
        }
    }
}

impl HttpDialect for Gcs {
    const PROVIDER: Provider = Provider::Gcs;

    const SERVICE: &'static str = "Google Cloud Storage";

    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn tally(&self) -> &RequestTally {
        &self.tally
    }

    fn endpoint(&self) -> String {
        self.endpoint.to_string()
    }

    fn added_headers(&self) -> &HeaderMap {
        &self.added_headers
    }

    type Signer = GcsSigner;

    async fn request(&self, _bucket: &str, outgoing: &Outgoing) -> Result<(Request, GcsSigner), Error> {
        let (origin, target) = match &outgoing.origin {
            Some(origin) => (origin.clone(), outgoing.target.clone()),
            None => {
                let target = compact(&outgoing.target);
                (self.endpoint.origin.clone(), format!("{}{target}", self.endpoint.base))
            }
        };
        let target = target.parse().map_err(|e| {
            Error::new(
                ErrorKind::Invalid,
                Operation::Open,
                format!("the request's path and query can't be sent: {e}"),
            )
        })?;
        // The URL of an upload session authorises the request by itself. It may point to another host, which must not
        // get our token.
        let ours = origin == self.endpoint.origin;
        let mut request = Request::new(origin, outgoing.method.clone(), target);
        request.headers = self.headers.clone();
        request.headers.extend(outgoing.headers.clone());
        if ours && outgoing.key_use != KeyUse::Nothing {
            encryption::apply(&mut request.headers, outgoing.key_use, &self.encryption);
        }
        if ours {
            request.credential = self.credentials.authorize(&mut request.headers).await?;
        }
        request.body = outgoing.body.clone();
        request.expected = outgoing.expected;
        request.no_progress = outgoing.no_progress;
        Ok((request, GcsSigner(ours.then(|| Arc::clone(&self.credentials)))))
    }

    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<ErrorResponse> {
        let status = response.head.status;
        if status.is_success() || outgoing.also == Some(status) {
            return None;
        }
        Some(failure::read(&response.head, &response.body))
    }

    fn kind(&self, failure: &ErrorResponse) -> ErrorKind {
        failure::kind(failure)
    }

    fn learn(&self, _bucket: &str, _: &Outgoing, failure: &ErrorResponse, credential: u64) -> bool {
        failure.status == StatusCode::UNAUTHORIZED && self.credentials.replaces(credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_believed_for_its_bucket_and_for_a_while() {
        let (refusals, now) = (BucketRefusals::default(), Instant::now());
        refusals.add("b", now);
        assert!(refusals.has("b", now + BELIEVED / 2) && !refusals.has(ENDPOINT, now));
        assert!(!refusals.has("b", now + BELIEVED));
        refusals.add("b", now + BELIEVED);
        assert!(refusals.has("b", now + BELIEVED), "it was refused again");
    }

    #[test]
    fn answers_in_json_are_asked_for_without_indentation() {
        assert_eq!(compact("/storage/v1/b/b/o?prefix=a"), "/storage/v1/b/b/o?prefix=a&prettyPrint=false");
        assert_eq!(compact("/storage/v1/b/b/o/k"), "/storage/v1/b/b/o/k?prettyPrint=false");
        for other in ["/storage/v1/b/b/o/k?alt=media&generation=1", "/b/k?uploads=", "/batch/storage/v1"] {
            assert_eq!(compact(other), other);
        }
    }
}
