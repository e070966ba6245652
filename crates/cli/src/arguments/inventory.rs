//! `--inventory`: a file or an object in place of a listing.

use std::ffi::OsString;

use clap::Args;
use laneway::{Error, Location};

/// What stands for a listing.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Inventory {
    /// Go by an inventory instead of listing the source: the manifest.json of S3 Inventory or of a Storage Insights report, whose data files (CSV, Parquet) lie
    /// beside it or in ../data, or what ls -r --json has printed. Of a manifest.json in a store (gs://, s3://) they are read where it says
    #[arg(long, value_name = "FILE|URL")]
    inventory: Option<OsString>,
}

impl Inventory {
    /// # Errors
    /// For what is neither a file nor an object.
    pub(crate) fn location(&self) -> Result<Option<Location>, Error> {
        self.inventory.as_deref().map(Location::parse).transpose()
    }
}
