//! Implements `ObjectStore`. Each method calls the library.

mod attributes;
mod delete;
mod errors;
mod listing;
pub(super) mod multipart;
mod names;
mod paging;
mod reading;
mod upload;

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use laneway::Bucket;

use super::{get_result, nothing_listed, object_store, put_result};
use attributes::put_options;
use errors::{error, update_error};
use names::{condition, e_tag};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, RenameTargetMode, Result,
};

/// Implements [`ObjectStore`] for a bucket, or for the keys of a bucket below a prefix. Clones are cheap, and share the
/// client and its connections.
#[derive(Clone)]
pub struct LanewayStore {
    bucket: Bucket,
}

impl LanewayStore {
    /// Returns a store for this bucket. Its locations are keys below the bucket's prefix.
    pub fn new(bucket: Bucket) -> Self {
        Self { bucket }
    }

    /// Returns the bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }
}

impl fmt::Display for LanewayStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Laneway({})", self.bucket.url())
    }
}

impl fmt::Debug for LanewayStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LanewayStore").field(&self.bucket.url()).finish()
    }
}

#[async_trait]
impl ObjectStore for LanewayStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let PutOptions { mode, tags, attributes, .. } = opts;
        let mut options = put_options(self.bucket.capabilities(), attributes, &tags)?;
        let is_update = matches!(mode, PutMode::Update(_));
        options.condition = condition(&self.bucket, location, mode)?;
        let written = self.bucket.put(location.as_ref(), Bytes::from(payload)).options(options).await;
        let written = written.map_err(|e| match is_update {
            true => update_error(location, e),
            false => error(location, e),
        })?;
        Ok(put_result(e_tag(written.version.as_ref())))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let PutMultipartOptions { tags, attributes, .. } = opts;
        let writer = self.bucket.writer(location.as_ref()).options(put_options(
            self.bucket.capabilities(),
            attributes,
            &tags,
        )?);
        Ok(Box::new(upload::Upload::new(location.clone(), writer)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        reading::get(&self.bucket, location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let read = self.bucket.get_ranges(location.as_ref(), ranges.iter().cloned()).await;
        read.map_err(|e| error(location, e))
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        delete::many(&self.bucket, locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        listing::objects(self.bucket.list(&listing::below(prefix))).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        listing::objects(self.bucket.list(&listing::below(prefix)).start_after(offset.as_ref())).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        listing::directory(self.bucket.list_dir(&listing::below(prefix))).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let copy = self.bucket.copy(from.as_ref(), to.as_ref());
        let copy = match options.mode {
            CopyMode::Overwrite => copy,
            CopyMode::Create => copy.if_absent(),
        };
        copy.await.map(drop).map_err(|e| errors::copy_error(from, to, e))
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let rename = self.bucket.rename(from.as_ref(), to.as_ref());
        let rename = match options.target_mode {
            RenameTargetMode::Overwrite => rename,
            RenameTargetMode::Create => rename.if_absent(),
        };
        rename.await.map(drop).map_err(|e| errors::copy_error(from, to, e))
    }
}
