//! `laneway verify`: compares two folders or prefixes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use laneway::{Location, VerifyRequest};

use crate::arguments::filters::FilterOptions;
use crate::context::Context;
use crate::exit::Exit;
use crate::job;
use crate::report::line::Wording;

/// Compare two folders or prefixes by name, size and checksum
///
/// Laneway compares objects by the checksums or ETags in the listings. Laneway reads and hashes local files. Each name that differs, or
/// that one side lacks, is an error, and the exit status is then 1. The last line names the checksums that were compared.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// Folder, or prefix such as gs://bucket/prefix
    #[arg(value_name = "SRC")]
    source: OsString,
    /// Folder or prefix to compare with SRC
    #[arg(value_name = "DST")]
    destination: OsString,
    // The option exists for users of other tools. The option has no effect, because checksums are always compared.
    #[arg(long, short, hide = true, conflicts_with = "no_read")]
    checksum: bool,
    /// Compare local files by name and size only
    ///
    /// Example: laneway verify --no-read photos gs://my-bucket/photos
    #[arg(long, alias = "size-only")]
    no_read: bool,
    #[command(flatten)]
    filters: FilterOptions,
    /// Write a row for each name to FILE, as CSV
    ///
    /// The columns are those of S3 Batch Operations' completion reports: Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode,
    /// ResultMessage. Until the comparison ends, the file is called FILE.unfinished.
    ///
    /// Example: laneway verify --report report.csv photos gs://my-bucket/photos
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Read SRC's names from an inventory instead of listing it
    ///
    /// FILE|URL is the manifest.json of S3 Inventory or of a Storage Insights report, or the output of `ls -r --json`. The inventory must
    /// be sorted by key.
    ///
    /// Example: laneway verify --source-inventory manifest.json s3://my-bucket/data gs://my-bucket/data
    #[arg(hide_short_help = true, long, value_name = "FILE|URL")]
    source_inventory: Option<OsString>,
    /// Read DST's names from an inventory instead of listing it
    ///
    /// Example: laneway verify --destination-inventory manifest.json gs://my-bucket/data s3://my-bucket/data
    #[arg(hide_short_help = true, long, value_name = "FILE|URL")]
    destination_inventory: Option<OsString>,
}

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: (" matches", " match"),
    planned: "would compare",
    moves_bytes: false,
    resume: "The comparison is incomplete",
};

impl Verify {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let (source, destination) = (Location::parse(&self.source)?, Location::parse(&self.destination)?);
        let mut request = VerifyRequest::new(source, destination);
        request = request.filter(self.filters.filter(SystemTime::now())?);
        request = request.read(!self.no_read);
        request.report = self.report;
        request.source_inventory = self.source_inventory.as_deref().map(Location::parse).transpose()?;
        request.destination_inventory =
            self.destination_inventory.as_deref().map(Location::parse).transpose()?;
        job::run(context, WORDING, |client| client.verify(request))
    }
}
