//! The dialect of Amazon S3 and of compatible stores.

mod address;
mod buckets;
mod checksum_support;
mod conditions;
mod copy;
mod delete;
mod dialect;
mod etags;
mod failure;
mod get;
mod headers;
mod list;
mod multipart;
mod put;
mod regions;
mod restore;
mod session;
mod set_meta;
mod signing;
mod versions;
mod write_conditions;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use http::header::{ACCEPT_ENCODING, HOST};
use http::{HeaderMap, HeaderValue, Method};
use laneway_lanes::{Lanes, Origin, Protocol, Request, Response};

use self::address::{Address, RequestAddress, is_directory};
use self::checksum_support::ChecksumSupport;
use self::etags::Etags;
use self::regions::Regions;
use self::session::{BucketSession, BucketSessions};
use self::signing::{Clock, S3Signer};
use self::write_conditions::WriteConditions;
use crate::credentials::AwsCredentials;
use crate::encryption::KeyUse;
use crate::endpoint::{Partition, is_private};
use crate::exchange::{HttpDialect, Outgoing};
use crate::judge::ErrorResponse;
use crate::requests::RequestTally;
use crate::settings::completed;
use crate::{ChecksumAlgorithm, Encryption, Error, ErrorKind, Operation, Provider, Settings};

pub(crate) use self::dialect::CAPABILITIES;

/// The SHA-256 of an empty body.
const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The S3 dialect with its endpoint and credentials.
#[derive(Debug)]
pub(crate) struct S3 {
    lanes: Lanes,
    tally: RequestTally,
    address: Address,
    credentials: Arc<AwsCredentials>,
    /// Headers of every request.
    headers: HeaderMap,
    added_headers: HeaderMap,
    clock: Arc<Clock>,
    kms_key: Option<String>,
    encryption: Encryption,
    regions: Regions,
    sessions: BucketSessions,
    /// The way in which the endpoint treats conditional writes, as far as it is known.
    conditions: WriteConditions,
    /// The endpoint's support of checksums in requests, as far as it is known.
    checksums: ChecksumSupport,
    /// The checksum of uploads that the caller chose.
    checksum_algorithm: ChecksumAlgorithm,
    /// The meaning of the endpoint's ETags, as far as it is known.
    etags: Etags,
    /// True if ETags of the form `digest-number` are known to be MD5s of the parts' MD5s. This holds at Amazon, and at
    /// any endpoint where one such ETag has matched.
    md5s_of_parts: AtomicBool,
    /// True after the endpoint answered GetObjectAttributes with something else, such as the object itself.
    lacks_attributes: AtomicBool,
    /// Remembers if listings may request the restore status of archived objects from this endpoint.
    restores: restore::RestoreStatusSupport,
    /// The version of the listing request that the endpoint supports. It is set once an answer has shown it.
    list_form: OnceLock<list::ListForm>,
}

impl S3 {
    pub(crate) fn new(settings: &Settings, lanes: Lanes) -> Result<Arc<Self>, Error> {
        let settings = &completed(settings)?;
        let address = Address::new(settings)?;
        if let Some(origin) = address.origin() {
            lanes.expect(origin, Protocol::H1);
        }
        let conditions = WriteConditions::new(address.origin());
        let etags = Etags::new(address.origin());
        let md5s_of_parts =
            AtomicBool::new(address.origin().is_none_or(|at| Partition::claims_host(&at.host)));
        if let Some(why) = settings.encryption.contradiction(settings.kms_key.as_deref()) {
            return Err(Error::new(ErrorKind::Invalid, Operation::Open, why));
        }
        let mut headers = HeaderMap::new();
        if settings.request_payer {
            headers.insert("x-amz-request-payer", HeaderValue::from_static("requester"));
        }
        let credentials = Arc::new(AwsCredentials::new(settings, &lanes));
        Ok(Arc::new(Self {
            lanes,
            tally: RequestTally::default(),
            address,
            credentials,
            headers,
            added_headers: settings.added_headers()?,
            clock: Arc::default(),
            kms_key: settings.kms_key.clone(),
            encryption: settings.encryption.clone(),
            regions: Regions::new(settings.region.as_deref()),
            sessions: BucketSessions::default(),
            conditions,
            checksums: ChecksumSupport::new(settings.request_checksums.unwrap_or_default()),
            checksum_algorithm: settings.checksum_algorithm,
            etags,
            md5s_of_parts,
            lacks_attributes: AtomicBool::new(false),
            restores: restore::RestoreStatusSupport::default(),
            list_form: OnceLock::new(),
        }))
    }

    /// Returns the origin of a bucket's objects, if it is known.
    fn origin(&self, bucket: &str) -> Option<Origin> {
        if self.regions.must_ask(bucket, self.address.has_regions(bucket), true) {
            return None;
        }
        Some(self.address.locate(bucket, &self.regions.of(bucket), "/").ok()?.origin)
    }

    /// Returns an error if a customer's key would be sent over a network unencrypted.
    ///
    /// # Errors
    /// `Invalid` if the key would be sent unencrypted.
    fn bears_secrets(&self, origin: &Origin) -> Result<(), Error> {
        let has_key = self.encryption.customer_key.is_some() || self.encryption.source_customer_key.is_some();
        if has_key && !is_private(origin) {
            let message = format!("a customer's key would go to {origin} unencrypted: use https://");
            return Err(Error::new(ErrorKind::Invalid, Operation::Open, message));
        }
        Ok(())
    }

    /// Builds a request for a region and signs it, with a directory bucket's session or with the caller's own
    /// credentials.
    async fn signed(
        &self,
        bucket: &str,
        region: &str,
        outgoing: &Outgoing,
        session: Option<BucketSession>,
    ) -> Result<(Request, S3Signer), Error> {
        let invalid = |why: String| Error::new(ErrorKind::Invalid, Operation::Open, why);
        let RequestAddress { origin, target, service, region } =
            self.address.locate(bucket, region, &outgoing.target)?;
        let uri: http::Uri = format!("{origin}{target}")
            .parse()
            .map_err(|e| invalid(format!("the request's path and query can't be sent: {e}")))?;
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.method = outgoing.method.clone();
        parts.uri = uri;
        parts.headers = self.headers.clone();
        parts.headers.extend(outgoing.headers.clone());
        if outgoing.key_use != KeyUse::Nothing {
            self.bears_secrets(&origin)?;
            headers::apply_encryption(&mut parts.headers, outgoing.key_use, &self.encryption);
        }
        if outgoing.body.is_empty() {
            // Buckets may refuse unsigned payloads by policy, and the hash of an empty body costs nothing. For other
            // bodies, the payload isn't signed. A checksum in a signed header protects the body instead, even without
            // TLS. A hash would need a second pass over all bytes, and would only help against attackers who can
            // already read and replay requests.
            parts.headers.insert("x-amz-content-sha256", HeaderValue::from_static(SHA256_OF_NOTHING));
        }
        if is_directory(bucket) {
            // Directory buckets don't support MD5.
            parts.headers.remove("content-md5");
        }
        if session.is_some() {
            headers::without_managed(&mut parts.headers);
        }
        let (credentials, clock) = (Arc::clone(&self.credentials), Arc::clone(&self.clock));
        let signer = S3Signer { credentials, clock, service, region, session };
        let credential = signer.sign(&mut parts).await?;
        // To a HEAD, Cloudflare sends a Content-Length only if the request refuses all encodings. Google's front end
        // would decompress objects that are stored as gzip if the request didn't accept gzip.
        let encoding = if is_google(&origin) { "gzip" } else { "identity" };
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        // The lanes add the host again, in the form that the connection's protocol requires.
        parts.headers.remove(HOST);
        // Parse the target's text, which was signed, instead of taking it from the absolute URI. So exactly the signed
        // bytes are sent.
        let target = target
            .parse()
            .map_err(|e| invalid(format!("the request's path and query can't be sent: {e}")))?;
        let mut request = Request::new(origin, parts.method, target);
        request.headers = parts.headers;
        request.body = outgoing.body.clone();
        request.expected = outgoing.expected;
        request.no_progress = outgoing.no_progress;
        request.credential = credential;
        Ok((request, signer))
    }

    /// Corrects the clock if a failure may be due to the signature's time. Returns true if the request can then
    /// succeed.
    fn corrects_clock(&self, failure: &ErrorResponse) -> bool {
        let corrects = |date| self.clock.correct(date, SystemTime::now(), failure.is_silent);
        failure::may_be_skewed(failure) && failure.date.is_some_and(corrects)
    }
}

impl HttpDialect for S3 {
    const PROVIDER: Provider = Provider::S3;

    const SERVICE: &'static str = "Amazon S3";

    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn tally(&self) -> &RequestTally {
        &self.tally
    }

    fn endpoint(&self) -> String {
        self.address.to_string()
    }

    fn added_headers(&self) -> &HeaderMap {
        &self.added_headers
    }

    fn checksum_algorithm(&self) -> ChecksumAlgorithm {
        self.checksum_algorithm
    }

    type Signer = S3Signer;

    async fn request(&self, bucket: &str, outgoing: &Outgoing) -> Result<(Request, S3Signer), Error> {
        let region = self.region(bucket, !outgoing.body.is_empty()).await;
        let is_signed = !self.credentials.is_anonymous();
        let session = match is_signed && is_directory(bucket) && is_of_session(outgoing) {
            // This future is boxed, like a lookup of the region, because it is rarely needed. Otherwise the future of
            // every request would be larger by its size.
            true => Some(Box::pin(self.session(bucket)).await?),
            false => None,
        };
        self.signed(bucket, &region, outgoing, session).await
    }

    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<ErrorResponse> {
        self.conditions.observe(&response.head);
        let status = response.head.status;
        if outgoing.also == Some(status) {
            return None;
        }
        let failure = match status.is_success() {
            true if outgoing.doubtful => failure::inside(&response.head, &response.body)?,
            true => return None,
            false => failure::read(&outgoing.method, &response.head, &response.body),
        };
        Some(ErrorResponse {
            is_final: outgoing.conflict_is_final && failure::is_conflict(&failure),
            ..failure
        })
    }

    fn kind(&self, failure: &ErrorResponse) -> ErrorKind {
        failure::kind(failure)
    }

    fn learn(&self, bucket: &str, outgoing: &Outgoing, failure: &ErrorResponse, credential: u64) -> bool {
        if failure::is_elsewhere(failure) {
            let is_certain = failure::is_certainly_elsewhere(failure);
            // A concurrent request may have recorded the region just before, so `found` doesn't report it as new. This
            // request must still be tried again.
            let is_known = match &failure.region {
                Some(region) => self.regions.found(bucket, region) || is_certain,
                None => is_certain && self.regions.lost(bucket),
            };
            if is_known {
                return true;
            }
        }
        if self.corrects_clock(failure) {
            return true;
        }
        if !failure::is_stale(failure) {
            return false;
        }
        if is_directory(bucket) && is_of_session(outgoing) {
            self.sessions.replace(bucket, credential);
            return !self.credentials.is_anonymous();
        }
        self.credentials.replaces(credential)
    }
}

/// Returns true if the origin is Google Cloud Storage, whose XML API understands S3 requests.
fn is_google(origin: &Origin) -> bool {
    let host = origin.host.strip_suffix("storage.googleapis.com");
    host.is_some_and(|bucket| bucket.is_empty() || bucket.ends_with('.'))
}

/// Returns true if a request to a directory bucket must be signed with the bucket's session. Copies and requests about
/// the bucket itself are signed with the caller's own credentials.
fn is_of_session(outgoing: &Outgoing) -> bool {
    let is_about_bucket = outgoing.method == Method::HEAD && !outgoing.target.starts_with('/');
    !is_about_bucket && !outgoing.headers.contains_key("x-amz-copy-source")
}

/// Entry points for the fuzzers, which parse the input as the answers of an S3 server.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use http::{Method, StatusCode};
    use laneway_lanes::ResponseHead;

    use super::conditions::unquoted;
    use super::{delete, failure, headers, list, versions};
    use crate::fuzzing::drawn_head;
    use crate::listing::fuzzing::{page, page_in_any_chunks};
    use crate::{List, ObjectId, ObjectMeta};

    /// Parses two pages of a listing: the input as it is, and a document with one key for each line of the input.
    pub fn s3_listing(input: &[u8]) {
        let list = List::new("b", "");
        page_in_any_chunks(&list, input, || list::S3PageParser::new(false));
        page_in_any_chunks(&list, input, versions::VersionsPageParser::default);
        let Ok(text) = std::str::from_utf8(input) else { return };
        let keys: Vec<&str> = text.lines().filter(|key| crate::encode::xml_text(key).is_some()).collect();
        let entry = |key: &&str| {
            let key = crate::encode::xml_text(key).unwrap_or_default();
            let (size, etag) = (key.len(), format!("<ETag>{key}</ETag>"));
            format!("<Contents><Key>{key}</Key><Size> {size} </Size>{etag}</Contents>")
        };
        let entries: String = keys.iter().map(entry).collect();
        let document =
            format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>");
        let found = page(&list, document.as_bytes(), 11, list::S3PageParser::new(false)).expect("a page");
        let fields = |meta: ObjectMeta| (meta.id.key, meta.size, meta.etag.unwrap_or_default());
        let found: Vec<_> = found.objects.into_iter().map(fields).collect();
        // The entries must equal those that quick-xml reads from the whole document. White space around an element's text
        // isn't compared.
        assert_eq!(found, oracle(&document), "{document}");
        assert_eq!(found.len(), keys.len(), "{document}");
    }

    /// Parses the whole document at once with quick-xml, and returns its keys, sizes and ETags.
    fn oracle(document: &str) -> Vec<(String, u64, String)> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Whole {
            #[serde(default)]
            contents: Vec<Content>,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Content {
            key: String,
            size: u64,
            #[serde(rename = "ETag")]
            etag: String,
        }
        let whole: Whole = quick_xml::de::from_str(document).expect("a document");
        whole
            .contents
            .into_iter()
            .map(|content| (content.key, content.size, unquoted(&content.etag)))
            .collect()
    }

    /// Parses the input as the body of an error answer, with any error status.
    pub fn s3_error(input: &[u8]) {
        let Some((status, body)) = input.split_first() else { return };
        let status = StatusCode::from_u16(400 + u16::from(*status) % 200).expect("a status");
        for method in [Method::GET, Method::HEAD] {
            let head = ResponseHead { status, headers: http::HeaderMap::new() };
            let read = failure::read(&method, &head, body);
            let _ = (failure::kind(&read), failure::is_elsewhere(&read), failure::is_stale(&read));
            let _ =
                (failure::may_be_skewed(&read), failure::is_conflict(&read), crate::judge::is_passing(&read));
            let _ = failure::inside(&head, body);
        }
        let _ = delete::batch_errors(body);
    }

    /// Parses the headers that describe an object: checksums, versions, times and protection.
    pub fn s3_headers(input: &[u8]) {
        let head = drawn_head(input);
        let meta = headers::meta(&ObjectId::new("b", "k"), &head);
        let sums = headers::checksums(&head);
        assert!(sums.crc32c.is_none() || sums.parts.is_none(), "both a part's and the whole's");
        assert_eq!(meta.etag.is_some(), meta.version.is_some());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use http::StatusCode;
    use http::{HeaderName, Method};
    use laneway_testkit::{Asked, Endpoint, Scripted, Wire, answer};

    use super::*;
    use crate::exchange::{Exchange, RequestSigner as _};
    use crate::{Environment, ObjectId};

    fn store(headers: &[(&'static str, &'static str)]) -> Result<Arc<S3>, Error> {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers = headers.iter().map(pair).collect();
        let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
        S3::new(&Settings { anonymous: true, headers, ..Settings::default() }, lanes)
    }

    #[test]
    fn added_headers_go_with_every_request() {
        let store = store(&[("x-amz-acl", "private"), ("content-type", "a/b")]).expect("a store");
        let id = ObjectId::new("b", "k");
        let outgoing = Outgoing::new(Method::PUT, "/k").header("content-type", "c/d").expect("a header");
        let sent = |exchange: Exchange<'_, S3>| exchange.with_added_headers(&outgoing).headers.clone();
        for operation in
            [Operation::Get, Operation::Put, Operation::Copy, Operation::Begin, Operation::Complete]
        {
            let headers = sent(Exchange::object(&*store, operation, &id));
            assert_eq!(
                (&headers["x-amz-acl"], &headers["content-type"]),
                (&"private".parse().unwrap(), &"c/d".parse().unwrap())
            );
        }
        // The caller may add `x-amz-bypass-governance-retention` to batches of deletes, and a proxy's own header to
        // listings.
        for operation in [Operation::List, Operation::Delete] {
            assert!(sent(Exchange::bucket(&*store, operation, "b")).contains_key("x-amz-acl"));
        }
    }

    /// Starts a server that hands out two credentials, `k1` and `k2`. It refuses HEADs that an expired credential
    /// signed, without a reason.
    fn handing_out(expired: Arc<AtomicU32>) -> Scripted {
        let handed_out = AtomicU32::new(0);
        Scripted::serve(move |asked: &Asked| {
            if asked.target == "/credentials" {
                let number = handed_out.fetch_add(1, Ordering::Relaxed) + 1;
                if number > 2 {
                    return answer(403, &[], "the role is gone");
                }
                let body = format!(
                    r#"{{"AccessKeyId":"k{number}","SecretAccessKey":"s","Token":"t","Expiration":"2127-01-01T00:00:00Z"}}"#
                );
                return answer(200, &[("Content-Type", "application/json")], &body);
            }
            if signer(asked).is_some_and(|number| number <= expired.load(Ordering::Relaxed)) {
                return b"HTTP/1.1 400 Bad Request\r\nx-amz-request-id: 1\r\nConnection: close\r\n\r\n"
                    .to_vec();
            }
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"e\"\r\n\r\n".to_vec()
        })
    }

    /// Returns the number of the credential that signed a request.
    fn signer(asked: &Asked) -> Option<u32> {
        let signed = asked.header("authorization")?.split_once("Credential=k")?.1;
        signed.split('/').next()?.parse().ok()
    }

    #[tokio::test]
    async fn signs_all_heads_refused_without_a_reason_by_other_credentials() {
        let expired = Arc::new(AtomicU32::new(0));
        let server = handing_out(Arc::clone(&expired));
        let url = format!("{}/credentials", server.url());
        let variables = BTreeMap::from([("AWS_CONTAINER_CREDENTIALS_FULL_URI".to_owned(), url)]);
        let settings = Settings {
            s3_endpoint: Some(server.url()),
            region: Some("us-east-1".to_owned()),
            ..Settings::from_environment(Environment::of(variables))
        };
        let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
        let store = S3::new(&settings, lanes).expect("a store");
        let id = ObjectId::new("b", "k");
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        expired.store(1, Ordering::Relaxed);
        let heads = || join_all((0..4).map(|_| store.head(&id, None)));
        for head in heads().await {
            assert_eq!(head.unwrap_or_else(|e| panic!("{e}")).size, 5);
        }
        let asked = server.asked();
        let heads_by = |number| asked.iter().filter(move |asked| signer(asked) == Some(number));
        assert!(heads_by(1).count() >= 2 && heads_by(2).count() >= 4);
        // The server refused the credentials, not the header that requests a checksum.
        assert!(heads_by(2).all(|asked| asked.header("x-amz-checksum-mode") == Some("ENABLED")));
        assert_eq!(asked.iter().filter(|asked| asked.target == "/credentials").count(), 2);
        // Without other credentials, the error comes from their source.
        store.credentials.age(Duration::from_secs(60));
        expired.store(2, Ordering::Relaxed);
        for head in heads().await {
            let error = head.expect_err("no credentials are left").to_string();
            assert!(error.contains("AWS_CONTAINER_CREDENTIALS_FULL_URI"), "{error}");
            assert!(error.contains("the role is gone"), "{error}");
        }
    }

    #[test]
    fn a_request_that_has_waited_is_signed_again_by_the_clock_of_now() {
        let endpoint = Endpoint::start(Wire::Plain);
        let keys = laneway_server::S3Config::default();
        let settings = Settings {
            s3_endpoint: Some(endpoint.url()),
            access_key: Some(crate::AccessKey::new(keys.access_key, keys.secret_key)),
            region: Some(keys.region),
            ..Settings::default()
        };
        let lanes = Lanes::start(laneway_lanes::LanesConfig::default()).expect("lanes");
        let store = S3::new(&settings, lanes.clone()).expect("a store");
        let outgoing = Outgoing::new(Method::GET, "?list-type=2");
        let asked = async |has_waited: bool| {
            let (mut request, signer) = store.request(Endpoint::BUCKET, &outgoing).await.expect("a request");
            // A header that the engine adds.
            request.headers.insert("user-agent", HeaderValue::from_static("laneway/1"));
            let date = request.headers["x-amz-date"].clone();
            if has_waited {
                let now = SystemTime::now();
                assert!(store.clock.correct(now + Duration::from_secs(120), now, false));
                signer.sign_again(&mut request);
                assert_ne!(request.headers["x-amz-date"], date);
            }
            lanes.exchange(request).await.expect("an answer").head.status
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        assert_eq!(runtime.block_on(asked(false)), StatusCode::OK);
        assert_eq!(runtime.block_on(asked(true)), StatusCode::OK);
    }

    #[test]
    fn a_header_that_frames_requests_makes_no_store() {
        assert!(store(&[("content-length", "5")]).is_err_and(|e| e.to_string().contains("content-length")));
    }
}
