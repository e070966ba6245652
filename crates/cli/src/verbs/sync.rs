//! `laneway sync`: one place made equal to another.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::{Location, SyncRequest};

use crate::arguments::filters::Filters;
use crate::arguments::inventory::Inventory;
use crate::arguments::manifest::Manifest;
use crate::arguments::names_from::NamesFrom;
use crate::context::Context;
use crate::exit::Exit;
use crate::job;
use crate::report::line::Wording;
use crate::verbs::cp::NewObjects;

/// Make a folder or prefix equal to another
///
/// What lies below SRC is copied to below DST where it differs: it isn't there, has another size, or passes for older. Files have their
/// time of change; of objects it is known where --preserve (or gcloud storage rsync, rclone) has kept it in the metadata that a listing
/// shows, which is so on gs://. Where both sides tell it, the two must be equal; else DST must not be older than SRC. --checksum
/// compares contents instead.
///
/// With --delete what SRC doesn't have is removed from DST, at the end, and only if nothing failed. Whatever a filter excludes is left
/// alone on both sides; a pair is judged by its source. --inventory and --delete can't be had together: an inventory is older than SRC.
///
/// With --files-from nothing is listed: each name of the file is looked at on both sides. One that SRC doesn't have is an error, or with --delete is removed
/// from DST: git diff --name-only | laneway sync --delete --files-from - . gs://bucket/site
///
/// The same command after an interruption does the rest.
#[derive(Args, Debug)]
pub(crate) struct Sync {
    /// A folder, or a prefix: gs://bucket/prefix
    #[arg(value_name = "SRC")]
    source: OsString,
    /// The same, which becomes equal to it
    #[arg(value_name = "DST")]
    destination: OsString,
    /// Remove from DST what SRC doesn't have
    #[arg(long)]
    delete: bool,
    // It goes through all of SRC in any case.
    #[arg(long, short, short_alias = 'R', hide = true)]
    recursive: bool,
    /// Remove nothing where that would be more than so many
    #[arg(long, value_name = "N", requires = "delete", allow_negative_numbers = true)]
    max_delete: Option<u64>,
    /// Let --delete remove everything where SRC has nothing
    #[arg(long, requires = "delete")]
    allow_empty: bool,
    /// Say what would be copied and removed, and do nothing
    #[arg(long, short = 'n', alias = "dryrun")]
    dry_run: bool,
    /// Compare what has one size by CRC32C, CRC64NVME or MD5, whichever both sides have, and not by times
    #[arg(long, short)]
    checksum: bool,
    /// Compare what has one name by size alone
    #[arg(long, conflicts_with_all = ["checksum", "update"])]
    size_only: bool,
    /// Leave alone what is newer at DST, whatever its size
    #[arg(long, short)]
    update: bool,
    /// Copy only what DST has already
    #[arg(long, conflicts_with = "ignore_existing")]
    existing: bool,
    /// Leave alone what DST has already
    #[arg(long)]
    ignore_existing: bool,
    /// Keep times, modes and owners of files as metadata of the objects that they become, as gcloud storage and rclone read them, and
    /// set them on files that objects become (times that a listing shows are set in any case)
    #[arg(long, short = 'p', short_alias = 'P')]
    preserve: bool,
    /// Enter folders through symbolic links too; links to files are followed in any case
    #[arg(long, conflicts_with = "ignore_symlinks")]
    follow_symlinks: bool,
    /// Leave out symbolic links, those to files too
    #[arg(long)]
    ignore_symlinks: bool,
    /// Have files and their folders on the disk itself before they count as done
    #[arg(long)]
    durable: bool,
    #[command(flatten)]
    pub(super) manifest: Manifest,
    #[command(flatten)]
    inventory: Inventory,
    #[command(flatten)]
    names: NamesFrom,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    new: NewObjects,
}

const WORDING: Wording = Wording {
    noun: ("file", "files"),
    done: " copied",
    planned: "would copy",
    moves_bytes: true,
    resume: "interrupted; nothing is half-written, and the same command does the rest",
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
