//! Multipart uploads.

use std::ops::Range;

use laneway_lanes::Body;

use super::Store;
use super::writing::again;
use crate::{
    Checksums, Condition, Error, Multipart, ObjectId, ObjectMeta, Part, PutOptions, StoredPart, Version,
};

impl Store {
    /// Begins a multipart upload.
    ///
    /// # Errors
    /// `Unsupported` on GCS with a condition, and if the server has no multipart uploads.
    pub async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.dialect.begin(id, options).await
    }

    /// Uploads a part. `number` is from 1 to 10000, and every part but the last has at least 5 MiB. The store's
    /// checksum is compared. If it differs, the part is sent once more.
    ///
    /// # Errors
    /// `NotFound` if the upload no longer exists; `Integrity` if the store has other bytes.
    pub async fn part(
        &self,
        upload: &Multipart,
        number: u32,
        body: Body,
        crc32c: u32,
    ) -> Result<Part, Error> {
        let part = || async { self.dialect.part(upload, number, body.clone(), crc32c).await };
        match part().await {
            Err(error) if error.is_integrity() => {
                again(&error);
                part().await
            }
            part => part,
        }
    }

    /// Copies a range of another object into a part.
    ///
    /// # Errors
    /// `Unsupported` on GCS, whose rewrite copies objects of any size.
    pub async fn part_copy(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Result<Part, Error> {
        self.dialect.part_copy(upload, number, from, version, range).await
    }

    /// Lists the parts that the store has of an upload, by number.
    ///
    /// # Errors
    /// `NotFound` if the upload no longer exists, also because it was completed.
    pub async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        self.dialect.list_parts(upload).await
    }

    /// Lists the unfinished uploads of a bucket for keys with a prefix, by key, whoever began them. If a listing
    /// doesn't tell the checksums of an upload, GCS keeps one of the whole object, and S3 keeps none.
    ///
    /// # Errors
    /// `NotFound` if the bucket doesn't exist; `Permission`.
    pub async fn list_uploads(&self, bucket: &str, prefix: &str) -> Result<Vec<Multipart>, Error> {
        self.dialect.list_uploads(bucket, prefix).await
    }

    /// Makes the object from its parts, and compares its checksum with `whole`. If the answer lacks the checksum,
    /// another request reads it.
    ///
    /// # Errors
    /// `NotFound` if the upload no longer exists; `Precondition` or `AlreadyExists`; `Integrity` if the store has other
    /// bytes.
    pub async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let completed = self.dialect.complete(upload, parts, whole, condition).await;
        completed.map_err(|error| error.of_write(condition))
    }

    /// Aborts a multipart upload, and discards its parts.
    ///
    /// # Errors
    /// `NotFound` if the upload no longer exists.
    pub async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        self.dialect.abort(upload).await
    }

    /// Returns true if [`begin`](Self::begin) can work. It can't work after a GCS server has shown that it doesn't
    /// support XML multipart uploads.
    pub fn supports_multipart(&self) -> bool {
        self.dialect.supports_multipart()
    }

    /// Returns true if the parts of one upload may differ in size. Other stores with S3's protocol may refuse that when
    /// the upload is completed, as Cloudflare R2 does
    /// (<https://developers.cloudflare.com/r2/objects/multipart-objects/>).
    pub fn takes_unequal_parts(&self) -> bool {
        self.dialect.takes_unequal_parts()
    }
}
