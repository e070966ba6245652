//! Determines a request's dialect, verb and object.
//!
//! All dialects are served on one address. The rule:
//!
//! 0. A path below the Azure account's name (`/devstoreaccount1`) is Azure's, unless the headers show that the request is
//!    Google's or Amazon's. So is a request with `x-ms-version`, a Shared Key signature or a SAS token.
//! 1. `/storage/v1`, `/upload/storage/v1`, `/download/storage/v1`, `/resumable/upload/storage/v1` and `/batch` are the
//!    GCS JSON API. So is `/b`, which Node's client uses with an emulator, unless the headers show that the request is
//!    S3's.
//! 2. Any other path is a bucket and key. It is the GCS XML API if the request carries `Authorization: Bearer`, any
//!    `x-goog-` header, a signature of Google's in its URL, or a `Host` ending in `storage.googleapis.com`.
//! 3. Any other request is an S3 request: signed (AWS4-HMAC-SHA256), presigned or anonymous.
//!
//! A host may name the bucket: `BUCKET.localhost`, `BUCKET.s3.amazonaws.com` with or without a region, and
//! `BUCKET.storage.googleapis.com`. The whole path is then the key. On `BUCKET.localhost`, the paths of the JSON API
//! still belong to the JSON API.

use http::request::Parts;
use http::{HeaderMap, Method};

use crate::azure;
use crate::query::{Query, decode};
use crate::verb::Verb;

/// The destination of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRoute {
    pub(crate) call: Api,
    pub(crate) verb: Verb,
    /// The bucket. It is empty if the request names none.
    pub(crate) bucket: String,
    /// The key in the URL. It isn't the name in the metadata of a GCS multipart upload, which is parsed later.
    pub(crate) key: String,
}

/// The API that a request uses and, for the JSON API, the resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Api {
    Json(JsonResource),
    Xml,
    S3,
    Azure,
}

/// The resource of a JSON API path. Bucket and object are in the [`RequestRoute`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonResource {
    Buckets,
    Bucket,
    /// `/b/{bucket}/lockRetentionPolicy`.
    LockRetentionPolicy,
    /// `/b/{bucket}/storageLayout`.
    StorageLayout,
    /// `/b/{bucket}/managedFolders`, or one of these folders by name.
    ManagedFolders {
        name: Option<String>,
    },
    /// `/b/{bucket}/folders` and below, and their operations.
    Folders(FolderCall),
    Objects,
    Object,
    /// `/upload/...`.
    Upload,
    /// `/o/{object}/restore`.
    Restore,
    /// `/o/{object}/compose`.
    Compose,
    /// `/o/{object}/rewriteTo/b/{bucket}/o/{object}`.
    Rewrite {
        bucket: String,
        key: String,
    },
    /// `/o/{object}/copyTo/b/{bucket}/o/{object}`.
    Copy {
        bucket: String,
        key: String,
    },
    /// `/o/{object}/moveTo/o/{object}`.
    Move {
        key: String,
    },
    /// `/b/{bucket}/iam` and `/o/{object}/iam`.
    Iam,
    /// `.../iam/testPermissions`.
    TestPermissions,
    /// `/projects/{project}/serviceAccount`.
    ServiceAccount,
    /// A resource of the service that this store lacks, by its name.
    Lacking(&'static str),
    Batch,
    Unknown,
}

/// A call on the folders of a bucket with a hierarchical namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FolderCall {
    All,
    One(String),
    /// `/folders/{folder}/deleteRecursive`.
    DeleteRecursive(String),
    /// `/folders/{folder}/renameTo/folders/{folder}`.
    Rename(String, String),
    /// `/operations/{operation}`.
    Operation(String),
}

impl RequestRoute {
    /// Parses the head of a request. `account` is the name of the Azure account.
    pub(crate) fn of(head: &Parts, query: &Query, account: &str) -> RequestRoute {
        if let Some(azure::BlobTarget { container, blob, .. }) = azure::BlobTarget::of(head, query, account) {
            let verb = azure::BlobOperation::of(&head.method, query, &head.headers, &container, &blob).verb();
            return RequestRoute { call: Api::Azure, verb, bucket: container, key: blob };
        }
        let path = head.uri.path();
        let host = host(&head.headers, head.uri.host());
        if let Some(bucket) = host.as_deref().and_then(bucket_of_host)
            && (!is_json_path(path) || host.as_deref().is_some_and(is_services))
        {
            let key = decode(path.strip_prefix('/').unwrap_or(path));
            let verb = object_verb(head, query, bucket, &key);
            return RequestRoute { call: dialect(head, query), verb, bucket: bucket.to_owned(), key };
        }
        if path == "/batch" || path.starts_with("/batch/") {
            return RequestRoute::json(JsonResource::Batch, Verb::Batch, "", "");
        }
        let upload = path.strip_prefix("/upload").or_else(|| path.strip_prefix("/resumable/upload"));
        let rest = upload.or_else(|| path.strip_prefix("/download")).unwrap_or(path);
        if let Some(below) = rest.strip_prefix("/storage/v1")
            && (below.is_empty() || below.starts_with('/'))
        {
            return json(below, upload.is_some(), head, query);
        }
        // S3's bucket names have at least three letters, so `/b` is hardly an S3 bucket. But if the headers or the
        // query show that a client speaks S3, the request is treated as S3's.
        if (path == "/b" || path.starts_with("/b/")) && !speaks_s3(&head.headers, query) {
            return json(path, upload.is_some(), head, query);
        }
        let call = dialect(head, query);
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let (bucket, key) = (decode(bucket), decode(key));
        let verb = object_verb(head, query, &bucket, &key);
        RequestRoute { call, verb, bucket, key }
    }

    /// Returns the key with which `key=` in a fault rule is compared. For a copy it is the destination's key, even if
    /// the URL names the source first, so that a rule selects the same copies in every dialect. For a listing it is the
    /// prefix.
    pub(crate) fn fault_key<'a>(&'a self, query: &'a Query) -> &'a str {
        match &self.call {
            Api::Json(
                JsonResource::Rewrite { key, .. }
                | JsonResource::Copy { key, .. }
                | JsonResource::Move { key },
            ) => key,
            _ if self.verb == Verb::List => query.value("prefix").unwrap_or_default(),
            _ => &self.key,
        }
    }

    fn json(resource: JsonResource, verb: Verb, bucket: &str, key: &str) -> RequestRoute {
        RequestRoute { call: Api::Json(resource), verb, bucket: decode(bucket), key: decode(key) }
    }
}

fn host(headers: &HeaderMap, authority: Option<&str>) -> Option<String> {
    let header = || headers.get(http::header::HOST).and_then(|value| value.to_str().ok());
    authority.or_else(header).map(str::to_owned)
}

/// Returns the bucket that a host name contains (virtual-hosted style).
pub(crate) fn bucket_of_host(host: &str) -> Option<&str> {
    let host = host.rsplit_once(':').map_or(host, |(host, _port)| host);
    let bucket = match host.strip_suffix(".amazonaws.com") {
        // The bucket is the part before the last `s3`. A region may follow the `s3`.
        Some(rest) => {
            let at = [".s3", ".s3-accelerate"].iter().find_map(|end| rest.strip_suffix(end));
            let with_region = || rest.rfind(".s3.").max(rest.rfind(".s3-")).map(|at| &rest[..at]);
            at.or_else(with_region)
        }
        None => [".storage.googleapis.com", ".localhost"].iter().find_map(|end| host.strip_suffix(end)),
    };
    bucket.filter(|bucket| !bucket.is_empty())
}

/// Returns true for a host of Google's or Amazon's service that contains a bucket. No path on such a host belongs to
/// the JSON API.
fn is_services(host: &str) -> bool {
    !host.rsplit_once(':').map_or(host, |(host, _port)| host).ends_with(".localhost")
}

fn is_json_path(path: &str) -> bool {
    [
        "/storage/v1/",
        "/upload/storage/v1/",
        "/download/storage/v1/",
        "/resumable/upload/storage/v1/",
        "/batch/",
    ]
    .iter()
    .any(|start| path.starts_with(start))
}

/// Returns the dialect of a request outside the JSON API.
fn dialect(head: &Parts, query: &Query) -> Api {
    match query.is_signed_by_google() || speaks_gcs_xml(&head.headers, head.uri.host()) {
        true => Api::Xml,
        false => Api::S3,
    }
}

fn json(path: &str, upload: bool, head: &Parts, query: &Query) -> RequestRoute {
    // A key is a single segment of the path, with its slashes percent-encoded. Some clients don't encode the slashes.
    // So if nothing else fits, the rest of the path is the key.
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let method = &head.method;
    match segments.as_slice() {
        ["b"] | ["b", ""] => RequestRoute::json(JsonResource::Buckets, Verb::Bucket, "", ""),
        ["b", bucket] => RequestRoute::json(JsonResource::Bucket, Verb::Bucket, bucket, ""),
        ["b", bucket, "storageLayout"] => {
            RequestRoute::json(JsonResource::StorageLayout, Verb::Bucket, bucket, "")
        }
        ["b", bucket, "lockRetentionPolicy"] => {
            RequestRoute::json(JsonResource::LockRetentionPolicy, Verb::Bucket, bucket, "")
        }
        ["b", bucket, "managedFolders", _, "iam"]
        | ["b", bucket, "managedFolders", _, "iam", "testPermissions"] => {
            RequestRoute::json(JsonResource::Lacking("iam of managed folders"), Verb::Bucket, bucket, "")
        }
        ["b", bucket, "managedFolders", name @ ..] => {
            let name = (!name.is_empty()).then(|| decode(&name.join("/")));
            RequestRoute::json(JsonResource::ManagedFolders { name }, Verb::Bucket, bucket, "")
        }
        ["b", bucket, "folders"] => folders(bucket, FolderCall::All),
        ["b", bucket, "folders", name] => folders(bucket, FolderCall::One(decode(name))),
        ["b", bucket, "folders", name, "deleteRecursive"] => {
            folders(bucket, FolderCall::DeleteRecursive(decode(name)))
        }
        ["b", bucket, "folders", name, "renameTo", "folders", to] => {
            folders(bucket, FolderCall::Rename(decode(name), decode(to)))
        }
        ["b", bucket, "operations", id] if *method == Method::GET => {
            folders(bucket, FolderCall::Operation(decode(id)))
        }
        ["b", bucket, "iam"] => RequestRoute::json(JsonResource::Iam, Verb::Bucket, bucket, ""),
        ["b", bucket, "iam", "testPermissions"] => {
            RequestRoute::json(JsonResource::TestPermissions, Verb::Bucket, bucket, "")
        }
        ["projects", _, "serviceAccount"] => {
            RequestRoute::json(JsonResource::ServiceAccount, Verb::Bucket, "", "")
        }
        ["projects", _, "hmacKeys", ..] => {
            RequestRoute::json(JsonResource::Lacking("hmacKeys"), Verb::Bucket, "", "")
        }
        ["channels", "stop"] => RequestRoute::json(JsonResource::Lacking("channels"), Verb::Bucket, "", ""),
        ["b", bucket, name, ..] if lacking(name).is_some() => RequestRoute::json(
            JsonResource::Lacking(lacking(name).unwrap_or_default()),
            Verb::Bucket,
            bucket,
            "",
        ),
        ["b", bucket, "o", "bulkRestore" | "watch"] if *method == Method::POST => {
            RequestRoute::json(JsonResource::Lacking("bulkRestore and watch"), Verb::Bucket, bucket, "")
        }
        ["b", bucket, "o", key, "restore"] if *method == Method::POST => {
            RequestRoute::json(JsonResource::Restore, Verb::Other, bucket, key)
        }
        // With `alt`, the request reads the content of an object whose key ends in `/iam` and isn't encoded.
        ["b", bucket, "o", key, "iam"] if query.value("alt").is_none() => {
            RequestRoute::json(JsonResource::Iam, Verb::Other, bucket, key)
        }
        ["b", bucket, "o", key, "iam", "testPermissions"] => {
            RequestRoute::json(JsonResource::TestPermissions, Verb::Other, bucket, key)
        }
        ["b", bucket, "o", key, "acl", ..] if query.value("alt").is_none() => {
            RequestRoute::json(JsonResource::Lacking("acl"), Verb::Other, bucket, key)
        }
        ["b", bucket, "o"] if upload => upload_route(bucket, method, &head.headers, query),
        ["b", bucket, "o"] => {
            let verb = if *method == Method::GET { Verb::List } else { Verb::Other };
            RequestRoute::json(JsonResource::Objects, verb, bucket, "")
        }
        ["b", bucket, "o", key, "compose"] if *method == Method::POST => {
            RequestRoute::json(JsonResource::Compose, Verb::Compose, bucket, key)
        }
        ["b", bucket, "o", key, kind @ ("rewriteTo" | "copyTo"), "b", to_bucket, "o", to @ ..]
            if !to.is_empty() =>
        {
            let (to_bucket, to) = (decode(to_bucket), decode(&to.join("/")));
            let resource = match *kind {
                "copyTo" => JsonResource::Copy { bucket: to_bucket, key: to },
                _ => JsonResource::Rewrite { bucket: to_bucket, key: to },
            };
            RequestRoute::json(resource, Verb::Copy, bucket, key)
        }
        ["b", bucket, "o", key, "moveTo", "o", to @ ..] if !to.is_empty() && *method == Method::POST => {
            RequestRoute::json(JsonResource::Move { key: decode(&to.join("/")) }, Verb::Copy, bucket, key)
        }
        ["b", bucket, "o", key @ ..] => {
            let verb = match *method {
                Method::GET if query.value("alt") == Some("media") => Verb::Get,
                Method::GET | Method::HEAD => Verb::Head,
                Method::DELETE => Verb::Delete,
                Method::PATCH | Method::PUT => Verb::Patch,
                _ => Verb::Other,
            };
            RequestRoute::json(JsonResource::Object, verb, bucket, &key.join("/"))
        }
        _ => RequestRoute::json(JsonResource::Unknown, Verb::Other, "", ""),
    }
}

fn folders(bucket: &str, call: FolderCall) -> RequestRoute {
    let verb = if matches!(call, FolderCall::Rename(..)) { Verb::Copy } else { Verb::Bucket };
    RequestRoute::json(JsonResource::Folders(call), verb, bucket, "")
}

/// Returns the name of a bucket's subresource that this store lacks.
fn lacking(name: &str) -> Option<&'static str> {
    const LACKING: [&str; 7] = [
        "acl",
        "anywhereCaches",
        "defaultObjectAcl",
        "notificationConfigs",
        "operations",
        "relocate",
        "restore",
    ];
    LACKING.into_iter().find(|known| *known == name)
}

fn upload_route(bucket: &str, method: &Method, headers: &HeaderMap, query: &Query) -> RequestRoute {
    let asks_only = || {
        let range = headers.get(http::header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
        range.is_some_and(|range| range.trim_start_matches("bytes").trim().starts_with('*'))
            && headers.get(http::header::CONTENT_LENGTH).is_none_or(|len| len.as_bytes() == b"0")
    };
    let verb = match *method {
        Method::POST if !query.has("upload_id") && query.value("uploadType") == Some("resumable") => {
            Verb::Begin
        }
        Method::POST if !query.has("upload_id") => Verb::Put,
        Method::PUT | Method::POST if asks_only() => Verb::Status,
        Method::PUT | Method::POST => Verb::Part,
        Method::DELETE => Verb::Abort,
        _ => Verb::Other,
    };
    let mut route = RequestRoute::json(JsonResource::Upload, verb, bucket, "");
    route.key = query.value("name").unwrap_or_default().to_owned();
    route
}

/// Returns the verb of an XML API or S3 request, which share their grammar.
fn object_verb(head: &Parts, query: &Query, bucket: &str, key: &str) -> Verb {
    if key.is_empty() {
        return match head.method {
            _ if bucket.is_empty() => Verb::Bucket,
            Method::GET if query.has("uploads") => Verb::Status,
            Method::GET if query.has("location") => Verb::Bucket,
            Method::GET => Verb::List,
            Method::POST if query.has("delete") => Verb::DeleteMany,
            _ => Verb::Bucket,
        };
    }
    let copies =
        head.headers.contains_key("x-amz-copy-source") || head.headers.contains_key("x-goog-copy-source");
    match head.method {
        Method::GET if query.has("uploadId") => Verb::Status,
        Method::GET => Verb::Get,
        Method::HEAD => Verb::Head,
        Method::PUT if copies => Verb::Copy,
        Method::PUT if query.has("uploadId") => Verb::Part,
        Method::PUT => Verb::Put,
        Method::POST if query.has("uploads") => Verb::Begin,
        Method::POST if query.has("uploadId") => Verb::Complete,
        Method::DELETE if query.has("uploadId") => Verb::Abort,
        Method::DELETE => Verb::Delete,
        _ => Verb::Other,
    }
}

/// Returns true if a request has Amazon's signature or headers.
fn speaks_s3(headers: &HeaderMap, query: &Query) -> bool {
    let signed =
        headers.get(http::header::AUTHORIZATION).is_some_and(|value| value.as_bytes().starts_with(b"AWS"));
    signed || query.has("X-Amz-Algorithm") || headers.keys().any(|name| name.as_str().starts_with("x-amz-"))
}

fn speaks_gcs_xml(headers: &HeaderMap, authority: Option<&str>) -> bool {
    // The token may be empty, because the crate `object_store` sends an empty one to emulators.
    let bearer = headers.get(http::header::AUTHORIZATION).is_some_and(|value| {
        let kind = value.as_bytes().split(|byte| *byte == b' ').next();
        kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"bearer"))
    });
    let host = authority.or_else(|| headers.get(http::header::HOST).and_then(|value| value.to_str().ok()));
    bearer
        || headers.keys().any(|name| name.as_str().starts_with("x-goog-"))
        || host.is_some_and(|host| {
            host.split(':').next().is_some_and(|host| host.ends_with("storage.googleapis.com"))
        })
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn route(method: &str, uri: &str, headers: &[(&str, &str)]) -> RequestRoute {
        asked(method, uri, headers).0
    }

    fn fault_key(method: &str, uri: &str, headers: &[(&str, &str)]) -> String {
        let (route, query) = asked(method, uri, headers);
        route.fault_key(&query).to_owned()
    }

    fn asked(method: &str, uri: &str, headers: &[(&str, &str)]) -> (RequestRoute, Query) {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        let query = Query::parse(head.uri.query());
        (RequestRoute::of(&head, &query, "devstoreaccount1"), query)
    }

    fn json(method: &str, uri: &str) -> (JsonResource, Verb, String) {
        let route = route(method, uri, &[]);
        let Api::Json(resource) = route.call else { panic!("{uri} is not JSON") };
        (resource, route.verb, route.key)
    }

    #[test]
    fn json_paths_name_their_resource_and_verb() {
        let object = |key: &str, verb| (JsonResource::Object, verb, key.to_owned());
        assert_eq!(json("GET", "/storage/v1/b/x/o/a%2Fb?alt=media"), object("a/b", Verb::Get));
        assert_eq!(json("GET", "/download/storage/v1/b/x/o/a%2F%2Fb?alt=media"), object("a//b", Verb::Get));
        assert_eq!(json("GET", "/storage/v1/b/x/o/a%2520b"), object("a%20b", Verb::Head));
        assert_eq!(json("DELETE", "/storage/v1/b/x/o/compose"), object("compose", Verb::Delete));
        assert_eq!(json("GET", "/storage/v1/b/x/o").1, Verb::List);
        assert_eq!(json("POST", "/storage/v1/b/x/o/k/compose").0, JsonResource::Compose);
        let copied = JsonResource::Rewrite { bucket: "y".to_owned(), key: "c/d".to_owned() };
        assert_eq!(json("POST", "/storage/v1/b/x/o/a/rewriteTo/b/y/o/c%2Fd").0, copied);
        assert_eq!(json("POST", "/storage/v1/b?project=p").0, JsonResource::Buckets);
        assert_eq!(json("POST", "/batch/storage/v1").1, Verb::Batch);
        assert_eq!(json("GET", "/storage/v1/nothing").0, JsonResource::Unknown);
        let moved = JsonResource::Move { key: "c/d".to_owned() };
        assert_eq!(json("POST", "/storage/v1/b/x/o/a/moveTo/o/c%2Fd").0, moved);
        assert_eq!(json("GET", "/storage/v1/b/x/storageLayout").0, JsonResource::StorageLayout);
        let folder = JsonResource::ManagedFolders { name: Some("a/".to_owned()) };
        assert_eq!(json("DELETE", "/storage/v1/b/x/managedFolders/a%2F").0, folder);
    }

    #[test]
    fn faults_choose_a_copy_by_the_key_that_it_writes() {
        for uri in [
            "/storage/v1/b/x/o/a/rewriteTo/b/y/o/c%2Fd",
            "/b/x/o/a/copyTo/b/y/o/c%2Fd",
            "/b/x/o/a/moveTo/o/c%2Fd",
        ] {
            assert_eq!(fault_key("POST", uri, &[]), "c/d", "{uri}");
        }
        assert_eq!(fault_key("PUT", "/y/c/d", &[("x-amz-copy-source", "/x/a")]), "c/d");
        assert_eq!(fault_key("GET", "/b/x/o/a", &[]), "a");
    }

    #[test]
    fn faults_choose_a_listing_by_what_its_keys_begin_with() {
        for uri in
            ["/storage/v1/b/x/o?prefix=a%2Fb", "/x?list-type=2&prefix=a%2Fb", "/x?versions&prefix=a%2Fb"]
        {
            assert_eq!(fault_key("GET", uri, &[]), "a/b", "{uri}");
        }
        assert_eq!(fault_key("GET", "/storage/v1/b/x/o", &[]), "");
        assert_eq!(fault_key("GET", "/x/k?prefix=a", &[]), "k");
    }

    #[test]
    fn paths_without_their_version_are_json_unless_s3_asks() {
        assert_eq!(json("GET", "/b/x/o/k?alt=media"), (JsonResource::Object, Verb::Get, "k".to_owned()));
        assert_eq!(json("GET", "/b?project=p").0, JsonResource::Buckets);
        assert_eq!(route("GET", "/b/k", &[("x-amz-date", "20261122T000000Z")]).call, Api::S3);
        assert_eq!(route("GET", "/b/k", &[("authorization", "AWS4-HMAC-SHA256 x")]).call, Api::S3);
        assert_eq!(route("GET", "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256", &[]).call, Api::S3);
        assert_eq!(route("GET", "/bb/k", &[]).call, Api::S3);
    }

    #[test]
    fn a_host_may_name_the_bucket() {
        for (host, bucket) in [
            ("b.localhost:9010", Some("b")),
            ("a.b.localhost", Some("a.b")),
            ("b.s3.amazonaws.com", Some("b")),
            ("b.s3.eu-west-1.amazonaws.com", Some("b")),
            ("b.s3-eu-west-1.amazonaws.com", Some("b")),
            ("b.s3.dualstack.eu-west-1.amazonaws.com", Some("b")),
            ("b.storage.googleapis.com", Some("b")),
            ("localhost:9010", None),
            ("127.0.0.1:9010", None),
            ("s3.amazonaws.com", None),
            ("s3.eu-west-1.amazonaws.com", None),
            ("storage.googleapis.com", None),
        ] {
            assert_eq!(bucket_of_host(host), bucket, "{host}");
        }
        let of = |uri: &str, host: &str| {
            let route = route("GET", uri, &[("host", host)]);
            (route.call, route.bucket, route.key, route.verb)
        };
        let s3 = |key: &str, verb| (Api::S3, "b".to_owned(), key.to_owned(), verb);
        assert_eq!(of("/x/y%2Fz", "b.localhost:1"), s3("x/y/z", Verb::Get));
        assert_eq!(of("/?list-type=2", "b.s3.amazonaws.com"), s3("", Verb::List));
        assert_eq!(of("/storage/v1/b/x", "b.s3.amazonaws.com"), s3("storage/v1/b/x", Verb::Get));
        assert_eq!(of("/storage/v1/b/x", "b.localhost").0, Api::Json(JsonResource::Bucket));
        assert_eq!(of("/k", "b.storage.googleapis.com").0, Api::Xml);
    }

    #[test]
    fn uploads_are_told_apart_by_their_type() {
        assert_eq!(json("POST", "/upload/storage/v1/b/x/o?uploadType=media&name=a").1, Verb::Put);
        assert_eq!(json("POST", "/upload/storage/v1/b/x/o?uploadType=resumable").1, Verb::Begin);
        assert_eq!(json("PUT", "/upload/storage/v1/b/x/o?uploadType=resumable&upload_id=1").1, Verb::Part);
        assert_eq!(json("DELETE", "/upload/storage/v1/b/x/o?upload_id=1").1, Verb::Abort);
        let status = route(
            "PUT",
            "/upload/storage/v1/b/x/o?upload_id=1",
            &[("content-range", "bytes */*"), ("content-length", "0")],
        );
        assert_eq!(status.verb, Verb::Status);
    }

    #[test]
    fn the_same_path_is_gcs_xml_or_s3_by_its_headers() {
        assert_eq!(route("GET", "/bin/k", &[]).call, Api::S3);
        assert_eq!(route("GET", "/bin/k", &[("authorization", "AWS4-HMAC-SHA256 x")]).call, Api::S3);
        assert_eq!(route("GET", "/bin/k", &[("authorization", "Bearer t")]).call, Api::Xml);
        assert_eq!(route("GET", "/bin/k", &[("authorization", "Bearer ")]).call, Api::Xml);
        assert_eq!(route("PUT", "/bin/k", &[("x-goog-hash", "crc32c=AAAAAA==")]).call, Api::Xml);
        assert_eq!(route("GET", "/bin/k", &[("host", "storage.googleapis.com:443")]).call, Api::Xml);
        assert_eq!(route("GET", "/bin/k?X-Goog-Algorithm=GOOG4-RSA-SHA256", &[]).call, Api::Xml);
        assert_eq!(route("GET", "/storage/v10/k", &[]).call, Api::S3);
    }

    #[test]
    fn object_paths_keep_their_keys_exactly() {
        let found = route("PUT", "/bin//a%2F/%41+b/?partNumber=1&uploadId=u", &[]);
        assert_eq!((found.bucket.as_str(), found.key.as_str()), ("bin", "/a//A+b/"));
        assert_eq!(found.verb, Verb::Part);
        assert_eq!(route("POST", "/bin?delete", &[]).verb, Verb::DeleteMany);
        assert_eq!(route("POST", "/bin/k?uploads", &[]).verb, Verb::Begin);
        assert_eq!(route("GET", "/", &[]).verb, Verb::Bucket);
    }
}
