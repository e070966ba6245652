//! Reads inventory reports of GCS's Storage Insights. A manifest names the shards, which are the data files.
//! The shards are CSV with a header, or Parquet with columns of the same names.
//! <https://cloud.google.com/storage/docs/insights/inventory-reports>

use std::ops::ControlFlow;

use laneway_store::{ObjectId, ObjectMeta, Version};
use serde::Deserialize;

use super::origin::{FileReference, InventoryOpener};
use super::rows::{InventoryRow, Rows};
use super::{BatchCollector, InventoryFlow, checksums};
use crate::Error;

#[derive(Deserialize)]
struct GcsInventoryManifest {
    report_shards_file_names: Vec<String>,
    /// The number of objects in all shards. The number may be a JSON number, or a string of digits, because
    /// Google writes 64-bit integers to JSON as strings.
    records_processed: Option<serde_json::Value>,
}

const COLUMNS: [&str; 9] =
    ["bucket", "name", "size", "updated", "timeDeleted", "generation", "etag", "crc32c", "md5Hash"];

/// The positions of the columns that Laneway reads.
struct GcsColumns {
    bucket: usize,
    name: usize,
    size: usize,
    updated: Option<usize>,
    deleted: Option<usize>,
    generation: Option<usize>,
    etag: Option<usize>,
    crc32c: Option<usize>,
    md5: Option<usize>,
}

impl GcsColumns {
    fn of(header: &csv::StringRecord) -> Result<Self, &'static str> {
        let at = |name: &str| header.iter().position(|known| known.trim() == name);
        if at("timeDeleted").is_none() && at("generation").is_none() {
            return Err(
                "this shard has neither a column \"timeDeleted\" nor \"generation\", so old versions would look like live objects",
            );
        }
        Ok(Self {
            bucket: at("bucket").ok_or("this shard has no column \"bucket\"")?,
            name: at("name").ok_or("this shard has no column \"name\"")?,
            size: at("size").ok_or("this shard has no column \"size\"")?,
            updated: at("updated"),
            deleted: at("timeDeleted"),
            generation: at("generation"),
            etag: at("etag"),
            crc32c: at("crc32c"),
            md5: at("md5Hash"),
        })
    }
}

pub(super) fn read(
    opener: &InventoryOpener,
    manifest: serde_json::Value,
    taker: &mut BatchCollector,
) -> Result<InventoryFlow, Error> {
    let refused = |why: String| Error::refused(opener.origin.name(), why);
    let manifest: GcsInventoryManifest = serde_json::from_value(manifest)
        .map_err(|e| refused(format!("is not a manifest of an inventory report: {e}")))?;
    let announced = manifest.records_processed.as_ref().map(|count| {
        number(count).ok_or_else(|| refused(format!("its records_processed isn't a number: {count:.100}")))
    });
    let announced = announced.transpose()?;
    let mut rows_read = 0_u64;
    for shard in &manifest.report_shards_file_names {
        let data = opener.data(&FileReference { bucket: None, key: shard, md5: None })?;
        taker.batch.file.clone_from(&data.name);
        let mut rows = match shard.ends_with(".parquet") {
            true => Rows::parquet(data, &COLUMNS)?,
            false => Rows::csv(data, true),
        };
        let header = rows.names().map_err(|e| taker.broken(1, e))?;
        let columns = GcsColumns::of(&header).map_err(|why| taker.broken(1, why))?;
        match taker.take_rows(rows, |row, taker, line| object(row, &columns, taker, line))? {
            ControlFlow::Continue(read) => rows_read += read,
            ControlFlow::Break(()) => return Ok(InventoryFlow::Break(())),
        }
    }
    match announced {
        Some(announced) if rows_read < announced => {
            let why = format!("reports {announced} objects, but its shards have {rows_read}");
            Err(refused(why))
        }
        _ => Ok(InventoryFlow::Continue(())),
    }
}

/// Reads a count, written as a number or as a string of digits.
fn number(count: &serde_json::Value) -> Option<u64> {
    count.as_u64().or_else(|| count.as_str()?.parse().ok())
}

/// Returns the object of a row, or `None` if it was deleted.
fn object(
    row: &InventoryRow,
    columns: &GcsColumns,
    taker: &BatchCollector,
    line: u64,
) -> Result<Option<ObjectMeta>, Error> {
    let field = |column: Option<usize>| row.text(column);
    let bucket = field(Some(columns.bucket)).ok_or_else(|| taker.broken(line, "it has no bucket"))?;
    taker.check_bucket(line, bucket)?;
    if field(columns.deleted).is_some() {
        return Ok(None);
    }
    let name = field(Some(columns.name)).ok_or_else(|| taker.broken(line, "it has no name"))?;
    let size = field(Some(columns.size)).and_then(|size| size.parse().ok());
    let size: u64 = size.ok_or_else(|| taker.broken(line, "its size isn't a number"))?;
    let mut meta = ObjectMeta::new(ObjectId::new(bucket, name), size);
    meta.checksums = checksums(field(columns.crc32c), field(columns.md5))
        .ok_or_else(|| taker.broken(line, "a checksum is not in base64"))?;
    meta.updated = row.time(columns.updated);
    if let Some(generation) = field(columns.generation) {
        let generation =
            generation.parse().map_err(|_| taker.broken(line, "its generation isn't a number"))?;
        meta.version = Some(Version::Generation(generation));
    }
    meta.etag = field(columns.etag).map(str::to_owned);
    Ok(Some(meta))
}
