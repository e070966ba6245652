//! The table of GCS's verbs and capabilities. The verbs are implemented in the other files.

use std::time::Instant;

use laneway_lanes::{Path, Protocol, Spare};
use serde_json::Value;

use super::Gcs;
use crate::delete_many::BatchDeleteDialect;
use crate::http_verbs::http_verbs;
use crate::{
    AccessGrant, Appended, BucketSetting, Capabilities, FileAttributes, FolderPage, FolderRename,
    InventoryFormat, Operation, PartRules, RequestPrices, Restoration, RestoreOptions, Resumable,
    VersionNames,
};

/// Limits: <https://cloud.google.com/storage/quotas#objects>. Prices: class A and B operations of the standard class in a
/// region (<https://cloud.google.com/storage/pricing>).
pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    object_bytes_max: 5 << 40,
    versions: VersionNames::Generation,
    copies: true,
    copy_bytes_max: None,
    parts: PartRules::S3,
    // Multipart uploads exist only in the XML API, which supports no preconditions for them.
    multipart_takes_condition: false,
    delete_many_keeps_conditions: false,
    delete_keeps_condition: true,
    delete_tells_missing: true,
    lists_start_key: true,
    tokens_are_keys: true,
    delete_many_max: Gcs::OBJECTS_MAX,
    has_tags: false,
    get_tells_metadata: false,
    list_tells_metadata: true,
    file_attributes: FileAttributes::Gcloud,
    inventories: Some(InventoryFormat::StorageInsights),
    protocol: Protocol::H2,
    prices: RequestPrices {
        as_of: "2026-01",
        domains: &["googleapis.com"],
        writes: 0.005,
        reads: 0.0004,
        deletes: 0.0,
    },
};

http_verbs!(Gcs, CAPABILITIES, {
    fn anticipate(&self, _bucket: &str, requests: usize) {
        self.lanes.anticipate(&self.endpoint.origin, requests);
    }

    async fn path(&self, _bucket: &str) -> Path {
        self.lanes.path(&self.endpoint.origin).await
    }

    async fn spare(&self, _bucket: &str) -> Spare {
        self.lanes.spare(&self.endpoint.origin).await
    }

    fn keeps(&self, _operation: Operation, _condition: &Condition) -> bool {
        true
    }

    fn supports_multipart(&self) -> bool {
        !self.lacks_multipart.has(super::ENDPOINT, Instant::now())
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

    fn compose_max(&self) -> usize {
        super::rewrite::SOURCES_MAX
    }

    async fn compose(
        &self,
        sources: &[ObjectMeta],
        to: &ObjectId,
        options: &PutOptions,
        whole: &Checksums,
    ) -> Result<ObjectMeta, Error> {
        self.compose_objects(sources, to, options, whole).await
    }

    async fn rename(
        &self,
        source: &ObjectMeta,
        to: &ObjectId,
        condition: &Condition,
    ) -> Result<Option<ObjectMeta>, Error> {
        self.move_object(source, to, condition).await
    }

    fn restores_deleted(&self) -> bool {
        true
    }

    async fn restore(&self, id: &ObjectId, options: &RestoreOptions) -> Result<Restoration, Error> {
        self.restore_deleted(id, options).await
    }

    async fn find_deleted(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        self.deleted_object(id).await
    }

    async fn has_folders(&self, bucket: &str) -> Result<bool, Error> {
        self.is_hierarchical(bucket).await
    }

    async fn folders(&self, bucket: &str, prefix: &str, token: Option<&str>) -> Result<FolderPage, Error> {
        self.list_folders(bucket, prefix, token).await
    }

    async fn delete_folder(&self, bucket: &str, folder: &str) -> Result<(), Error> {
        self.remove_folder(bucket, folder).await
    }

    async fn rename_folder(&self, bucket: &str, from: &str, to: &str) -> Result<FolderRename, Error> {
        self.begin_folder_rename(bucket, from, to).await
    }

    async fn folder_rename(&self, bucket: &str, operation: &str) -> Result<FolderRename, Error> {
        self.folder_rename_state(bucket, operation).await
    }

    async fn resumable_begin(
        &self,
        id: &ObjectId,
        len: Option<u64>,
        options: &PutOptions,
        sums: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        self.session_begin(id, len, options, sums).await
    }

    async fn resumable_append(
        &self,
        session: &Resumable,
        offset: u64,
        body: Body,
        last: bool,
    ) -> Result<Appended, Error> {
        self.session_append(session, offset, body, last).await
    }

    async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        self.session_status(session).await
    }

    async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        self.session_cancel(session).await
    }
});
