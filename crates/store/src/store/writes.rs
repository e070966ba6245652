//! Writes, copies, changes and deletes objects, also by multipart uploads and resumable sessions.

use std::ops::Range;

use laneway_lanes::Body;

use super::Store;
use crate::{
    Appended, Changing, Checksums, Condition, Deletion, Error, MetaChange, Multipart, ObjectId, ObjectMeta,
    Part, PutOptions, Restoration, RestoreOptions, Resumable, StoredPart, Version,
};

impl Store {
    /// Writes an object in one request. Laneway compares the store's checksums with `sums`, and sends the bytes once
    /// more if they differ. If the store sends no checksum, the returned checksums are empty. S3 returns little other
    /// metadata; `head` returns all of it.
    ///
    /// # Errors
    /// `Precondition` if `options.condition` doesn't hold, or `AlreadyExists` for [`Condition::Absent`]; `Integrity` if
    /// the store has other bytes.
    pub async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let put = || async { self.dialect.put(id, body.clone(), sums, options).await };
        let put = match put().await {
            // If the store didn't refuse the damaged bytes, it has stored them. Then a second write with a condition
            // would fail because of the first.
            Err(error)
                if error.is_integrity() && (error.status().is_some() || options.condition.is_none()) =>
            {
                again(&error);
                Box::pin(put()).await
            }
            put => put,
        };
        put.map_err(|error| error.of_write(&options.condition))
    }

    /// Copies an object inside the store, without sending its bytes to this machine. The copy keeps the source's values
    /// for fields that `options` leaves empty. If `options` sets some metadata, Laneway reads the other metadata from
    /// the source first. `condition` applies to the source, and `options.condition` to the destination. S3 copies at
    /// most 5 GiB in one call: see [`part_copy`](Self::part_copy).
    ///
    /// # Errors
    /// `NotFound`; `Precondition`, or `AlreadyExists` if only the destination has a condition; `Invalid` for a source
    /// above 5 GiB on S3.
    pub async fn copy(
        &self,
        from: &ObjectId,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        self.copy_known(from, None, to, options, condition).await
    }

    /// Copies an object whose metadata the caller knows. S3's answer to a copy doesn't contain the size, so normally a
    /// HEAD follows. It isn't necessary if the copy's ETag shows that the bytes are the known ones.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy).
    pub async fn copy_known(
        &self,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let copied = self.dialect.copy(from, known, to, options, condition).await;
        // With two conditions, the answer doesn't show which of them failed, so the kind can't be `AlreadyExists`.
        copied.map_err(|error| if condition.is_none() { error.of_write(&options.condition) } else { error })
    }

    /// Moves an object to another name by one request, with all its metadata. `source` describes the object, which is
    /// moved only in this state. `condition` applies to the destination. If the answer is lost, Laneway looks at both
    /// names. Returns `None` if the caller must copy the object and remove the source instead: the store lacks this
    /// request or refuses it, or the names are in different buckets.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` if the destination doesn't meet `condition`, or `AlreadyExists` for
    /// [`Condition::Absent`]. If the source isn't in this state any more, `Precondition` on the source:
    /// [`Error::target`] names it. If Laneway can't find out whether the object was moved, the message says so.
    pub async fn rename(
        &self,
        source: &ObjectMeta,
        to: &ObjectId,
        condition: &Condition,
    ) -> Result<Option<ObjectMeta>, Error> {
        self.dialect.rename(source, to, condition).await
    }

    /// Returns the maximum number of objects that one call of [`compose`](Self::compose) can join. If it is 0, the
    /// store can join objects only as the parts of an upload: see [`part_copy`](Self::part_copy).
    pub fn compose_max(&self) -> usize {
        self.dialect.compose_max()
    }

    /// Joins objects of one bucket to a new object, in the order of `sources`. Each source is used in the version that
    /// its metadata names. `whole` holds the checksums of the new object. If the answer is lost, Laneway compares them
    /// with the store's object.
    ///
    /// # Errors
    /// `NotFound`; `Precondition`, or `AlreadyExists` for [`Condition::Absent`]; `Unsupported` if
    /// [`compose_max`](Self::compose_max) is 0.
    pub async fn compose(
        &self,
        sources: &[ObjectMeta],
        to: &ObjectId,
        options: &PutOptions,
        whole: &Checksums,
    ) -> Result<ObjectMeta, Error> {
        let composed = self.dialect.compose(sources, to, options, whole).await;
        composed.map_err(|error| error.of_write(&options.condition))
    }

    /// Changes an object's metadata and storage class. GCS changes metadata in place, and rewrites the object for
    /// another class. On S3, Laneway copies an object of up to 5 GiB onto itself, if the object hasn't changed since
    /// Laneway read it. For larger objects see [`changing`](Self::changing). The copy has a new time and version, and
    /// doesn't keep the access control list.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` if the object was replaced meanwhile; `Unsupported` for a change that the store can't
    /// make, or can't make with one request.
    pub async fn set_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        self.dialect.set_meta(id, change).await
    }

    /// Reads an S3 object that is too large to be changed by one request. The change takes four steps:
    /// [`begin_change`](Self::begin_change) begins an upload onto the object, and [`part_copy`](Self::part_copy) fills
    /// it from the object itself. [`complete`](Self::complete) makes the change under [`Changing::condition`], and
    /// [`changed`](Self::changed) reads the result.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` on GCS, where [`set_meta`](Self::set_meta) changes objects of any size.
    pub async fn changing(&self, id: &ObjectId, change: &MetaChange) -> Result<Changing, Error> {
        self.dialect.changing(id, change).await
    }

    /// Begins an upload that will replace an object with the same bytes and the changed metadata. If `checked` is true,
    /// the store keeps checksums for the upload. Not every store can copy parts into an upload with checksums.
    ///
    /// # Errors
    /// `Unsupported` on GCS, or if the store can't change an object by an upload.
    pub async fn begin_change(&self, changing: &Changing, checked: bool) -> Result<Multipart, Error> {
        self.dialect.begin_change(changing, checked).await
    }

    /// Reads the object after its change was completed. `made` is the result of [`complete`](Self::complete).
    ///
    /// # Errors
    /// `Precondition` if another writer has replaced the object. `Unsupported` if the store ignored some of the
    /// metadata.
    pub async fn changed(&self, changing: &Changing, made: &ObjectMeta) -> Result<ObjectMeta, Error> {
        self.dialect.changed(changing, made).await
    }

    /// Makes an object readable again. S3 restores it from an archive. GCS brings a soft-deleted object back: the
    /// generation that the version names, or else the newest one.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for days or a tier that don't apply to the object; `Unsupported` if the store can't
    /// restore objects.
    pub async fn restore(&self, id: &ObjectId, options: &RestoreOptions) -> Result<Restoration, Error> {
        self.dialect.restore(id, options).await
    }

    /// Returns true if [`restore`](Self::restore) brings back deleted objects, and false if it restores archived
    /// objects or none.
    pub fn restores_deleted(&self) -> bool {
        self.dialect.restores_deleted()
    }

    /// Returns the metadata of a deleted object that [`restore`](Self::restore) can bring back: in the generation that
    /// the version names, or else in the newest one.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` if [`restores_deleted`](Self::restores_deleted) is false.
    pub async fn find_deleted(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        self.dialect.find_deleted(id).await
    }

    /// Deletes an object. S3 also reports success if the object didn't exist.
    ///
    /// # Errors
    /// `NotFound` on GCS; `Precondition` if the object isn't in the state that `condition` names.
    pub async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        self.dialect.delete(id, condition).await
    }

    /// Deletes many objects of a bucket with few requests of [`delete_many_max`](Self::delete_many_max) keys each. If a
    /// [`Deletion`] names a state, the object is deleted only in that state. On GCS this needs a separate request. The
    /// results are in the order of the objects.
    pub async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        self.dialect.delete_many(bucket, objects).await
    }

    /// Returns the maximum number of objects that one request deletes.
    pub fn delete_many_max(&self) -> usize {
        self.capabilities().delete_many_max
    }
}

/// Logs that bytes arrived damaged and are sent once more. A bit may have flipped on the network.
pub(super) fn again(error: &Error) {
    tracing::info!(target: laneway_lanes::RETRY, attempt = 2, after_ms = 0, throttled = false, cause = %error, "trying again");
}

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
