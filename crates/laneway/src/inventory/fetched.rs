//! Fetches an object of an inventory into a temporary file. The reader can move in it freely, and memory
//! stays bounded.

use std::fs::File;
use std::io::{Seek as _, Write as _};

use futures_util::{StreamExt as _, stream};
use laneway_store::{Get, GetRange, ObjectId, Store};

use crate::Error;
use crate::content::checksum::{Hashing, Wanted};
use crate::location::url;
use crate::plan::slices::SLICE_MIN;

/// Slices of [`SLICE_MIN`] under way at once. Each reserves memory from the engine's budget.
const SLICES_MAX: usize = 4;

/// Fetches an object in one version, and compares it with its store's checksum.
/// # Errors
/// The store's error; a checksum that differs; a temporary file that can't be written. Writing blocks.
pub(super) async fn fetch(store: &Store, id: &ObjectId) -> Result<File, Error> {
    let at = || url(store.provider(), id);
    let unwritable = |e| Error::local(at(), "can't be kept in a temporary file", e);
    let meta = store.head(id, None).await?;
    let version = meta.version.as_ref();
    if version.is_none() && meta.size > SLICE_MIN {
        let why = "the store reports no version, so its parts could come from different versions";
        return Err(Error::integrity(at(), why));
    }
    let memory = store.lanes().memory();
    let slice = async |start: u64| {
        let range = start..meta.size.min(start + SLICE_MIN);
        let len = range.end - range.start;
        let held = memory.reserve(len as usize).await;
        let get = Get { range: Some(GetRange::from(range)), expected: Some(len), version, ..Get::new(id) };
        let got = store.get(get).await?;
        Ok::<_, Error>((got.body, held))
    };
    let starts = (0..meta.size).step_by(SLICE_MIN as usize);
    let mut slices = std::pin::pin!(stream::iter(starts.map(slice)).buffered(SLICES_MAX));
    let mut file = tempfile::tempfile().map_err(unwritable)?;
    let mut hashing = Hashing::new(Wanted::to_compare_with(&meta.checksums, true));
    while let Some(slice) = slices.next().await {
        let (bytes, _held) = slice?;
        hashing.update(&bytes);
        file.write_all(&bytes).map_err(unwritable)?;
    }
    if hashing.len() != meta.size {
        let why = format!("{} bytes came, but the store reports {}", hashing.len(), meta.size);
        return Err(Error::integrity(at(), why));
    }
    hashing.finish().verify(&meta.checksums).map_err(|why| Error::mismatch(at(), why))?;
    file.rewind().map_err(unwritable)?;
    Ok(file)
}
