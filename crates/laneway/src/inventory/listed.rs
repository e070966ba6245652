//! Reads the output of `ls -r --json`, which has one object per line.

use std::io::BufRead;

use laneway_store::{ObjectId, ObjectMeta, Retention, Version};
use serde::Deserialize;

use super::{BatchCollector, InventoryFlow, checksums, decoded};
use crate::location::lines::Lines;
use crate::{Error, Location};

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
pub(super) fn is_record(line: &[u8]) -> bool {
    serde_json::from_slice::<ListingRecord>(line).is_ok()
}

pub(super) fn read(input: impl BufRead, taker: &mut BatchCollector) -> Result<InventoryFlow, Error> {
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
        let meta = match meta(record, taker, line.number)? {
            Some(meta) => meta,
            None => return Err(taker.broken(line.number, "it has no size, or its URL names no object")),
        };
        if taker.take(line.number, meta).is_break() {
            return Ok(InventoryFlow::Break(()));
        }
    }
    Ok(taker.hand_on())
}

fn meta(record: ListingRecord, taker: &BatchCollector, line: u64) -> Result<Option<ObjectMeta>, Error> {
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
