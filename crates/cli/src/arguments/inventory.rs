//! `--inventory`: a file in place of a listing.

use std::path::PathBuf;

use clap::Args;

/// What stands for a listing.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Inventory {
    /// Go by an inventory instead of listing the source: the manifest.json of S3 Inventory or of a Storage Insights report, whose data files (CSV) lie
    /// beside it or in ../data, or what ls -r --json has printed
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}
