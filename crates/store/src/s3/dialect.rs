//! The verbs of S3, each in a file of its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use laneway_lanes::{Body, Path, Protocol, Spare};

use super::S3;
use super::address::is_directory;
use super::write_conditions::Write;
use crate::delete_many::{Deletes, DeletesMany};
use crate::exchange::HttpDialect;
use crate::multipart::SpeaksMultipart;
use crate::settings::fingerprint;
use crate::{
    Capabilities, Changing, Checksums, Condition, Deletion, Dialect, Error, FileAttributes, Get, Got, List,
    MetaChange, Multipart, NewBucket, ObjectId, ObjectMeta, Operation, Page, Part, Provider, PutOptions,
    ReadAs, RequestPrices, Requests, SignOptions, SignedUrl, StoredPart, Unless, Version, VersionNames,
    unfinished,
};

/// Limits: 10,000 parts of 5 GiB (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>). Prices: the standard
/// class in us-east-1, in January 2026 (<https://aws.amazon.com/s3/pricing/>).
pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    object_bytes_max: 10_000 * (5 << 30),
    versions: VersionNames::ETagAndId,
    copies: true,
    copies_any_size: false,
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
    protocol: Protocol::H1,
    prices: RequestPrices { writes: 0.005, reads: 0.0004, deletes: 0.0 },
};

#[async_trait]
impl Dialect for S3 {
    fn provider(&self) -> Provider {
        Provider::S3
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

    fn anticipate(&self, bucket: &str, requests: usize) {
        // A bucket whose name makes no address says so when it is asked.
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
            Operation::Put => self.is_kept(Write::Put, condition),
            Operation::Complete => self.is_kept(Write::Complete, condition),
            Operation::Copy => self.is_kept(Write::Copy, condition),
            Operation::Delete => self.is_kept(Write::Delete, condition),
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

    async fn changing(&self, id: &ObjectId, change: &MetaChange) -> Result<Changing, Error> {
        self.look_at_change(id, change).await
    }

    async fn begin_change(&self, changing: &Changing, checked: bool) -> Result<Multipart, Error> {
        self.begin_change_upload(changing, checked).await
    }

    async fn changed(&self, changing: &Changing, made: &ObjectMeta) -> Result<ObjectMeta, Error> {
        self.changed_object(changing, made).await
    }

    async fn sign(&self, id: &ObjectId, options: &SignOptions, now: SystemTime) -> Result<SignedUrl, Error> {
        self.sign_url(id, options, now).await
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

    async fn tags(&self, id: &ObjectId) -> Result<BTreeMap<String, String>, Error> {
        self.read_tags(id).await
    }

    async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.begin_upload(id, options).await
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        SpeaksMultipart::part(self, upload, number, body, crc32c).await
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
