//! `laneway restore`: restores objects from archives, and deleted ones.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::{RestoreOptions, RestoreRequest};

use crate::arguments::filters::FilterOptions;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::line::Wording;
use crate::{job, locations};

/// Restore objects from archives on S3 and Azure, or deleted objects on GCS and Azure
///
/// S3: objects of the classes GLACIER and DEEP_ARCHIVE, and in the archive tiers of INTELLIGENT_TIERING, can't be read before they are
/// restored. S3 restores an object within minutes to two days. `stat` and `ls -l` show whether the object is restored. Laneway skips
/// objects that aren't in an archive or are already being restored. If an object was already restored, --days keeps the restored copy for
/// longer.
///
/// GCS: buckets with soft deletion keep deleted objects for at least a week, and `ls --soft-deleted` lists them. Without a generation, the
/// newest deleted object of a name comes back. If a live object has the same name, Laneway keeps it unless --overwrite is given.
///
/// Azure: a blob in the archive tier moves to the tier hot, which takes hours. If no blob has the name, but a deleted one, the deleted blob
/// comes back. -r restores only archived blobs.
#[derive(Args, Debug)]
pub(crate) struct RestoreVerb {
    /// Objects, versions, patterns, or with -r prefixes
    ///
    /// A version is gs://bucket/key#generation or s3://bucket/key#id.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Restore all archived or deleted objects below a prefix
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
    /// Objects in GLACIER and DEEP_ARCHIVE need this option. Don't use it for INTELLIGENT_TIERING, where S3 moves the object itself out of
    /// the archive.
    ///
    /// Example: laneway restore --days 7 s3://my-bucket/2019/all.tar
    #[arg(long, short, value_name = "N")]
    days: Option<u32>,
    /// Choose speed and price: Standard, Bulk or Expedited
    ///
    /// Example: laneway restore --days 7 --tier Bulk s3://my-bucket/2019/all.tar
    #[arg(long, alias = "priority", value_name = "TIER")]
    tier: Option<String>,
    /// Let restored objects replace live objects of the same name, on GCS
    ///
    /// Example: laneway restore --overwrite gs://my-bucket/photo.jpg
    #[arg(long, alias = "allow-overwrite")]
    overwrite: bool,
    #[command(flatten)]
    filters: FilterOptions,
}

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: (" restored or requested", " restored or requested"),
    planned: "would restore",
    moves_bytes: false,
    resume: "Run the same command to restore the rest",
};

impl RestoreVerb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let targets = locations::versioned(&self.urls)?;
        let filter = self.filters.filter(SystemTime::now())?;
        let mut options = RestoreOptions::default();
        options.days = self.days;
        options.tier = self.tier;
        options.overwrite = self.overwrite;
        let request = RestoreRequest::new(targets, options);
        let request = request.recursive(self.recursive).dry_run(self.dry_run).filter(filter);
        job::run(context, WORDING, |client| client.restore(request))
    }
}
