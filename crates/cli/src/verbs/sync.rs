//! `laneway sync`: makes a folder or prefix equal to another.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::{Location, SyncRequest};

use crate::arguments::ManifestOption;
use crate::arguments::filters::{FilterOptions, InventoryOption, NamesFromOption};
use crate::context::Context;
use crate::exit::Exit;
use crate::job;
use crate::report::line::Wording;
use crate::verbs::cp::NewObjectOptions;

/// Make DST equal to SRC
///
/// Laneway copies a file or object if DST lacks it, if the sizes differ, or if the item at DST is older. If both sides record the file's
/// modification time, Laneway also copies if the two times differ. Local files record this time. Objects on gs:// record it if --preserve,
/// gcloud storage rsync or rclone wrote them. --checksum compares contents instead of times.
///
/// --delete removes items from DST that SRC lacks. Laneway removes them at the end, and only if nothing failed. Laneway never removes items
/// that the filters skip. --inventory and --delete cannot be combined: SRC may have changed since the inventory was made.
///
/// With --files-from, Laneway looks up each name on both sides, and lists neither side. A name that SRC lacks is an error. With --delete,
/// Laneway instead removes this name from DST.
///
/// After an interruption, run the same command to continue.
#[derive(Args, Debug)]
pub(crate) struct Sync {
    /// Folder, or prefix such as gs://bucket/prefix
    #[arg(value_name = "SRC")]
    source: OsString,
    /// Folder or prefix that becomes equal to SRC
    #[arg(value_name = "DST")]
    destination: OsString,
    /// Remove items from DST that SRC lacks
    ///
    /// Example: laneway sync --delete site gs://my-bucket/site
    #[arg(long)]
    delete: bool,
    /// Print what would be done, and change nothing
    ///
    /// Example: laneway sync -n --delete site gs://my-bucket/site
    #[arg(long, short = 'n', alias = "dryrun")]
    dry_run: bool,
    // The option exists for users of other tools. The option has no effect, because a sync always includes all folders.
    #[arg(long, short, short_alias = 'R', hide = true)]
    recursive: bool,
    /// Compare contents by checksum, not times
    ///
    /// Laneway uses a checksum that both sides have: CRC32C, CRC64NVME or MD5.
    ///
    /// Example: laneway sync -c site s3://my-bucket/site
    #[arg(long, short)]
    checksum: bool,
    /// Compare sizes only
    ///
    /// Example: laneway sync --size-only site s3://my-bucket/site
    #[arg(long, conflicts_with_all = ["checksum", "update"])]
    size_only: bool,
    /// Skip items that are newer at DST, whatever their size
    ///
    /// Example: laneway sync -u site gs://my-bucket/site
    #[arg(long, short)]
    update: bool,
    /// Keep modification times, modes and owners of files
    ///
    /// Laneway stores them in the object's metadata, under the names that gcloud storage and rclone use, and restores them on download.
    ///
    /// Example: laneway sync -p site gs://my-bucket/site
    #[arg(long, short = 'p', short_alias = 'P', alias = "preserve-posix")]
    preserve: bool,
    #[command(flatten)]
    filters: FilterOptions,
    /// Remove nothing if more than N would be removed
    ///
    /// Example: laneway sync --delete --max-delete 100 site gs://my-bucket/site
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        requires = "delete",
        allow_negative_numbers = true
    )]
    max_delete: Option<u64>,
    /// Let --delete remove everything when SRC is empty
    ///
    /// Example: laneway sync --delete --allow-empty site gs://my-bucket/site
    #[arg(hide_short_help = true, long, requires = "delete")]
    allow_empty: bool,
    /// Let --delete run on a DST that contains only a folder named like SRC, and remove that folder
    ///
    /// Such a folder is usually a copy of SRC that `cp -r` made with a slash at the end of DST. So that folder was probably meant as the
    /// DST of sync.
    ///
    /// Example: laneway sync --delete --force site gs://my-bucket/site
    #[arg(hide_short_help = true, long, requires = "delete")]
    force: bool,
    /// Update items that DST has, and add none
    ///
    /// Example: laneway sync --existing site gs://my-bucket/site
    #[arg(hide_short_help = true, long, conflicts_with = "ignore_existing")]
    existing: bool,
    /// Add items that DST lacks, and update none
    ///
    /// Example: laneway sync --ignore-existing site gs://my-bucket/site
    #[arg(hide_short_help = true, long)]
    ignore_existing: bool,
    /// Follow symbolic links to folders
    ///
    /// Links to files are always followed.
    ///
    /// Example: laneway sync --follow-symlinks site gs://my-bucket/site
    #[arg(hide_short_help = true, long, conflicts_with = "ignore_symlinks")]
    follow_symlinks: bool,
    /// Skip symbolic links, including links to files
    ///
    /// Example: laneway sync --ignore-symlinks site gs://my-bucket/site
    #[arg(hide_short_help = true, long)]
    ignore_symlinks: bool,
    /// Flush each file and its folder to disk before it counts as done
    ///
    /// Example: laneway sync --durable gs://my-bucket/site site
    #[arg(hide_short_help = true, long)]
    durable: bool,
    #[command(flatten)]
    names: NamesFromOption,
    #[command(flatten)]
    inventory: InventoryOption,
    #[command(flatten)]
    pub(super) manifest: ManifestOption,
    #[command(flatten)]
    new: NewObjectOptions,
}

const WORDING: Wording = Wording {
    noun: ("file", "files"),
    done: (" copied", " copied"),
    planned: "would copy",
    moves_bytes: true,
    resume: "Run the same command to continue",
};

impl Sync {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let request = self.request(context)?;
        job::run(context, WORDING, |client| client.sync(request))
    }

    fn request(self, context: &Context) -> anyhow::Result<SyncRequest> {
        let request = SyncRequest::new(Location::parse(&self.source)?, Location::parse(&self.destination)?);
        let mut request = request
            .delete(self.delete)
            .allow_empty(self.allow_empty)
            .force(self.force)
            .dry_run(self.dry_run)
            .checksum(self.checksum)
            .size_only(self.size_only)
            .update(self.update)
            .existing(self.existing)
            .ignore_existing(self.ignore_existing)
            .preserve(self.preserve)
            .follow_symlinks(self.follow_symlinks)
            .ignore_symlinks(self.ignore_symlinks)
            .durable(self.durable)
            .keep_partial(true)
            .filter(self.filters.filter(SystemTime::now())?)
            .put(self.new.put());
        request.max_delete = self.max_delete;
        request.manifest = context.manifest(self.manifest.manifest);
        request.inventory = self.inventory.location()?;
        request.files_from = self.names.location()?;
        Ok(request)
    }
}
