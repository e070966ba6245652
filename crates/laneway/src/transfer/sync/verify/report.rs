//! Writes the report of a comparison, with the columns of S3 Batch Operations' completion reports: Bucket,
//! Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage. Like those reports, it has no header
//! and URL-encodes keys, so its rows can be the manifest of a batch job.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/batch-ops-examples-reports.html>

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_store::Version;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::finding::Finding;
use crate::job::running::JobState;
use crate::listing::folder_prefix;
use crate::transfer::sync::side::{EntryPlace, SideEntry};
use crate::{Error, Location};

/// The characters that are not URL-encoded in a key.
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The number of rows that are collected before they are written.
const ROWS_MAX: usize = 1000;

/// A row, in the order of its columns.
pub(super) type ReportFields = [String; 7];

pub(super) struct ReportRow(ReportFields);

impl ReportRow {
    pub(super) fn of(at: &Location, name: &str, entry: Option<&SideEntry>, finding: &Finding) -> Self {
        let (bucket, key) = match at {
            Location::Object { bucket, key, .. } => (bucket.clone(), format!("{}{name}", folder_prefix(key))),
            _ => (String::new(), name.to_owned()),
        };
        let version = match entry.map(|entry| &entry.at) {
            Some(EntryPlace::Object(meta)) => match meta.version {
                Some(Version::Generation(generation)) => generation.to_string(),
                // S3 accepts no ETag as a version id, so leave VersionId empty.
                _ => String::new(),
            },
            _ => String::new(),
        };
        let (status, code, http) = match finding {
            Finding::Same(_) => ("succeeded", "", "200"),
            Finding::Missing => ("failed", "NoSuchKey", "404"),
            Finding::Extra => ("failed", "UnexpectedKey", "404"),
            Finding::Size(..) => ("failed", "SizeMismatch", "412"),
            Finding::Unreadable(_) => ("failed", "Unreadable", "500"),
            Finding::Etag | Finding::Checksum(_) => ("failed", "ChecksumMismatch", "412"),
        };
        let key = utf8_percent_encode(&key, &KEPT).to_string();
        Self([bucket, key, version, status.into(), code.into(), http.into(), finding.message()])
    }
}

/// Returns the path of an incomplete report.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

pub(super) struct Report {
    path: PathBuf,
    /// The report's path until it is complete. `None` for a pipe or device, which can't be renamed.
    unfinished: Option<PathBuf>,
    file: Arc<File>,
    waiting: Vec<ReportRow>,
}

impl Report {
    /// Begins a new report.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(super) async fn begin(job: &JobState, path: PathBuf) -> Result<Self, Error> {
        let at = path.clone();
        let create = move || match at.metadata() {
            Ok(there) if !there.is_file() => Ok((File::create(&at)?, None)),
            Ok(_) | Err(_) => {
                let unfinished = unfinished(&at);
                Ok((File::create(&unfinished)?, Some(unfinished)))
            }
        };
        let created: std::io::Result<_> = job.engine.files.run(create).await?;
        let (file, unfinished) = created.map_err(|e| Error::local(&path, "can't be written", e))?;
        Ok(Self { path, unfinished, file: Arc::new(file), waiting: Vec::new() })
    }

    pub(super) async fn add(&mut self, job: &JobState, row: ReportRow) -> Result<(), Error> {
        self.waiting.push(row);
        if self.waiting.len() >= ROWS_MAX { self.write(job).await } else { Ok(()) }
    }

    /// Writes the waiting rows. Renames a complete report to its final name. An incomplete report keeps the
    /// name that ends in `.unfinished`.
    pub(super) async fn end(mut self, job: &JobState, is_complete: bool) -> Result<(), Error> {
        self.write(job).await?;
        let Some(unfinished) = self.unfinished.filter(|_| is_complete) else { return Ok(()) };
        let to = self.path.clone();
        let renamed = job.engine.files.run(move || std::fs::rename(unfinished, to)).await?;
        renamed.map_err(|e| Error::local(&self.path, "can't be renamed to its final name", e))
    }

    async fn write(&mut self, job: &JobState) -> Result<(), Error> {
        let (rows, file) = (std::mem::take(&mut self.waiting), Arc::clone(&self.file));
        let write = move || {
            let mut lines = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
            for ReportRow(fields) in rows {
                lines.write_record(fields)?;
            }
            let lines = lines.into_inner().map_err(|e| std::io::Error::other(e.to_string()))?;
            (&*file).write_all(&lines)
        };
        let written = job.engine.files.run(write).await?;
        written.map_err(|e| Error::local(&self.path, "can't be written", e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_columns_of_a_completion_report() {
        let at = Location::object(laneway_store::Provider::S3, "b", "p");
        let ReportRow(fields) = ReportRow::of(&at, "a b/ü,1", None, &Finding::Missing);
        let message = "the source has it, but the destination doesn't";
        assert_eq!(fields, ["b", "p/a%20b/%C3%BC%2C1", "", "failed", "NoSuchKey", "404", message]);
    }
}
