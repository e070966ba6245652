//! Reads S3 Inventory. `manifest.json` names the data files and their columns. CSV files are compressed with
//! gzip, have no header, and URL-encode the keys. Parquet files contain the names of their columns, and don't
//! encode keys. <https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html>

use laneway_store::{InventoryFormat, ObjectId, ObjectMeta, Version};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::origin::{FileReference, InventoryOpener};
use super::rows::{InventoryRow, Rows};
use super::{BatchCollector, InventoryFlow, is_true};
use crate::Error;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct S3InventoryManifest {
    source_bucket: String,
    /// The bucket of the data files, as `arn:aws:s3:::BUCKET`.
    destination_bucket: Option<String>,
    file_format: String,
    file_schema: String,
    files: Vec<S3DataFile>,
}

#[derive(Deserialize)]
struct S3DataFile {
    key: String,
    /// The MD5 of the stored file, in hexadecimal.
    #[serde(rename = "MD5checksum")]
    md5: Option<String>,
}

enum DataFormat {
    Csv(S3Columns),
    /// Each Parquet file names its own columns.
    Parquet,
}

/// The needed columns, by their names in Parquet files.
const PARQUET_COLUMNS: [&str; 7] =
    ["bucket", "key", "is_latest", "is_delete_marker", "size", "last_modified_date", "e_tag"];

/// The positions of the needed columns.
#[derive(Clone)]
struct S3Columns {
    bucket: usize,
    key: usize,
    size: usize,
    updated: Option<usize>,
    etag: Option<usize>,
    is_latest: Option<usize>,
    is_marker: Option<usize>,
    /// True if keys are URL-encoded.
    is_encoded: bool,
}

impl S3Columns {
    /// Finds the columns by the names in `fileSchema` or in a Parquet file. Ignores case and underscores.
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, &'static str> {
        let names: Vec<String> = names.map(plain).collect();
        let at = |name: &str| names.iter().position(|known| known == name);
        Ok(Self {
            bucket: at("bucket").ok_or("it has no column Bucket")?,
            key: at("key").ok_or("it has no column Key")?,
            size: at("size").ok_or("it has no column Size")?,
            updated: at("lastmodifieddate"),
            etag: at("etag"),
            is_latest: at("islatest"),
            is_marker: at("isdeletemarker"),
            is_encoded: true,
        })
    }
}

pub(super) fn read(
    opener: &InventoryOpener,
    manifest: serde_json::Value,
    taker: &mut BatchCollector,
) -> Result<InventoryFlow, Error> {
    let refused = |why: String| Error::refused(opener.origin.name(), why);
    let manifest: S3InventoryManifest = serde_json::from_value(manifest)
        .map_err(|e| refused(format!("is not a manifest of S3 Inventory: {e}")))?;
    taker.check_bucket(1, &manifest.source_bucket)?;
    let format = match manifest.file_format.as_str() {
        "CSV" => DataFormat::Csv(
            S3Columns::of(manifest.file_schema.split(',')).map_err(|why| refused(why.to_owned()))?,
        ),
        "Parquet" => DataFormat::Parquet,
        format => {
            return Err(refused(format!(
                "its data files are {format}, but Laneway reads only CSV and Parquet"
            )));
        }
    };
    // If the inventory was copied to a store of another provider, its data files are in the manifest's
    // bucket.
    let is_where_written = opener.origin.format() == Some(InventoryFormat::S3Inventory);
    let bucket = manifest.destination_bucket.as_deref().filter(|_| is_where_written).map(bucket_of);
    for S3DataFile { key, md5 } in &manifest.files {
        let data = opener.data(&FileReference { bucket, key, md5: md5.as_deref() })?;
        taker.batch.file.clone_from(&data.name);
        let (rows, columns) = match &format {
            DataFormat::Csv(columns) => (Rows::csv(data, false), columns.clone()),
            DataFormat::Parquet => {
                let mut rows = Rows::parquet(data, &PARQUET_COLUMNS)?;
                let names = rows.names().map_err(|why| taker.broken(1, why))?;
                let columns = S3Columns::of(names.iter()).map_err(|why| taker.broken(1, why))?;
                (rows, S3Columns { is_encoded: false, ..columns })
            }
        };
        if taker.take_rows(rows, |row, taker, line| object(row, &columns, taker, line))?.is_break() {
            return Ok(InventoryFlow::Break(()));
        }
    }
    Ok(InventoryFlow::Continue(()))
}

/// Returns a column's name in lower case without underscores, so that both spellings are equal.
fn plain(name: &str) -> String {
    name.trim().replace('_', "").to_lowercase()
}

/// Returns the bucket of an ARN, or the text itself if it isn't an ARN.
fn bucket_of(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or(arn)
}

/// Returns the object of a row, or `None` for an old version or a delete marker.
fn object(
    row: &InventoryRow,
    columns: &S3Columns,
    taker: &BatchCollector,
    line: u64,
) -> Result<Option<ObjectMeta>, Error> {
    let field = |column: Option<usize>| row.text(column);
    let bucket = field(Some(columns.bucket)).unwrap_or_default();
    taker.check_bucket(line, bucket)?;
    if is_true(field(columns.is_marker))
        || field(columns.is_latest).is_some_and(|latest| !is_true(Some(latest)))
    {
        return Ok(None);
    }
    let key = field(Some(columns.key)).unwrap_or_default();
    let key = match columns.is_encoded {
        true => decoded_key(key).ok_or_else(|| taker.broken(line, "its key isn't URL-encoded UTF-8"))?,
        false if key.is_empty() => return Err(taker.broken(line, "it has no key")),
        false => key.to_owned(),
    };
    let size = field(Some(columns.size)).and_then(|size| size.parse().ok());
    let size: u64 = size.ok_or_else(|| taker.broken(line, "its size isn't a number"))?;
    let mut meta = ObjectMeta::new(ObjectId::new(bucket, key), size);
    meta.updated = row.time(columns.updated);
    if let Some(etag) = field(columns.etag).map(|etag| etag.trim_matches('"')).filter(|etag| !etag.is_empty())
    {
        meta.version = Some(Version::ETag(etag.to_owned()));
        meta.etag = Some(etag.to_owned());
    }
    Ok(Some(meta))
}

/// Decodes a key. S3 encodes it like a form field, where a plus means a space.
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
    fn a_destination_is_a_bucket_whose_arn_may_be_of_any_partition() {
        let arns = ["arn:aws:s3:::reports", "arn:aws-cn:s3:::reports", "reports"];
        assert_eq!(arns.map(bucket_of), ["reports"; 3]);
    }

    #[test]
    fn columns_are_found_by_their_names_wherever_they_are() {
        let schema = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag";
        let columns = S3Columns::of(schema.split(',')).unwrap();
        assert_eq!((columns.key, columns.size, columns.is_latest, columns.updated), (1, 5, Some(3), None));
        assert!(S3Columns::of("Bucket, Key".split(',')).is_err());
        let columns = S3Columns::of(PARQUET_COLUMNS.into_iter()).unwrap();
        assert_eq!((columns.is_marker, columns.updated, columns.etag), (Some(3), Some(5), Some(6)));
    }
}
