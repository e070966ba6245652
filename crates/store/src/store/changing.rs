//! Changes the metadata of S3 objects that are too large for a single copy request.

use super::Store;
use crate::{Changing, Error, MetaChange, Multipart, ObjectId, ObjectMeta};

impl Store {
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
    /// `Unsupported` on GCS, or if the store has no such upload.
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
}
