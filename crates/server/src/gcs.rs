//! The dialect of Google Cloud Storage: the JSON API, and the XML API in [`xml`].

mod acl;
pub(crate) mod answer;
mod batch;
mod bucket_fields;
mod buckets;
mod conditions;
mod copy;
mod encryption;
mod fields;
mod folders;
mod holds;
mod list;
pub(crate) mod managed_folders;
mod media;
mod metadata;
mod related;
mod resource;
pub(crate) mod resumable;
mod upload;
pub(crate) mod xml;

pub(crate) use self::resource::rfc3339;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use http::{Method, Request, Response};

use crate::body::{RequestBody, ResponseBody};
use crate::config::GcsConfig;
use crate::fault::injector::FaultInjector;
use crate::habits::Habits;
use crate::objects::{Attributes, Objects, now_us};
use crate::query::Query;
use crate::route::JsonResource;
use crate::verb::Verb;
use answer::{ApiError, ApiResult};
use bucket_fields::BucketWrite;
use fields::Fields;
use managed_folders::ManagedFolders;
use resumable::ResumableSessions;

/// The state that all requests of the dialect share.
pub(crate) struct GcsState {
    pub(crate) objects: Arc<Objects>,
    pub(crate) sessions: ResumableSessions,
    pub(crate) managed_folders: ManagedFolders,
    pub(crate) config: GcsConfig,
    pub(crate) habits: Habits,
    /// True if the server stores and returns access control lists and lifecycles without enforcing them.
    pub(crate) accept_unenforced: bool,
    pub(crate) denied_buckets: Arc<BTreeSet<String>>,
    pub(crate) draws: Arc<FaultInjector>,
    /// The server's URL, such as `http://127.0.0.1:4443`. Links in answers contain it if the request has no `Host`
    /// header.
    pub(crate) url: String,
}

/// The maximum size of a JSON body in bytes. GCS's limit is about the same.
pub(crate) const JSON_BYTES_MAX: usize = 1 << 20;

/// One JSON API call: the request, and the parameters of its URL.
pub(crate) struct JsonCall<'a> {
    pub(crate) state: &'a GcsState,
    pub(crate) head: http::request::Parts,
    pub(crate) body: RequestBody,
    pub(crate) query: Query,
    /// The requested fields of the answer.
    fields: Fields,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

impl JsonCall<'_> {
    /// Returns the server's URL (`https://host:port`) with the host that the client used.
    pub(crate) fn base_url(&self) -> String {
        let scheme = self.state.url.split_once("://").map_or("http", |(scheme, _)| scheme);
        let host = self.head.uri.authority().map(|authority| authority.as_str());
        let host =
            host.or_else(|| self.head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok()));
        host.map_or_else(|| self.state.url.clone(), |host| format!("{scheme}://{host}"))
    }

    /// Returns true if the answer is to have access control lists.
    fn is_full(&self) -> bool {
        self.query.value("projection") == Some("full")
    }

    /// Reads the whole body as JSON. An empty body is `{}`. Google's Java client compresses the body, even an empty
    /// one.
    pub(crate) async fn json_body(&mut self) -> Result<serde_json::Value, ApiError> {
        let bytes = self.body.collect(JSON_BYTES_MAX).await.map_err(ApiError::interrupted)?;
        let too_large = || ApiError::invalid("the JSON body is larger than 1 MiB");
        let bytes = bytes.ok_or_else(too_large)?;
        let encoding = self.head.headers.get(http::header::CONTENT_ENCODING);
        let bytes = match encoding.is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip")) {
            true => gunzipped(&bytes)?.ok_or_else(too_large)?.into(),
            false => bytes,
        };
        if bytes.is_empty() {
            return Ok(serde_json::Value::Object(Default::default()));
        }
        serde_json::from_slice(&bytes).map_err(|error| ApiError::parse(format!("Parse Error: {error}")))
    }
}

/// Decompresses a JSON body. Returns `None` if the result is too large.
///
/// # Errors
/// Fails if the body isn't gzip.
fn gunzipped(bytes: &[u8]) -> Result<Option<Vec<u8>>, ApiError> {
    let mut plain = Vec::new();
    let most = JSON_BYTES_MAX as u64 + 1;
    MultiGzDecoder::new(bytes)
        .take(most)
        .read_to_end(&mut plain)
        .map_err(|error| ApiError::parse(format!("Parse Error: {error}")))?;
    Ok((plain.len() <= JSON_BYTES_MAX).then_some(plain))
}

/// Answers a JSON API request.
pub(crate) async fn json(
    state: &GcsState,
    request: Request<RequestBody>,
    query: Query,
    resource: JsonResource,
    verb: Verb,
    bucket: &str,
    key: &str,
) -> Response<ResponseBody> {
    if resource == JsonResource::Batch && state.config.batch {
        // The calls of a batch call this function again, so the future must be boxed.
        return Box::pin(batch::batch(state, request)).await;
    }
    let (head, body) = request.into_parts();
    let is_compact = query.value("prettyPrint") == Some("false");
    let fields = match query.value("fields").map(Fields::parse) {
        Some(Err(problem)) => return problem.json(),
        fields => fields.and_then(Result::ok).unwrap_or(Fields::All),
    };
    // For speed, a listing writes only the requested fields. But if the request selects parts of an item's field, the
    // finished answer must be filtered here.
    let is_listing = resource == JsonResource::Objects && head.method == Method::GET;
    let is_made_so =
        is_listing && !query.is_true("softDeleted") && !fields.of("items").is_some_and(Fields::is_deep);
    let is_packed = is_listing && list::is_packed(&head.headers);
    let call = JsonCall { state, head, body, query, fields: fields.clone(), bucket, key };
    let answer = match respond(call, resource, verb).await {
        Ok(answer) if fields == Fields::All || is_made_so || verb == Verb::Get => answer,
        Ok(answer) => answer::selected(answer, &fields),
        Err(problem) => problem.json(),
    };
    let answer = if is_compact || verb == Verb::Get { answer } else { answer::indented(answer) };
    if is_packed && answer.status().is_success() { list::packed(answer) } else { answer }
}

/// Applies the metadata, the access, the holds and the retention in a resource to a new or an existing object.
fn describe(
    call: &JsonCall<'_>,
    attributes: &mut Attributes,
    resource: &serde_json::Value,
) -> Result<(), ApiError> {
    resource::apply(attributes, resource)?;
    if let Some(list) = acl::in_resource(call.state.accept_unenforced, "acl", &resource["acl"])? {
        attributes.options.acl = Some(list);
    }
    let overrides = call.query.is_true("overrideUnlockedRetention");
    holds::apply(&mut attributes.options, resource, overrides, now_us())
}

/// Returns an error if GCS doesn't allow a name for a new object. The store itself checks the name's length.
/// <https://cloud.google.com/storage/docs/objects#naming>
fn check_name(key: &str) -> Result<(), ApiError> {
    match key {
        "" => Err(ApiError::required("Required parameter: name")),
        "." | ".." => Err(ApiError::invalid(format!("Invalid object name: '{key}'"))),
        key if key.contains(['\r', '\n']) => {
            Err(ApiError::invalid(format!("Disallowed unicode characters present in object name '{key}'")))
        }
        key if key.starts_with(".well-known/acme-challenge/") => {
            Err(ApiError::invalid(format!("Invalid object name: '{key}'")))
        }
        _ => Ok(()),
    }
}

async fn respond(call: JsonCall<'_>, resource: JsonResource, verb: Verb) -> ApiResult {
    let method = call.head.method.clone();
    match (resource, method) {
        (JsonResource::Buckets, Method::GET) => buckets::list(&call),
        (JsonResource::Buckets, Method::POST) => buckets::insert(call).await,
        (JsonResource::Bucket, Method::GET | Method::HEAD) => buckets::get(&call),
        (JsonResource::Bucket, Method::PATCH) => buckets::patch(call, BucketWrite::Patch).await,
        (JsonResource::Bucket, Method::PUT) => buckets::patch(call, BucketWrite::Update).await,
        (JsonResource::Bucket, Method::DELETE) => buckets::delete(&call),
        (JsonResource::LockRetentionPolicy, Method::POST) => buckets::lock_retention_policy(&call),
        (JsonResource::StorageLayout, Method::GET) => buckets::storage_layout(&call),
        (JsonResource::ManagedFolders { name }, _) => managed_folders::answer(call, name).await,
        (JsonResource::Folders(folder), _) => folders::answer(call, folder).await,
        (JsonResource::Objects, Method::GET) if call.query.is_true("softDeleted") => {
            metadata::list_deleted(&call)
        }
        (JsonResource::Restore, Method::POST) => metadata::restore_deleted(&call),
        (JsonResource::Objects, Method::GET) => list::list(&call),
        (JsonResource::Object, Method::GET) if verb == Verb::Get => media::get(&call),
        (JsonResource::Object, Method::GET | Method::HEAD) => metadata::get(&call),
        (JsonResource::Object, Method::PATCH | Method::PUT) => metadata::patch(call).await,
        (JsonResource::Object, Method::DELETE) => metadata::delete(&call),
        (JsonResource::Upload, _) => match verb {
            Verb::Put => upload::upload(call).await,
            Verb::Begin => resumable::begin(call).await,
            Verb::Part | Verb::Status => resumable::append(call).await,
            Verb::Abort => resumable::cancel(&call),
            _ => Err(ApiError::not_allowed()),
        },
        (JsonResource::Compose, _) => copy::compose(call).await,
        (JsonResource::Copy { bucket, key }, Method::POST) => copy::copy(call, &bucket, &key).await,
        (JsonResource::Move { key }, _) => copy::move_to(&call, &key),
        (JsonResource::Rewrite { bucket, key }, Method::POST) => copy::rewrite(call, &bucket, &key).await,
        (JsonResource::TestPermissions, Method::GET) => acl::test_permissions(&call),
        (JsonResource::Iam, Method::GET | Method::PUT) if call.state.accept_unenforced => {
            acl::policy(call).await
        }
        (JsonResource::Iam, _) => Err(ApiError::not_here("iam")),
        (JsonResource::ServiceAccount, Method::GET) => acl::service_account(),
        (JsonResource::Lacking(name), _) => Err(ApiError::not_here(name)),
        (JsonResource::Unknown | JsonResource::Batch, _) => Err(ApiError::not_found("Not Found")),
        _ => Err(ApiError::not_allowed()),
    }
}

/// Entry points for the fuzzers of multipart request bodies: batches and uploads.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use bytes::Bytes;

    use super::batch;
    use super::related::{RelatedError, RelatedParser, boundary};

    /// Splits the input into its first line, which is the content type, and the body.
    fn split(input: &[u8]) -> Option<(&str, &[u8])> {
        let at = input.iter().position(|byte| *byte == b'\n')?;
        Some((std::str::from_utf8(&input[..at]).ok()?, &input[at + 1..]))
    }

    /// Parses the calls of a batch.
    pub fn batch(input: &[u8]) {
        let Some((content_type, body)) = split(input) else { return };
        if let Some(boundary) = boundary(content_type) {
            let _ = batch::parse(&Bytes::copy_from_slice(body), &boundary);
        }
    }

    /// Reads metadata and media of an upload. The result must be the same for every length of the chunks in which they
    /// arrive.
    pub fn related(input: &[u8]) {
        let Some((content_type, body)) = split(input) else { return };
        let whole = read(content_type, body, body.len().max(1)).ok();
        for step in [1, 2, 50] {
            assert_eq!(read(content_type, body, step).ok(), whole, "in chunks of {step}");
        }
    }

    fn read(content_type: &str, body: &[u8], step: usize) -> Result<(Vec<u8>, Vec<u8>), RelatedError> {
        let mut related = RelatedParser::new(content_type)?;
        let mut content = Vec::new();
        let mut media = |_: &super::related::RelatedHead, bytes: &[u8]| {
            content.extend_from_slice(bytes);
            Ok::<_, RelatedError>(())
        };
        for chunk in body.chunks(step) {
            related.push(chunk, &mut media)?;
        }
        let head = related.finish(&mut media)?;
        Ok((head.metadata, content))
    }
}
