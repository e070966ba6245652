//! S3 Inventory: `manifest.json` names the data files and their columns; those are gzip files of CSV without a header, keys URL-encoded.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html>

use laneway_store::{ObjectId, ObjectMeta, Provider, Retention, Version};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::origin::{Named, Opener};
use super::{Flow, Taker, is_true};
use crate::Error;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    source_bucket: String,
    /// Where the data files are, as `arn:aws:s3:::BUCKET`.
    destination_bucket: Option<String>,
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

pub(super) fn read(opener: &Opener, manifest: serde_json::Value, taker: &mut Taker) -> Result<Flow, Error> {
    let refused = |why: String| Error::refused(opener.origin.name(), why);
    let manifest: Manifest = serde_json::from_value(manifest)
        .map_err(|e| refused(format!("is no manifest of S3 Inventory: {e}")))?;
    taker.check_bucket(1, &manifest.source_bucket)?;
    if manifest.file_format != "CSV" {
        let format = &manifest.file_format;
        return Err(refused(format!("its data files are {format}, and CSV is what can be read")));
    }
    let columns = Columns::of(&manifest.file_schema).map_err(|why| refused(why.to_owned()))?;
    // A copy of it in another store lies where its manifest does.
    let is_s3 = opener.origin.provider() == Some(Provider::S3);
    let bucket = manifest.destination_bucket.as_deref().filter(|_| is_s3).map(bucket_of);
    for DataFile { key, md5 } in &manifest.files {
        let data = opener.data(&Named { bucket, key, md5: md5.as_deref() })?;
        taker.batch.file.clone_from(&data.name);
        let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(data.decoded());
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

/// The bucket of an ARN, or what is none.
fn bucket_of(arn: &str) -> &str {
    arn.rsplit(':').next().unwrap_or(arn)
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
    fn a_destination_is_a_bucket_whose_arn_may_be_of_any_partition() {
        let arns = ["arn:aws:s3:::reports", "arn:aws-cn:s3:::reports", "reports"];
        assert_eq!(arns.map(bucket_of), ["reports"; 3]);
    }

    #[test]
    fn columns_are_found_by_their_names_wherever_they_are() {
        let columns = Columns::of("Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag").unwrap();
        assert_eq!((columns.key, columns.size, columns.is_latest, columns.updated), (1, 5, Some(3), None));
        assert!(Columns::of("Bucket, Key").is_err());
    }
}
