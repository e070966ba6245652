//! Buckets, their tags and CORS rules, their regions, and the differences between directory buckets (S3 Express One
//! Zone) and other buckets: <https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-differences.html>.
//! Policies and lifecycles aren't enforced. If [`accept_unenforced`](crate::Config::accept_unenforced) is set, the
//! server stores and returns them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::list::owner;
use super::{S3Dialect, S3State, error_document, refusal, tagging, timestamp};
use crate::body::{RequestBody, ResponseBody};
use crate::gcs::answer::empty;
use crate::objects::settings::{BucketSettings, CorsRule, name_objection};
use crate::objects::{StoreError, Versioning};
use crate::query::Query;

/// The maximum number of buckets on a page. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html>
const BUCKETS_MAX: i32 = 10_000;

pub(super) fn list(dialect: &S3Dialect, input: ListBucketsInput) -> S3Result<ListBucketsOutput> {
    if input.max_buckets.is_none() && !dialect.habits.unpaged_buckets {
        return Err(s3_error!(InvalidRequest, "Unpaginated requests are not supported for this account"));
    }
    let prefix = input.prefix.unwrap_or_default();
    let after = input.continuation_token.unwrap_or_default();
    let max = input.max_buckets.map_or(usize::MAX, |max| max.clamp(1, BUCKETS_MAX) as usize);
    let mut buckets = dialect.objects.buckets();
    buckets.retain(|bucket| bucket.name.starts_with(&prefix) && bucket.name > after);
    buckets.sort_by(|a, b| a.name.cmp(&b.name));
    // A token is the last name of its page. Clients must treat it as opaque.
    let token = buckets.get(max).and_then(|_| buckets.get(max - 1)).map(|last| last.name.clone());
    buckets.truncate(max);
    let buckets = buckets.iter().map(|bucket| Bucket {
        bucket_region: Some(region(dialect, &bucket.name)),
        creation_date: Some(timestamp(bucket.created_us)),
        name: Some(bucket.name.clone()),
    });
    let buckets = Some(buckets.collect());
    Ok(ListBucketsOutput { buckets, owner: Some(owner()), continuation_token: token, ..Default::default() })
}

pub(super) fn create(dialect: &S3Dialect, input: CreateBucketInput) -> S3Result<CreateBucketOutput> {
    if name_objection(&input.bucket).is_some() {
        return Err(refusal(StoreError::BadBucketName));
    }
    // The endpoint of a region creates buckets only in that region. The request must name the region, unless it is
    // us-east-1.
    let region = dialect.config.region.as_str();
    let named = input.create_bucket_configuration.and_then(|wanted| wanted.location_constraint);
    let wanted = named.as_ref().map_or("us-east-1", |constraint| constraint.as_str());
    if wanted != region {
        let message = match &named {
            Some(named) => format!(
                "The {} location constraint is incompatible for the region specific endpoint this request was sent to.",
                named.as_str()
            ),
            None => {
                "The unspecified location constraint is incompatible for the region specific endpoint this \
                     request was sent to."
                    .to_owned()
            }
        };
        return Err(s3s::S3Error::with_message(
            s3s::S3ErrorCode::IllegalLocationConstraintException,
            message,
        ));
    }
    // Object Lock requires versioning, so it turns versioning on.
    let locks = input.object_lock_enabled_for_bucket == Some(true);
    let versioning = locks.then_some(Versioning::Enabled);
    let acl = input.acl.map(|acl| acl.as_str().to_owned());
    let settings = BucketSettings { locks, versioning, acl, ..BucketSettings::default() };
    match dialect.objects.create_bucket_with(&input.bucket, settings) {
        // Only in us-east-1, creating a bucket that the caller already owns is a success.
        Err(StoreError::BucketExists) if region == "us-east-1" => {}
        made => made.map_err(refusal)?,
    }
    Ok(CreateBucketOutput { location: Some(format!("/{}", input.bucket)) })
}

pub(super) fn head(dialect: &S3Dialect, input: HeadBucketInput) -> S3Result<HeadBucketOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    Ok(HeadBucketOutput { bucket_region: Some(region(dialect, &input.bucket)), ..Default::default() })
}

pub(super) fn delete(dialect: &S3Dialect, input: DeleteBucketInput) -> S3Result<DeleteBucketOutput> {
    dialect.objects.delete_bucket(&input.bucket).map_err(refusal)?;
    Ok(DeleteBucketOutput::default())
}

pub(super) fn location(
    dialect: &S3Dialect,
    input: GetBucketLocationInput,
) -> S3Result<GetBucketLocationOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    // S3 returns an empty location constraint for us-east-1.
    let region = Some(region(dialect, &input.bucket)).filter(|region| region != "us-east-1");
    Ok(GetBucketLocationOutput { location_constraint: region.map(BucketLocationConstraint::from) })
}

fn region(dialect: &S3Dialect, bucket: &str) -> String {
    dialect.config.bucket_regions.get(bucket).unwrap_or(&dialect.config.region).clone()
}

/// The maximum number of CORS rules of a bucket.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html>
const CORS_RULES_MAX: usize = 100;

const CORS_METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

pub(super) fn get_cors(dialect: &S3Dialect, input: GetBucketCorsInput) -> S3Result<GetBucketCorsOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let settings = bucket.settings();
    if settings.cors.is_empty() {
        return Err(s3_error!(NoSuchCORSConfiguration, "The CORS configuration does not exist"));
    }
    let some = |list: &[String]| Some(list.to_vec()).filter(|list| !list.is_empty());
    let rules = settings.cors.iter().map(|rule| CORSRule {
        allowed_headers: some(&rule.headers),
        allowed_methods: rule.methods.clone(),
        allowed_origins: rule.origins.clone(),
        expose_headers: some(&rule.exposed),
        id: rule.id.clone(),
        max_age_seconds: rule.max_age_s.map(|seconds| seconds as i32),
    });
    Ok(GetBucketCorsOutput { cors_rules: Some(rules.collect()) })
}

pub(super) fn put_cors(dialect: &S3Dialect, input: PutBucketCorsInput) -> S3Result<PutBucketCorsOutput> {
    let rules = input.cors_configuration.cors_rules;
    if rules.is_empty() || rules.len() > CORS_RULES_MAX {
        return Err(s3_error!(
            MalformedXML,
            "The XML you provided was not well-formed or did not validate against our published schema"
        ));
    }
    let rules = rules.into_iter().map(cors_rule).collect::<S3Result<Vec<_>>>()?;
    set_field(dialect, &input.bucket, |settings| settings.cors = rules)?;
    Ok(PutBucketCorsOutput::default())
}

fn cors_rule(rule: CORSRule) -> S3Result<CorsRule> {
    if let Some(method) = rule.allowed_methods.iter().find(|method| !CORS_METHODS.contains(&method.as_str()))
    {
        let message = format!("Found unsupported HTTP method in CORS config. Unsupported method is {method}");
        return Err(s3s::S3Error::with_message(s3s::S3ErrorCode::InvalidRequest, message));
    }
    let headers = rule.allowed_headers.unwrap_or_default();
    if let Some(pattern) =
        rule.allowed_origins.iter().chain(&headers).find(|pattern| pattern.matches('*').count() > 1)
    {
        let message = format!("\"{pattern}\" can not have more than one wildcard.");
        return Err(s3s::S3Error::with_message(s3s::S3ErrorCode::InvalidRequest, message));
    }
    Ok(CorsRule {
        id: rule.id,
        origins: rule.allowed_origins,
        methods: rule.allowed_methods,
        headers,
        exposed: rule.expose_headers.unwrap_or_default(),
        max_age_s: rule.max_age_seconds.and_then(|seconds| u32::try_from(seconds).ok()),
    })
}

pub(super) fn delete_cors(
    dialect: &S3Dialect,
    input: DeleteBucketCorsInput,
) -> S3Result<DeleteBucketCorsOutput> {
    set_field(dialect, &input.bucket, |settings| settings.cors.clear())?;
    Ok(DeleteBucketCorsOutput::default())
}

pub(super) fn get_tags(
    dialect: &S3Dialect,
    input: GetBucketTaggingInput,
) -> S3Result<GetBucketTaggingOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let settings = bucket.settings();
    if settings.tags.is_empty() {
        return Err(s3_error!(NoSuchTagSet, "The TagSet does not exist"));
    }
    let tag = |(key, value): (&String, &String)| Tag { key: Some(key.clone()), value: Some(value.clone()) };
    Ok(GetBucketTaggingOutput { tag_set: settings.tags.iter().map(tag).collect() })
}

pub(super) fn put_tags(
    dialect: &S3Dialect,
    input: PutBucketTaggingInput,
) -> S3Result<PutBucketTaggingOutput> {
    let tags = tagging::of_bucket(input.tagging.tag_set)?;
    set_field(dialect, &input.bucket, |settings| settings.tags = tags)?;
    Ok(PutBucketTaggingOutput::default())
}

pub(super) fn delete_tags(
    dialect: &S3Dialect,
    input: DeleteBucketTaggingInput,
) -> S3Result<DeleteBucketTaggingOutput> {
    set_field(dialect, &input.bucket, |settings| settings.tags.clear())?;
    Ok(DeleteBucketTaggingOutput::default())
}

fn set_field(dialect: &S3Dialect, bucket: &str, change: impl FnOnce(&mut BucketSettings)) -> S3Result<()> {
    let changed = dialect.objects.change_bucket(bucket, |settings| {
        change(settings);
        Ok::<_, s3s::S3Error>(())
    });
    changed.map_err(refusal)?
}

/// The documents: the subresource, the content type, and the error code if a bucket has no such document.
const UNENFORCED_DOCUMENTS: [(&str, &str, &str); 2] = [
    ("policy", "application/json", "NoSuchBucketPolicy"),
    ("lifecycle", "application/xml", "NoSuchLifecycleConfiguration"),
];

/// The maximum size of a document. A policy has at most 20 KB, and a lifecycle has at most 1000 rules.
const UNENFORCED_BYTES_MAX: usize = 1 << 20;

/// Returns the kind of document that a request concerns.
fn unenforced_document(query: &Query) -> Option<(&'static str, &'static str, &'static str)> {
    UNENFORCED_DOCUMENTS.into_iter().find(|(name, _, _)| query.has(name))
}

/// Returns true if a request concerns such a document of a bucket.
pub(super) fn is_unenforced(method: &Method, query: &Query, key: &str) -> bool {
    key.is_empty()
        && matches!(*method, Method::GET | Method::PUT | Method::DELETE)
        && unenforced_document(query).is_some()
}

/// Stores, returns or removes the document that a request concerns.
pub(super) async fn answer_unenforced(
    state: &S3State,
    request: Request<RequestBody>,
    query: &Query,
    bucket: &str,
) -> Response<ResponseBody> {
    let Some((name, kind, absent)) = unenforced_document(query) else { return empty(StatusCode::NOT_FOUND) };
    let (head, mut body) = request.into_parts();
    let Ok(found) = state.objects.bucket(bucket) else {
        return error_document(StatusCode::NOT_FOUND, "NoSuchBucket", "The specified bucket does not exist");
    };
    let change = |text: Option<String>| {
        let changed = state.objects.change_bucket(bucket, |settings| {
            match text {
                Some(text) => drop(settings.documents.insert(name.to_owned(), text)),
                None => drop(settings.documents.remove(name)),
            }
            Ok::<_, std::convert::Infallible>(())
        });
        changed.is_ok()
    };
    let kept = match head.method {
        Method::GET => {
            return match found.settings().documents.get(name) {
                Some(text) => {
                    let mut answer = Response::new(ResponseBody::whole(text.clone()));
                    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                    answer
                }
                None => {
                    let message = format!("The bucket {name} does not exist");
                    error_document(StatusCode::NOT_FOUND, absent, &message)
                }
            };
        }
        Method::PUT => match body.collect(UNENFORCED_BYTES_MAX).await {
            Ok(Some(bytes)) => change(Some(String::from_utf8_lossy(&bytes).into_owned())),
            _ => return error_document(StatusCode::BAD_REQUEST, "MalformedXML", "The document is too large"),
        },
        _ => change(None),
    };
    match (kept, &head.method) {
        (false, _) => error_document(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "The disk failed"),
        (true, method) if *method == Method::PUT && name == "lifecycle" => empty(StatusCode::OK),
        (true, _) => empty(StatusCode::NO_CONTENT),
    }
}

/// The number of temporary redirects of each bucket so far.
///
/// A client learns the region from S3's redirect, or from HeadBucket if the error doesn't name the region.
#[derive(Debug, Default)]
pub(crate) struct RedirectCounts(Mutex<BTreeMap<String, u32>>);

impl RedirectCounts {
    /// Counts a request. Returns true if it is among the first `first` requests for its bucket.
    fn another(&self, bucket: &str, first: u32) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(bucket.to_owned()).or_default();
        *count += 1;
        *count <= first
    }
}

/// Returns 307 or 301 for a bucket in another region than the one in the signature, or 400 for an opt-in region. An
/// unsigned request doesn't name a region, so it is redirected too.
pub(super) fn redirect(
    state: &S3State,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    bucket: &str,
    key: &str,
) -> Option<Response<ResponseBody>> {
    let home = state.config.bucket_regions.get(bucket)?;
    if signed_for(uri, headers).as_ref() == Some(home) {
        return None;
    }
    let is_head_bucket = *method == Method::HEAD && key.is_empty();
    if state.config.opt_in_regions.contains(home) && !is_head_bucket {
        let message = format!(
            "The {home} location constraint is incompatible for the region specific endpoint this request was sent to."
        );
        return Some(error_document(StatusCode::BAD_REQUEST, "IllegalLocationConstraintException", &message));
    }
    let mut answer = if state.redirected.another(bucket, state.habits.temporary_redirects) {
        let message = "Please re-send this request to the specified temporary endpoint. Continue to use the original \
                       request endpoint for future requests.";
        error_document(StatusCode::TEMPORARY_REDIRECT, "TemporaryRedirect", message)
    } else {
        let message =
            "The bucket you are attempting to access must be addressed using the specified endpoint.";
        error_document(StatusCode::MOVED_PERMANENTLY, "PermanentRedirect", message)
    };
    if let Ok(home) = HeaderValue::from_str(home) {
        answer.headers_mut().insert("x-amz-bucket-region", home);
    }
    Some(answer)
}

/// Returns the region in the credential scope, `KEY/DATE/REGION/s3/aws4_request`.
fn signed_for(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let query = Query::parse(uri.query());
    let scope = match header {
        Some(header) => header.split("Credential=").nth(1)?.split(',').next()?,
        None => query.value("X-Amz-Credential")?,
    };
    // The access key may contain slashes, so the scope is read from its end.
    scope.trim().rsplit('/').nth(2).map(str::to_owned)
}

/// The storage class of all objects in directory buckets.
pub(super) const DIRECTORY_STORAGE_CLASS: &str = "EXPRESS_ONEZONE";

/// The prefixes of headers for features that directory buckets lack.
const UNKNOWN_TO_DIRECTORIES: [&str; 5] = [
    "content-md5",
    "x-amz-acl",
    "x-amz-tagging",
    "x-amz-object-lock",
    "x-amz-server-side-encryption-customer",
];

/// Returns true for the name of a directory bucket.
pub(super) fn is_directory(bucket: &str) -> bool {
    bucket.ends_with("--x-s3")
}

/// Returns the error for a request that directory buckets don't support.
pub(super) fn directory_refusal(head: &Parts, bucket: &str) -> Option<Response<ResponseBody>> {
    if !is_directory(bucket) {
        return None;
    }
    let names = head.headers.keys().map(http::HeaderName::as_str);
    let unknown =
        names.into_iter().find(|name| UNKNOWN_TO_DIRECTORIES.iter().any(|unknown| name.starts_with(unknown)));
    if let Some(name) = unknown {
        let message = format!("A header you provided implies functionality that is not implemented: {name}");
        return Some(error_document(StatusCode::NOT_IMPLEMENTED, "NotImplemented", &message));
    }
    let copies = head.headers.contains_key("x-amz-copy-source");
    if head.headers.contains_key("x-amz-server-side-encryption") && !copies {
        let message = "The session's encryption settings can't be overridden.";
        return Some(error_document(StatusCode::BAD_REQUEST, "InvalidRequest", message));
    }
    let query = Query::parse(head.uri.query());
    if query.value("list-type") != Some("2") {
        return None;
    }
    let why = match (query.value("prefix"), query.value("delimiter")) {
        _ if query.has("start-after") => "StartAfter is not supported for directory buckets.",
        (Some(prefix), _) if !prefix.is_empty() && !prefix.ends_with('/') => {
            "Prefixes of directory buckets must end in a delimiter."
        }
        (_, Some(delimiter)) if !delimiter.is_empty() && delimiter != "/" => {
            "Only / is a delimiter of directory buckets."
        }
        _ => return None,
    };
    Some(error_document(StatusCode::NOT_IMPLEMENTED, "NotImplemented", why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_is_sent_elsewhere_so_many_times() {
        let redirected = RedirectCounts::default();
        assert!(!redirected.another("a", 0));
        assert!(redirected.another("b", 1) && !redirected.another("b", 1));
    }

    #[test]
    fn the_region_is_read_from_header_or_query() {
        let mut headers = HeaderMap::new();
        let query: Uri = "/b?X-Amz-Credential=k%2F20260101%2Fap-south-1%2Fs3%2Faws4_request".parse().unwrap();
        assert_eq!(signed_for(&query, &headers).as_deref(), Some("ap-south-1"));
        let header = "AWS4-HMAC-SHA256 Credential=k/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host";
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        assert_eq!(signed_for(&Uri::from_static("/b"), &headers).as_deref(), Some("eu-west-1"));
        assert_eq!(signed_for(&Uri::from_static("/b"), &HeaderMap::new()), None);
    }
}
