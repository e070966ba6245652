//! `laneway restore`: restores objects from archives.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::{RestoreOptions, RestoreRequest};

use crate::arguments::filters::FilterOptions;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::line::Wording;
use crate::{job, locations};

/// Restore objects from S3's archives
///
/// Objects of the classes GLACIER and DEEP_ARCHIVE, and in the archive tiers of INTELLIGENT_TIERING, can't be read before they are
/// restored. S3 takes minutes to two days for that. `stat` and `ls -l` show how far it is.
///
/// Objects that are in no archive or already being restored are skipped. If a copy is there already, --days prolongs its stay.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// Objects, versions, patterns, or with -r prefixes
    ///
    /// A version is s3://bucket/key#id.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Restore all archived objects below a prefix
    ///
    /// Example: laneway restore -r --days 7 s3://my-bucket/2019
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// Print what would be restored, and restore nothing
    ///
    /// Example: laneway restore -r --dry-run s3://my-bucket/2019
    #[arg(long, alias = "dryrun")]
    dry_run: bool,
    /// Keep the restored copies for N days
    ///
    /// GLACIER and DEEP_ARCHIVE need it. INTELLIGENT_TIERING takes none: the object itself leaves the archive.
    ///
    /// Example: laneway restore --days 7 s3://my-bucket/2019/all.tar
    #[arg(long, short, value_name = "N")]
    days: Option<u32>,
    /// Choose speed and price: Standard, Bulk or Expedited
    ///
    /// Example: laneway restore --days 7 --tier Bulk s3://my-bucket/2019/all.tar
    #[arg(long, alias = "priority", value_name = "TIER")]
    tier: Option<String>,
    #[command(flatten)]
    filters: FilterOptions,
}

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: (" requested", " requested"),
    planned: "would restore",
    moves_bytes: false,
    resume: "Run the same command to restore the rest",
};

impl Restore {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let targets = locations::versioned(&self.urls)?;
        let filter = self.filters.filter(SystemTime::now())?;
        let mut options = RestoreOptions::default();
        options.days = self.days;
        options.tier = self.tier;
        let request = RestoreRequest::new(targets, options);
        let request = request.recursive(self.recursive).dry_run(self.dry_run).filter(filter);
        job::run(context, WORDING, |client| client.restore(request))
    }
}
