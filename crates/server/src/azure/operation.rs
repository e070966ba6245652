//! The operations of the service: how a request names one, and the permission that a SAS token needs for it.
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas#specify-permissions>

use http::{HeaderMap, Method};

use crate::query::Query;
use crate::verb::Verb;

/// An operation of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobOperation {
    ListContainers,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    GetAccountInfo,
    GetUserDelegationKey,
    FindBlobs,
    Batch,
    CreateContainer,
    GetContainer,
    DeleteContainer,
    SetContainerMetadata,
    GetContainerAcl,
    SetContainerAcl,
    LeaseContainer,
    ListBlobs,
    GetBlob,
    HeadBlob,
    PutBlob,
    PutBlobFromUrl,
    CopyBlob,
    AbortCopy,
    DeleteBlob,
    DeleteVersion,
    UndeleteBlob,
    SetProperties,
    SetMetadata,
    SetTier,
    GetTags,
    SetTags,
    LeaseBlob,
    Snapshot,
    PutBlock,
    PutBlockFromUrl,
    PutBlockList,
    GetBlockList,
    AppendBlock,
    /// An operation of the service that this store lacks, by its name.
    Lacking(&'static str),
    Unknown,
}

/// The permission that an operation needs in a SAS token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Permission {
    /// The resource type in an account SAS: `s`, `c` or `o`.
    pub(super) resource: char,
    /// One of these letters is enough. `*` stands for any letter. Without a letter, no SAS permits the operation.
    pub(super) letters: &'static str,
    /// True if a service SAS may permit the operation. For the other operations, only an account SAS may.
    pub(super) by_service_sas: bool,
}

impl BlobOperation {
    /// Returns the operation of a request for this container and blob. Either name may be empty.
    pub(crate) fn of(
        method: &Method,
        query: &Query,
        headers: &HeaderMap,
        container: &str,
        blob: &str,
    ) -> BlobOperation {
        let comp = query.value("comp");
        match (container.is_empty(), blob.is_empty()) {
            (true, _) => BlobOperation::on_service(method, query, comp),
            (false, true) => BlobOperation::on_container(method, comp),
            (false, false) => BlobOperation::on_blob(method, query, headers, comp),
        }
    }

    fn on_service(method: &Method, query: &Query, comp: Option<&str>) -> BlobOperation {
        match (method.as_str(), query.value("restype"), comp) {
            ("GET" | "HEAD", Some("account"), Some("properties")) => BlobOperation::GetAccountInfo,
            ("GET", _, Some("list")) => BlobOperation::ListContainers,
            ("GET", Some("service"), Some("properties")) => BlobOperation::GetServiceProperties,
            ("PUT", Some("service"), Some("properties")) => BlobOperation::SetServiceProperties,
            ("GET", Some("service"), Some("stats")) => BlobOperation::GetServiceStats,
            ("POST", Some("service"), Some("userdelegationkey")) => BlobOperation::GetUserDelegationKey,
            ("GET", _, Some("blobs")) => BlobOperation::FindBlobs,
            ("POST", _, Some("batch")) => BlobOperation::Batch,
            _ => BlobOperation::Unknown,
        }
    }

    fn on_container(method: &Method, comp: Option<&str>) -> BlobOperation {
        match (method.as_str(), comp) {
            ("PUT", None) => BlobOperation::CreateContainer,
            ("GET" | "HEAD", None | Some("metadata")) => BlobOperation::GetContainer,
            ("DELETE", None) => BlobOperation::DeleteContainer,
            ("PUT", Some("metadata")) => BlobOperation::SetContainerMetadata,
            ("GET" | "HEAD", Some("acl")) => BlobOperation::GetContainerAcl,
            ("PUT", Some("acl")) => BlobOperation::SetContainerAcl,
            ("PUT", Some("lease")) => BlobOperation::LeaseContainer,
            ("GET", Some("list")) => BlobOperation::ListBlobs,
            ("POST", Some("batch")) => BlobOperation::Batch,
            ("GET" | "HEAD", Some("properties")) => BlobOperation::GetAccountInfo,
            ("GET", Some("blobs")) => BlobOperation::FindBlobs,
            ("PUT", Some("undelete")) => BlobOperation::Lacking("Restore Container"),
            ("PUT", Some("rename")) => BlobOperation::Lacking("Rename Container"),
            _ => BlobOperation::Unknown,
        }
    }

    fn on_blob(method: &Method, query: &Query, headers: &HeaderMap, comp: Option<&str>) -> BlobOperation {
        let copies = headers.contains_key("x-ms-copy-source");
        match (method.as_str(), comp) {
            ("GET", None) => BlobOperation::GetBlob,
            ("HEAD", None) | ("GET" | "HEAD", Some("metadata")) => BlobOperation::HeadBlob,
            ("PUT", None) if copies && headers.contains_key("x-ms-blob-type") => {
                BlobOperation::PutBlobFromUrl
            }
            ("PUT", None) if copies => BlobOperation::CopyBlob,
            ("PUT", None) => BlobOperation::PutBlob,
            ("PUT", Some("copy")) => BlobOperation::AbortCopy,
            ("PUT", Some("incrementalcopy")) => BlobOperation::Lacking("Incremental Copy Blob"),
            ("DELETE", None) if query.has("versionid") => BlobOperation::DeleteVersion,
            ("DELETE", None) => BlobOperation::DeleteBlob,
            ("PUT", Some("undelete")) => BlobOperation::UndeleteBlob,
            ("PUT", Some("properties")) => BlobOperation::SetProperties,
            ("PUT", Some("metadata")) => BlobOperation::SetMetadata,
            ("PUT", Some("tier")) => BlobOperation::SetTier,
            ("GET", Some("tags")) => BlobOperation::GetTags,
            ("PUT", Some("tags")) => BlobOperation::SetTags,
            ("PUT", Some("lease")) => BlobOperation::LeaseBlob,
            ("PUT", Some("snapshot")) => BlobOperation::Snapshot,
            ("PUT", Some("block")) if copies => BlobOperation::PutBlockFromUrl,
            ("PUT", Some("block")) => BlobOperation::PutBlock,
            ("PUT", Some("blocklist")) => BlobOperation::PutBlockList,
            ("GET", Some("blocklist")) => BlobOperation::GetBlockList,
            ("GET" | "HEAD", Some("properties")) => BlobOperation::GetAccountInfo,
            ("PUT", Some("appendblock")) if copies => BlobOperation::Lacking("Append Block From URL"),
            ("PUT", Some("appendblock")) => BlobOperation::AppendBlock,
            ("PUT", Some("seal")) => BlobOperation::Lacking("Append Blob Seal"),
            ("PUT", Some("page")) => BlobOperation::Lacking("Put Page"),
            ("GET", Some("pagelist")) => BlobOperation::Lacking("Get Page Ranges"),
            ("POST", Some("query")) => BlobOperation::Lacking("Query Blob Contents"),
            ("PUT", Some("expiry")) => BlobOperation::Lacking("Set Blob Expiry"),
            ("PUT" | "DELETE", Some("immutabilityPolicies" | "immutabilitypolicies")) => {
                BlobOperation::Lacking("immutability policies")
            }
            ("PUT", Some("legalhold")) => BlobOperation::Lacking("Set Blob Legal Hold"),
            _ => BlobOperation::Unknown,
        }
    }

    /// Returns the verb for fault rules and counters.
    pub(crate) fn verb(self) -> Verb {
        match self {
            BlobOperation::GetBlob => Verb::Get,
            BlobOperation::HeadBlob | BlobOperation::GetTags => Verb::Head,
            BlobOperation::PutBlob => Verb::Put,
            BlobOperation::PutBlobFromUrl | BlobOperation::CopyBlob | BlobOperation::PutBlockFromUrl => {
                Verb::Copy
            }
            BlobOperation::DeleteBlob | BlobOperation::DeleteVersion => Verb::Delete,
            BlobOperation::SetProperties
            | BlobOperation::SetMetadata
            | BlobOperation::SetTier
            | BlobOperation::SetTags => Verb::Patch,
            BlobOperation::PutBlock | BlobOperation::AppendBlock => Verb::Part,
            BlobOperation::PutBlockList => Verb::Complete,
            BlobOperation::GetBlockList => Verb::Status,
            BlobOperation::ListBlobs | BlobOperation::FindBlobs => Verb::List,
            BlobOperation::Batch => Verb::Batch,
            BlobOperation::ListContainers
            | BlobOperation::GetServiceProperties
            | BlobOperation::SetServiceProperties
            | BlobOperation::GetServiceStats
            | BlobOperation::GetAccountInfo
            | BlobOperation::GetUserDelegationKey
            | BlobOperation::CreateContainer
            | BlobOperation::GetContainer
            | BlobOperation::DeleteContainer
            | BlobOperation::SetContainerMetadata
            | BlobOperation::GetContainerAcl
            | BlobOperation::SetContainerAcl
            | BlobOperation::LeaseContainer => Verb::Bucket,
            BlobOperation::AbortCopy
            | BlobOperation::UndeleteBlob
            | BlobOperation::LeaseBlob
            | BlobOperation::Snapshot
            | BlobOperation::Lacking(_)
            | BlobOperation::Unknown => Verb::Other,
        }
    }

    pub(super) fn permission(self) -> Permission {
        let (resource, letters, by_service_sas) = match self {
            BlobOperation::ListContainers => ('s', "l", false),
            BlobOperation::GetServiceProperties | BlobOperation::GetServiceStats => ('s', "r", false),
            BlobOperation::SetServiceProperties => ('s', "w", false),
            BlobOperation::GetAccountInfo => ('s', "*", true),
            BlobOperation::GetUserDelegationKey => ('s', "", false),
            BlobOperation::FindBlobs => ('s', "f", true),
            BlobOperation::Batch => ('s', "*", true),
            BlobOperation::CreateContainer => ('c', "cw", false),
            BlobOperation::GetContainer => ('c', "r", false),
            BlobOperation::DeleteContainer => ('c', "d", false),
            BlobOperation::SetContainerMetadata | BlobOperation::LeaseContainer => ('c', "w", false),
            BlobOperation::GetContainerAcl | BlobOperation::SetContainerAcl => ('c', "", false),
            BlobOperation::ListBlobs => ('c', "l", true),
            BlobOperation::GetBlob | BlobOperation::HeadBlob | BlobOperation::GetBlockList => {
                ('o', "r", true)
            }
            BlobOperation::PutBlob
            | BlobOperation::PutBlobFromUrl
            | BlobOperation::CopyBlob
            | BlobOperation::PutBlock
            | BlobOperation::PutBlockFromUrl
            | BlobOperation::PutBlockList
            | BlobOperation::Snapshot => ('o', "cw", true),
            BlobOperation::DeleteBlob => ('o', "d", true),
            BlobOperation::DeleteVersion => ('o', "x", true),
            BlobOperation::GetTags | BlobOperation::SetTags => ('o', "t", true),
            BlobOperation::AppendBlock => ('o', "aw", true),
            BlobOperation::AbortCopy
            | BlobOperation::UndeleteBlob
            | BlobOperation::SetProperties
            | BlobOperation::SetMetadata
            | BlobOperation::SetTier
            | BlobOperation::LeaseBlob
            | BlobOperation::Lacking(_)
            | BlobOperation::Unknown => ('o', "w", true),
        };
        Permission { resource, letters, by_service_sas }
    }

    /// Returns true if the operation reads a blob or its metadata, so that a container with public access permits it to
    /// everybody.
    pub(super) fn reads_blob(self) -> bool {
        matches!(self, BlobOperation::GetBlob | BlobOperation::HeadBlob | BlobOperation::GetBlockList)
    }

    /// Returns true if public access to the whole container permits the operation.
    pub(super) fn reads_container(self) -> bool {
        matches!(self, BlobOperation::GetContainer | BlobOperation::ListBlobs)
    }
}
