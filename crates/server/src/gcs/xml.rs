//! The XML API: objects by path, listings and multipart uploads.

mod multipart;

use std::time::{Duration, SystemTime};

use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE,
    ETAG, HOST,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use quick_xml::escape::escape;

use super::answer::{ApiError, ApiResult, empty, whole};
use super::bucket_fields::storage_class;
use super::upload::ExpectedChecksums;
use super::{check_name, conditions, encryption, media};
use crate::body::{RequestBody, ResponseBody};
use crate::gcs::GcsState;
use crate::gcs::resource::rfc3339;
use crate::iso8601::basic;
use crate::objects::listing::{Cursor, ListingQuery};
use crate::objects::object::ObjectOptions;
use crate::objects::settings::{BucketSettings, is_allowed_by_gcs};
use crate::objects::versions::{VersionSelector, VersionSuccessor};
use crate::objects::writer::WrittenContent;
use crate::objects::{Attributes, NewObject, Object, Objects, StoreError};
use crate::query::{Query, decode};

/// One request of the XML API.
struct XmlCall<'a> {
    state: &'a GcsState,
    head: http::request::Parts,
    body: RequestBody,
    query: Query,
    bucket: &'a str,
    key: &'a str,
}

/// Google's subresources that this store lacks. They are refused, because otherwise a request for one would be handled
/// as a request for the bucket or object itself. `?compose`, for example, would store the list of sources as the
/// object. <https://cloud.google.com/storage/docs/xml-api/reference-headers#query-string-parameters>
const NOT_HERE: [&str; 16] = [
    "acl",
    "billing",
    "compose",
    "cors",
    "defaultObjectAcl",
    "encryption",
    "lifecycle",
    "location",
    "logging",
    "object-lock",
    "retention",
    "storageClass",
    "tagging",
    "versioning",
    "versions",
    "websiteConfig",
];

/// The prefix of the XML API's headers for object locks. This store supports locks only in the JSON API.
const LOCK_HEADERS: &str = "x-goog-object-lock-";

/// Answers an XML API request.
pub(crate) async fn answer(
    state: &GcsState,
    request: Request<RequestBody>,
    query: Query,
    bucket: &str,
    key: &str,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let without_body = head.method == Method::HEAD;
    let call = XmlCall { state, head, body, query, bucket, key };
    respond(call).await.unwrap_or_else(|problem| error(&problem, without_body))
}

async fn respond(call: XmlCall<'_>) -> ApiResult {
    check_signed_url(&call.head, &call.query, SystemTime::now())?;
    let method = call.head.method.clone();
    let has = |name| call.query.has(name);
    match method {
        _ if method != Method::HEAD && NOT_HERE.into_iter().any(has) => {
            Err(ApiError::not_here(NOT_HERE.into_iter().find(|name| has(name)).unwrap_or_default()))
        }
        Method::GET if call.bucket.is_empty() => list_buckets(&call),
        Method::GET if call.key.is_empty() && has("uploads") => multipart::list_uploads(&call),
        Method::GET if call.key.is_empty() => list_objects(&call),
        Method::HEAD if call.key.is_empty() => bucket_exists(&call),
        Method::PUT if call.key.is_empty() => create_bucket(&call),
        Method::DELETE if call.key.is_empty() => delete_bucket(&call),
        Method::GET if has("uploadId") => multipart::list_parts(&call),
        Method::GET | Method::HEAD => get(&call),
        Method::PUT if has("uploadId") => multipart::part(call).await,
        Method::PUT if call.head.headers.contains_key("x-goog-copy-source") => copy(&call),
        Method::PUT => put(call).await,
        Method::POST if has("uploads") => multipart::begin(&call),
        Method::POST if has("uploadId") => multipart::complete(call).await,
        Method::POST if call.head.headers.contains_key("x-goog-resumable") => {
            Err(ApiError::not_here("the XML API's resumable uploads"))
        }
        Method::POST if call.key.is_empty() => Err(ApiError::not_here("the XML API's uploads by forms")),
        Method::DELETE if has("uploadId") => multipart::abort(&call),
        Method::DELETE => delete(&call),
        _ => Err(ApiError::not_allowed()),
    }
}

fn get(call: &XmlCall<'_>) -> ApiResult {
    let precondition = conditions::in_headers(&call.head.headers)?;
    let generation = conditions::number("generation", call.query.value("generation"))?;
    let object = media::find(call.state, call.bucket, call.key, generation, &precondition)?;
    conditions::on_etag(&call.head.headers, &object.etag)
        .and_then(|()| conditions::on_date(&call.head.headers, object.updated_us))
        .map_err(|failed| {
            ApiError::refused_to_read(StoreError::Precondition(failed), call.bucket, call.key)
        })?;
    encryption::admit(encryption::sent(&call.head.headers)?.as_ref(), &object)?;
    let mut answer = media::download(call.state, &call.head, &object, quoted(&object.etag))?;
    if call.head.method == Method::HEAD {
        *answer.body_mut() = ResponseBody::empty();
    }
    Ok(answer)
}

async fn put(mut call: XmlCall<'_>) -> ApiResult {
    let precondition = conditions::in_headers(&call.head.headers)?;
    let expected = ExpectedChecksums::in_headers(&call.head.headers)?;
    check_name(call.key)?;
    let refuse = |refused| ApiError::refused(refused, call.bucket, call.key);
    call.state.objects.bucket_to_write(call.bucket).map_err(refuse)?;
    let written = receive(call.state, &mut call.body, &expected).await?;
    let new = NewObject { attributes: attributes(call.state, &call.head.headers)?, ..Default::default() };
    let object =
        call.state.objects.commit(call.bucket, call.key, written, new, &precondition).map_err(refuse)?;
    Ok(stored(&object))
}

fn copy(call: &XmlCall<'_>) -> ApiResult {
    let header = call.head.headers.get("x-goog-copy-source").and_then(|value| value.to_str().ok());
    let source = decode(header.unwrap_or_default().trim_start_matches('/'));
    let (bucket, key) =
        source.split_once('/').ok_or_else(|| ApiError::invalid("Invalid x-goog-copy-source"))?;
    let generation = call.head.headers.get("x-goog-copy-source-generation");
    let generation = generation.and_then(|value| value.to_str().ok());
    let which = conditions::number("x-goog-copy-source-generation", generation)?
        .map_or(VersionSelector::Live, VersionSelector::Generation);
    let object = call.state.objects.find_version(bucket, key, which);
    let object = object.map_err(|refused| ApiError::refused(refused, bucket, key))?;
    let replaces = call.head.headers.get("x-goog-metadata-directive").is_some_and(|value| value == "REPLACE");
    check_name(call.key)?;
    let mut own = attributes(call.state, &call.head.headers)?;
    if !replaces {
        // Encryption, access control and locks aren't copied: they come from this request.
        own = Attributes { options: own.options, ..Attributes::clone(&object.attributes) };
    }
    let attributes = own;
    let new = NewObject { attributes, components: object.components, ..Default::default() };
    let precondition = conditions::in_headers(&call.head.headers)?;
    let written = Objects::written_from(&object);
    let copied = call.state.objects.commit(call.bucket, call.key, written, new, &precondition);
    let copied = copied.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    let mut document = XmlDocument::open("CopyObjectResult");
    document.element("LastModified", &super::resource::rfc3339(copied.updated_us));
    document.element("ETag", &quoted(&copied.etag));
    let mut answer = document.close();
    let headers = stored(&copied).headers().clone();
    for name in ["x-goog-generation", "x-goog-metageneration", "x-goog-hash"] {
        for value in headers.get_all(name) {
            answer.headers_mut().append(name, value.clone());
        }
    }
    Ok(answer)
}

fn delete(call: &XmlCall<'_>) -> ApiResult {
    let precondition = conditions::in_headers(&call.head.headers)?;
    let objects = &call.state.objects;
    let deleted = match conditions::number("generation", call.query.value("generation"))? {
        None => objects.delete(call.bucket, call.key, &precondition),
        Some(generation) => {
            let which = VersionSelector::Generation(generation);
            objects.delete_version(
                call.bucket,
                call.key,
                which,
                VersionSuccessor::Nobody,
                &precondition,
                false,
            )
        }
    };
    deleted.map_err(|refused| ApiError::refused(refused, call.bucket, call.key))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

fn bucket_exists(call: &XmlCall<'_>) -> ApiResult {
    let found = call.state.objects.bucket(call.bucket);
    found.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    Ok(empty(StatusCode::OK))
}

fn create_bucket(call: &XmlCall<'_>) -> ApiResult {
    if !is_allowed_by_gcs(call.bucket) {
        return Err(ApiError::refused(StoreError::BadBucketName, call.bucket, ""));
    }
    let settings = BucketSettings { acl: acl(call.state, &call.head.headers)?, ..BucketSettings::default() };
    let created = call.state.objects.create_bucket_with(call.bucket, settings);
    created.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    Ok(empty(StatusCode::OK))
}

fn delete_bucket(call: &XmlCall<'_>) -> ApiResult {
    let deleted = call.state.objects.delete_bucket(call.bucket);
    deleted.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Stores the bytes of a body and checks them. If the check fails, the bytes are discarded.
async fn receive(
    state: &GcsState,
    body: &mut RequestBody,
    expected: &ExpectedChecksums,
) -> Result<WrittenContent, ApiError> {
    let mut writer = state.objects.writer(expected.wanted(&state.config), body.expected());
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(ApiError::interrupted)?;
        writer.write(&bytes).map_err(|error| ApiError::io(&error))?;
    }
    let written = writer.finish();
    expected.check(&written.sums)?;
    Ok(written)
}

/// Reads and checks the predefined access control list in the headers.
fn acl(state: &GcsState, headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let acl = headers.get("x-goog-acl").and_then(|value| value.to_str().ok());
    super::acl::check(state.accept_unenforced, "x-goog-acl", acl)?;
    Ok(acl.map(str::to_owned))
}

/// Reads the attributes in the headers of a PUT, or of a request that begins a multipart upload.
fn attributes(state: &GcsState, headers: &HeaderMap) -> Result<Attributes, ApiError> {
    if let Some(name) = headers.keys().find(|name| name.as_str().starts_with(LOCK_HEADERS)) {
        return Err(ApiError::not_here(name.as_str()));
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    // In headers, the names of metadata are in lower case, and the values are ASCII. The JSON API accepts all
    // characters.
    let metadata = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix("x-goog-meta-")?;
        let read = |value: &str| (name.to_owned(), value.to_owned());
        Some(
            value
                .to_str()
                .map(read)
                .map_err(|_| ApiError::invalid(format!("Metadata header {name} isn't ASCII"))),
        )
    });
    let metadata = metadata.collect::<Result<_, _>>()?;
    let class = text(HeaderName::from_static("x-goog-storage-class"));
    let kms_key = text(HeaderName::from_static("x-goog-encryption-kms-key-name"));
    let encryption = encryption::sent(headers)?.or(kms_key.map(encryption::managed));
    let options = ObjectOptions { encryption, acl: acl(state, headers)?, ..ObjectOptions::default() };
    Ok(Attributes {
        content_type: text(CONTENT_TYPE),
        content_encoding: text(CONTENT_ENCODING),
        cache_control: text(CACHE_CONTROL),
        content_disposition: text(CONTENT_DISPOSITION),
        content_language: text(CONTENT_LANGUAGE),
        storage_class: class.as_deref().map(storage_class).transpose()?,
        custom_time: text(HeaderName::from_static("x-goog-custom-time")),
        metadata,
        options,
        ..Attributes::default()
    })
}

/// Returns the answer to a finished upload.
fn stored(object: &Object) -> Response<ResponseBody> {
    let mut answer = empty(StatusCode::OK);
    media::insert(answer.headers_mut(), ETAG, &quoted(&object.etag));
    tell(answer.headers_mut(), object);
    answer
}

/// Adds the headers that the XML API sends for every object.
fn tell(headers: &mut HeaderMap, object: &Object) {
    headers.insert("x-goog-generation", object.generation.into());
    headers.insert("x-goog-metageneration", object.metageneration.into());
    headers.insert("x-goog-stored-content-length", object.size.into());
    let encoding = object.attributes.content_encoding.as_deref().unwrap_or("identity");
    media::insert(headers, HeaderName::from_static("x-goog-stored-content-encoding"), encoding);
    media::hashes(headers, object);
}

/// Adds the headers that the XML API sends for every object, and the user metadata.
pub(crate) fn tell_all(headers: &mut HeaderMap, object: &Object) {
    tell(headers, object);
    media::user_metadata(headers, object);
}

fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}

fn error(problem: &ApiError, without_body: bool) -> Response<ResponseBody> {
    let held = problem.message.contains(" is under active ");
    let (code, message) = match (problem.status.as_u16(), &*problem.reason) {
        (403, "retentionPolicyNotMet") => (
            "RetentionPolicyNotMet",
            Some("Object overwrite or deletion is not allowed due to retention policy."),
        ),
        (403, "forbidden") if held => (
            "ObjectUnderActiveHold",
            Some("Object overwrite or deletion is not allowed due to active hold on the object."),
        ),
        _ => (code(problem), None),
    };
    if problem.status == StatusCode::NOT_MODIFIED || without_body {
        let mut answer = empty(problem.status);
        answer.headers_mut().remove(CONTENT_LENGTH);
        return answer;
    }
    let mut document = XmlDocument::open("Error");
    document.element("Code", code);
    document.element("Message", message.unwrap_or(&problem.message));
    if message.is_some() {
        document.element("Details", &problem.message);
    }
    let mut answer = document.close();
    *answer.status_mut() = problem.status;
    answer
}

fn code(problem: &ApiError) -> &'static str {
    match (problem.status.as_u16(), &*problem.reason) {
        (404, _) if problem.message.contains("bucket") => "NoSuchBucket",
        (404, _) if problem.message.contains("upload") => "NoSuchUpload",
        (404, _) => "NoSuchKey",
        (405, _) => "MethodNotAllowed",
        (409, _) if problem.message.contains("not empty") => "BucketNotEmpty",
        (409, _) => "BucketAlreadyOwnedByYou",
        (412, _) => "PreconditionFailed",
        (416, _) => "InvalidRange",
        (501, _) => "NotImplemented",
        (507, _) => "InsufficientStorage",
        (500.., _) => "InternalError",
        (_, "expiredToken") => "ExpiredToken",
        (_, "malformedSecurityHeader") => "MalformedSecurityHeader",
        (_, "parseError") => "MalformedXML",
        (_, "invalidPart") => "InvalidPart",
        (_, "invalidPartOrder") => "InvalidPartOrder",
        (_, "entityTooSmall") => "EntityTooSmall",
        _ if problem.message.contains("doesn't match calculated") => "BadDigest",
        _ => "InvalidArgument",
    }
}

impl XmlDocument {
    fn close(self) -> Response<ResponseBody> {
        whole(StatusCode::OK, "application/xml; charset=UTF-8", self.finish())
    }
}

/// A document with one root element.
#[derive(Debug)]
struct XmlDocument {
    text: String,
    open: Vec<&'static str>,
}

impl XmlDocument {
    fn open(root: &'static str) -> XmlDocument {
        // Clients expect elements in this namespace, which GCS copied from S3. Error documents have no namespace.
        let namespace = if root == "Error" { "" } else { " xmlns='http://s3.amazonaws.com/doc/2006-03-01/'" };
        XmlDocument {
            text: format!("<?xml version='1.0' encoding='UTF-8'?><{root}{namespace}>"),
            open: vec![root],
        }
    }

    fn begin(&mut self, name: &'static str) {
        self.text.push_str(&format!("<{name}>"));
        self.open.push(name);
    }

    fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("</{name}>"));
        }
    }

    fn element(&mut self, name: &'static str, value: &str) {
        self.text.push_str(&format!("<{name}>{}</{name}>", escape(value)));
    }

    /// Closes all open elements, and returns the bytes.
    fn finish(mut self) -> Vec<u8> {
        while !self.open.is_empty() {
            self.end();
        }
        self.text.into_bytes()
    }
}

fn list_buckets(call: &XmlCall<'_>) -> ApiResult {
    let mut document = XmlDocument::open("ListAllMyBucketsResult");
    document.begin("Buckets");
    for bucket in call.state.objects.buckets() {
        document.begin("Bucket");
        document.element("Name", &bucket.name);
        document.element("CreationDate", &rfc3339(bucket.created_us));
        document.end();
    }
    Ok(document.close())
}

fn list_objects(call: &XmlCall<'_>) -> ApiResult {
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let second = value("list-type") == Some("2");
    let from = match value("continuation-token") {
        Some(token) => {
            Cursor::from_token(token).ok_or_else(|| ApiError::invalid("Invalid continuation-token"))?
        }
        None => match value("marker").or(value("start-after")) {
            Some(key) => Cursor::After(key.to_owned()),
            None => Cursor::Start,
        },
    };
    let query = ListingQuery {
        prefix: value("prefix").unwrap_or_default().to_owned(),
        delimiter: value("delimiter").unwrap_or_default().to_owned(),
        from,
        end: None,
        max: conditions::number("max-keys", value("max-keys"))?.unwrap_or(1000).min(1000) as usize,
        ..Default::default()
    };
    let page = call.state.objects.list(call.bucket, &query);
    let page = page.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let mut document = XmlDocument::open("ListBucketResult");
    document.element("Name", call.bucket);
    document.element("Prefix", &query.prefix);
    document.element("MaxKeys", &query.max.to_string());
    document.element("IsTruncated", if page.next.is_some() { "true" } else { "false" });
    match &page.next {
        Some(next) if second => document.element("NextContinuationToken", &next.to_token()),
        Some(Cursor::After(key) | Cursor::AfterPrefix(key)) => document.element("NextMarker", key),
        _ => {}
    }
    for object in &page.objects {
        document.begin("Contents");
        document.element("Key", &object.key);
        document.element("Generation", &object.generation.to_string());
        document.element("MetaGeneration", &object.metageneration.to_string());
        document.element("LastModified", &rfc3339(object.updated_us));
        document.element("ETag", &quoted(&object.etag));
        document.element("Size", &object.size.to_string());
        document.element("StorageClass", object.storage_class());
        document.end();
    }
    for prefix in &page.prefixes {
        document.begin("CommonPrefixes");
        document.element("Prefix", prefix);
        document.end();
    }
    Ok(document.close())
}

/// Returns an error if a URL has expired or is malformed, or if the request lacks one of its signed headers.
///
/// <https://cloud.google.com/storage/docs/access-control/signed-urls>. The signature itself isn't verified, because
/// the server doesn't have the service account's key.
fn check_signed_url(head: &Parts, query: &Query, now: SystemTime) -> Result<(), ApiError> {
    if !query.is_signed_by_google() {
        return Ok(());
    }
    let text = |name: &str| {
        query.value(name).filter(|value| !value.is_empty()).ok_or_else(|| malformed(name, "it is missing"))
    };
    if !matches!(text("X-Goog-Algorithm")?, "GOOG4-RSA-SHA256" | "GOOG4-HMAC-SHA256") {
        return Err(malformed("X-Goog-Algorithm", "no such algorithm"));
    }
    let signed_at = basic(text("X-Goog-Date")?).ok_or_else(|| malformed("X-Goog-Date", "no time"))?;
    let expires_s = text("X-Goog-Expires")?.parse().ok().filter(|seconds| (1..=604_800).contains(seconds));
    let expires_s = expires_s.ok_or_else(|| malformed("X-Goog-Expires", "not from 1 to 604800 seconds"))?;
    let date = text("X-Goog-Date")?.get(..8).unwrap_or_default();
    let scope =
        text("X-Goog-Credential")?.split_once('/').map(|(_, scope)| scope.split('/').collect::<Vec<_>>());
    match scope.as_deref() {
        Some([on, _, "storage", "goog4_request"]) if *on == date => {}
        _ => return Err(malformed("X-Goog-Credential", "not of EMAIL/DATE/REGION/storage/goog4_request")),
    }
    let signature = text("X-Goog-Signature")?;
    if signature.len() % 2 != 0 || !signature.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(malformed("X-Goog-Signature", "not in hexadecimal"));
    }
    if now > signed_at + Duration::from_secs(expires_s) {
        return Err(ApiError::expired_token());
    }
    let names: Vec<&str> = text("X-Goog-SignedHeaders")?.split(';').collect();
    if !names.contains(&HOST.as_str()) {
        return Err(malformed("host", "Header must be signed."));
    }
    let has_come =
        |name: &str| head.headers.contains_key(name) || (name == HOST && head.uri.host().is_some());
    match names.into_iter().find(|name| !has_come(name)) {
        Some(name) => Err(malformed(name, "Header was included in signedheaders, but not in the request.")),
        None => Ok(()),
    }
}

fn malformed(name: &str, why: &str) -> ApiError {
    ApiError::malformed_signature(format!("Your request has a malformed header. {name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_elements_closed() {
        let mut document = XmlDocument::open("Error");
        document.begin("B");
        document.element("C", "<&>");
        let text = String::from_utf8(document.finish()).unwrap();
        assert!(text.ends_with("<Error><B><C>&lt;&amp;&gt;</C></B></Error>"), "{text}");
    }

    const GOOD: &str = "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=a%40b%2F20261122%2Fauto%2Fstorage%2Fgoog4_request&\
                        X-Goog-Date=20261122T000000Z&X-Goog-Expires=60&X-Goog-SignedHeaders=content-type%3Bhost&X-Goog-Signature=0a";

    /// Returns the error for a URL, `after_s` seconds after it was signed.
    fn reason(query: &str, after_s: u64) -> Option<String> {
        let (head, ()) = http::Request::builder()
            .uri(format!("/b/k?{query}"))
            .header("host", "h")
            .header("content-type", "a/b")
            .body(())
            .unwrap()
            .into_parts();
        let signed_at = basic("20261122T000000Z").unwrap();
        let query = Query::parse(head.uri.query());
        check_signed_url(&head, &query, signed_at + Duration::from_secs(after_s))
            .err()
            .map(|problem| problem.reason.into_owned())
    }

    #[test]
    fn a_url_ends_when_it_says() {
        assert_eq!(reason(GOOD, 60), None);
        assert_eq!(reason(GOOD, 61).as_deref(), Some("expiredToken"));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (good, bad) in [
            ("GOOG4-RSA-SHA256", "GOOG4-NONE"),
            ("20261122%2Fauto", "20261121%2Fauto"),
            ("20261122T000000Z", "yesterday"),
            ("Expires=60", "Expires=604801"),
            ("content-type%3Bhost", "host%3Bx-goog-acl"),
            ("content-type%3Bhost", "content-type"),
            ("Signature=0a", "Signature=xy"),
            ("&X-Goog-Signature=0a", ""),
        ] {
            let bad = GOOD.replace(good, bad);
            assert_eq!(reason(&bad, 0).as_deref(), Some("malformedSecurityHeader"), "{bad}");
        }
        assert_eq!(reason("generation=1", 0), None);
    }
}
