//! Implements `ObjectStore`. Each method calls the library.

mod convert;
mod listing;
pub(super) mod multipart;
mod reading;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use convert::{condition, e_tag, error, put_options, update_error};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use laneway::{Bucket, DeleteMany};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    RenameTargetMode, Result,
};

use super::{get_result, nothing_listed, object_store, put_result};

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
        Ok(Box::new(multipart::Upload::new(location.clone(), writer)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        reading::get(&self.bucket, location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let read = self.bucket.get_ranges(location.as_ref(), ranges.iter().cloned()).await;
        read.map_err(|e| error(location, e))
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        many(&self.bucket, locations)
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
        copy.await.map(drop).map_err(|e| convert::copy_error(from, to, e))
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let rename = self.bucket.rename(from.as_ref(), to.as_ref());
        let rename = match options.target_mode {
            RenameTargetMode::Overwrite => rename,
            RenameTargetMode::Create => rename.if_absent(),
        };
        rename.await.map(drop).map_err(|e| convert::copy_error(from, to, e))
    }
}

/// The errors that the caller's stream of locations yielded, each with the number of locations before it.
type LocationErrors = Arc<Mutex<VecDeque<(usize, Error)>>>;

struct DeleteStream {
    removed: DeleteMany,
    interjected: LocationErrors,
    given: usize,
    /// The next outcome, which waits until an earlier error of the caller's stream has been returned.
    held: Option<(String, std::result::Result<(), laneway::Error>)>,
}

/// Deletes the objects at these locations in full batches. The outcomes come in the order of the locations. If
/// the caller's stream yields an error, the error comes at the same position.
fn many(bucket: &Bucket, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
    let interjected = LocationErrors::default();
    let aside = Arc::clone(&interjected);
    let mut before = 0;
    let keys = locations.filter_map(move |location| {
        let key = match location {
            Ok(location) => {
                before += 1;
                Some(location.to_string())
            }
            Err(error) => {
                aside.lock().unwrap_or_else(PoisonError::into_inner).push_back((before, error));
                None
            }
        };
        futures_util::future::ready(key)
    });
    let removing = DeleteStream { removed: bucket.delete_many(keys), interjected, given: 0, held: None };
    stream::unfold(removing, |mut removing| async move {
        let outcome = removing.next().await?;
        Some((outcome, removing))
    })
    .boxed()
}

impl DeleteStream {
    async fn next(&mut self) -> Option<Result<Path>> {
        if self.held.is_none() {
            self.held = self.removed.next().await;
        }
        let due = self.held.as_ref().map_or(usize::MAX, |_| self.given);
        if let Some(error) = self.interjected(due) {
            return Some(Err(error));
        }
        let (key, outcome) = self.held.take()?;
        self.given += 1;
        // Each key came from a `Path`, so parsing it can't fail.
        let location = Path::parse(key).map_err(Error::from);
        Some(location.and_then(|location| match outcome {
            Ok(()) => Ok(location),
            Err(failure) => Err(error(&location, failure)),
        }))
    }

    /// Takes an error that the caller's stream yielded before the location at index `number`.
    fn interjected(&self, number: usize) -> Option<Error> {
        let mut interjected = self.interjected.lock().unwrap_or_else(PoisonError::into_inner);
        interjected.front().filter(|(before, _)| *before <= number)?;
        interjected.pop_front().map(|(_, error)| error)
    }
}
