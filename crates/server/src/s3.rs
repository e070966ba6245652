//! The dialect of Amazon S3. The crate `s3s` parses requests, verifies signatures and writes XML. This module and its
//! submodules implement the operations.

mod acl;
mod ambiguous;
mod archive;
mod buckets;
mod checksums;
mod clock;
mod conditions;
mod copy;
mod delete;
mod encryption;
mod error_document;
mod forms;
mod get;
mod list;
mod multipart;
mod object_lock;
mod object_options;
mod put;
mod refusals;
pub(crate) mod session;
mod tagging;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::*;
use s3s::host::{S3Host, VirtualHost};
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::validation::NameValidation;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use self::multipart::Completions;
use crate::body::{RequestBody, ResponseBody, aws_chunked};
use crate::config::S3Config;
use crate::fault::injector::FaultInjector;
use crate::habits::Habits;
use crate::objects::disk::is_full;
use crate::objects::object::ACCOUNT;
use crate::objects::precondition::FailedCondition;
use crate::objects::{Objects, StoreError, usable_bucket_name};
use crate::query::Query;
use crate::route;
use checksums::AnnouncedChecksums;
use error_document::ErrorContext;

/// The implementation of S3's operations on the store.
struct S3Dialect {
    objects: Arc<Objects>,
    config: S3Config,
    habits: Habits,
    /// True if the server stores access control settings, although it doesn't enforce them.
    accept_unenforced: bool,
    completions: Completions,
}

impl S3Dialect {
    /// Returns true if answers to reads have checksums.
    fn tells_checksums(&self) -> bool {
        self.config.checksums && self.habits.checksums
    }

    /// Returns the checksums that a request announces, or none if the imitated service ignores them.
    fn announced(&self, headers: &http::HeaderMap) -> S3Result<AnnouncedChecksums> {
        let announced = AnnouncedChecksums::in_headers(headers)?;
        Ok(if self.habits.checksums { announced } else { AnnouncedChecksums { checksum: None, ..announced } })
    }
}

/// The state that all requests of the dialect share.
pub(crate) struct S3State {
    service: S3Service,
    objects: Arc<Objects>,
    config: S3Config,
    habits: Habits,
    /// True if the server stores and returns access control lists, policies and lifecycles without enforcing them.
    accept_unenforced: bool,
    /// The number of temporary redirects so far, for each bucket in another region.
    redirected: buckets::RedirectCounts,
    pub(crate) sessions: session::DirectorySessions,
    draws: Arc<FaultInjector>,
}

impl S3State {
    pub(crate) fn new(
        objects: &Arc<Objects>,
        config: S3Config,
        habits: &Habits,
        accept_unenforced: bool,
        draws: &Arc<FaultInjector>,
    ) -> S3State {
        S3State {
            service: service(objects, &config, habits, accept_unenforced),
            objects: objects.clone(),
            config,
            habits: habits.clone(),
            accept_unenforced,
            redirected: Default::default(),
            sessions: Default::default(),
            draws: draws.clone(),
        }
    }
}

/// Returns the service that answers S3 requests.
fn service(objects: &Arc<Objects>, config: &S3Config, habits: &Habits, accept_unenforced: bool) -> S3Service {
    let (objects, config_of, habits) = (objects.clone(), config.clone(), habits.clone());
    let completions = Completions::default();
    let dialect = S3Dialect { objects, config: config_of, habits, accept_unenforced, completions };
    let mut builder = S3ServiceBuilder::new(dialect);
    builder.set_auth(SingleKey(config.clone()));
    builder.set_host(BucketHosts);
    builder.set_access(OpenAccess);
    builder.set_validation(BucketNames);
    let mut limits = s3s::config::S3Config::default();
    limits.post_object_max_file_size = forms::FILE_BYTES_MAX;
    if config.clock_ahead_s != 0 {
        // Turn off the check of the time in `s3s`. It uses this machine's clock, and the server's simulated clock may
        // differ from it.
        limits.presigned_url_max_skew_time_secs = u32::MAX;
    }
    builder.set_config(Arc::new(s3s::config::StaticConfigProvider::new(Arc::new(limits))));
    builder.build()
}

/// Answers one S3 request.
pub(crate) async fn answer(
    state: &S3State,
    request: Request<RequestBody>,
    bucket: &str,
    key: &str,
) -> Response<ResponseBody> {
    let (mut head, body) = request.into_parts();
    if matches!(head.method, http::Method::GET | http::Method::HEAD) {
        error_document::drop_malformed_range(&mut head.headers);
    }
    clock::complete(&mut head.headers);
    let about = ErrorContext::of(&head, bucket, key);
    let answer = answer_incomplete(state, Request::from_parts(head, body), bucket, key).await;
    // Clients recognise S3 by this header, because other web servers send ETags too.
    let id = format!("{:016X}", REQUESTS.fetch_add(1, Ordering::Relaxed));
    let mut answer = error_document::complete(answer, &about, &id, HOST_ID).await;
    if let Ok(id) = http::HeaderValue::try_from(id) {
        answer.headers_mut().insert("x-amz-request-id", id);
    }
    answer.headers_mut().insert("x-amz-id-2", HeaderValue::from_static(HOST_ID));
    answer
}

/// Answers one S3 request. If the answer is an error, [`answer`] adds the elements that all errors have.
async fn answer_incomplete(
    state: &S3State,
    request: Request<RequestBody>,
    bucket: &str,
    key: &str,
) -> Response<ResponseBody> {
    let anonymous = ambiguous::is(request.uri(), request.headers());
    let refusal = clock::refusal(&state.config, request.uri(), request.headers())
        .or_else(|| clock::expired(&state.config, request.headers()));
    if let Some(mut refusal) = refusal {
        clock::show(&state.config, refusal.headers_mut());
        return refusal;
    }
    if let Some(redirect) =
        buckets::redirect(state, request.method(), request.uri(), request.headers(), bucket, key)
    {
        return redirect;
    }
    if let Some(refused) = &state.habits.refused_headers
        && let Some(name) = refused.first_in(request.headers())
    {
        let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
        let message = format!("Unsupported header '{name}' received for this API call.");
        return error_document(status, refused.code, &message);
    }
    let (mut head, body) = request.into_parts();
    if let Some(refusal) =
        session::admit(state, &mut head, bucket).or_else(|| buckets::directory_refusal(&head, bucket))
    {
        return refusal;
    }
    let request = Request::from_parts(head, body);
    let without_body = request.method() == http::Method::HEAD;
    let takes_encodings =
        request.headers().get(http::header::ACCEPT_ENCODING).is_none_or(|value| value != "identity");
    let mut answer = match called(state, request, bucket, key).await {
        Ok(answer) if without_body => answer.map(|_| ResponseBody::empty()),
        Ok(answer) => versions::finished(archive::finished(answer)),
        // This happens only if an answer can't be written as XML.
        Err(_) => refused(500, None),
    };
    if without_body && takes_encodings && !state.habits.head_lengths {
        answer.headers_mut().remove(http::header::CONTENT_LENGTH);
    }
    clock::show(&state.config, answer.headers_mut());
    if anonymous {
        ambiguous::tell(&mut answer);
    }
    answer.headers_mut().insert(http::header::SERVER, HeaderValue::from_static(state.habits.server));
    answer
}

/// Checks a request and carries it out.
async fn called(
    state: &S3State,
    request: Request<RequestBody>,
    bucket: &str,
    key: &str,
) -> Result<Response<ResponseBody>, s3s::HttpError> {
    let mut request = request;
    request.extensions_mut().insert(Arc::clone(&state.draws));
    let query = Query::parse(request.uri().query());
    if state.accept_unenforced && buckets::is_unenforced(request.method(), &query, key) {
        return Ok(buckets::answer_unenforced(state, request, &query, bucket).await);
    }
    let headers = request.headers();
    let of_checksums = || refusals::checksum_refusal(headers).filter(|_| state.habits.checksums);
    let refusal = refusals::refusal(request.method(), key, &query, headers)
        .or_else(|| refusals::of_acl(headers, state.accept_unenforced))
        .or_else(of_checksums);
    if let Some((status, code, message)) = refusal {
        return Ok(error_document(status, code, message));
    }
    let is_signed = headers.contains_key(AUTHORIZATION);
    let request = if aws_chunked::is_framed(headers, is_signed) {
        let decoded = headers.get("x-amz-decoded-content-length");
        let Some(decoded) = decoded.and_then(|len| len.to_str().ok()?.parse().ok()) else {
            let message = "You must provide the x-amz-decoded-content-length HTTP header.";
            return Ok(error_document(StatusCode::LENGTH_REQUIRED, "MissingContentLength", message));
        };
        let (mut head, body) = request.into_parts();
        let (body, trailers) = body.unframed(decoded);
        head.extensions.insert(trailers);
        Request::from_parts(head, body)
    } else {
        request
    };
    let has_attributes = query.has("attributes");
    let (mut head, body) = request.into_parts();
    let is_form = forms::is(&head, key);
    let body = match is_form {
        true => match forms::prepared(&mut head, body).await {
            Ok(body) => body,
            Err((status, code, message)) => return Ok(error_document(status, code, message)),
        },
        false => body,
    };
    let request = Request::from_parts(head, body);
    let answer = state.service.call(request.map(s3s::Body::http_body_unsync)).await?.map(ResponseBody::s3);
    Ok(match (has_attributes, is_form) {
        (true, _) => get::unquoted(answer).await,
        (_, true) => forms::finished(answer).await,
        _ => answer,
    })
}

/// The host id in error documents.
const HOST_ID: &str = "laneway";

/// The number of requests that this process has answered. Request ids are made from it.
static REQUESTS: AtomicU64 = AtomicU64::new(1);

/// Returns an error with the status that a fault or the configuration sets, in S3's format.
pub(crate) fn refused(status: u16, code: Option<&str>) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = status.canonical_reason().unwrap_or("refused");
    error_document(status, code.unwrap_or(usual_code(status.as_u16())), message)
}

/// Returns the usual error code of a status.
fn usual_code(status: u16) -> &'static str {
    match status {
        401 | 403 => "AccessDenied",
        404 => "NoSuchKey",
        408 => "RequestTimeout",
        409 => "OperationAborted",
        411 => "MissingContentLength",
        412 => "PreconditionFailed",
        429 => "TooManyRequests",
        503 => "SlowDown",
        500..=599 => "InternalError",
        _ => "InvalidRequest",
    }
}

/// Returns a complete error document for a preflight request.
pub(crate) fn preflight_refused(status: StatusCode, code: &str, message: &str) -> Response<ResponseBody> {
    let id = format!("{:016X}", REQUESTS.fetch_add(1, Ordering::Relaxed));
    error_document_with(status, code, message, &[("RequestId", id.as_str()), ("HostId", HOST_ID)])
}

fn error_document(status: StatusCode, code: &str, message: &str) -> Response<ResponseBody> {
    error_document_with(status, code, message, &[])
}

/// Returns an error document with additional elements.
fn error_document_with(
    status: StatusCode,
    code: &str,
    message: &str,
    elements: &[(&str, &str)],
) -> Response<ResponseBody> {
    let code = quick_xml::escape::escape(code);
    let own: String = elements.iter().map(|(name, value)| format!("<{name}>{value}</{name}>")).collect();
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>{message}</Message>{own}</Error>"
    );
    let len = text.len();
    let mut answer = Response::new(ResponseBody::whole(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer.headers_mut().insert(CONTENT_LENGTH, len.into());
    answer
}

/// The server's only access key, with which `s3s` verifies signatures.
struct SingleKey(S3Config);

#[async_trait::async_trait]
impl S3Auth for SingleKey {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        match access_key == self.0.access_key {
            true => Ok(SecretKey::from(self.0.secret_key.clone())),
            false => Err(s3_error!(
                InvalidAccessKeyId,
                "The AWS Access Key Id you provided does not exist in our records."
            )),
        }
    }
}

/// The rule by which `s3s` finds the bucket: in the host name, or otherwise in the path.
struct BucketHosts;

impl S3Host for BucketHosts {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        Ok(match route::bucket_of_host(host) {
            Some(bucket) => VirtualHost::new(host).with_bucket(bucket),
            None => VirtualHost::new(host),
        })
    }
}

/// Permits every request. `s3s` verifies signatures, but unsigned requests are accepted too, because this is a demo
/// store.
struct OpenAccess;

#[async_trait::async_trait]
impl S3Access for OpenAccess {
    async fn check(&self, _context: &mut S3AccessContext<'_>) -> S3Result<()> {
        Ok(())
    }
}

/// The store's own rule for bucket names, so that both dialects accept the same ones.
struct BucketNames;

impl NameValidation for BucketNames {
    fn validate_bucket_name(&self, name: &str) -> bool {
        usable_bucket_name(name)
    }
}

/// Converts an error of the store into S3's error.
fn refusal(refused: StoreError) -> S3Error {
    match refused {
        StoreError::NoBucket => s3_error!(NoSuchBucket, "The specified bucket does not exist"),
        StoreError::NoObject | StoreError::DeleteMarker(_) => {
            s3_error!(NoSuchKey, "The specified key does not exist.")
        }
        StoreError::BucketExists => s3_error!(
            BucketAlreadyOwnedByYou,
            "Your previous request to create the named bucket succeeded and you already own it."
        ),
        StoreError::BucketNotEmpty => {
            s3_error!(BucketNotEmpty, "The bucket you tried to delete is not empty")
        }
        StoreError::BadBucketName => s3_error!(InvalidBucketName, "The specified bucket is not valid."),
        StoreError::KeyTooLong => s3_error!(KeyTooLongError, "Your key is too long"),
        StoreError::Precondition(_) => {
            s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold")
        }
        StoreError::Protected(_) => object_lock::protected(),
        StoreError::NoLocks => s3_error!(InvalidRequest, "Bucket is missing ObjectLockConfiguration"),
        StoreError::TooManyUploads => {
            s3_error!(SlowDown, "Too many uploads are unfinished")
        }
        StoreError::Io(error) => storage_error(error),
    }
}

/// Returns the error if the store can't read or write. For a full disk, the status is 507 (RFC 4918), after which
/// clients don't repeat the request.
fn storage_error(error: std::io::Error) -> S3Error {
    if is_full(&error) {
        let message = format!("The store has no room left: {error}");
        let mut full = S3Error::with_message(S3ErrorCode::Custom("InsufficientStorage".into()), message);
        full.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
        return full;
    }
    let message = format!("The store could not read or write: {error}");
    S3Error::with_message(S3ErrorCode::InternalError, message)
}

/// Returns the error for a read that the store refused. It is 304 if the object is still in the state that the reader
/// has.
fn refusal_to_read(refused: StoreError) -> S3Error {
    match refused {
        StoreError::Precondition(FailedCondition::NotMatch) => s3_error!(NotModified),
        other => refusal(other),
    }
}

fn timestamp(us: u64) -> Timestamp {
    Timestamp::from(std::time::UNIX_EPOCH + std::time::Duration::from_micros(us))
}

/// The list of operations. Each is implemented in its own file.
#[async_trait::async_trait]
impl S3 for S3Dialect {
    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        buckets::list(self, request.input).map(S3Response::new)
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        buckets::create(self, request.input).map(S3Response::new)
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        buckets::head(self, request.input).map(S3Response::new)
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        buckets::delete(self, request.input).map(S3Response::new)
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        buckets::location(self, request.input).map(S3Response::new)
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let S3Request { mut input, extensions, .. } = request;
        if let Some(fault) = extensions.get() {
            input.range = get::befallen(input.range, *fault);
        }
        get::get(self, input)
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        get::head(self, request.input)
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        put::put(self, request).await
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        copy::copy(self, request).map(S3Response::new)
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let output = delete::one(self, request.input)?;
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        delete::many(self, request).map(S3Response::new)
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        list::first_version(self, request.input).map(S3Response::new)
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        list::second_version(self, request.input).map(S3Response::new)
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        multipart::create(self, request).map(S3Response::new)
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        multipart::part(self, request).await.map(S3Response::new)
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        multipart::part_copy(self, request).map(S3Response::new)
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        multipart::complete(self, request).map(S3Response::new)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        multipart::abort(self, request.input).map(S3Response::new)
    }

    async fn get_object_tagging(
        &self,
        request: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        tagging::get(self, request.input).map(S3Response::new)
    }

    async fn put_object_tagging(
        &self,
        request: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        tagging::put(self, request.input).map(S3Response::new)
    }

    async fn delete_object_tagging(
        &self,
        request: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        let output = tagging::delete(self, request.input)?;
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    async fn get_object_acl(
        &self,
        request: S3Request<GetObjectAclInput>,
    ) -> S3Result<S3Response<GetObjectAclOutput>> {
        acl::get(self, request.input).map(S3Response::new)
    }

    async fn get_bucket_acl(
        &self,
        request: S3Request<GetBucketAclInput>,
    ) -> S3Result<S3Response<GetBucketAclOutput>> {
        acl::get_bucket(self, request.input).map(S3Response::new)
    }

    async fn put_bucket_acl(
        &self,
        request: S3Request<PutBucketAclInput>,
    ) -> S3Result<S3Response<PutBucketAclOutput>> {
        acl::put_bucket(self, request.input).map(S3Response::new)
    }

    async fn put_object_acl(
        &self,
        request: S3Request<PutObjectAclInput>,
    ) -> S3Result<S3Response<PutObjectAclOutput>> {
        acl::put(self, request.input).map(S3Response::new)
    }

    async fn get_object_lock_configuration(
        &self,
        request: S3Request<GetObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
        object_lock::configuration(self, request.input).map(S3Response::new)
    }

    async fn put_object_lock_configuration(
        &self,
        request: S3Request<PutObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<PutObjectLockConfigurationOutput>> {
        object_lock::configure(self, request.input).map(S3Response::new)
    }

    async fn get_object_retention(
        &self,
        request: S3Request<GetObjectRetentionInput>,
    ) -> S3Result<S3Response<GetObjectRetentionOutput>> {
        object_lock::retention(self, request.input).map(S3Response::new)
    }

    async fn put_object_retention(
        &self,
        request: S3Request<PutObjectRetentionInput>,
    ) -> S3Result<S3Response<PutObjectRetentionOutput>> {
        object_lock::retain(self, request.input).map(S3Response::new)
    }

    async fn get_object_legal_hold(
        &self,
        request: S3Request<GetObjectLegalHoldInput>,
    ) -> S3Result<S3Response<GetObjectLegalHoldOutput>> {
        object_lock::legal_hold(self, request.input).map(S3Response::new)
    }

    async fn put_object_legal_hold(
        &self,
        request: S3Request<PutObjectLegalHoldInput>,
    ) -> S3Result<S3Response<PutObjectLegalHoldOutput>> {
        object_lock::hold(self, request.input).map(S3Response::new)
    }

    async fn get_bucket_cors(
        &self,
        request: S3Request<GetBucketCorsInput>,
    ) -> S3Result<S3Response<GetBucketCorsOutput>> {
        buckets::get_cors(self, request.input).map(S3Response::new)
    }

    async fn put_bucket_cors(
        &self,
        request: S3Request<PutBucketCorsInput>,
    ) -> S3Result<S3Response<PutBucketCorsOutput>> {
        buckets::put_cors(self, request.input).map(S3Response::new)
    }

    async fn delete_bucket_cors(
        &self,
        request: S3Request<DeleteBucketCorsInput>,
    ) -> S3Result<S3Response<DeleteBucketCorsOutput>> {
        let output = buckets::delete_cors(self, request.input)?;
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    async fn get_bucket_tagging(
        &self,
        request: S3Request<GetBucketTaggingInput>,
    ) -> S3Result<S3Response<GetBucketTaggingOutput>> {
        buckets::get_tags(self, request.input).map(S3Response::new)
    }

    async fn put_bucket_tagging(
        &self,
        request: S3Request<PutBucketTaggingInput>,
    ) -> S3Result<S3Response<PutBucketTaggingOutput>> {
        buckets::put_tags(self, request.input).map(S3Response::new)
    }

    async fn delete_bucket_tagging(
        &self,
        request: S3Request<DeleteBucketTaggingInput>,
    ) -> S3Result<S3Response<DeleteBucketTaggingOutput>> {
        let output = buckets::delete_tags(self, request.input)?;
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    async fn restore_object(
        &self,
        request: S3Request<RestoreObjectInput>,
    ) -> S3Result<S3Response<RestoreObjectOutput>> {
        archive::restore(self, request.input)
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        multipart::list_parts(self, request.input).map(S3Response::new)
    }

    async fn get_object_attributes(
        &self,
        request: S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        get::attributes(self, request.input).map(S3Response::new)
    }

    async fn list_object_versions(
        &self,
        request: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        versions::list(self, request.input)
    }

    async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        versions::get(self, request.input).map(S3Response::new)
    }

    async fn put_bucket_versioning(
        &self,
        request: S3Request<PutBucketVersioningInput>,
    ) -> S3Result<S3Response<PutBucketVersioningOutput>> {
        versions::put(self, request.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        multipart::list_uploads(self, request.input).map(S3Response::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_and_has_a_status_of_its_own() {
        let full = refusal(StoreError::Io(std::io::ErrorKind::StorageFull.into()));
        assert_eq!(full.status_code(), Some(StatusCode::INSUFFICIENT_STORAGE));
        assert!(full.message().is_some_and(|message| message.contains("no room left")));
        let other = refusal(StoreError::Io(std::io::ErrorKind::PermissionDenied.into()));
        assert_eq!(other.status_code(), Some(StatusCode::INTERNAL_SERVER_ERROR));
    }
}
