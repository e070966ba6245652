//! The verbs of GCS, each in a file of its own.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use async_trait::async_trait;
use laneway_lanes::{Body, Path, Protocol, Spare};

use super::Gcs;
use crate::delete_many::{Deletes, DeletesMany};
use crate::exchange::HttpDialect;
use crate::multipart::SpeaksMultipart;
use crate::settings::fingerprint;
use crate::{
    Appended, Capabilities, Checksums, Condition, Deletion, Dialect, Error, FileAttributes, Get, Got, List,
    MetaChange, Multipart, NewBucket, ObjectId, ObjectMeta, Page, Part, Provider, PutOptions, ReadAs,
    RequestPrices, Requests, Resumable, SignOptions, SignedUrl, StoredPart, Unless, Version, VersionNames,
    unfinished,
};

/// Limits: <https://cloud.google.com/storage/quotas#objects>. Prices: class A and B operations of the standard class in a
/// region, in January 2026 (<https://cloud.google.com/storage/pricing>).
pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    object_bytes_max: 5 << 40,
    versions: VersionNames::Generation,
    copies: true,
    copies_any_size: true,
    // The XML API, which has the multipart uploads, takes no preconditions.
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
    protocol: Protocol::H2,
    prices: RequestPrices { writes: 0.005, reads: 0.0004, deletes: 0.0 },
};

#[async_trait]
impl Dialect for Gcs {
    fn provider(&self) -> Provider {
        Provider::Gcs
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn endpoint(&self) -> String {
        HttpDialect::endpoint(self)
    }

    fn fingerprint(&self) -> String {
        let headers = [&self.headers, &self.added_headers];
        fingerprint(headers, self.kms_key.as_deref(), &self.encryption)
    }

    fn requests(&self) -> Requests {
        self.tally.snapshot()
    }

    fn anticipate(&self, _bucket: &str, requests: usize) {
        self.lanes.anticipate(&self.endpoint.origin, requests);
    }

    async fn path(&self, _bucket: &str) -> Path {
        self.lanes.path(&self.endpoint.origin).await
    }

    async fn spare(&self, _bucket: &str) -> Spare {
        self.lanes.spare(&self.endpoint.origin).await
    }

    fn supports_multipart(&self) -> bool {
        !self.lacks_multipart.load(Ordering::Acquire)
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
        Deletes::delete(self, id, condition).await
    }

    async fn list(
        &self,
        list: &List,
        arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
    ) -> Result<Page, Error> {
        self.list_page(list, arrived).await
    }

    async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        DeletesMany::delete_many(self, bucket, objects).await
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

    async fn sign(&self, id: &ObjectId, options: &SignOptions, now: SystemTime) -> Result<SignedUrl, Error> {
        self.sign_url(id, options, now).await
    }

    async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.begin_upload(id, options).await
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        SpeaksMultipart::part(self, upload, number, body, crc32c).await
    }

    async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        SpeaksMultipart::list_parts(self, upload).await
    }

    async fn list_uploads(&self, bucket: &str, prefix: &str) -> Result<Vec<Multipart>, Error> {
        unfinished::list(self, bucket, prefix).await
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

    async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        SpeaksMultipart::abort(self, upload).await
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

    async fn buckets(&self) -> Result<Vec<String>, Error> {
        self.list_buckets().await
    }

    async fn create_bucket(&self, bucket: &str, new: &NewBucket) -> Result<(), Error> {
        self.make_bucket(bucket, new).await
    }

    async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        self.remove_bucket(bucket).await
    }
}
