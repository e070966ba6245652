//! `laneway setmeta`: changes the metadata of objects.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::{MetaChange, SetMetaRequest};

use super::cp::time;
use crate::arguments::filters::FilterOptions;
use crate::arguments::key_value;
use crate::context::Context;
use crate::exit::{BadUsage, Exit};
use crate::report::line::Wording;
use crate::{job, locations};

/// Change the metadata of objects in place
///
/// Fields you don't name are kept. An empty value clears a field.
///
/// GCS changes metadata in place. Only a new storage class makes GCS rewrite the object, which resets its access control list to the
/// bucket's default. On S3, Laneway copies each object onto itself inside the store, in parts if it is larger than 5 GiB. The object keeps
/// its tags. The object gets a new modification time, and the access control list of a new object. If the bucket keeps versions, this adds
/// a version. --acl, --tags and --clear-tags alone need no copy.
#[derive(Args, Debug)]
pub(crate) struct Setmeta {
    /// Objects, patterns, or with -r prefixes
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Change everything below a prefix
    ///
    /// Example: laneway setmeta -r --cache-control no-store gs://my-bucket/site
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    /// Print what would be changed, and change nothing
    ///
    /// Example: laneway setmeta -r --dry-run --cache-control no-store gs://my-bucket/site
    #[arg(long, alias = "dryrun")]
    dry_run: bool,
    #[command(flatten)]
    changes: MetadataOptions,
    #[command(flatten)]
    filters: FilterOptions,
}

/// Options for the change, named as in `gcloud storage objects update`.
#[derive(Args, Debug)]
struct MetadataOptions {
    /// Set the Content-Type header
    ///
    /// Example: --content-type text/csv
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Set the Cache-Control header
    ///
    /// Example: --cache-control 'public, max-age=3600'
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
    /// Set the Content-Disposition header
    ///
    /// Example: --content-disposition attachment
    #[arg(long, value_name = "VALUE")]
    content_disposition: Option<String>,
    /// Set the Content-Encoding header; Laneway doesn't encode the content
    ///
    /// Example: --content-encoding gzip
    #[arg(long, value_name = "VALUE")]
    content_encoding: Option<String>,
    /// Set the Content-Language header
    ///
    /// Example: --content-language de
    #[arg(long, value_name = "VALUE")]
    content_language: Option<String>,
    /// Set the Expires header on S3 to TIME, such as 2027-01-31
    ///
    /// Example: --expires 2027-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Option<SystemTime>,
    /// Set the custom time on GCS to TIME, such as 2027-01-31
    ///
    /// The custom time can't be set to an earlier time. Lifecycle rules can depend on it.
    ///
    /// Example: --custom-time 2027-01-31
    #[arg(long, value_name = "TIME", value_parser = time)]
    custom_time: Option<SystemTime>,
    /// Add or change metadata; repeat for more
    ///
    /// Example: --metadata team=data --metadata stage=raw
    #[arg(long, visible_alias = "update-custom-metadata", value_name = "K=V", value_parser = key_value)]
    metadata: Vec<(String, String)>,
    /// Remove metadata by name
    ///
    /// Example: --remove-metadata team,stage
    #[arg(long, visible_alias = "remove-custom-metadata", value_name = "K,...", value_delimiter = ',')]
    remove_metadata: Vec<String>,
    /// Remove all metadata except what --metadata adds
    ///
    /// Example: --clear-metadata
    #[arg(long, visible_alias = "clear-custom-metadata")]
    clear_metadata: bool,
    /// Set a predefined access control list, such as private or public-read
    ///
    /// Buckets with uniform access, and most buckets on Amazon S3, have no such lists and refuse this option.
    ///
    /// Example: --acl public-read
    #[arg(long, aliases = ["predefined-acl", "canned-acl"], value_name = "NAME")]
    acl: Option<String>,
    /// Replace all tags, on S3
    ///
    /// Example: --tags team=data,stage=raw
    #[arg(long, value_name = "K=V,...", value_delimiter = ',', value_parser = key_value, conflicts_with = "clear_tags")]
    tags: Vec<(String, String)>,
    /// Remove all tags, on S3
    ///
    /// Example: --clear-tags
    #[arg(long)]
    clear_tags: bool,
    /// Set the storage class, such as NEARLINE on GCS or STANDARD_IA on S3
    ///
    /// Example: --storage-class NEARLINE
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
}

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: (" changed", " changed"),
    planned: "would change",
    moves_bytes: false,
    resume: "Run the same command to change the rest",
};

impl Setmeta {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let targets = locations::versioned(&self.urls)?;
        let change = self.changes.change();
        if change.is_empty() {
            let why = "nothing to change: give at least one of --content-type, --cache-control, --metadata, --storage-class, ...";
            return Err(BadUsage::new(why).on(&targets).into());
        }
        let filter = self.filters.filter(SystemTime::now())?;
        let request = SetMetaRequest::new(targets, change);
        let request = request.recursive(self.recursive).dry_run(self.dry_run).filter(filter);
        job::run(context, WORDING, |client| client.set_meta(request))
    }
}

impl MetadataOptions {
    fn change(self) -> MetaChange {
        let mut change = MetaChange::default().clears_metadata(self.clear_metadata);
        change.content_type = self.content_type;
        change.cache_control = self.cache_control;
        change.content_disposition = self.content_disposition;
        change.content_encoding = self.content_encoding;
        change.content_language = self.content_language;
        change.expires = self.expires;
        change.custom_time = self.custom_time;
        change.storage_class = self.storage_class;
        change.metadata = self.metadata.into_iter().collect();
        change.acl = self.acl;
        if self.clear_tags || !self.tags.is_empty() {
            change.tags = Some(self.tags.into_iter().collect());
        }
        change.removed = self.remove_metadata.into_iter().collect();
        change
    }
}
