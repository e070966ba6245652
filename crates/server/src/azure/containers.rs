//! Containers: their creation, properties, metadata, access policies and listing.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::answer::{XmlElement, XmlWriter, empty, insert};
use super::conditions::{BlobConditions, ResourceState, tag};
use super::error::{BlobError, BlobResult};
use super::{AzureState, BlobCall, timestamp};
use crate::objects::StoredBucket;
use crate::objects::blob::{AccessPolicy, ContainerSettings};
use crate::objects::settings::BucketSettings;

/// The access of anonymous requests to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PublicAccess {
    /// Its blobs can be read.
    Blob,
    /// Its blobs can be read and listed.
    Container,
}

/// The limits of the service: entries of a page, policies of a container, and bytes of metadata.
const PAGE_MAX: usize = 5000;
const POLICIES_MAX: usize = 5;
const METADATA_BYTES_MAX: usize = 8 << 10;
const POLICY_ID_CHARS_MAX: usize = 64;

/// Returns the public access of a container. `None` stands for none, also of a container that doesn't exist.
pub(super) fn public_access(state: &AzureState, container: &str) -> Option<PublicAccess> {
    let bucket = state.objects.bucket(container).ok()?;
    let settings = bucket.settings();
    match settings.container.public_access.as_deref() {
        Some("container") => Some(PublicAccess::Container),
        Some("blob") => Some(PublicAccess::Blob),
        _ => None,
    }
}

/// Returns a stored access policy of a container.
pub(super) fn stored_policy(state: &AzureState, container: &str, id: &str) -> Option<AccessPolicy> {
    let bucket = state.objects.bucket(container).ok()?;
    let settings = bucket.settings();
    settings.container.policies.iter().find(|policy| policy.id == id).cloned()
}

/// Returns the metadata in the headers of a request.
pub(super) fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, BlobError> {
    let mut metadata = BTreeMap::new();
    let mut bytes = 0;
    for (header, value) in headers {
        let Some(name) = header.as_str().strip_prefix("x-ms-meta-") else { continue };
        if name.is_empty() {
            return Err(BlobError::new("EmptyMetadataKey"));
        }
        // Names follow the rules for identifiers of C#.
        let is_valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let value = std::str::from_utf8(value.as_bytes()).ok().filter(|_| is_valid);
        let value = value.ok_or_else(|| BlobError::new("InvalidMetadata"))?;
        bytes += name.len() + value.len();
        metadata.insert(name.to_owned(), value.to_owned());
    }
    if bytes > METADATA_BYTES_MAX {
        return Err(BlobError::new("MetadataTooLarge"));
    }
    Ok(metadata)
}

/// Adds metadata to an answer.
pub(super) fn describe_metadata(headers: &mut HeaderMap, metadata: &BTreeMap<String, String>) {
    for (name, value) in metadata {
        let name = HeaderName::try_from(format!("x-ms-meta-{name}"));
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            headers.insert(name, value);
        }
    }
}

/// Returns true if the service permits a container to have this name.
fn is_valid_name(name: &str) -> bool {
    let is_special = matches!(name, "$root" | "$web" | "$logs");
    let is_outer = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    is_special
        || ((3..=63).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && is_outer(name.bytes().next())
            && is_outer(name.bytes().last())
            && !name.contains("--"))
}

fn state_of(bucket: &StoredBucket, settings: &BucketSettings) -> ResourceState {
    ResourceState {
        etag: tag(bucket.created_us + settings.metageneration - 1),
        modified_us: modified(bucket, settings),
    }
}

fn modified(bucket: &StoredBucket, settings: &BucketSettings) -> u64 {
    settings.updated_us.max(bucket.created_us)
}

fn describe(headers: &mut HeaderMap, state: &ResourceState) {
    insert(headers, "etag", &state.etag);
    insert(headers, "last-modified", &timestamp::http(state.modified_us));
}

fn access_in_header(call: &BlobCall<'_>) -> Result<Option<String>, BlobError> {
    let name = "x-ms-blob-public-access";
    match call.header(name) {
        None => Ok(None),
        Some(access @ ("container" | "blob")) => Ok(Some(access.to_owned())),
        Some(other) => Err(BlobError::of_header("InvalidHeaderValue", name, other)),
    }
}

pub(super) fn create(call: &BlobCall<'_>) -> BlobResult {
    let name = &call.target.container;
    if !is_valid_name(name) {
        let is_length = !(3..=63).contains(&name.len());
        return Err(match is_length {
            true => BlobError::new("OutOfRangeInput")
                .saying("The specified resource name length is not within the permissible limits."),
            false => BlobError::new("InvalidResourceName"),
        });
    }
    let container = ContainerSettings {
        metadata: metadata(&call.head.headers)?,
        public_access: access_in_header(call)?,
        policies: Vec::new(),
    };
    let settings = BucketSettings { container, ..BucketSettings::default() };
    call.state.objects.create_bucket_with(name, settings)?;
    let bucket = call.state.objects.bucket(name)?;
    let mut answer = empty(StatusCode::CREATED);
    describe(answer.headers_mut(), &state_of(&bucket, &bucket.settings()));
    Ok(answer)
}

pub(super) fn get(call: &BlobCall<'_>) -> BlobResult {
    let name = &call.target.container;
    let bucket = call.state.objects.bucket(name)?;
    call.state.leases.check_read(name, "", call.lease_id())?;
    let settings = bucket.settings();
    let mut answer = empty(StatusCode::OK);
    let headers = answer.headers_mut();
    describe(headers, &state_of(&bucket, &settings));
    describe_metadata(headers, &settings.container.metadata);
    if call.query.value("comp").is_none() {
        call.state.leases.describe(headers, name, "");
        insert(headers, "x-ms-has-immutability-policy", "false");
        insert(headers, "x-ms-has-legal-hold", "false");
        insert(headers, "x-ms-immutable-storage-with-versioning-enabled", "false");
        insert(headers, "x-ms-default-encryption-scope", "$account-encryption-key");
        insert(headers, "x-ms-deny-encryption-scope-override", "false");
        if let Some(access) = &settings.container.public_access {
            insert(headers, "x-ms-blob-public-access", access);
        }
    }
    Ok(answer)
}

/// Checks the conditions and the lease of a request that changes a container.
fn check(call: &BlobCall<'_>) -> Result<(), BlobError> {
    let bucket = call.state.objects.bucket(&call.target.container)?;
    BlobConditions::in_headers(&call.head.headers)?.check_state(Some(&state_of(&bucket, &bucket.settings())))
}

pub(super) fn delete(call: &BlobCall<'_>) -> BlobResult {
    check(call)?;
    let name = &call.target.container;
    call.state.leases.check_write(name, "", call.lease_id())?;
    call.state.objects.delete_bucket_with_objects(name)?;
    call.state.leases.forget_container(name);
    Ok(empty(StatusCode::ACCEPTED))
}

/// Changes the settings of a container, and answers with its new tag.
fn change(call: &BlobCall<'_>, change: impl FnOnce(&mut ContainerSettings)) -> BlobResult {
    let name = &call.target.container;
    check(call)?;
    call.state.leases.check_read(name, "", call.lease_id())?;
    let changed = call.state.objects.change_bucket(name, |settings| {
        change(&mut settings.container);
        Ok::<(), BlobError>(())
    });
    changed??;
    let bucket = call.state.objects.bucket(name)?;
    let mut answer = empty(StatusCode::OK);
    describe(answer.headers_mut(), &state_of(&bucket, &bucket.settings()));
    Ok(answer)
}

pub(super) fn set_metadata(call: &BlobCall<'_>) -> BlobResult {
    let metadata = metadata(&call.head.headers)?;
    change(call, |container| container.metadata = metadata)
}

pub(super) fn acl(call: &BlobCall<'_>) -> BlobResult {
    let name = &call.target.container;
    let bucket = call.state.objects.bucket(name)?;
    call.state.leases.check_read(name, "", call.lease_id())?;
    let settings = bucket.settings();
    let mut document = XmlWriter::new();
    document.begin("SignedIdentifiers");
    for policy in &settings.container.policies {
        document.begin("SignedIdentifier");
        document.element("Id", &policy.id);
        document.begin("AccessPolicy");
        for (name, value) in
            [("Start", &policy.starts), ("Expiry", &policy.expires), ("Permission", &policy.permissions)]
        {
            document.optional(name, Some(value.as_str()).filter(|value| !value.is_empty()));
        }
        document.end();
        document.end();
    }
    let mut answer = document.answer();
    describe(answer.headers_mut(), &state_of(&bucket, &settings));
    if let Some(access) = &settings.container.public_access {
        insert(answer.headers_mut(), "x-ms-blob-public-access", access);
    }
    Ok(answer)
}

pub(super) async fn set_acl(call: &mut BlobCall<'_>) -> BlobResult {
    let public_access = access_in_header(call)?;
    let bytes = call.document().await?;
    let policies = match bytes.is_empty() {
        true => Vec::new(),
        false => policies(&XmlElement::parse(&bytes, "SignedIdentifiers")?)?,
    };
    change(call, |container| {
        container.public_access = public_access;
        container.policies = policies;
    })
}

fn policies(document: &XmlElement) -> Result<Vec<AccessPolicy>, BlobError> {
    let invalid = || BlobError::new("InvalidXmlDocument");
    let mut policies = Vec::new();
    for identifier in document.children.iter().filter(|child| child.name == "SignedIdentifier") {
        let id = identifier.text_of("Id").unwrap_or_default();
        if id.is_empty() || id.chars().count() > POLICY_ID_CHARS_MAX {
            return Err(invalid());
        }
        let limits = identifier.child("AccessPolicy");
        let field =
            |name: &str| limits.and_then(|limits| limits.text_of(name)).unwrap_or_default().to_owned();
        let policy = AccessPolicy {
            id: id.to_owned(),
            starts: field("Start"),
            expires: field("Expiry"),
            permissions: field("Permission"),
        };
        let is_time = |text: &str| text.is_empty() || timestamp::parse(text).is_some();
        if !is_time(&policy.starts) || !is_time(&policy.expires) {
            return Err(BlobError::new("InvalidXmlNodeValue"));
        }
        policies.push(policy);
    }
    if policies.len() > POLICIES_MAX { Err(invalid()) } else { Ok(policies) }
}

pub(super) fn lease(call: &BlobCall<'_>) -> BlobResult {
    let name = &call.target.container;
    let bucket = call.state.objects.bucket(name)?;
    let resource = state_of(&bucket, &bucket.settings());
    BlobConditions::in_headers(&call.head.headers)?.check_state(Some(&resource))?;
    call.state.leases.act(name, "", &call.head.headers, &resource, || call.state.guid())
}

/// Returns the number of entries on a page.
pub(super) fn page_size(call: &BlobCall<'_>) -> Result<usize, BlobError> {
    let name = "maxresults";
    match call.query.value(name).filter(|text| !text.is_empty()) {
        None => Ok(PAGE_MAX),
        Some(text) => match text.parse::<usize>() {
            Ok(0) => Err(BlobError::of_parameter("OutOfRangeQueryParameterValue", name, text)),
            Ok(count) => Ok(count.min(PAGE_MAX)),
            Err(_) => Err(BlobError::of_parameter("InvalidQueryParameterValue", name, text)),
        },
    }
}

pub(super) fn list(call: &BlobCall<'_>) -> BlobResult {
    let parameter = |name: &str| call.query.value(name).unwrap_or_default();
    let (prefix, marker) = (parameter("prefix"), parameter("marker"));
    let max = page_size(call)?;
    let has_metadata = parameter("include").split(',').any(|word| word == "metadata");
    let mut buckets = call.state.objects.buckets();
    buckets.retain(|bucket| {
        bucket.name.starts_with(prefix) && (marker.is_empty() || bucket.name.as_str() > marker)
    });
    let has_more = buckets.len() > max;
    let next = buckets.get(max - 1).filter(|_| has_more).map(|bucket| bucket.name.clone());
    let mut document = XmlWriter::new();
    document.begin_with("EnumerationResults", &[("ServiceEndpoint", &call.endpoint())]);
    for name in ["prefix", "marker", "maxresults"] {
        let element = match name {
            "prefix" => "Prefix",
            "marker" => "Marker",
            _ => "MaxResults",
        };
        document.optional(element, call.query.value(name).filter(|text| !text.is_empty()));
    }
    document.begin("Containers");
    for bucket in buckets.iter().take(max) {
        let settings = bucket.settings();
        document.begin("Container");
        document.element("Name", &bucket.name);
        document.begin("Properties");
        let resource = state_of(bucket, &settings);
        document.element("Last-Modified", &timestamp::http(resource.modified_us));
        document.element("Etag", &resource.etag);
        let lease = call.state.leases.description(&bucket.name, "");
        for (name, value) in ["LeaseStatus", "LeaseState", "LeaseDuration"].into_iter().zip(lease) {
            document.optional(name, value);
        }
        document.optional("PublicAccess", settings.container.public_access.as_deref());
        document.element("DefaultEncryptionScope", "$account-encryption-key");
        document.element("DenyEncryptionScopeOverride", "false");
        document.element("HasImmutabilityPolicy", "false");
        document.element("HasLegalHold", "false");
        document.element("ImmutableStorageWithVersioningEnabled", "false");
        document.end();
        if has_metadata && !settings.container.metadata.is_empty() {
            document.begin("Metadata");
            for (name, value) in &settings.container.metadata {
                document.element(name, value);
            }
            document.end();
        }
        document.end();
    }
    document.end();
    document.element("NextMarker", next.as_deref().unwrap_or_default());
    Ok(document.answer())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_the_service() {
        for name in ["abc", "a-b-c", "123", "$root", &"a".repeat(63)] {
            assert!(is_valid_name(name), "{name}");
        }
        for name in ["ab", "Abc", "a_b", "-ab", "ab-", "a--b", "a.b", "$other", &"a".repeat(64)] {
            assert!(!is_valid_name(name), "{name}");
        }
    }

    #[test]
    fn metadata_names_are_identifiers() {
        let code = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            metadata(&headers).err().map(|error| error.code().to_owned())
        };
        assert_eq!(code("x-ms-meta-a_1", "v"), None);
        assert_eq!(code("x-ms-meta-", "v").as_deref(), Some("EmptyMetadataKey"));
        assert_eq!(code("x-ms-meta-a-b", "v").as_deref(), Some("InvalidMetadata"));
        assert_eq!(code("x-ms-meta-1", "v").as_deref(), Some("InvalidMetadata"));
        assert_eq!(code("x-ms-meta-a", &"x".repeat(8192)).as_deref(), Some("MetadataTooLarge"));
    }
}
