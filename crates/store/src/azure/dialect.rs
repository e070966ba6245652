//! The table of Azure's verbs and capabilities. Each verb is implemented in its own file.

use std::collections::BTreeMap;
use std::ops::Range;

use laneway_lanes::{Path, Protocol, Spare};

use super::Azure;
use crate::delete_many::BatchDeleteDialect;
use crate::exchange::Exchange;
use crate::http_verbs::http_verbs;
use crate::{
    Capabilities, ErrorKind, FileAttributes, Operation, PartRules, RequestPrices, Restoration,
    RestoreOptions, VersionNames,
};

/// The limits of blocks (<https://learn.microsoft.com/azure/storage/blobs/scalability-targets>). A block may be small, but
/// each one counts towards the limit.
const BLOCKS: PartRules = PartRules { count_max: 50_000, bytes_min: 1, bytes_max: 4000 << 20 };

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

http_verbs!(Azure, CAPABILITIES, own parts, {
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

    async fn restore(&self, id: &ObjectId, options: &RestoreOptions) -> Result<Restoration, Error> {
        self.restore_blob(id, options).await
    }

    async fn find_deleted(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        self.deleted_blob(id).await
    }

    fn has_opaque_etags(&self) -> bool {
        true
    }

    async fn tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        self.read_tags(id).await
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

    /// Does nothing: the service can't remove single blocks, and removes all uncommitted blocks after a week. The blob
    /// that may exist under this name must stay.
    async fn abort(&self, _upload: &Multipart) -> Result<(), Error> {
        Ok(())
    }
});
