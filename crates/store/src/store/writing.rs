//! Writing, copying and removing objects.

use laneway_lanes::Body;

use super::Store;
use crate::{Checksums, Condition, Deletion, Error, MetaChange, ObjectId, ObjectMeta, PutOptions};

impl Store {
    /// Writes an object in one request. What the store says it stored is compared with `sums`, and bytes that differ are sent
    /// once more; where it says nothing,
    /// the checksums that come back are empty. S3 repeats little else of what it stored: `head` tells the rest.
    ///
    /// # Errors
    /// `Precondition` when `options.condition` doesn't hold, `AlreadyExists` of [`Condition::Absent`]; `Integrity` when
    /// the store has something else.
    pub async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let put = || async { self.dialect.put(id, body.clone(), sums, options).await };
        let put = match put().await {
            // Where it wasn't refused it is stored, and under a condition stands in its own way.
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

    /// Copies an object inside the store, without its bytes coming here. What `options` leaves empty is kept (where it
    /// says something of the description, the rest of it is read from the source first).
    /// `condition` is about the source, `options.condition` about the destination. S3 copies at most 5 GiB in one
    /// call: see [`part_copy`](Self::part_copy).
    ///
    /// # Errors
    /// `NotFound`; `Precondition`, or `AlreadyExists` where only the destination has a condition; `Invalid` for a source
    /// beyond 5 GiB on S3.
    pub async fn copy(
        &self,
        from: &ObjectId,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        self.copy_known(from, None, to, options, condition).await
    }

    /// The same for a source of which this is known. S3's answer to a copy tells no size, so that a HEAD follows; it doesn't where
    /// the ETag of the copy shows that these are the bytes that are known.
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
        // With two conditions nobody says which of them failed.
        copied.map_err(|error| if condition.is_none() { error.of_write(&options.condition) } else { error })
    }

    /// Changes what an object is described by, and its storage class. GCS does so in place, but for the class, which it rewrites; S3 makes
    /// another object of the same bytes, up to 5 GiB (see [`changing`](Self::changing) for larger ones), in the state that was looked at and
    /// in no other. That has a new time and version, and an access control list of its own.
    ///
    /// # Errors
    /// `NotFound`; `Precondition` when the object was replaced meanwhile; `Unsupported` for what the store can't change, or not by one request.
    pub async fn set_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        self.dialect.set_meta(id, change).await
    }

    /// Deletes an object. S3 reports success also for one that wasn't there.
    ///
    /// # Errors
    /// `NotFound` on GCS; `Precondition` when the object isn't in the state that `condition` names.
    pub async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        self.dialect.delete(id, condition).await
    }

    /// Deletes many objects of a bucket, each in the state that is named and in no other, with few requests:
    /// [`delete_many_max`](Self::delete_many_max) keys each. GCS is sent a request for each where a state is named. The
    /// results stand in the order of the objects.
    pub async fn delete_many(&self, bucket: &str, objects: &[Deletion]) -> Vec<Result<(), Error>> {
        self.dialect.delete_many(bucket, objects).await
    }

    /// How many objects one request deletes.
    pub fn delete_many_max(&self) -> usize {
        self.capabilities().delete_many_max
    }
}

/// Says that bytes which arrived damaged are sent once more: a bit may have flipped on the way.
pub(super) fn again(error: &Error) {
    tracing::info!(target: laneway_lanes::RETRY, attempt = 2, after_ms = 0, throttled = false, cause = %error, "trying again");
}
