//! Objects, prefixes and buckets as listings and `stat` show them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway::{AccessGrant, ObjectAccess};
use laneway_quantity as quantity;
use laneway_store::{ObjectMeta, PartsAlgorithm, Version};
use serde::Serialize;

use crate::report::line::{printable, timestamp};

/// An object in a listing or `stat`, as the record of kind `object`. Checksums are in base64, as stores write
/// them.
#[derive(Serialize, Debug)]
pub(crate) struct ObjectRecord<'a> {
    kind: &'static str,
    url: &'a str,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_latest: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    delete_marker: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    soft_deleted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_deleted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metageneration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc32c: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc64nvme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    md5: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc32c_of_parts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crc32_of_parts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256_of_parts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha1_of_parts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_disposition: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kms_key: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    bucket_key: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tag_values: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grants: Vec<GrantRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_until: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    legal_hold: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive_status: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restore: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a BTreeMap<String, String>>,
}

/// A grant of an object's access control list.
#[derive(Serialize, Debug)]
struct GrantRecord {
    grantee: String,
    permission: String,
}

/// A prefix or a bucket in a listing, as the record of kind `prefix` or `bucket`.
#[derive(Serialize, Debug)]
pub(crate) struct PlaceRecord<'a> {
    kind: &'static str,
    url: &'a str,
}

/// The size of everything below a URL, as the record of kind `usage`. Without a URL, it is the sum for all URLs of the command.
#[derive(Serialize, Debug)]
pub(crate) struct UsageRecord<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    objects: u64,
    bytes: u64,
}

impl<'a> UsageRecord<'a> {
    pub(crate) fn new(url: Option<&'a str>, objects: u64, bytes: u64) -> Self {
        Self { kind: "usage", url, objects, bytes }
    }
}

impl<'a> ObjectRecord<'a> {
    pub(crate) fn new(url: &'a str, meta: &'a ObjectMeta) -> Self {
        let sums = &meta.checksums;
        let of_parts = |algorithm| {
            let sum = sums.parts.filter(|sum| sum.digest.algorithm() == algorithm)?;
            Some(format!("{}-{}", STANDARD.encode(sum.digest.bytes()), sum.parts))
        };
        Self {
            kind: "object",
            url,
            size: meta.size,
            updated: meta.updated.and_then(timestamp),
            generation: match &meta.version {
                Some(Version::Generation(generation)) => Some(*generation),
                _ => None,
            },
            version: meta.id.version.as_deref().or(meta.version_id.as_deref()),
            is_latest: meta.is_latest,
            delete_marker: meta.delete_marker,
            soft_deleted: meta.soft_deleted.and_then(timestamp),
            hard_deleted: meta.hard_deleted.and_then(timestamp),
            metageneration: meta.metageneration,
            etag: meta.etag.as_deref(),
            crc32c: sums.crc32c.map(|sum| STANDARD.encode(sum.to_be_bytes())),
            crc64nvme: sums.crc64nvme.map(|sum| STANDARD.encode(sum.to_be_bytes())),
            md5: sums.md5.map(|sum| STANDARD.encode(sum)),
            crc32c_of_parts: of_parts(PartsAlgorithm::Crc32c),
            crc32_of_parts: of_parts(PartsAlgorithm::Crc32),
            sha256_of_parts: of_parts(PartsAlgorithm::Sha256),
            sha1_of_parts: of_parts(PartsAlgorithm::Sha1),
            content_type: meta.content_type.as_deref(),
            content_encoding: meta.content_encoding.as_deref(),
            content_disposition: meta.content_disposition.as_deref(),
            content_language: meta.content_language.as_deref(),
            expires: meta.expires.as_deref(),
            custom_time: meta.custom_time.and_then(timestamp),
            cache_control: meta.cache_control.as_deref(),
            storage_class: meta.storage_class.as_deref(),
            encryption: meta.encryption.as_deref(),
            kms_key: meta.kms_key.as_deref(),
            bucket_key: meta.bucket_key,
            customer_key: meta.customer_key.as_deref(),
            tags: meta.tags,
            tag_values: BTreeMap::new(),
            grants: Vec::new(),
            lock_mode: meta.retention.map(|retention| retention.mode.name()),
            lock_until: meta.retention.and_then(|retention| timestamp(retention.until)),
            legal_hold: meta.legal_hold,
            archived: meta.archived,
            archive_status: meta.archive_status.as_deref(),
            restore: meta.restore.as_deref(),
            metadata: meta.metadata.as_ref().filter(|metadata| !metadata.is_empty()),
        }
    }

    /// Adds tags and grants.
    pub(crate) fn with(mut self, access: ObjectAccess) -> Self {
        let grant = |grant: AccessGrant| GrantRecord { grantee: grant.grantee, permission: grant.permission };
        self.grants = access.grants.into_iter().map(grant).collect();
        self.tag_values = access.tags;
        self
    }

    /// Returns the record as human-readable lines: its URL, then one line for each field that is known.
    pub(crate) fn details(&self) -> String {
        let mut text = format!("{}:\n", printable(self.url));
        let mut row = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!("  {:<21}{}\n", format!("{name}:"), printable(&value));
            }
        };
        let own = |text: Option<&str>| text.map(str::to_owned);
        row("Size", Some(format!("{} ({})", self.size, quantity::readable_size(self.size))));
        row("Updated", self.updated.clone());
        row("Generation", self.generation.map(|n| n.to_string()));
        let version = self.version.filter(|_| self.generation.is_none());
        row("Version", own(version));
        row("Metageneration", self.metageneration.map(|n| n.to_string()));
        row("ETag", own(self.etag));
        row("CRC32C", self.crc32c.clone());
        row("CRC64NVME", self.crc64nvme.clone());
        row("MD5", self.md5.clone());
        row("CRC32C of parts", self.crc32c_of_parts.clone());
        row("CRC32 of parts", self.crc32_of_parts.clone());
        row("SHA-256 of parts", self.sha256_of_parts.clone());
        row("SHA-1 of parts", self.sha1_of_parts.clone());
        row("Content-Type", own(self.content_type));
        row("Content-Encoding", own(self.content_encoding));
        row("Content-Disposition", own(self.content_disposition));
        row("Content-Language", own(self.content_language));
        row("Expires", own(self.expires));
        row("Custom time", self.custom_time.clone());
        row("Cache-Control", own(self.cache_control));
        row("Storage class", own(self.storage_class));
        row("Encryption", own(self.encryption));
        let through = if self.bucket_key { " (by a key of the bucket)" } else { "" };
        row("Encrypted with", self.kms_key.map(|key| format!("{key}{through}")));
        row("Customer's key", self.customer_key.map(|hash| format!("{hash} (its hash)")));
        row("Tags", self.tags.map(|count| count.to_string()));
        for (name, value) in &self.tag_values {
            row(&format!("Tag {name}"), Some(value.clone()));
        }
        for GrantRecord { grantee, permission } in &self.grants {
            row("Grant", Some(format!("{permission} to {grantee}")));
        }
        let lock = self.lock_mode.zip(self.lock_until.as_deref());
        row("Locked", lock.map(|(mode, until)| format!("{mode} until {until}")));
        row("Legal hold", self.legal_hold.then(|| "on".to_owned()));
        row("Archived", self.archived.then(|| "yes: it has to be restored before it can be read".to_owned()));
        row("Archive", own(self.archive_status));
        row("Restore", own(self.restore));
        for (name, value) in self.metadata.into_iter().flatten() {
            row(&format!("Metadata {name}"), Some(value.clone()));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl<'a> PlaceRecord<'a> {
    pub(crate) fn prefix(url: &'a str) -> Self {
        Self { kind: "prefix", url }
    }

    pub(crate) fn bucket(url: &'a str) -> Self {
        Self { kind: "bucket", url }
    }
}

/// The outcome of an operation on a whole bucket, as the record of kind `bucket`.
#[derive(Serialize, Debug)]
pub(crate) struct BucketOutcomeRecord<'a> {
    kind: &'static str,
    url: &'a str,
    /// `made` or `removed`.
    outcome: &'static str,
}

impl<'a> BucketOutcomeRecord<'a> {
    pub(crate) fn new(url: &'a str, outcome: &'static str) -> Self {
        Self { kind: "bucket", url, outcome }
    }
}

#[cfg(test)]
mod tests {
    use laneway_store::{Checksums, ObjectId};

    use super::*;

    fn meta() -> ObjectMeta {
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 4700);
        meta.version = Some(Version::Generation(7));
        meta.checksums = Checksums::crc32c(0xe306_9283);
        meta.metadata = Some([("who".into(), "me".into())].into());
        meta
    }

    #[test]
    fn what_a_store_left_out_is_left_out() {
        let json = serde_json::to_string(&ObjectRecord::new("gs://b/k", &meta())).expect("it serialises");
        assert_eq!(
            json,
            r#"{"kind":"object","url":"gs://b/k","size":4700,"generation":7,"crc32c":"4waSgw==","metadata":{"who":"me"}}"#
        );
    }

    #[test]
    fn encryption_tags_locks_and_archives_are_shown() {
        let mut meta = meta();
        meta.encryption = Some("aws:kms".into());
        meta.kms_key = Some("k".into());
        meta.bucket_key = true;
        meta.tags = Some(2);
        let until = laneway::Retention::time("2027-01-31").expect("a time");
        meta.retention = Some(laneway::Retention::new(laneway::RetentionMode::Compliance, until));
        meta.legal_hold = true;
        meta.archived = true;
        meta.restore = Some("ongoing-request=\"true\"".into());
        let record = ObjectRecord::new("s3://b/k", &meta);
        let json = serde_json::to_string(&record).expect("it serialises");
        assert!(
            json.contains(
                r#""encryption":"aws:kms","kms_key":"k","bucket_key":true,"tags":2,"lock_mode":"COMPLIANCE","lock_until":"2027-01-31T00:00:00Z","legal_hold":true,"archived":true,"#
            ),
            "{json}"
        );
        let text = record.details();
        for line in [
            "  Encryption:          aws:kms",
            "  Encrypted with:      k (by a key of the bucket)",
            "  Tags:                2",
            "  Locked:              COMPLIANCE until 2027-01-31T00:00:00Z",
            "  Legal hold:          on",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn details_are_one_thing_a_line() {
        let text = ObjectRecord::new("gs://b/k", &meta()).details();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "gs://b/k:");
        assert_eq!(lines[1], "  Size:                4700 (4.59KiB)");
        assert_eq!(lines[4], "  Metadata who:        me");
    }
}
