//! The operations of Azure Blob Storage, by their names in its reference.
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-blobs>

use super::{Probe, probe};

/// The headers of every probe.
pub(super) const HEADERS: &[(&str, &str)] = &[("authorization", "Bearer t"), ("x-ms-version", "2026-10-06")];

const SOURCE: (&str, &str) = ("x-ms-copy-source", "http://localhost/devstoreaccount1/demo/k");
const SOURCE_TOKEN: (&str, &str) = ("x-ms-copy-source-authorization", "Bearer t");
const BLOCK_BLOB: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
/// The headers that make an append blob.
pub(super) const APPEND_BLOB: &[(&str, &str)] = &[("x-ms-blob-type", "AppendBlob")];
const CORS: &str = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
const BATCH: &str = "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nDELETE /devstoreaccount1/demo/k HTTP/1.1\r\n\
                     Authorization: Bearer t\r\n\r\n\r\n--b--\r\n";
const KEY_INFO: &str = "<KeyInfo><Expiry>{tomorrow}</Expiry></KeyInfo>";

/// The operations.
#[rustfmt::skip]
pub(super) const OPERATIONS: [Probe; 54] = [
    probe("Abort Copy Blob", "PUT", "/devstoreaccount1/demo/k?comp=copy&copyid={copy}").with(&[("x-ms-copy-action", "abort")]),
    probe("Append Blob Seal", "PUT", "/devstoreaccount1/demo/appended?comp=seal"),
    probe("Append Block", "PUT", "/devstoreaccount1/demo/appended?comp=appendblock").sending("x"),
    probe("Append Block From URL", "PUT", "/devstoreaccount1/demo/appended?comp=appendblock").with(&[SOURCE]),
    probe("Blob Batch", "POST", "/devstoreaccount1?comp=batch").with(&[("content-type", "multipart/mixed; boundary=b")]).sending(BATCH),
    probe("Copy Blob", "PUT", "/devstoreaccount1/demo/copy").with(&[SOURCE]),
    probe("Copy Blob From URL", "PUT", "/devstoreaccount1/demo/copy").with(&[SOURCE, ("x-ms-requires-sync", "true")]),
    probe("Create Container", "PUT", "/devstoreaccount1/new?restype=container"),
    probe("Delete Blob", "DELETE", "/devstoreaccount1/demo/k"),
    probe("Delete Blob Immutability Policy", "DELETE", "/devstoreaccount1/demo/k?comp=immutabilityPolicies"),
    probe("Delete Container", "DELETE", "/devstoreaccount1/empty?restype=container"),
    probe("Find Blobs by Tags", "GET", "/devstoreaccount1?comp=blobs&where=a%3D%271%27"),
    probe("Find Blobs by Tags in Container", "GET", "/devstoreaccount1/demo?restype=container&comp=blobs&where=a%3D%271%27"),
    probe("Get Account Information", "GET", "/devstoreaccount1?restype=account&comp=properties"),
    probe("Get Blob", "GET", "/devstoreaccount1/demo/k"),
    probe("Get Blob Metadata", "GET", "/devstoreaccount1/demo/k?comp=metadata"),
    probe("Get Blob Properties", "HEAD", "/devstoreaccount1/demo/k"),
    probe("Get Blob Service Properties", "GET", "/devstoreaccount1?restype=service&comp=properties"),
    probe("Get Blob Service Stats", "GET", "/devstoreaccount1-secondary?restype=service&comp=stats"),
    probe("Get Blob Tags", "GET", "/devstoreaccount1/demo/k?comp=tags"),
    probe("Get Block List", "GET", "/devstoreaccount1/demo/k?comp=blocklist"),
    probe("Get Container ACL", "GET", "/devstoreaccount1/demo?restype=container&comp=acl"),
    probe("Get Container Metadata", "GET", "/devstoreaccount1/demo?restype=container&comp=metadata"),
    probe("Get Container Properties", "GET", "/devstoreaccount1/demo?restype=container"),
    probe("Get Page Ranges", "GET", "/devstoreaccount1/demo/k?comp=pagelist"),
    probe("Get User Delegation Key", "POST", "/devstoreaccount1?restype=service&comp=userdelegationkey").sending(KEY_INFO),
    probe("Incremental Copy Blob", "PUT", "/devstoreaccount1/demo/copy?comp=incrementalcopy").with(&[SOURCE]),
    probe("Lease Blob", "PUT", "/devstoreaccount1/demo/k?comp=lease").with(&[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")]),
    probe("Lease Container", "PUT", "/devstoreaccount1/demo?restype=container&comp=lease").with(&[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")]),
    probe("List Blobs", "GET", "/devstoreaccount1/demo?restype=container&comp=list"),
    probe("List Containers", "GET", "/devstoreaccount1?comp=list"),
    probe("Preflight Blob Request", "OPTIONS", "/devstoreaccount1/demo/k").with(&[("origin", "http://a.example"), ("access-control-request-method", "GET")]),
    probe("Put Blob", "PUT", "/devstoreaccount1/demo/k").with(&[BLOCK_BLOB]).sending("hello"),
    probe("Put Blob From URL", "PUT", "/devstoreaccount1/demo/copy").with(&[BLOCK_BLOB, SOURCE, SOURCE_TOKEN]),
    probe("Put Block", "PUT", "/devstoreaccount1/demo/k?comp=block&blockid=YQ%3D%3D").sending("hello"),
    probe("Put Block From URL", "PUT", "/devstoreaccount1/demo/k?comp=block&blockid=YQ%3D%3D").with(&[SOURCE, SOURCE_TOKEN]),
    probe("Put Block List", "PUT", "/devstoreaccount1/demo/k?comp=blocklist").sending("<BlockList/>"),
    probe("Put Page", "PUT", "/devstoreaccount1/demo/k?comp=page").sending("x"),
    probe("Put Page From URL", "PUT", "/devstoreaccount1/demo/k?comp=page").with(&[SOURCE]),
    probe("Query Blob Contents", "POST", "/devstoreaccount1/demo/k?comp=query").sending("<x/>"),
    probe("Rename Container", "PUT", "/devstoreaccount1/new?restype=container&comp=rename").with(&[("x-ms-source-container-name", "demo")]),
    probe("Restore Container", "PUT", "/devstoreaccount1/new?restype=container&comp=undelete"),
    probe("Set Blob Expiry", "PUT", "/devstoreaccount1/demo/k?comp=expiry"),
    probe("Set Blob Immutability Policy", "PUT", "/devstoreaccount1/demo/k?comp=immutabilityPolicies"),
    probe("Set Blob Legal Hold", "PUT", "/devstoreaccount1/demo/k?comp=legalhold"),
    probe("Set Blob Metadata", "PUT", "/devstoreaccount1/demo/k?comp=metadata"),
    probe("Set Blob Properties", "PUT", "/devstoreaccount1/demo/k?comp=properties"),
    probe("Set Blob Service Properties", "PUT", "/devstoreaccount1?restype=service&comp=properties").sending(CORS),
    probe("Set Blob Tags", "PUT", "/devstoreaccount1/demo/k?comp=tags").sending("<Tags><TagSet/></Tags>"),
    probe("Set Blob Tier", "PUT", "/devstoreaccount1/demo/k?comp=tier").with(&[("x-ms-access-tier", "Cool")]),
    probe("Set Container ACL", "PUT", "/devstoreaccount1/demo?restype=container&comp=acl"),
    probe("Set Container Metadata", "PUT", "/devstoreaccount1/demo?restype=container&comp=metadata"),
    probe("Snapshot Blob", "PUT", "/devstoreaccount1/demo/k?comp=snapshot"),
    probe("Undelete Blob", "PUT", "/devstoreaccount1/demo/k?comp=undelete"),
];
