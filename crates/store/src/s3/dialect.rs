//! The table of S3's verbs and capabilities. The verbs are implemented in the other files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use laneway_lanes::{Path, Protocol, Spare};
use serde_json::Value;

use super::S3;
use super::address::is_directory;
use super::write_conditions::ConditionalWrite;
use crate::delete_many::BatchDeleteDialect;
use crate::http_verbs::http_verbs;
use crate::{
    AccessGrant, BucketSetting, Capabilities, Changing, FileAttributes, InventoryFormat, Operation,
    PartRules, RequestPrices, Restoration, RestoreOptions, VersionNames,
};

/// S3's limits and prices. The largest copy is from
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html>. The prices are those of the standard class in
/// us-east-1 (<https://aws.amazon.com/s3/pricing/>).
pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    object_bytes_max: PartRules::S3.object_bytes_max(),
    versions: VersionNames::ETagAndId,
    copies: true,
    copy_bytes_max: Some(5 << 30),
    parts: PartRules::S3,
    multipart_takes_condition: true,
    delete_many_keeps_conditions: true,
    delete_keeps_condition: false,
    delete_tells_missing: false,
    lists_start_key: false,
    tokens_are_keys: false,
    delete_many_max: S3::OBJECTS_MAX,
    has_tags: true,
    get_tells_metadata: true,
    list_tells_metadata: false,
    file_attributes: FileAttributes::Rclone,
    inventories: Some(InventoryFormat::S3Inventory),
    protocol: Protocol::H1,
    prices: RequestPrices {
        as_of: "2026-01",
        domains: &["amazonaws.com", "amazonaws.com.cn"],
        writes: 0.005,
        reads: 0.0004,
        deletes: 0.0,
    },
};

http_verbs!(S3, CAPABILITIES, {
    fn anticipate(&self, bucket: &str, requests: usize) {
        // If the bucket's name can't be part of an address, nothing is announced. The requests will report the error.
        if let Some(origin) = self.origin(bucket) {
            self.lanes.anticipate(&origin, requests);
        }
    }

    async fn path(&self, bucket: &str) -> Path {
        match self.origin(bucket) {
            Some(origin) => self.lanes.path(&origin).await,
            None => Path::default(),
        }
    }

    async fn spare(&self, bucket: &str) -> Spare {
        match self.origin(bucket) {
            Some(origin) => self.lanes.spare(&origin).await,
            None => Spare::none(),
        }
    }

    fn keeps(&self, operation: Operation, condition: &Condition) -> bool {
        match operation {
            Operation::Put => self.is_kept(ConditionalWrite::put(condition), condition),
            Operation::Complete => self.is_kept(ConditionalWrite::Complete, condition),
            Operation::Copy => self.is_kept(ConditionalWrite::Copy, condition),
            Operation::Delete => self.is_kept(ConditionalWrite::Delete, condition),
            _ => condition.is_none(),
        }
    }

    fn lists_in_order(&self, bucket: &str) -> bool {
        !is_directory(bucket)
    }

    fn supports_multipart(&self) -> bool {
        true
    }

    fn takes_unequal_parts(&self) -> bool {
        self.address.takes_unequal_parts()
    }

    async fn begin_unchecked(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.begin_unchecked_upload(id, options).await
    }

    async fn changing(&self, id: &ObjectId, change: &MetaChange) -> Result<Changing, Error> {
        self.look_at_change(id, change).await
    }

    async fn begin_change(&self, changing: &Changing, checked: bool) -> Result<Multipart, Error> {
        self.begin_change_upload(changing, checked).await
    }

    async fn changed(&self, changing: &Changing, made: &ObjectMeta) -> Result<ObjectMeta, Error> {
        self.changed_object(changing, made).await
    }

    async fn part_len(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        number: u32,
        read: ReadAs,
    ) -> Result<Option<u64>, Error> {
        self.len_of_part(id, version, number, read.into()).await
    }

    async fn part_lens(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        read: ReadAs,
    ) -> Result<Option<Vec<u64>>, Error> {
        self.lens_of_parts(id, version, read.into()).await
    }

    fn trusts_md5s_of_parts(&self) -> bool {
        self.md5s_of_parts.load(Ordering::Relaxed)
    }

    fn trust_md5s_of_parts(&self) {
        self.md5s_of_parts.store(true, Ordering::Relaxed);
    }

    fn has_opaque_etags(&self) -> bool {
        self.etags.are_opaque()
    }

    async fn restore(&self, id: &ObjectId, options: &RestoreOptions) -> Result<Restoration, Error> {
        self.restore_object(id, options).await
    }

    async fn tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        self.read_tags(id).await
    }

    async fn bucket_setting(&self, bucket: &str, setting: BucketSetting) -> Result<Value, Error> {
        self.read_setting(bucket, setting).await
    }

    async fn set_bucket_setting(
        &self,
        bucket: &str,
        setting: BucketSetting,
        value: Option<&Value>,
    ) -> Result<(), Error> {
        self.write_setting(bucket, setting, value).await
    }

    async fn access_list(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        self.read_acl(id).await
    }

    async fn part_copy(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Result<Part, Error> {
        self.copy_part(upload, number, from, version, range).await
    }
});
