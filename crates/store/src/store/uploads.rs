//! Multipart uploads and resumable sessions.

use std::ops::Range;

use laneway_lanes::Body;

use super::Store;
use super::writes::again;
use crate::{
    Appended, Checksums, Condition, Error, Multipart, ObjectId, ObjectMeta, Part, PutOptions, Resumable,
    StoredPart, Version,
};

impl Store {
    /// Begins a multipart upload.
    ///
    /// # Errors
    /// `Unsupported` on GCS with a condition, and if the server has no multipart uploads.
    pub async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.dialect.begin(id, options).await
    }

    /// Begins a multipart upload for which the store keeps no checksums. Some stores, such as MinIO, can't copy parts
    /// into an upload with checksums.
    ///
    /// # Errors
    /// As for [`begin`](Self::begin).
    pub async fn begin_unchecked(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.dialect.begin_unchecked(id, options).await
    }

    /// Uploads a part. `number` is from 1 to 10000, and every part but the last has at least 5 MiB. Laneway compares
    /// the store's checksum with its own. If they differ, it sends the part once more.
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

    /// Lists the parts of an upload that the store has, sorted by number.
    ///
    /// # Errors
    /// `NotFound` if the upload no longer exists, for example because it was completed.
    pub async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        self.dialect.list_parts(upload).await
    }

    /// Lists the unfinished uploads of keys with a prefix in a bucket, sorted by key. It includes uploads that other
    /// programs began. If a listing doesn't contain the kind of an upload's checksums, Laneway assumes that GCS keeps
    /// one of the whole object and that S3 keeps none.
    ///
    /// # Errors
    /// `NotFound` if the bucket doesn't exist; `Permission`.
    pub async fn list_uploads(&self, bucket: &str, prefix: &str) -> Result<Vec<Multipart>, Error> {
        self.dialect.list_uploads(bucket, prefix).await
    }

    /// Creates the object from its parts, and compares its checksum with `whole`. If the answer has no checksum,
    /// Laneway reads it with another request.
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

    /// Returns true if [`begin`](Self::begin) can succeed. It returns false after a GCS server has shown that it
    /// doesn't support XML multipart uploads.
    pub fn supports_multipart(&self) -> bool {
        self.dialect.supports_multipart()
    }

    /// Returns true if the parts of one upload may differ in size. Some stores with S3's protocol refuse unequal parts
    /// when the upload is completed, for example Cloudflare R2
    /// (<https://developers.cloudflare.com/r2/objects/multipart-objects/>).
    pub fn takes_unequal_parts(&self) -> bool {
        self.dialect.takes_unequal_parts()
    }

    /// Begins a resumable session. It is used for uploads with preconditions, and for servers without multipart
    /// uploads. If the checksums of the whole object are known, pass them in `sums`, and the store checks them at the
    /// end of the session.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_begin(
        &self,
        id: &ObjectId,
        len: Option<u64>,
        options: &PutOptions,
        sums: Option<&Checksums>,
    ) -> Result<Resumable, Error> {
        let begun = self.dialect.resumable_begin(id, len, options, sums).await;
        begun.map_err(|error| error.of_write(&options.condition))
    }

    /// Appends bytes to a session at `offset`. The length of every chunk but the `last` must be a multiple of 256 KiB.
    /// After a lost answer, Laneway asks for the session's state, which may show that only part of the chunk arrived.
    /// It doesn't compare the finished object with the bytes that were sent. The caller can do so with the checksums in
    /// the answer.
    ///
    /// # Errors
    /// `NotFound` if the session no longer exists; `Precondition`; `Unsupported` on S3.
    pub async fn resumable_append(
        &self,
        session: &Resumable,
        offset: u64,
        body: Body,
        last: bool,
    ) -> Result<Appended, Error> {
        self.dialect.resumable_append(session, offset, body, last).await
    }

    /// Returns the state of a session.
    ///
    /// # Errors
    /// `NotFound` if the session no longer exists; `Unsupported` on S3.
    pub async fn resumable_status(&self, session: &Resumable) -> Result<Appended, Error> {
        self.dialect.resumable_status(session).await
    }

    /// Cancels a session. If the session no longer exists, that is a success too.
    ///
    /// # Errors
    /// `Unsupported` on S3.
    pub async fn resumable_cancel(&self, session: &Resumable) -> Result<(), Error> {
        self.dialect.resumable_cancel(session).await
    }
}
