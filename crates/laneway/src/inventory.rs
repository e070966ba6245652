//! Inventories that replace a bucket's listing: S3 Inventory, GCS's Storage Insights reports, and the output
//! of `ls -r --json`, which may be compressed. Inventories are read as they arrive, in bounded memory.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod gcs;
mod origin;
mod parquet;
mod rows;
mod s3;

use std::io::{BufRead, Cursor, Read as _};
use std::ops::ControlFlow;

use laneway_store::{
    Checksums, InventoryFormat, ObjectId, ObjectMeta, Provider, Retention, Version, capabilities_of,
};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::content::encoding::decompressed;
use crate::engine::settings::ClientState;
use crate::location::lines::{LINE_MAX, Lines};
use crate::{Error, Location};
use origin::{InventoryOpener, InventorySource};
use rows::{InventoryRow, Rows};

const BATCH_MAX: usize = 1000;
/// The number of batches that may wait for the receiver. Beyond this number, the reading thread waits.
const BATCHES_WAITING_MAX: usize = 4;
/// The maximum size in bytes of an inventory's manifest. Such a manifest can name some 200,000 data files.
const MANIFEST_MAX: u64 = 64 << 20;

/// Objects from one file of an inventory, each with the number of its line.
#[derive(Debug)]
pub(crate) struct InventoryBatch {
    pub(crate) file: String,
    pub(crate) objects: Vec<(u64, ObjectMeta)>,
}

/// The bucket that the inventory must describe, and the prefix of the wanted keys.
#[derive(Clone, Debug)]
pub(crate) struct InventoryScope {
    pub(crate) provider: Provider,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
}

/// An inventory that is being read. Dropping it ends the reading.
#[derive(Debug)]
pub(crate) struct Inventory {
    batches: mpsc::Receiver<Result<Option<InventoryBatch>, Error>>,
    name: String,
}

/// The channel for batches. `None` marks the end; if the channel closes without it, the reading thread has
/// died.
type BatchSender = mpsc::Sender<Result<Option<InventoryBatch>, Error>>;

impl Inventory {
    /// Begins to read an inventory. Must be called in a task of the tokio runtime that runs the store's
    /// calls.
    ///
    /// # Errors
    /// If no thread can be started, or the inventory's store can't be used. [`next`](Self::next) returns
    /// reading errors.
    pub(crate) fn start(at: &Location, engine: &ClientState, place: InventoryScope) -> Result<Self, Error> {
        let (out, batches) = mpsc::channel(BATCHES_WAITING_MAX);
        let origin = InventorySource::of(at, |provider| engine.store(provider))?;
        let name = origin.name();
        let at = name.clone();
        let opener = InventoryOpener::new(origin, out.clone());
        let read = move || {
            let mut taker = BatchCollector {
                place,
                out,
                batch: InventoryBatch { file: String::new(), objects: Vec::new() },
            };
            match read(&opener, &mut taker).map(|ended| ended.is_break()) {
                // Sending fails only if the receiver is gone.
                Ok(true) => {}
                Ok(false) => drop(taker.out.blocking_send(Ok(None))),
                Err(error) => drop(taker.out.blocking_send(Err(error))),
            }
        };
        std::thread::Builder::new()
            .name("laneway-inventory".into())
            .spawn(read)
            .map_err(|e| Error::local(at, "can't be read, because no thread could be started", e))?;
        Ok(Self { batches, name })
    }

    /// Returns the next objects, or `None` at the end.
    ///
    /// # Errors
    /// If a file can't be read, belongs to another bucket, or has a broken line. After an error, no more
    /// objects follow.
    pub(crate) async fn next(&mut self) -> Result<Option<InventoryBatch>, Error> {
        match self.batches.recv().await {
            Some(batch) => batch,
            None => Err(Error::cancelled(&self.name)),
        }
    }
}

/// `Break` means that the receiver is gone.
type InventoryFlow = ControlFlow<()>;

/// Collects the objects of an inventory's lines into batches.
struct BatchCollector {
    place: InventoryScope,
    out: BatchSender,
    batch: InventoryBatch,
}

impl BatchCollector {
    /// Adds an object to the batch, if its key has the wanted prefix.
    fn take(&mut self, line: u64, meta: ObjectMeta) -> InventoryFlow {
        if meta.id.key.starts_with(&self.place.prefix) {
            self.batch.objects.push((line, meta));
        }
        if self.batch.objects.len() < BATCH_MAX { InventoryFlow::Continue(()) } else { self.hand_on() }
    }

    /// Adds the wanted objects of a data file's rows. Returns the number of rows, if the file was read to its
    /// end.
    fn take_rows(
        &mut self,
        mut rows: Rows,
        object: impl Fn(&InventoryRow, &Self, u64) -> Result<Option<ObjectMeta>, Error>,
    ) -> Result<ControlFlow<(), u64>, Error> {
        let (mut row, mut read) = (InventoryRow::default(), 0);
        while let Some(line) = rows.next(&mut row).map_err(|(line, why)| self.broken(line, why))? {
            read += 1;
            let Some(meta) = object(&row, self, line)? else { continue };
            if self.take(line, meta).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(match self.hand_on() {
            ControlFlow::Continue(()) => ControlFlow::Continue(read),
            ControlFlow::Break(()) => ControlFlow::Break(()),
        })
    }

    fn hand_on(&mut self) -> InventoryFlow {
        let file = self.batch.file.clone();
        let batch = std::mem::replace(&mut self.batch, InventoryBatch { file, objects: Vec::new() });
        if batch.objects.is_empty() || self.out.blocking_send(Ok(Some(batch))).is_ok() {
            return InventoryFlow::Continue(());
        }
        InventoryFlow::Break(())
    }

    /// Returns the error for a line that can't be parsed.
    fn broken(&self, line: u64, why: impl std::fmt::Display) -> Error {
        Error::refused(
            format!("{}:{line}", self.batch.file),
            format!("this line of the inventory is broken: {why}"),
        )
    }

    /// Returns the error for a listing that can't serve as an inventory.
    fn unfit(&self, line: u64, why: &str) -> Error {
        Error::refused(format!("{}:{line}", self.batch.file), format!("this listing {why}"))
    }

    fn check_bucket(&self, line: u64, bucket: &str) -> Result<(), Error> {
        let expected = &self.place.bucket;
        match bucket == expected {
            true => Ok(()),
            false => {
                let why = format!("this inventory describes bucket {bucket}, not {expected}");
                Err(Error::refused(format!("{}:{line}", self.batch.file), why))
            }
        }
    }
}

fn read(opener: &InventoryOpener, taker: &mut BatchCollector) -> Result<InventoryFlow, Error> {
    taker.batch.file = opener.origin.name();
    let failed = |e| Error::local(opener.origin.name(), "can't be read as an inventory", e);
    let mut input = decompressed(opener.named()?).map_err(failed)?;
    let mut first = Vec::new();
    input.by_ref().take(LINE_MAX).read_until(b'\n', &mut first).map_err(failed)?;
    if is_listing_record(&first) {
        return read_listing(Cursor::new(first).chain(input), taker);
    }
    let mut whole = first;
    input.take(MANIFEST_MAX).read_to_end(&mut whole).map_err(failed)?;
    let manifest: serde_json::Value = serde_json::from_slice(&whole).map_err(|_| {
        let why = "is neither an inventory's manifest.json nor the output of ls -r --json";
        Error::refused(opener.origin.name(), why)
    })?;
    match capabilities_of(taker.place.provider).and_then(|can| can.inventories) {
        Some(InventoryFormat::S3Inventory) => s3::read(opener, manifest, taker),
        Some(InventoryFormat::StorageInsights) => gcs::read(opener, manifest, taker),
        _ => Err(Error::refused(
            opener.origin.name(),
            "this is the manifest.json of a cloud's inventory; for this store, give the output of ls -r --json",
        )),
    }
}

/// Decodes a checksum from base64, the stores' notation.
fn decoded<const N: usize>(text: &str) -> Option<[u8; N]> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()?.try_into().ok()
}

fn checksums(crc32c: Option<&str>, md5: Option<&str>) -> Option<Checksums> {
    let mut sums = Checksums::default();
    if let Some(text) = crc32c.filter(|text| !text.is_empty()) {
        sums.crc32c = Some(u32::from_be_bytes(decoded(text)?));
    }
    if let Some(text) = md5.filter(|text| !text.is_empty()) {
        sums.md5 = Some(decoded(text)?);
    }
    Some(sums)
}

fn is_true(field: Option<&str>) -> bool {
    field.is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// A line of the output of `ls -r --json`, which describes one object.
#[derive(Deserialize)]
struct ListingRecord {
    kind: String,
    #[serde(default)]
    url: String,
    size: Option<u64>,
    updated: Option<String>,
    generation: Option<u64>,
    etag: Option<String>,
    crc32c: Option<String>,
    crc64nvme: Option<String>,
    md5: Option<String>,
    #[serde(default)]
    archived: bool,
    is_latest: Option<bool>,
    #[serde(default)]
    delete_marker: bool,
}

/// Returns whether a line is a record of `ls --json`.
fn is_listing_record(line: &[u8]) -> bool {
    serde_json::from_slice::<ListingRecord>(line).is_ok()
}

fn read_listing(input: impl BufRead, taker: &mut BatchCollector) -> Result<InventoryFlow, Error> {
    let mut lines = Lines::new(input);
    let file = taker.batch.file.clone();
    while let Some(line) =
        lines.next().map_err(|e| Error::local(&file, "can't be read as an inventory", e))?
    {
        let record: ListingRecord = match serde_json::from_slice(&line.bytes) {
            Ok(record) => record,
            Err(e) => return Err(taker.broken(line.number, e)),
        };
        match record.kind.as_str() {
            "object" if record.is_latest.is_some() || record.delete_marker => {
                return Err(taker.unfit(line.number, "was made with -a, which adds old versions"));
            }
            "object" => {}
            "prefix" | "bucket" => {
                return Err(taker.unfit(
                    line.number,
                    "was not made with -r, so it lacks the objects below this prefix or bucket",
                ));
            }
            "error" => return Err(taker.broken(line.number, "the listing has failed here")),
            "usage" | "stats" | "warning" => continue,
            kind => return Err(taker.broken(line.number, format!("its kind {kind:?} is unknown"))),
        }
        let meta = match listed_meta(record, taker, line.number)? {
            Some(meta) => meta,
            None => return Err(taker.broken(line.number, "it has no size, or its URL names no object")),
        };
        if taker.take(line.number, meta).is_break() {
            return Ok(InventoryFlow::Break(()));
        }
    }
    Ok(taker.hand_on())
}

fn listed_meta(
    record: ListingRecord,
    taker: &BatchCollector,
    line: u64,
) -> Result<Option<ObjectMeta>, Error> {
    // Without `-a`, no URL names a version, so a `#` is a part of the key.
    let at = record.url.parse().map(Location::as_written);
    let (Ok(Location::Object { provider, bucket, key }), Some(size)) = (at, record.size) else {
        return Ok(None);
    };
    taker.check_bucket(line, &bucket)?;
    let Some(mut sums) = checksums(record.crc32c.as_deref(), record.md5.as_deref()) else { return Ok(None) };
    if let Some(text) = &record.crc64nvme {
        let Some(sum) = decoded(text) else { return Ok(None) };
        sums.crc64nvme = Some(u64::from_be_bytes(sum));
    }
    if provider != taker.place.provider || key.is_empty() {
        return Ok(None);
    }
    let mut meta = ObjectMeta::new(ObjectId::new(bucket, key), size);
    meta.checksums = sums;
    meta.updated = record.updated.as_deref().and_then(Retention::time);
    meta.version = match (record.generation, &record.etag) {
        (Some(generation), _) => Some(Version::Generation(generation)),
        (None, Some(etag)) => Some(Version::ETag(etag.clone())),
        (None, None) => None,
    };
    meta.etag = record.etag;
    meta.archived = record.archived;
    Ok(Some(meta))
}
