//! Uploads in parts.

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
    /// `Unsupported` on GCS with a condition, and where the server has no multipart uploads.
    pub async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.dialect.begin(id, options).await
    }

    /// Uploads a part: `number` from 1 to 10000, at least 5 MiB unless it is the last. The store's checksum of it is
    /// compared before it is reported, and one that differs sent once more.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone; `Integrity` when the store has something else.
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

    /// Makes a part of a range of another object.
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

    /// The parts that the store has of an upload, by their numbers.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone, completed ones included.
    pub async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        self.dialect.list_parts(upload).await
    }

    /// The uploads of a bucket that are under way, of keys with a prefix, by those: begun by whomever, and neither completed nor given up. Of
    /// those whose checksums a listing doesn't tell, GCS keeps one of the whole, and S3 none.
    ///
    /// # Errors
    /// `NotFound` where there is no such bucket; `Permission`.
    pub async fn list_uploads(&self, bucket: &str, prefix: &str) -> Result<Vec<Multipart>, Error> {
        self.dialect.list_uploads(bucket, prefix).await
    }

    /// Makes the object of its parts. Its checksum is compared with `whole`, read back where the answer lacks it.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone; `Precondition` or `AlreadyExists`; `Integrity` when the store has something
    /// else.
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

    /// Gives up a multipart upload, and with it its parts.
    ///
    /// # Errors
    /// `NotFound` when the upload is gone.
    pub async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        self.dialect.abort(upload).await
    }

    /// Whether [`begin`](Self::begin) can work: false once a GCS server has shown that it knows no XML multipart
    /// uploads.
    pub fn supports_multipart(&self) -> bool {
        self.dialect.supports_multipart()
    }

    /// Whether the parts of one upload may differ in size. Stores that speak S3's protocol and aren't Amazon's may
    /// refuse that when the upload is completed, as Cloudflare R2 does
    /// (<https://developers.cloudflare.com/r2/objects/multipart-objects/>).
    pub fn takes_unequal_parts(&self) -> bool {
        self.dialect.takes_unequal_parts()
    }
}
