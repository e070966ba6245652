//! Changing the description of what S3 copies by no single request.

use super::Store;
use crate::{Changing, Error, MetaChange, Multipart, ObjectId, ObjectMeta};

impl Store {
    /// Looks at an object of S3 that is too large to be changed by one request: [`begin_change`](Self::begin_change) begins an upload onto it,
    /// [`part_copy`](Self::part_copy) fills it from the object itself, [`complete`](Self::complete) makes the change under
    /// [`Changing::condition`], and [`changed`](Self::changed) reads it.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` on GCS, where [`set_meta`](Self::set_meta) changes objects of any size.
    pub async fn changing(&self, id: &ObjectId, change: &MetaChange) -> Result<Changing, Error> {
        self.dialect.changing(id, change).await
    }

    /// Begins an upload onto an object that is described as its change says: with the store's checksums if it is to be `checked`, which not every
    /// store can fill by copying.
    ///
    /// # Errors
    /// `Unsupported` on GCS, or for a store that knows no such upload.
    pub async fn begin_change(&self, changing: &Changing, checked: bool) -> Result<Multipart, Error> {
        self.dialect.begin_change(changing, checked).await
    }

    /// The object once its change was completed, which `made` is what [`complete`](Self::complete) told of.
    ///
    /// # Errors
    /// `Precondition` where it is another writer's; `Unsupported` where it is this one and the store describes it otherwise, because it passes
    /// something over.
    pub async fn changed(&self, changing: &Changing, made: &ObjectMeta) -> Result<ObjectMeta, Error> {
        self.dialect.changed(changing, made).await
    }
}
