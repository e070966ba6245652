//! `laneway verify`: two places compared.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use laneway::{Location, VerifyRequest};

use crate::arguments::filters::Filters;
use crate::context::Context;
use crate::exit::Exit;
use crate::job;
use crate::report::line::Wording;

/// Compare two folders or prefixes
///
/// Names, sizes and checksums are compared. Objects tell their checksums (or ETags) in listings; local files are read and hashed. A name that
/// differs, is missing from DST or is only there is an error of its own, and the exit status is 1 then. The last line says by what the names
/// were compared.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// A folder, or a prefix: gs://bucket/prefix
    #[arg(value_name = "SRC")]
    source: OsString,
    /// What is to hold the same
    #[arg(value_name = "DST")]
    destination: OsString,
    /// Write a row for each name to FILE, as CSV in the columns of S3 Batch Operations' completion reports: Bucket, Key, VersionId, TaskStatus,
    /// ErrorCode, HTTPStatusCode, ResultMessage; until all was compared it is called FILE.unfinished
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Go by an inventory instead of listing SRC: the manifest.json of S3 Inventory or of a Storage Insights report, or what ls -r --json has printed;
    /// in the order of its keys
    #[arg(long, value_name = "FILE|URL")]
    source_inventory: Option<OsString>,
    /// The same of DST
    #[arg(long, value_name = "FILE|URL")]
    destination_inventory: Option<OsString>,
    // Checksums are compared in any case.
    #[arg(long, short, hide = true, conflicts_with = "no_read")]
    checksum: bool,
    /// Compare local files by their names and sizes alone
    #[arg(long, alias = "size-only")]
    no_read: bool,
    #[command(flatten)]
    filters: Filters,
}

const WORDING: Wording = Wording {
    noun: ("name", "names"),
    done: " equal",
    planned: "would compare",
    moves_bytes: false,
    resume: "interrupted; not all was compared",
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
