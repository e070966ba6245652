//! S3 Inventory: `manifest.json` names the data files and their columns; those are gzip files of CSV without a header, keys URL-encoded.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html>

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use laneway_store::{ObjectId, ObjectMeta, Retention, Version};
use md5::{Digest as _, Md5};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::{Flow, Taker, data_file, is_true};
use crate::Error;

/// What of a data file is read at once to be compared.
const BUFFER_LEN: usize = 256 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    source_bucket: String,
    file_format: String,
    file_schema: String,
    files: Vec<DataFile>,
}

#[derive(Deserialize)]
struct DataFile {
    key: String,
    /// Of the file as it lies in the store, in hexadecimal digits.
    #[serde(rename = "MD5checksum")]
    md5: Option<String>,
}

/// Where the columns are that matter.
struct Columns {
    bucket: usize,
    key: usize,
    size: usize,
    updated: Option<usize>,
    etag: Option<usize>,
    is_latest: Option<usize>,
    is_marker: Option<usize>,
}

impl Columns {
    fn of(schema: &str) -> Result<Self, &'static str> {
        let names: Vec<&str> = schema.split(',').map(str::trim).collect();
        let at = |name: &str| names.iter().position(|known| *known == name);
        Ok(Self {
            bucket: at("Bucket").ok_or("its fileSchema has no Bucket")?,
            key: at("Key").ok_or("its fileSchema has no Key")?,
            size: at("Size").ok_or("its fileSchema has no Size")?,
            updated: at("LastModifiedDate"),
            etag: at("ETag"),
            is_latest: at("IsLatest"),
            is_marker: at("IsDeleteMarker"),
        })
    }
}

pub(super) fn read(path: &Path, manifest: serde_json::Value, taker: &mut Taker) -> Result<Flow, Error> {
    let refused = |why: String| Error::refused(path.display().to_string(), why);
    let manifest: Manifest = serde_json::from_value(manifest)
        .map_err(|e| refused(format!("is no manifest of S3 Inventory: {e}")))?;
    taker.check_bucket(1, &manifest.source_bucket)?;
    if manifest.file_format != "CSV" {
        let format = &manifest.file_format;
        return Err(refused(format!("its data files are {format}, and CSV is what can be read")));
    }
    let columns = Columns::of(&manifest.file_schema).map_err(|why| refused(why.to_owned()))?;
    for file in &manifest.files {
        let (at, input) = data_file(path, &file.key)?;
        taker.batch.file = at.display().to_string();
        if let Some(expected) = &file.md5 {
            check_md5(&at, expected)?;
        }
        let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(input);
        let mut row = csv::StringRecord::new();
        loop {
            let line = rows.position().line();
            match rows.read_record(&mut row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => return Err(taker.broken(line, e)),
            }
            let Some(meta) = object(&row, &columns, taker, line)? else { continue };
            if taker.take(line, meta).is_break() {
                return Ok(Flow::Break(()));
            }
        }
        if taker.hand_on().is_break() {
            return Ok(Flow::Break(()));
        }
    }
    Ok(Flow::Continue(()))
}

/// Compares a data file with its checksum before anything of it is gone by.
///
/// # Errors
/// Where it is another file, or only a part of it.
fn check_md5(at: &Path, expected: &str) -> Result<(), Error> {
    let unreadable = |e| Error::local(at, "can't be read as an inventory", e);
    let mut file = File::open(at).map_err(unreadable)?;
    let mut buffer = vec![0; BUFFER_LEN];
    let mut hash = Md5::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(unreadable(e)),
        }
    }
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    match found.eq_ignore_ascii_case(expected) {
        true => Ok(()),
        false => {
            let why = format!(
                "its MD5 is {found}, and the inventory's manifest says {expected}: it is damaged or not whole"
            );
            Err(Error::integrity(at.display().to_string(), why))
        }
    }
}

/// The object of a row; `None` for an old version or a delete marker.
fn object(
    row: &csv::StringRecord,
    columns: &Columns,
    taker: &Taker,
    line: u64,
) -> Result<Option<ObjectMeta>, Error> {
    let field = |column: Option<usize>| column.and_then(|column| row.get(column));
    let bucket = field(Some(columns.bucket)).unwrap_or_default();
    taker.check_bucket(line, bucket)?;
    if is_true(field(columns.is_marker))
        || field(columns.is_latest).is_some_and(|latest| !is_true(Some(latest)))
    {
        return Ok(None);
    }
    let encoded = field(Some(columns.key)).unwrap_or_default();
    let key = decoded_key(encoded).ok_or_else(|| taker.broken(line, "its key is no URL-encoded UTF-8"))?;
    let size = field(Some(columns.size)).and_then(|size| size.parse().ok());
    let size: u64 = size.ok_or_else(|| taker.broken(line, "its size is no number"))?;
    let mut meta = ObjectMeta::new(ObjectId::new(bucket, key), size);
    meta.updated = field(columns.updated).and_then(Retention::time);
    if let Some(etag) = field(columns.etag).map(|etag| etag.trim_matches('"')).filter(|etag| !etag.is_empty())
    {
        meta.version = Some(Version::ETag(etag.to_owned()));
        meta.etag = Some(etag.to_owned());
    }
    Ok(Some(meta))
}

/// A key as the service encodes it: like a form's field, so that a plus is a space.
fn decoded_key(encoded: &str) -> Option<String> {
    let spaced = encoded.replace('+', " ");
    let key = percent_decode_str(&spaced).decode_utf8().ok()?;
    (!key.is_empty()).then(|| key.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_as_the_service_encodes_them() {
        assert_eq!(decoded_key("a+b/%C3%BC%2B%25").as_deref(), Some("a b/ü+%"));
        assert_eq!((decoded_key("%FF"), decoded_key("")), (None, None));
    }

    #[test]
    fn columns_are_found_by_their_names_wherever_they_are() {
        let columns = Columns::of("Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag").unwrap();
        assert_eq!((columns.key, columns.size, columns.is_latest, columns.updated), (1, 5, Some(3), None));
        assert!(Columns::of("Bucket, Key").is_err());
    }
}
