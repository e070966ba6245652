//! The dialect of Azure Blob Storage: block blobs, containers, leases, copies and batches.
//! <https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api>
//!
//! A container is a bucket of the store, and a blob is an object. Requests need a signature, a SAS token or a bearer
//! token, as at the service. Only containers with public access permit anonymous reads.

mod answer;
mod authorization;
mod batch;
mod blobs;
mod blocks;
mod conditions;
mod containers;
mod copies;
mod error;
mod leases;
mod list;
mod operation;
mod properties;
mod service;
mod tags;
mod timestamp;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};

use crate::body::{RequestBody, ResponseBody};
use crate::config::AzureConfig;
use crate::fault::injector::FaultInjector;
use crate::habits::AzureHabits;
use crate::objects::Objects;
use crate::query::{Query, decode};
use authorization::Access;
use error::{BlobError, BlobResult};
use leases::Leases;
pub(crate) use operation::BlobOperation;
use service::ServiceProperties;
pub(crate) use service::{allow_origin, preflight};

/// The maximum size of an XML document in a request, which a block list of 50,000 blocks needs.
const DOCUMENT_BYTES_MAX: usize = 8 << 20;
/// The container of blobs whose URL names no container.
const ROOT: &str = "$root";

/// The state that all requests of the dialect share.
pub(crate) struct AzureState {
    objects: Arc<Objects>,
    config: AzureConfig,
    habits: AzureHabits,
    denied_buckets: Arc<BTreeSet<String>>,
    draws: Arc<FaultInjector>,
    /// True if the server speaks TLS, which a SAS token may demand.
    is_tls: bool,
    leases: Leases,
    /// Held while uncommitted blocks are added or committed, so that no block is lost between two requests.
    block_lists: Mutex<()>,
    properties: Mutex<ServiceProperties>,
    /// The number of requests so far. Request ids are made from it.
    requests: AtomicU64,
}

impl AzureState {
    pub(crate) fn new(
        objects: &Arc<Objects>,
        config: AzureConfig,
        habits: AzureHabits,
        denied_buckets: &Arc<BTreeSet<String>>,
        draws: &Arc<FaultInjector>,
        is_tls: bool,
    ) -> AzureState {
        AzureState {
            objects: objects.clone(),
            config,
            habits,
            denied_buckets: denied_buckets.clone(),
            draws: draws.clone(),
            is_tls,
            leases: Leases::default(),
            block_lists: Mutex::default(),
            properties: Mutex::default(),
            requests: AtomicU64::new(1),
        }
    }

    /// Returns the name of the account.
    pub(crate) fn account(&self) -> &str {
        &self.config.account
    }

    /// Forgets everything that isn't in the store.
    pub(crate) fn clear(&self) {
        self.leases.clear();
        *self.properties() = ServiceProperties::default();
    }

    fn properties(&self) -> std::sync::MutexGuard<'_, ServiceProperties> {
        self.properties.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns a new id in the format of a GUID.
    fn guid(&self) -> String {
        let id = self.objects.unguessable_id();
        let id = id.get(..32).unwrap_or(&id);
        let group = |from: usize, to: usize| id.get(from..to).unwrap_or_default();
        format!("{}-{}-4{}-8{}-{}", group(0, 8), group(8, 12), group(13, 16), group(17, 20), group(20, 32))
    }

    /// Returns the id of the next request. It counts up, so that a log shows the order of requests.
    fn request_id(&self) -> String {
        format!("{:08x}-601e-0024-0000-000000000000", self.requests.fetch_add(1, Ordering::Relaxed))
    }
}

/// The account, container and blob that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobTarget {
    pub(crate) account: String,
    /// The container. It is empty for a request about the account.
    pub(crate) container: String,
    /// The blob. It is empty for a request about a container.
    pub(crate) blob: String,
}

impl BlobTarget {
    /// Returns the target of an Azure request, or `None` if a request is another dialect's. The path begins with the
    /// account, as at the emulators, or the host does: `ACCOUNT.blob.localhost`. A request whose path doesn't begin with the
    /// store's own account is Azure's if its headers or its query show that.
    pub(crate) fn of(head: &Parts, query: &Query, account: &str) -> Option<BlobTarget> {
        if is_of_another_dialect(&head.headers, query) {
            return None;
        }
        let host = head.uri.host().or_else(|| head.headers.get(http::header::HOST)?.to_str().ok());
        let path = head.uri.path().trim_start_matches('/');
        if let Some((named, _)) = host.and_then(|host| host.split_once(".blob."))
            && !named.contains('.')
        {
            return Some(BlobTarget::in_path(named, path, query));
        }
        let (named, rest) = path.split_once('/').unwrap_or((path, ""));
        let is_own = named == account || named.strip_suffix("-secondary") == Some(account);
        is_own.then_some(()).or_else(|| is_of_azure(&head.headers, query).then_some(()))?;
        Some(BlobTarget::in_path(named.strip_suffix("-secondary").unwrap_or(named), rest, query))
    }

    fn in_path(account: &str, path: &str, query: &Query) -> BlobTarget {
        let (container, blob) = path.split_once('/').unwrap_or((path, ""));
        let is_container = !blob.is_empty()
            || container.is_empty()
            || query.value("restype").is_some_and(|kind| kind.eq_ignore_ascii_case("container"));
        let (container, blob) = if is_container { (container, blob) } else { (ROOT, container) };
        // The service replaces backslashes in names of blobs.
        let blob = decode(blob).replace('\\', "/");
        BlobTarget { account: decode(account), container: decode(container), blob }
    }
}

fn authorization(headers: &HeaderMap) -> &[u8] {
    headers.get(http::header::AUTHORIZATION).map_or(&[], |value| value.as_bytes())
}

fn is_of_another_dialect(headers: &HeaderMap, query: &Query) -> bool {
    let is_of =
        |name: &HeaderName| ["x-amz-", "x-goog-"].iter().any(|start| name.as_str().starts_with(start));
    authorization(headers).starts_with(b"AWS")
        || query.has("X-Amz-Algorithm")
        || query.is_signed_by_google()
        || headers.keys().any(is_of)
}

fn is_of_azure(headers: &HeaderMap, query: &Query) -> bool {
    headers.contains_key("x-ms-version")
        || authorization(headers).starts_with(b"SharedKey")
        || (query.has("sv") && query.has("sig"))
}

/// One request, which has been authorized.
struct BlobCall<'a> {
    state: &'a AzureState,
    head: Parts,
    body: RequestBody,
    query: Query,
    target: BlobTarget,
    access: Access,
}

impl BlobCall<'_> {
    /// Returns the text of a header. A value that isn't UTF-8 counts as absent.
    fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    fn required_header(&self, name: &str) -> Result<&str, BlobError> {
        self.header(name).ok_or_else(|| BlobError::missing_header(name))
    }

    fn lease_id(&self) -> Option<&str> {
        self.header("x-ms-lease-id")
    }

    /// Returns the version of the service that the request asks for.
    fn version(&self) -> &str {
        self.header("x-ms-version").or_else(|| self.query.value("sv")).unwrap_or(DEFAULT_VERSION)
    }

    /// Reads the whole body as a document, and checks its Content-MD5.
    async fn document(&mut self) -> Result<Bytes, BlobError> {
        let expected = blobs::BodyChecksums::in_headers(self)?;
        let bytes = self.body.collect(DOCUMENT_BYTES_MAX).await.map_err(BlobError::interrupted)?;
        let bytes = bytes.ok_or_else(|| BlobError::new("RequestBodyTooLarge"))?;
        expected.check_bytes(&bytes)?;
        Ok(bytes)
    }

    /// Returns the URL of the account, which listings repeat.
    fn endpoint(&self) -> String {
        let scheme = if self.state.is_tls { "https" } else { "http" };
        let host = self.head.uri.authority().map(|authority| authority.as_str());
        let host = host.or_else(|| self.header("host")).unwrap_or_default();
        match host.starts_with(&format!("{}.", self.target.account)) {
            true => format!("{scheme}://{host}/"),
            false => format!("{scheme}://{host}/{}/", self.target.account),
        }
    }
}

/// The version of requests that name none, as anonymous requests may.
const DEFAULT_VERSION: &str = "2026-10-06";

/// Answers one request.
pub(crate) async fn answer(
    state: &AzureState,
    request: Request<RequestBody>,
    query: Query,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let id = state.request_id();
    let is_head = head.method == http::Method::HEAD;
    let version = head.headers.get("x-ms-version").cloned();
    let client_id = head.headers.get("x-ms-client-request-id").cloned();
    let mut answer = match respond(state, head, body, query, &id).await {
        Ok(answer) => answer,
        Err(refused) => {
            let mut answer = refused.answer(&id);
            if is_head {
                answer.headers_mut().remove(http::header::CONTENT_TYPE);
            }
            answer
        }
    };
    if !state.habits.crc64 {
        answer.headers_mut().remove("x-ms-content-crc64");
    }
    complete(answer, &id, version, client_id)
}

/// Adds the headers that every answer has.
fn complete(
    mut answer: Response<ResponseBody>,
    id: &str,
    version: Option<HeaderValue>,
    client_id: Option<HeaderValue>,
) -> Response<ResponseBody> {
    let headers = answer.headers_mut();
    headers.insert("x-ms-version", version.unwrap_or(HeaderValue::from_static(DEFAULT_VERSION)));
    if let Some(client_id) = client_id {
        headers.insert("x-ms-client-request-id", client_id);
    }
    answer::insert(headers, "x-ms-request-id", id);
    headers.insert(
        http::header::SERVER,
        HeaderValue::from_static("Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"),
    );
    answer
}

/// Answers with a status that a fault or the configuration sets.
pub(crate) fn refused(state: &AzureState, status: u16, code: Option<&str>) -> Response<ResponseBody> {
    let id = state.request_id();
    complete(BlobError::of_status(status, code).answer(&id), &id, None, None)
}

/// Authorizes a request and carries it out.
async fn respond(state: &AzureState, head: Parts, body: RequestBody, query: Query, id: &str) -> BlobResult {
    let target =
        BlobTarget::of(&head, &query, state.account()).ok_or_else(|| BlobError::new("InvalidUri"))?;
    let operation = BlobOperation::of(&head.method, &query, &head.headers, &target.container, &target.blob);
    check_version(&head)?;
    carry_out(state, head, body, query, target, operation, id).await
}

/// Answers one request of a batch. The version that the batch names applies to it.
async fn respond_part(state: &AzureState, head: Parts, body: RequestBody, query: Query) -> BlobResult {
    let target =
        BlobTarget::of(&head, &query, state.account()).ok_or_else(|| BlobError::new("InvalidUri"))?;
    let operation = BlobOperation::of(&head.method, &query, &head.headers, &target.container, &target.blob);
    carry_out(state, head, body, query, target, operation, "").await
}

async fn carry_out(
    state: &AzureState,
    head: Parts,
    body: RequestBody,
    query: Query,
    target: BlobTarget,
    operation: BlobOperation,
    id: &str,
) -> BlobResult {
    let access = authorization::authorize(state, &head, &query, &target, operation)?;
    let mut call = BlobCall { state, head, body, query, target, access };
    match operation {
        BlobOperation::ListContainers => containers::list(&call),
        BlobOperation::GetServiceProperties => service::properties(&call),
        BlobOperation::SetServiceProperties => service::set_properties(&mut call).await,
        BlobOperation::GetServiceStats => service::stats(&call),
        BlobOperation::GetAccountInfo => service::account_info(&call),
        BlobOperation::GetUserDelegationKey => service::delegation_key(&mut call).await,
        BlobOperation::FindBlobs => list::find(&call),
        // The requests of a batch call this function again, so the future must be boxed.
        BlobOperation::Batch => Box::pin(batch::batch(&mut call, id)).await,
        BlobOperation::CreateContainer => containers::create(&call),
        BlobOperation::GetContainer => containers::get(&call),
        BlobOperation::DeleteContainer => containers::delete(&call),
        BlobOperation::SetContainerMetadata => containers::set_metadata(&call),
        BlobOperation::GetContainerAcl => containers::acl(&call),
        BlobOperation::SetContainerAcl => containers::set_acl(&mut call).await,
        BlobOperation::LeaseContainer => containers::lease(&call),
        BlobOperation::ListBlobs => list::list(&call),
        BlobOperation::GetBlob => blobs::get(&call),
        BlobOperation::HeadBlob => blobs::head(&call),
        BlobOperation::PutBlob => blobs::put(&mut call).await,
        BlobOperation::DeleteBlob | BlobOperation::DeleteVersion => blobs::delete(&call),
        BlobOperation::UndeleteBlob => blobs::undelete(&call),
        BlobOperation::SetProperties => properties::set_properties(&call),
        BlobOperation::SetMetadata => properties::set_metadata(&call),
        BlobOperation::SetTier => properties::set_tier(&call),
        BlobOperation::GetTags => properties::tags(&call),
        BlobOperation::SetTags => properties::set_tags(&mut call).await,
        BlobOperation::LeaseBlob => properties::lease(&call),
        BlobOperation::Snapshot => properties::snapshot(&call),
        BlobOperation::PutBlock => blocks::put(&mut call).await,
        BlobOperation::AppendBlock => blocks::append(&mut call).await,
        BlobOperation::PutBlockFromUrl => blocks::put_from_url(&call),
        BlobOperation::PutBlockList => blocks::put_list(&mut call).await,
        BlobOperation::GetBlockList => blocks::list(&call),
        BlobOperation::PutBlobFromUrl if !state.habits.put_blob_from_url => {
            Err(BlobError::new("NotImplemented").with("Operation", "Put Blob From URL"))
        }
        BlobOperation::PutBlobFromUrl => copies::put_from_url(&call),
        BlobOperation::CopyBlob => copies::copy(&call),
        BlobOperation::AbortCopy => copies::abort(&call),
        BlobOperation::Lacking(name) => Err(BlobError::new("NotImplemented").with("Operation", name)),
        BlobOperation::Unknown => match call.query.value("comp") {
            Some(comp) => Err(BlobError::of_parameter("InvalidQueryParameterValue", "comp", comp)),
            None => Err(BlobError::new("UnsupportedHttpVerb")),
        },
    }
}

/// Checks the version of the service that a request names. Requests with a signature must name one.
fn check_version(head: &Parts) -> Result<(), BlobError> {
    let name = "x-ms-version";
    match head.headers.get(name).map(|value| value.to_str().unwrap_or_default()) {
        Some(version) if version.len() == 10 && timestamp::parse(version).is_some() => Ok(()),
        Some(version) => Err(BlobError::of_header("InvalidHeaderValue", name, version)),
        None if authorization(&head.headers).is_empty() => Ok(()),
        None => Err(BlobError::missing_header(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(uri: &str, headers: &[(&str, &str)]) -> Option<[String; 3]> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        let query = Query::parse(head.uri.query());
        let found = BlobTarget::of(&head, &query, "devstoreaccount1")?;
        Some([found.account, found.container, found.blob])
    }

    #[test]
    fn the_account_is_in_the_path_or_in_the_host() {
        let names =
            |account: &str, container: &str, blob: &str| Some([account, container, blob].map(str::to_owned));
        let own = "devstoreaccount1";
        assert_eq!(target("/devstoreaccount1/c/a%2Fb//c", &[]), names(own, "c", "a/b//c"));
        assert_eq!(target("/devstoreaccount1/c?restype=container", &[]), names(own, "c", ""));
        assert_eq!(target("/devstoreaccount1?comp=list", &[]), names(own, "", ""));
        assert_eq!(target("/devstoreaccount1/k", &[]), names(own, "$root", "k"));
        assert_eq!(target("/devstoreaccount1-secondary/c/k", &[]), names(own, "c", "k"));
        let host = [("host", "devstoreaccount1.blob.localhost:9010")];
        assert_eq!(target("/c/k", &host), names(own, "c", "k"));
    }

    #[test]
    fn other_dialects_keep_their_requests() {
        assert_eq!(target("/bucket/key", &[]), None);
        assert_eq!(target("/devstoreaccount1/k", &[("x-amz-date", "20261122T000000Z")]), None);
        assert_eq!(target("/devstoreaccount1/k", &[("x-goog-hash", "crc32c=")]), None);
        assert!(target("/other/c/k", &[("x-ms-version", "2026-10-06")]).is_some());
        assert!(target("/other/c/k?sv=2026-10-06&sig=x", &[]).is_some());
    }
}
