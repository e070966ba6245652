//! Finds and opens an inventory and the files that its manifest names.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use futures_util::{StreamExt as _, stream};
use laneway_lanes::tally::{self, Tally};
use laneway_store::{Get, InventoryFormat, ObjectId, Provider, Store};
use md5::{Digest as _, Md5};
use tokio::runtime::Handle;

use super::BatchSender;
use crate::content::checksum::{ChecksumHasher, ChecksumSet};
use crate::content::read::collect;
use crate::location::url;
use crate::plan::slices::SLICE_MIN;
use crate::{Error, Location};

/// The number of bytes that are read at a time to compute a data file's checksum.
const BUFFER_LEN: usize = 256 << 10;

/// The inventory that the user named: a local file, or an object.
#[derive(Clone, Debug)]
pub(super) enum InventorySource {
    File(PathBuf),
    Object(Box<(Store, ObjectId)>),
}

impl InventorySource {
    /// Returns the inventory at a location. `store` returns the store of a provider.
    ///
    /// # Errors
    /// The errors of `store`, or `ErrorKind::Usage` for a stream.
    pub(super) fn of<'a>(
        at: &Location,
        store: impl FnOnce(Provider) -> Result<&'a Store, Error>,
    ) -> Result<Self, Error> {
        match (at, at.as_object()) {
            (Location::Local(path), _) => Ok(Self::File(path.clone())),
            (_, Some((provider, id))) => Ok(Self::Object(Box::new((store(provider)?.clone(), id)))),
            (_, None) => Err(Error::usage(at.to_string(), "an inventory must be a file or an object")),
        }
    }

    /// Returns the format in which the provider of the inventory's store writes inventories. `None` for a
    /// local file.
    pub(super) fn format(&self) -> Option<InventoryFormat> {
        match self {
            Self::File(_) => None,
            Self::Object(object) => object.0.capabilities().inventories,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Object(object) => url(object.0.provider(), &object.1),
        }
    }
}

pub(super) struct FileReference<'a> {
    /// The file's bucket, if the manifest names it.
    pub(super) bucket: Option<&'a str>,
    /// The file's full key, or only its file name if it lies in the manifest's folder.
    pub(super) key: &'a str,
    /// The MD5 of the stored file, in hexadecimal.
    pub(super) md5: Option<&'a str>,
}

/// A data file that can be read in any order.
pub(super) struct InventoryFile {
    pub(super) name: String,
    pub(super) file: File,
}

impl InventoryFile {
    /// Returns the file's bytes, decompressed if the name ends in `.gz`.
    pub(super) fn decoded(self) -> Box<dyn Read> {
        match self.name.ends_with(".gz") {
            true => Box::new(MultiGzDecoder::new(BufReader::new(self.file))),
            false => Box::new(self.file),
        }
    }

    /// Checks the file's MD5 against the manifest, before anything else reads the file.
    ///
    /// # Errors
    /// Fails if the MD5 differs. The file is then incomplete, or not the one that the manifest describes.
    fn check_md5(&mut self, expected: &str) -> Result<(), Error> {
        let unreadable = |e| Error::local(&self.name, "can't be read as an inventory", e);
        let mut buffer = vec![0; BUFFER_LEN];
        let mut hash = Md5::new();
        loop {
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(unreadable(e)),
            }
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if !found.eq_ignore_ascii_case(expected) {
            let why = format!(
                "its MD5 is {found}, but the inventory's manifest says {expected}: the file is damaged or incomplete"
            );
            return Err(Error::integrity(&self.name, why));
        }
        self.file.rewind().map_err(unreadable)
    }
}

/// Opens the files of an inventory. If a file is an object in a store, fetches the object into a temporary
/// file first. Blocks the thread.
pub(super) struct InventoryOpener {
    pub(super) origin: InventorySource,
    runtime: Handle,
    tally: Option<Tally>,
    /// The channel for batches. When the receiver is gone, the channel closes, and fetching ends.
    out: BatchSender,
}

impl InventoryOpener {
    /// Returns an opener of the inventory's files. Must be called in a task of the tokio runtime that runs
    /// the store's calls. The requests are added to the caller's [`Tally`].
    pub(super) fn new(origin: InventorySource, out: BatchSender) -> Self {
        Self { origin, runtime: Handle::current(), tally: tally::current(), out }
    }

    /// Opens the file that the user named.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn named(&self) -> Result<File, Error> {
        match &self.origin {
            InventorySource::File(path) => {
                File::open(path).map_err(|e| Error::local(path, "can't be read as an inventory", e))
            }
            InventorySource::Object(object) => self.fetch(&object.0, &object.1),
        }
    }

    /// Opens a data file. If the manifest is local, looks for the file in the manifest's folder, and in a
    /// folder `data` inside or next to that folder. Also looks for the file's full key below each folder
    /// above the manifest, in case the whole bucket was copied. If the manifest is in a store, the file lies
    /// where the manifest says.
    ///
    /// # Errors
    /// If the file doesn't exist, can't be read, or differs from the manifest's description.
    pub(super) fn data(&self, named: &FileReference<'_>) -> Result<InventoryFile, Error> {
        let mut data = match &self.origin {
            InventorySource::File(manifest) => {
                let path = beside(manifest, named.key)?;
                let file = File::open(&path).map_err(|e| Error::local(&path, "can't be read", e))?;
                InventoryFile { name: path.display().to_string(), file }
            }
            InventorySource::Object(object) => {
                let (store, manifest) = &**object;
                let id = in_store(manifest, named);
                let file = self.fetch(store, &id)?;
                InventoryFile { name: url(store.provider(), &id), file }
            }
        };
        if let Some(md5) = named.md5 {
            data.check_md5(md5)?;
        }
        Ok(data)
    }

    fn fetch(&self, store: &Store, id: &ObjectId) -> Result<File, Error> {
        let fetched = tally::scope(self.tally.clone(), fetch(store, id));
        self.runtime.block_on(async {
            tokio::select! {
                fetched = fetched => fetched,
                () = self.out.closed() => Err(Error::cancelled(url(store.provider(), id))),
            }
        })
    }
}

/// Returns the id of a data file in a store. A key with a slash is an object's full key in the bucket that
/// the manifest names. A name without a slash is that of an object in the manifest's folder.
fn in_store(manifest: &ObjectId, named: &FileReference<'_>) -> ObjectId {
    match named.key.contains('/') {
        true => ObjectId::new(named.bucket.unwrap_or(&manifest.bucket), named.key),
        false => {
            let folder = manifest.key.rfind('/').map_or("", |slash| &manifest.key[..=slash]);
            ObjectId::new(&manifest.bucket, format!("{folder}{}", named.key))
        }
    }
}

/// Returns the path of a data file of a local manifest.
///
/// # Errors
/// If the file doesn't exist.
fn beside(manifest: &Path, key: &str) -> Result<PathBuf, Error> {
    let name = key.rsplit('/').next().unwrap_or(key);
    let folder = manifest.parent().unwrap_or(Path::new(""));
    let beside =
        [folder.join(name), folder.join("data").join(name), folder.join("..").join("data").join(name)];
    let above = folder.ancestors().map(|above| above.join(key.trim_start_matches('/')));
    beside.into_iter().chain(above).find(|path| path.is_file()).ok_or_else(|| {
        let why = format!("the data file {key} of this inventory was not found near this manifest");
        Error::not_found(manifest.display().to_string(), why)
    })
}

/// The maximum number of concurrent slices of [`SLICE_MIN`] bytes. Each slice reserves memory from the
/// engine's budget.
const SLICES_MAX: usize = 4;

/// Fetches one version of an object into a temporary file, and compares it with the store's checksum. A file
/// lets the reader seek, and keeps memory bounded.
///
/// # Errors
/// The store's error. Also an error if the checksum differs, or the temporary file can't be written. Writing
/// blocks.
async fn fetch(store: &Store, id: &ObjectId) -> Result<File, Error> {
    let at = || url(store.provider(), id);
    let unwritable = |e| Error::local(at(), "can't be kept in a temporary file", e);
    let meta = store.head(id, None).await?;
    let version = meta.version.as_ref();
    if version.is_none() && meta.size > SLICE_MIN {
        let why =
            "the store reports no version of this file, so Laneway could mix bytes of different versions";
        return Err(Error::integrity(at(), why));
    }
    let memory = store.lanes().memory();
    let slice = async |start: u64| {
        let range = start..meta.size.min(start + SLICE_MIN);
        let len = range.end - range.start;
        let held = memory.reserve(len as usize).await;
        let get = Get { expected: Some(len), version, ..Get::new(id) };
        Ok::<_, Error>((collect(store, range.into(), get).await?.bytes, held))
    };
    let starts = (0..meta.size).step_by(SLICE_MIN as usize);
    let mut slices = std::pin::pin!(stream::iter(starts.map(slice)).buffered(SLICES_MAX));
    let mut file = tempfile::tempfile().map_err(unwritable)?;
    let mut hashing = ChecksumHasher::new(ChecksumSet::to_compare_with(&meta.checksums, true));
    while let Some(slice) = slices.next().await {
        let (bytes, _held) = slice?;
        hashing.update(&bytes);
        file.write_all(&bytes).map_err(unwritable)?;
    }
    if hashing.len() != meta.size {
        let why = format!("{} bytes arrived, but the store reports {}", hashing.len(), meta.size);
        return Err(Error::integrity(at(), why));
    }
    hashing.finish().verify(&meta.checksums).map_err(|why| Error::mismatch(at(), why))?;
    file.rewind().map_err(unwritable)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_destination_buckets_and_a_name_lies_beside_the_manifest() {
        let manifest = ObjectId::new("reports", "x/b/config/2026-11-06T21-32Z/manifest.json");
        let at = |bucket, key| {
            let id = in_store(&manifest, &FileReference { bucket, key, md5: None });
            (id.bucket, id.key)
        };
        let id = |bucket: &str, key: &str| (bucket.to_owned(), key.to_owned());
        assert_eq!(at(Some("other"), "x/data/1.csv.gz"), id("other", "x/data/1.csv.gz"));
        assert_eq!(at(None, "x/data/1.csv.gz"), id("reports", "x/data/1.csv.gz"));
        assert_eq!(at(None, "shard_0.csv"), id("reports", "x/b/config/2026-11-06T21-32Z/shard_0.csv"));
    }
}
