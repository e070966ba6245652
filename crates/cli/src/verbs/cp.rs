//! `laneway cp`: files and objects, in every direction.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::dialect::capabilities_of;
use laneway::{CopyRequest, Gzip, Location, Provider, PutOptions, Retention, RetentionMode};

use crate::arguments::filters::Filters;
use crate::arguments::inventory::Inventory;
use crate::arguments::key_value;
use crate::arguments::manifest::Manifest;
use crate::arguments::names_from::NamesFrom;
use crate::arguments::relevance::NEW_OBJECTS;
use crate::context::Context;
use crate::exit::{BadUsage, Exit};
use crate::job;
use crate::report::line::Wording;
use crate::standard_streams;

/// Copy files and objects
///
/// DST is a file, a folder, an object or a prefix. A DST that ends in / or is . or .. is a folder, which sources enter under
/// their own names; anything else names the copy itself. With -r, `cp -r dir gs://b/p/` makes p/dir/... and
/// `cp -r dir gs://b/p` makes p/..., and so do local folders: what exists never changes where a tree goes. Single objects
/// also enter a local folder that exists.
///
/// A local file appears under its name only when it is complete and its checksum has been compared. After an
/// interruption the same command with -n does the rest, and fetches of large objects only what is missing. Uploads of
/// large files go on where they were as well; into gs:// without -n, unless it was given before.
///
/// With --files-from the names below SRC are copied as -r would copy them.
#[derive(Args, Debug)]
pub(crate) struct Cp {
    #[command(flatten)]
    items: Items,
    /// Copy folders and prefixes with everything below them
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// How long standard input or a pipe will be: 200GiB. Needed beyond 156 GiB where a store wants equal parts, beyond 6 TiB
    /// elsewhere
    #[arg(long, value_name = "SIZE", value_parser = laneway_quantity::parse_size)]
    expect_size: Option<u64>,
    #[command(flatten)]
    pub(super) copying: Copying,
    /// Keep times, modes and owners of files as metadata of the objects that they become, as gcloud storage and rclone read them, and
    /// set them on files that objects become
    #[arg(long, short = 'p', short_alias = 'P')]
    preserve: bool,
    #[command(flatten)]
    names: NamesFrom,
    #[command(flatten)]
    inventory: Inventory,
    #[command(flatten)]
    filters: Filters,
}

/// What is copied where.
#[derive(Args, Debug)]
pub(crate) struct Items {
    /// Files, folders, objects, prefixes, patterns, or - for stdin
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<OsString>,
    /// Where they go, or - for stdout
    #[arg(value_name = "DST")]
    pub(crate) destination: OsString,
}

/// How things are copied: the options that `cp` and `mv` share.
#[derive(Args, Debug)]
pub(crate) struct Copying {
    /// Leave alone what is already there
    #[arg(long, short)]
    no_clobber: bool,
    /// Enter folders through symbolic links too; links to files are followed in any case
    #[arg(long)]
    follow_symlinks: bool,
    /// Have files and their folders on the disk itself before they count as done
    #[arg(long)]
    durable: bool,
    /// Say what would be copied, and copy nothing
    #[arg(long, alias = "dryrun")]
    dry_run: bool,
    #[command(flatten)]
    pub(super) manifest: Manifest,
    /// Compress local files whose names end in one of these (html,txt) with gzip and store them as such:
    /// Content-Encoding gzip, Cache-Control no-transform unless --cache-control says otherwise. They come back compressed
    #[arg(long, short = 'z', value_name = "EXT,...")]
    gzip_local: Option<Gzip>,
    #[command(flatten)]
    new: NewObjects,
}

/// What new objects are to be.
#[derive(Args, Debug)]
pub(crate) struct NewObjects {
    /// Content-Type of new objects, instead of the one that goes with the file's ending
    #[arg(long, value_name = "TYPE", help_heading = NEW_OBJECTS)]
    content_type: Option<String>,
    /// Cache-Control of new objects
    #[arg(long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    cache_control: Option<String>,
    /// Content-Disposition of new objects
    #[arg(long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    content_disposition: Option<String>,
    /// Content-Encoding of new objects
    #[arg(long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    content_encoding: Option<String>,
    /// Content-Language of new objects
    #[arg(long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    content_language: Option<String>,
    /// Metadata of new objects; may be given several times
    #[arg(long, value_name = "K=V", value_parser = crate::arguments::metadata, help_heading = NEW_OBJECTS)]
    metadata: Vec<(String, String)>,
    /// Storage class of new objects, in the store's words
    #[arg(long, value_name = "CLASS", help_heading = NEW_OBJECTS)]
    storage_class: Option<String>,
    #[command(flatten)]
    protection: Protection,
}

/// Who may use new objects, and how long they are kept.
#[derive(Args, Debug)]
struct Protection {
    /// Predefined access control list of new objects: private, public-read, bucket-owner-full-control, ...
    #[arg(long, value_name = "NAME", help_heading = NEW_OBJECTS)]
    acl: Option<String>,
    /// Tags of new objects, on S3; copies keep their source's unless some are given
    #[arg(long, value_name = "K=V,...", value_parser = key_value, value_delimiter = ',', help_heading = NEW_OBJECTS)]
    tags: Vec<(String, String)>,
    /// Keep new objects until --lock-until: governance (GCS: unlocked) may be shortened by who is allowed to, compliance
    /// (locked) by nobody
    #[arg(long, value_name = "MODE", value_parser = lock_mode, requires = "lock_until", help_heading = NEW_OBJECTS)]
    lock_mode: Option<RetentionMode>,
    /// Until when new objects are kept: 2027-01-31, or 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = lock_until, requires = "lock_mode", help_heading = NEW_OBJECTS)]
    lock_until: Option<SystemTime>,
    /// Keep new objects until their legal hold (GCS: temporary hold) is lifted
    #[arg(long, help_heading = NEW_OBJECTS)]
    legal_hold: bool,
}

fn lock_mode(text: &str) -> Result<RetentionMode, String> {
    RetentionMode::named(text).ok_or_else(|| "there are governance and compliance".to_owned())
}

fn lock_until(text: &str) -> Result<SystemTime, String> {
    Retention::time(text).ok_or_else(|| "write it as 2027-01-31 or 2027-01-31T12:00:00Z".to_owned())
}

impl NewObjects {
    /// The library's options.
    pub(crate) fn put(self) -> PutOptions {
        let mut put = self.protection.put();
        put.content_type = self.content_type;
        put.cache_control = self.cache_control;
        put.content_disposition = self.content_disposition;
        put.content_encoding = self.content_encoding;
        put.content_language = self.content_language;
        put.storage_class = self.storage_class;
        put.metadata = self.metadata.into_iter().collect();
        put
    }
}

impl Protection {
    fn put(self) -> PutOptions {
        let mut put = PutOptions::default().legal_hold(self.legal_hold);
        put.retention = self.lock_mode.zip(self.lock_until).map(|(mode, until)| Retention { mode, until });
        put.acl = self.acl;
        put.tags = self.tags.into_iter().collect();
        put
    }
}

const WORDING: Wording = Wording {
    noun: ("file", "files"),
    done: "",
    planned: "would copy",
    moves_bytes: true,
    resume: "interrupted; nothing is half-written, and the same command with -n does the rest",
};

/// Where a multipart upload takes no condition, -n makes another kind of upload, which would begin large files anew.
const WORDING_OF_SESSIONS: Wording =
    Wording { resume: "interrupted; nothing is half-written, and the same command does the rest", ..WORDING };

fn takes_no_condition(provider: Provider) -> bool {
    capabilities_of(provider).is_some_and(|can| !can.multipart_takes_condition)
}

impl Cp {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let is_tree = self.recursive || self.names.is_some();
        let mut request = self.copying.request(context, &self.items, is_tree)?;
        request.files_from = self.names.location()?;
        request.inventory = self.inventory.location()?;
        request.expect_size = self.expect_size;
        request = request.preserve(self.preserve).filter(self.filters.filter(SystemTime::now())?);
        if context.options.json && request.destination == Location::Standard {
            let why = "--json: standard output carries the object's bytes";
            return Err(BadUsage::new(why).on(&request.sources).into());
        }
        standard_streams::check(&request)?;
        let wording = match request.destination {
            Location::Object { provider, .. } if takes_no_condition(provider) => WORDING_OF_SESSIONS,
            _ => WORDING,
        };
        job::run(context, wording, |client| client.copy(request))
    }
}

impl Copying {
    /// The library's request for these options.
    pub(crate) fn request(
        self,
        context: &Context,
        items: &Items,
        recursive: bool,
    ) -> Result<CopyRequest, laneway::Error> {
        let at = |text: &OsString| Location::parse(text);
        let sources = items.sources.iter().map(at).collect::<Result<_, _>>()?;
        let request = CopyRequest::new(sources, at(&items.destination)?)
            .recursive(recursive)
            .dry_run(self.dry_run)
            .no_clobber(self.no_clobber)
            .durable(self.durable)
            .follow_symlinks(self.follow_symlinks)
            .keep_partial(true);
        let mut request = request;
        request.manifest = context.manifest(self.manifest.manifest);
        Ok(request.put(self.new.put()).gzip(self.gzip_local.unwrap_or_default()))
    }
}
