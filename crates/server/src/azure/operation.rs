//! The operations of the service: how a request names one, and the permission that a SAS token needs for it.
//! <https://learn.microsoft.com/rest/api/storageservices/create-service-sas#specify-permissions>

use http::{HeaderMap, Method};

use crate::query::Query;
use crate::verb::Verb;

/// An operation of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
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

impl Operation {
    /// Returns the operation of a request for this container and blob. Either name may be empty.
    pub(crate) fn of(
        method: &Method,
        query: &Query,
        headers: &HeaderMap,
        container: &str,
        blob: &str,
    ) -> Operation {
        let comp = query.value("comp");
        match (container.is_empty(), blob.is_empty()) {
            (true, _) => Operation::on_service(method, query, comp),
            (false, true) => Operation::on_container(method, comp),
            (false, false) => Operation::on_blob(method, query, headers, comp),
        }
    }

    fn on_service(method: &Method, query: &Query, comp: Option<&str>) -> Operation {
        match (method.as_str(), query.value("restype"), comp) {
            ("GET" | "HEAD", Some("account"), Some("properties")) => Operation::GetAccountInfo,
            ("GET", _, Some("list")) => Operation::ListContainers,
            ("GET", Some("service"), Some("properties")) => Operation::GetServiceProperties,
            ("PUT", Some("service"), Some("properties")) => Operation::SetServiceProperties,
            ("GET", Some("service"), Some("stats")) => Operation::GetServiceStats,
            ("POST", Some("service"), Some("userdelegationkey")) => Operation::GetUserDelegationKey,
            ("GET", _, Some("blobs")) => Operation::FindBlobs,
            ("POST", _, Some("batch")) => Operation::Batch,
            _ => Operation::Unknown,
        }
    }

    fn on_container(method: &Method, comp: Option<&str>) -> Operation {
        match (method.as_str(), comp) {
            ("PUT", None) => Operation::CreateContainer,
            ("GET" | "HEAD", None | Some("metadata")) => Operation::GetContainer,
            ("DELETE", None) => Operation::DeleteContainer,
            ("PUT", Some("metadata")) => Operation::SetContainerMetadata,
            ("GET" | "HEAD", Some("acl")) => Operation::GetContainerAcl,
            ("PUT", Some("acl")) => Operation::SetContainerAcl,
            ("PUT", Some("lease")) => Operation::LeaseContainer,
            ("GET", Some("list")) => Operation::ListBlobs,
            ("POST", Some("batch")) => Operation::Batch,
            ("GET" | "HEAD", Some("properties")) => Operation::GetAccountInfo,
            ("GET", Some("blobs")) => Operation::FindBlobs,
            ("PUT", Some("undelete")) => Operation::Lacking("Restore Container"),
            ("PUT", Some("rename")) => Operation::Lacking("Rename Container"),
            _ => Operation::Unknown,
        }
    }

    fn on_blob(method: &Method, query: &Query, headers: &HeaderMap, comp: Option<&str>) -> Operation {
        let copies = headers.contains_key("x-ms-copy-source");
        match (method.as_str(), comp) {
            ("GET", None) => Operation::GetBlob,
            ("HEAD", None) | ("GET" | "HEAD", Some("metadata")) => Operation::HeadBlob,
            ("PUT", None) if copies && headers.contains_key("x-ms-blob-type") => Operation::PutBlobFromUrl,
            ("PUT", None) if copies => Operation::CopyBlob,
            ("PUT", None) => Operation::PutBlob,
            ("PUT", Some("copy")) => Operation::AbortCopy,
            ("PUT", Some("incrementalcopy")) => Operation::Lacking("Incremental Copy Blob"),
            ("DELETE", None) if query.has("versionid") => Operation::DeleteVersion,
            ("DELETE", None) => Operation::DeleteBlob,
            ("PUT", Some("undelete")) => Operation::UndeleteBlob,
            ("PUT", Some("properties")) => Operation::SetProperties,
            ("PUT", Some("metadata")) => Operation::SetMetadata,
            ("PUT", Some("tier")) => Operation::SetTier,
            ("GET", Some("tags")) => Operation::GetTags,
            ("PUT", Some("tags")) => Operation::SetTags,
            ("PUT", Some("lease")) => Operation::LeaseBlob,
            ("PUT", Some("snapshot")) => Operation::Snapshot,
            ("PUT", Some("block")) if copies => Operation::PutBlockFromUrl,
            ("PUT", Some("block")) => Operation::PutBlock,
            ("PUT", Some("blocklist")) => Operation::PutBlockList,
            ("GET", Some("blocklist")) => Operation::GetBlockList,
            ("GET" | "HEAD", Some("properties")) => Operation::GetAccountInfo,
            ("PUT", Some("appendblock")) => Operation::Lacking("Append Block"),
            ("PUT", Some("seal")) => Operation::Lacking("Append Blob Seal"),
            ("PUT", Some("page")) => Operation::Lacking("Put Page"),
            ("GET", Some("pagelist")) => Operation::Lacking("Get Page Ranges"),
            ("POST", Some("query")) => Operation::Lacking("Query Blob Contents"),
            ("PUT", Some("expiry")) => Operation::Lacking("Set Blob Expiry"),
            ("PUT" | "DELETE", Some("immutabilityPolicies" | "immutabilitypolicies")) => {
                Operation::Lacking("immutability policies")
            }
            ("PUT", Some("legalhold")) => Operation::Lacking("Set Blob Legal Hold"),
            _ => Operation::Unknown,
        }
    }

    /// Returns the verb for fault rules and counters.
    pub(crate) fn verb(self) -> Verb {
        match self {
            Operation::GetBlob => Verb::Get,
            Operation::HeadBlob | Operation::GetTags => Verb::Head,
            Operation::PutBlob => Verb::Put,
            Operation::PutBlobFromUrl | Operation::CopyBlob | Operation::PutBlockFromUrl => Verb::Copy,
            Operation::DeleteBlob | Operation::DeleteVersion => Verb::Delete,
            Operation::SetProperties | Operation::SetMetadata | Operation::SetTier | Operation::SetTags => {
                Verb::Patch
            }
            Operation::PutBlock => Verb::Part,
            Operation::PutBlockList => Verb::Complete,
            Operation::GetBlockList => Verb::Status,
            Operation::ListBlobs | Operation::FindBlobs => Verb::List,
            Operation::Batch => Verb::Batch,
            Operation::ListContainers
            | Operation::GetServiceProperties
            | Operation::SetServiceProperties
            | Operation::GetServiceStats
            | Operation::GetAccountInfo
            | Operation::GetUserDelegationKey
            | Operation::CreateContainer
            | Operation::GetContainer
            | Operation::DeleteContainer
            | Operation::SetContainerMetadata
            | Operation::GetContainerAcl
            | Operation::SetContainerAcl
            | Operation::LeaseContainer => Verb::Bucket,
            Operation::AbortCopy
            | Operation::UndeleteBlob
            | Operation::LeaseBlob
            | Operation::Snapshot
            | Operation::Lacking(_)
            | Operation::Unknown => Verb::Other,
        }
    }

    pub(super) fn permission(self) -> Permission {
        let (resource, letters, by_service_sas) = match self {
            Operation::ListContainers => ('s', "l", false),
            Operation::GetServiceProperties | Operation::GetServiceStats => ('s', "r", false),
            Operation::SetServiceProperties => ('s', "w", false),
            Operation::GetAccountInfo => ('s', "*", true),
            Operation::GetUserDelegationKey => ('s', "", false),
            Operation::FindBlobs => ('s', "f", true),
            Operation::Batch => ('s', "*", true),
            Operation::CreateContainer => ('c', "cw", false),
            Operation::GetContainer => ('c', "r", false),
            Operation::DeleteContainer => ('c', "d", false),
            Operation::SetContainerMetadata | Operation::LeaseContainer => ('c', "w", false),
            Operation::GetContainerAcl | Operation::SetContainerAcl => ('c', "", false),
            Operation::ListBlobs => ('c', "l", true),
            Operation::GetBlob | Operation::HeadBlob | Operation::GetBlockList => ('o', "r", true),
            Operation::PutBlob
            | Operation::PutBlobFromUrl
            | Operation::CopyBlob
            | Operation::PutBlock
            | Operation::PutBlockFromUrl
            | Operation::PutBlockList
            | Operation::Snapshot => ('o', "cw", true),
            Operation::DeleteBlob => ('o', "d", true),
            Operation::DeleteVersion => ('o', "x", true),
            Operation::GetTags | Operation::SetTags => ('o', "t", true),
            Operation::AbortCopy
            | Operation::UndeleteBlob
            | Operation::SetProperties
            | Operation::SetMetadata
            | Operation::SetTier
            | Operation::LeaseBlob
            | Operation::Lacking(_)
            | Operation::Unknown => ('o', "w", true),
        };
        Permission { resource, letters, by_service_sas }
    }

    /// Returns true if the operation reads a blob or its metadata, so that a container with public access permits it to
    /// everybody.
    pub(super) fn reads_blob(self) -> bool {
        matches!(self, Operation::GetBlob | Operation::HeadBlob | Operation::GetBlockList)
    }

    /// Returns true if public access to the whole container permits the operation.
    pub(super) fn reads_container(self) -> bool {
        matches!(self, Operation::GetContainer | Operation::ListBlobs)
    }
}
