//! Changing the description of what S3 copies by no single request.

use super::{Dialect, Store};
use crate::exchange::Exchange;
use crate::gcs::Gcs;
use crate::s3::Changing;
use crate::{Error, ErrorKind, MetaChange, Multipart, ObjectId, ObjectMeta, Operation};

impl Store {
    /// Looks at an object of S3 that is too large to be changed by one request: [`begin_change`](Self::begin_change) begins an upload onto it,
    /// [`part_copy`](Self::part_copy) fills it from the object itself, [`complete`](Self::complete) makes the change under
    /// [`Changing::condition`], and [`changed`](Self::changed) reads it.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` on GCS, where [`set_meta`](Self::set_meta) changes objects of any size.
    pub async fn changing(&self, id: &ObjectId, change: &MetaChange) -> Result<Changing, Error> {
        match &self.dialect {
            Dialect::S3(s3) => s3.changing(id, change).await,
            Dialect::Gcs(gcs) => Err(needless(gcs, id)),
        }
    }

    /// Begins an upload onto an object that is described as its change says: with the store's checksums if it is to be `checked`, which not every
    /// store can fill by copying.
    ///
    /// # Errors
    /// `Unsupported` on GCS, or for a store that knows no such upload.
    pub async fn begin_change(&self, changing: &Changing, checked: bool) -> Result<Multipart, Error> {
        match &self.dialect {
            Dialect::S3(s3) => s3.begin_change(changing, checked).await,
            Dialect::Gcs(gcs) => Err(needless(gcs, &changing.found().id)),
        }
    }

    /// The object once its change was completed, which `made` is what [`complete`](Self::complete) told of.
    ///
    /// # Errors
    /// `Precondition` where it is another writer's; `Unsupported` where it is this one and the store describes it otherwise, because it passes
    /// something over.
    pub async fn changed(&self, changing: &Changing, made: &ObjectMeta) -> Result<ObjectMeta, Error> {
        match &self.dialect {
            Dialect::S3(s3) => s3.changed(changing, made).await,
            Dialect::Gcs(gcs) => Err(needless(gcs, &changing.found().id)),
        }
    }
}

fn needless(gcs: &Gcs, id: &ObjectId) -> Error {
    let message = "GCS changes objects of any size where they are";
    Exchange::object(gcs, Operation::SetMeta, id).error(ErrorKind::Unsupported, message)
}
