//! Google Cloud Storage: the JSON API, and the XML API for parallel multipart uploads.

mod buckets;
mod delete;
mod dialect;
mod failure;
mod folders;
mod get;
mod list;
mod move_to;
mod multipart;
mod put;
pub(crate) mod resource;
mod resumable;
mod rewrite;
mod set_meta;
mod sign;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, StatusCode};
use laneway_lanes::{Lanes, Protocol, Request, Response};

use crate::credentials::{GoogleCredentials, google_endpoint};
use crate::encryption::{KeyHeaders, KeyUse};
use crate::endpoint::{Endpoint, is_private};
use crate::exchange::{HttpDialect, Outgoing, RequestSigner};
use crate::judge::ErrorResponse;
use crate::requests::RequestTally;
use crate::{CustomerKey, Encryption, Error, ErrorKind, Operation, Provider, Settings};

pub(crate) use self::dialect::CAPABILITIES;

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
            apply_customer_keys(&mut request.headers, outgoing.key_use, &self.encryption);
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

const OWN_KEY: KeyHeaders =
    ["x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256"];

const SOURCE_KEY: KeyHeaders = [
    "x-goog-copy-source-encryption-algorithm",
    "x-goog-copy-source-encryption-key",
    "x-goog-copy-source-encryption-key-sha256",
];

/// Adds the headers with the customer's keys for the objects that the request reads or writes.
///
/// <https://cloud.google.com/storage/docs/encryption/using-customer-supplied-keys>
fn apply_customer_keys(headers: &mut HeaderMap, key_use: KeyUse, encryption: &Encryption) {
    let (own, of_source) = (encryption.customer_key.as_ref(), encryption.source_customer_key.as_ref());
    match key_use {
        KeyUse::Nothing => {}
        KeyUse::Object | KeyUse::New => insert_key(headers, OWN_KEY, own),
        KeyUse::Source => insert_key(headers, OWN_KEY, of_source),
        KeyUse::Copy | KeyUse::PartCopy => {
            insert_key(headers, OWN_KEY, own);
            insert_key(headers, SOURCE_KEY, of_source);
        }
    }
}

fn insert_key(headers: &mut HeaderMap, names: KeyHeaders, key: Option<&CustomerKey>) {
    Encryption::insert_key(headers, names, key, CustomerKey::sha256);
}

/// Entry points for fuzzers: possible answers of a GCS server.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use http::{HeaderMap, StatusCode};
    use laneway_lanes::ResponseHead;
    use serde_json::{Value, json};

    use super::{delete, failure, list, resource, resumable};
    use crate::fuzzing::drawn_head;
    use crate::listing::fuzzing::{page, page_in_any_chunks};
    use crate::{List, ObjectId};

    /// Parses two pages of a listing: the input itself, and a document with one object for each line of the input.
    pub fn gcs_listing(input: &[u8]) {
        let list = List::new("b", "");
        page_in_any_chunks(&list, input, list::GcsPageParser::new);
        let Ok(text) = std::str::from_utf8(input) else { return };
        let names: Vec<&str> = text.lines().filter(|name| !name.is_empty()).collect();
        let item = |name: &&str| json!({"name": name, "size": "1", "metadata": {(name.to_string()): [name, {"items": [name]}]}});
        let items: Vec<Value> = names.iter().map(item).collect();
        let document = json!({"kind": "storage#objects", "items": items, "prefixes": names}).to_string();
        let found = page(&list, document.as_bytes(), 13, list::GcsPageParser::new()).expect("a page");
        let keys: Vec<&str> = found.objects.iter().map(|object| object.id.key.as_str()).collect();
        assert_eq!(keys, names);
        assert_eq!(found.prefixes, names);
    }

    /// Parses the input as the body of an error answer, with any error status.
    pub fn gcs_error(input: &[u8]) {
        let Some((status, body)) = input.split_first() else { return };
        let status = StatusCode::from_u16(400 + u16::from(*status) % 200).expect("a status");
        let read = failure::read(&ResponseHead { status, headers: HeaderMap::new() }, body);
        let _ = (failure::kind(&read), crate::judge::is_passing(&read));
    }

    /// Parses the headers that describe an object, and those of an upload session.
    pub fn gcs_headers(input: &[u8]) {
        let head = drawn_head(input);
        let _ = resource::from_head(&ObjectId::new("b", "k"), &head);
        let _ = resumable::next_offset(&head);
    }

    /// Parses the answers of a batch. The input's first line is the content type.
    pub fn gcs_batch(input: &[u8]) {
        let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let (content_type, body) = input.split_at(at);
        let Ok(content_type) = std::str::from_utf8(content_type) else { return };
        let answers = delete::batch_answers(content_type, body);
        assert!(answers.len() <= body.len());
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

    #[test]
    fn each_request_says_the_key_of_what_it_touches() {
        let encryption = Encryption {
            customer_key: CustomerKey::parse(&[1; 32]).ok(),
            source_customer_key: CustomerKey::parse(&[2; 32]).ok(),
            ..Encryption::default()
        };
        let (one, two) =
            ("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=");
        for (key_use, own, of_source) in [
            (KeyUse::Nothing, None, None),
            (KeyUse::Object, Some(one), None),
            (KeyUse::Source, Some(two), None),
            (KeyUse::New, Some(one), None),
            (KeyUse::Copy, Some(one), Some(two)),
        ] {
            let mut headers = HeaderMap::new();
            apply_customer_keys(&mut headers, key_use, &encryption);
            let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
            assert_eq!((said(OWN_KEY[1]), said(SOURCE_KEY[1])), (own, of_source), "{key_use:?}");
            assert!(!format!("{headers:?}").contains("AQEB"), "{headers:?}");
        }
    }
}
