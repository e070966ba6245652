//! The table of Azure's verbs and capabilities. Each verb is implemented in its own file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use laneway_lanes::{Body, Path, Protocol, Spare};

use super::Azure;
use crate::delete_many::{BatchDeleteDialect, DeleteDialect};
use crate::exchange::{Exchange, HttpDialect};
use crate::settings::fingerprint;
use crate::{
    Capabilities, Checksums, Condition, Deletion, Dialect, Error, ErrorKind, FileAttributes, Get, Got, List,
    MetaChange, Multipart, NewBucket, ObjectId, ObjectMeta, Operation, Page, Part, PartRules, Provider,
    PutOptions, ReadAs, RequestPrices, Requests, Restoration, RestoreOptions, SignOptions, SignedUrl,
    StoredPart, Unless, Version, VersionNames,
};

/// The limits of blocks (<https://learn.microsoft.com/azure/storage/blobs/scalability-targets>). A block may be small, but
/// each one counts towards the limit.
const BLOCKS: PartRules = PartRules { count_max: 50_000, bytes_min: 1 << 20, bytes_max: 4000 << 20 };

/// Azure's limits, and the prices of the hot tier with local redundancy in East US
/// (<https://azure.microsoft.com/pricing/details/storage/blobs/>).
pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    object_bytes_max: BLOCKS.object_bytes_max(),
    versions: VersionNames::ETagAndId,
    copies: true,
    copy_bytes_max: None,
    parts: BLOCKS,
    multipart_takes_condition: true,
    delete_many_keeps_conditions: true,
    delete_keeps_condition: true,
    delete_tells_missing: true,
    lists_start_key: true,
    tokens_are_keys: false,
    delete_many_max: Azure::OBJECTS_MAX,
    has_tags: true,
    get_tells_metadata: true,
    list_tells_metadata: true,
    file_attributes: FileAttributes::Rclone,
    inventories: None,
    protocol: Protocol::H1,
    prices: RequestPrices {
        as_of: "2026-01",
        domains: &["blob.core.windows.net"],
        writes: 0.005,
        reads: 0.0004,
        deletes: 0.0,
    },
};

#[async_trait]
impl Dialect for Azure {
    fn provider(&self) -> Provider {
        Self::PROVIDER
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn endpoint(&self) -> String {
        HttpDialect::endpoint(self)
    }

    fn fingerprint(&self) -> String {
        let algorithm = HttpDialect::checksum_algorithm(self);
        fingerprint([&self.added_headers], self.kms_key.as_deref(), &self.encryption, algorithm)
    }

    fn requests(&self) -> Requests {
        self.tally.snapshot()
    }

    fn anticipate(&self, bucket: &str, requests: usize) {
        // A request without an account reports the error.
        if let Some(origin) = self.address.origin(bucket) {
            self.lanes.anticipate(&origin, requests);
        }
    }

    async fn path(&self, bucket: &str) -> Path {
        match self.address.origin(bucket) {
            Some(origin) => self.lanes.path(&origin).await,
            None => Path::default(),
        }
    }

    async fn spare(&self, bucket: &str) -> Spare {
        match self.address.origin(bucket) {
            Some(origin) => self.lanes.spare(&origin).await,
            None => Spare::none(),
        }
    }

    fn keeps(&self, _operation: Operation, _condition: &Condition) -> bool {
        true
    }

    fn starts_at_keys(&self, bucket: &str) -> bool {
        self.starts_listings_at_keys(bucket)
    }

    fn supports_multipart(&self) -> bool {
        true
    }

    async fn head(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        read: ReadAs,
    ) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, unless, read.into()).await
    }

    async fn get(&self, get: &Get<'_>, read: ReadAs) -> Result<Got, Error> {
        self.download(get, read.into()).await
    }

    async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        self.upload(id, body, sums, options).await
    }

    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        DeleteDialect::delete(self, id, condition).await
    }

    async fn list(
        &self,
        list: &List,
        arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
    ) -> Result<Page, Error> {
        self.list_page(list, arrived).await
    }

    async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        BatchDeleteDialect::delete_many(self, bucket, objects).await
    }

    async fn copy(
        &self,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        self.copy_object(from, known, to, options, condition).await
    }

    async fn set_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        self.change_meta(id, change).await
    }

    async fn restore(&self, id: &ObjectId, options: &RestoreOptions) -> Result<Restoration, Error> {
        self.restore_blob(id, options).await
    }

    async fn sign(&self, id: &ObjectId, options: &SignOptions, now: SystemTime) -> Result<SignedUrl, Error> {
        self.sign_url(id, options, now).await
    }

    fn has_opaque_etags(&self) -> bool {
        true
    }

    async fn tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        self.read_tags(id).await
    }

    async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.begin_upload(id, options).await
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        self.upload_part(upload, number, body, crc32c).await
    }

    async fn part_copy(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Result<Part, Error> {
        self.copy_block(upload, number, from, version, range).await
    }

    async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        self.list_blocks(upload).await
    }

    async fn list_uploads(&self, bucket: &str, _prefix: &str) -> Result<Vec<Multipart>, Error> {
        let message = "Azure has no list of unfinished uploads; it removes their blocks after a week";
        Err(Exchange::bucket(self, Operation::ListUploads, bucket).error(ErrorKind::Unsupported, message))
    }

    async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        self.complete_upload(upload, parts, whole, condition).await
    }

    /// Does nothing: the service can't remove single blocks, and removes all uncommitted blocks after a week. The blob
    /// that may exist under this name must stay.
    async fn abort(&self, _upload: &Multipart) -> Result<(), Error> {
        Ok(())
    }

    async fn buckets(&self) -> Result<Vec<String>, Error> {
        self.list_containers().await
    }

    async fn create_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        self.make_container(bucket, new).await
    }

    async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        self.remove_container(bucket).await
    }
}
