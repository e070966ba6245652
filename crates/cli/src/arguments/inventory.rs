//! `--inventory`: a file or an object in place of a listing.

use std::ffi::OsString;

use clap::Args;
use laneway::{Error, Location};

/// The inventory that replaces a listing.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Inventory {
    /// Read names from an inventory instead of listing the source
    ///
    /// FILE|URL is the manifest.json of S3 Inventory or of a Storage Insights report, or the output of `ls -r --json`. The data files
    /// (CSV or Parquet) of a local manifest.json lie beside it or in ../data; those of a manifest.json in a store are read where it says.
    ///
    /// Example: laneway cp -r --inventory manifest.json s3://my-bucket/data data
    #[arg(hide_short_help = true, long, value_name = "FILE|URL")]
    inventory: Option<OsString>,
}

impl Inventory {
    /// # Errors
    /// If it is neither a file nor an object.
    pub(crate) fn location(&self) -> Result<Option<Location>, Error> {
        self.inventory.as_deref().map(Location::parse).transpose()
    }
}
