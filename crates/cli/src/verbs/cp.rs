//! `laneway cp` copies files and objects in every direction. `laneway mv` also removes each source once its copy has
//! arrived.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::dialect::capabilities_of;
use laneway::{CopyRequest, Gzip, Location, Provider, PutOptions, Retention, RetentionMode};

use crate::arguments::filters::{FilterOptions, InventoryOption, NamesFromOption};
use crate::arguments::relevance::NEW_OBJECTS;
use crate::arguments::{ManifestOption, key_value};
use crate::context::Context;
use crate::exit::{BadUsage, Exit};
use crate::report::line::Wording;
use crate::{job, standard_streams};

/// Copy files and objects
///
/// DST is the name of the copy: an object, a prefix, a file or a folder. End DST with / to copy sources into it under their own names: `cp
/// -r dir gs://b/p/` makes keys below p/dir/, and `cp -r dir gs://b/p` makes keys below p/. A DST of . or .. works as if it ended with /.
/// So does a DST that is an existing local folder, unless the only source is a folder or prefix. A folder or prefix gets the same
/// destination whether or not DST exists.
///
/// A local file appears under its name only when it is complete and its checksum matches.
///
/// After an interruption, repeat the command. Large transfers continue where they stopped. With -n, Laneway also skips items that are done.
/// For uploads to gs://, use -n only if the interrupted command had it. If you add -n, large files start from the beginning.
#[derive(Args, Debug)]
pub(crate) struct Cp {
    #[command(flatten)]
    items: CopyOperands,
    /// Copy folders and prefixes with everything below them
    ///
    /// Example: laneway cp -r photos gs://my-bucket/photos
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    #[command(flatten)]
    pub(super) copying: CopyOptions,
    /// Keep modification times, modes and owners of files
    ///
    /// Laneway stores them in the object's metadata, under the names that gcloud storage and rclone use, and restores them on download.
    ///
    /// Example: laneway cp -p -r photos gs://my-bucket/photos
    #[arg(long, short = 'p', short_alias = 'P', alias = "preserve-posix")]
    preserve: bool,
    #[command(flatten)]
    filters: FilterOptions,
    #[command(flatten)]
    names: NamesFromOption,
    #[command(flatten)]
    inventory: InventoryOption,
    /// Decompress downloaded objects with Content-Encoding gzip or zstd
    ///
    /// Laneway verifies the checksum of the compressed bytes, and then decompresses them. The file has the same name as the object. Objects
    /// with another encoding fail.
    ///
    /// Example: laneway cp -r --decompress gs://my-bucket/logs logs
    #[arg(hide_short_help = true, long)]
    decompress: bool,
    /// Announce the length of stdin or of a pipe, such as 200GiB
    ///
    /// Laneway needs this for streams above 6 TiB, and above 156 GiB if the store requires parts of equal size.
    ///
    /// Example: pg_dump db | laneway cp --expect-size 200GiB - s3://my-bucket/db
    #[arg(hide_short_help = true, long, alias = "expected-size", value_name = "SIZE", value_parser = laneway_quantity::parse_size)]
    expect_size: Option<u64>,
}

/// Sources and destination of a copy.
#[derive(Args, Debug)]
pub(crate) struct CopyOperands {
    /// Files, folders, objects, prefixes or patterns; - is stdin
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<OsString>,
    /// Name of the copy, or a folder to copy into if it ends in /; - is stdout
    #[arg(value_name = "DST")]
    pub(crate) destination: OsString,
}

/// The options that `cp` and `mv` share.
#[derive(Args, Debug)]
pub(crate) struct CopyOptions {
    /// Skip destinations that exist
    ///
    /// Example: laneway cp -r -n photos gs://my-bucket/photos
    #[arg(long, short)]
    no_clobber: bool,
    /// Print what would be done, and change nothing
    ///
    /// Example: laneway cp -r --dry-run photos gs://my-bucket/photos
    #[arg(long, alias = "dryrun")]
    dry_run: bool,
    #[command(flatten)]
    pub(super) manifest: ManifestOption,
    /// Compress local files with gzip if they have these extensions, such as html,txt
    ///
    /// The objects get Content-Encoding gzip, and Cache-Control no-transform unless --cache-control is given. A download doesn't decompress
    /// them.
    ///
    /// Example: laneway cp -r -z html,css,js site gs://my-bucket
    #[arg(long, short = 'z', value_name = "EXT,...")]
    gzip_local: Option<Gzip>,
    /// Follow symbolic links to folders
    ///
    /// Links to files are always followed.
    ///
    /// Example: laneway cp -r --follow-symlinks photos gs://my-bucket/photos
    #[arg(hide_short_help = true, long)]
    follow_symlinks: bool,
    /// Flush each file and its folder to disk before it counts as done
    ///
    /// Example: laneway cp -r --durable gs://my-bucket/photos photos
    #[arg(hide_short_help = true, long)]
    durable: bool,
    #[command(flatten)]
    new: NewObjectOptions,
}

/// Properties of new objects.
#[derive(Args, Debug)]
pub(crate) struct NewObjectOptions {
    /// Set the Content-Type, instead of guessing it from the extension
    ///
    /// Example: --content-type text/csv
    #[arg(long, value_name = "TYPE", help_heading = NEW_OBJECTS)]
    content_type: Option<String>,
    /// Set the Cache-Control header
    ///
    /// Example: --cache-control 'public, max-age=3600'
    #[arg(long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    cache_control: Option<String>,
    /// Set the Content-Disposition header
    ///
    /// Example: --content-disposition 'attachment; filename="report.pdf"'
    #[arg(hide_short_help = true, long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    content_disposition: Option<String>,
    /// Set the Content-Encoding header; Laneway doesn't encode the content
    ///
    /// Example: --content-encoding br
    #[arg(hide_short_help = true, long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    content_encoding: Option<String>,
    /// Set the Content-Language header
    ///
    /// Example: --content-language de
    #[arg(hide_short_help = true, long, value_name = "VALUE", help_heading = NEW_OBJECTS)]
    content_language: Option<String>,
    /// Set the Expires header on S3 to TIME, such as 2027-01-31
    ///
    /// Example: --expires 2027-01-31T12:00:00Z
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = time, help_heading = NEW_OBJECTS)]
    expires: Option<SystemTime>,
    /// Set the custom time on GCS to TIME, such as 2027-01-31
    ///
    /// Lifecycle rules can depend on it.
    ///
    /// Example: --custom-time 2027-01-31
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = time, help_heading = NEW_OBJECTS)]
    custom_time: Option<SystemTime>,
    /// Add metadata; repeat for more
    ///
    /// Example: --metadata team=data --metadata stage=raw
    #[arg(long, value_name = "K=V", value_parser = crate::arguments::metadata, help_heading = NEW_OBJECTS)]
    metadata: Vec<(String, String)>,
    /// Set the storage class, such as NEARLINE on GCS or STANDARD_IA on S3
    ///
    /// Example: --storage-class NEARLINE
    #[arg(long, value_name = "CLASS", help_heading = NEW_OBJECTS)]
    storage_class: Option<String>,
    #[command(flatten)]
    protection: ProtectionOptions,
}

/// Access control, tags and retention of new objects.
#[derive(Args, Debug)]
struct ProtectionOptions {
    /// Set a predefined access control list, such as private or public-read
    ///
    /// Example: --acl bucket-owner-full-control
    #[arg(hide_short_help = true, long, aliases = ["predefined-acl", "canned-acl"], value_name = "NAME", help_heading = NEW_OBJECTS)]
    acl: Option<String>,
    /// Set tags on S3; by default a copy between objects keeps the tags of its source
    ///
    /// Example: --tags team=data,stage=raw
    #[arg(hide_short_help = true, long, value_name = "K=V,...", value_parser = key_value, value_delimiter = ',', help_heading = NEW_OBJECTS)]
    tags: Vec<(String, String)>,
    /// Lock new objects until --lock-until: governance or compliance
    ///
    /// Users with a special permission can shorten a governance lock. Nobody can shorten a compliance lock. In GCS,
    /// these two modes are called unlocked and locked.
    ///
    /// Example: --lock-mode governance --lock-until 2027-01-31
    #[arg(hide_short_help = true, long, value_name = "MODE", value_parser = lock_mode, requires = "lock_until", help_heading = NEW_OBJECTS)]
    lock_mode: Option<RetentionMode>,
    /// Lock new objects until TIME, such as 2027-01-31
    ///
    /// TIME is a date, or a time in UTC.
    ///
    /// Example: --lock-mode governance --lock-until 2027-01-31T12:00:00Z
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = time, requires = "lock_mode", help_heading = NEW_OBJECTS)]
    lock_until: Option<SystemTime>,
    /// Put new objects under a legal hold (GCS: temporary hold)
    ///
    /// Nobody can delete them until the hold is removed.
    ///
    /// Example: --legal-hold
    #[arg(hide_short_help = true, long, help_heading = NEW_OBJECTS)]
    legal_hold: bool,
}

fn lock_mode(text: &str) -> Result<RetentionMode, String> {
    RetentionMode::named(text).ok_or_else(|| "use governance or compliance".to_owned())
}

/// Parses a date, or a time in UTC.
pub(super) fn time(text: &str) -> Result<SystemTime, String> {
    Retention::time(text).ok_or_else(|| "write a time as 2027-01-31 or 2027-01-31T12:00:00Z".to_owned())
}

impl NewObjectOptions {
    /// Returns the library's options.
    pub(crate) fn put(self) -> PutOptions {
        let mut put = self.protection.put();
        put.content_type = self.content_type;
        put.cache_control = self.cache_control;
        put.content_disposition = self.content_disposition;
        put.content_encoding = self.content_encoding;
        put.content_language = self.content_language;
        put.expires = self.expires;
        put.custom_time = self.custom_time;
        put.storage_class = self.storage_class;
        put.metadata = self.metadata.into_iter().collect();
        put
    }
}

impl ProtectionOptions {
    fn put(self) -> PutOptions {
        let mut put = PutOptions::default().legal_hold(self.legal_hold);
        put.retention = self.lock_mode.zip(self.lock_until).map(|(mode, until)| Retention::new(mode, until));
        put.acl = self.acl;
        put.tags = self.tags.into_iter().collect();
        put
    }
}

const WORDING: Wording = Wording {
    noun: ("file", "files"),
    done: ("", ""),
    planned: "would copy",
    moves_bytes: true,
    resume: "Run the same command with -n to continue",
};

/// The wording for a store whose multipart uploads accept no precondition. For such a store, `-n` selects another kind of upload. If a user
/// repeated a command and added `-n`, large files would start from the beginning.
const WORDING_OF_SESSIONS: Wording = Wording { resume: "Run the same command to continue", ..WORDING };

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
        request.decompress = self.decompress;
        request = request.preserve(self.preserve).filter(self.filters.filter(SystemTime::now())?);
        if context.options.json && request.destination == Location::Standard {
            let why = "--json can't be used here: standard output carries the object's bytes";
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

impl CopyOptions {
    /// Returns the library's request for these options.
    pub(crate) fn request(
        self,
        context: &Context,
        items: &CopyOperands,
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

/// Move files and objects: copy, verify, then remove the source
///
/// DST works as it does for cp. A folder or prefix gets the same destination whether or not DST exists.
///
/// Laneway removes a source only after its copy is complete and verified. Sources that fail stay where they are.
#[derive(Args, Debug)]
pub(crate) struct Mv {
    #[command(flatten)]
    items: CopyOperands,
    /// Move folders and prefixes with everything below them
    ///
    /// Example: laneway mv -r logs s3://my-bucket/logs
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    #[command(flatten)]
    pub(super) copying: CopyOptions,
    /// Remove a source even if its copy could only be compared by size
    ///
    /// Some stores report no checksum that Laneway can compare. Without this option, Laneway keeps the source and
    /// reports an error.
    ///
    /// Example: laneway mv --allow-unverified s3://my-bucket/dump dump
    #[arg(hide_short_help = true, long)]
    allow_unverified: bool,
    #[command(flatten)]
    filters: FilterOptions,
}

const WORDING_OF_MOVES: Wording = Wording {
    noun: ("file", "files"),
    done: (" moved", " moved"),
    planned: "would move",
    moves_bytes: true,
    resume: "Run the same command to continue",
};

impl Mv {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let request = self.copying.request(context, &self.items, self.recursive)?.remove_source(true);
        if request.sources.contains(&Location::Standard) {
            return Err(BadUsage::of("-", "standard input can't be moved; use cp").into());
        }
        let request = request.allow_unverified(self.allow_unverified);
        let request = request.filter(self.filters.filter(SystemTime::now())?);
        if context.options.json && request.destination == Location::Standard {
            let why = "--json can't be used here: standard output carries the object's bytes";
            return Err(BadUsage::new(why).on(&request.sources).into());
        }
        standard_streams::check(&request)?;
        job::run(context, WORDING_OF_MOVES, |client| client.copy(request))
    }
}
