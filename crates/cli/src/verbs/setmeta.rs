//! `laneway setmeta`: what objects are described by.

use std::ffi::OsString;
use std::time::SystemTime;

use clap::Args;
use laneway::{MetaChange, SetMetaRequest};

use crate::arguments::filters::Filters;
use crate::arguments::key_value;
use crate::context::Context;
use crate::exit::{BadUsage, Exit};
use crate::job;
use crate::locations;
use crate::report::line::Wording;

/// Change the metadata of objects, where they are
///
/// What isn't mentioned stays; an empty value takes a field away. GCS changes its objects in place, but for the storage class, which it
/// rewrites: the access control list of a rewritten object is the bucket's default. S3 can't: each object is copied onto itself inside the
/// store (above 5 GiB part by part), keeps its tags, and gets a new time, in a bucket that keeps versions a new version, and the access
/// control list of a new object.
#[derive(Args, Debug)]
pub(crate) struct Setmeta {
    /// Objects, patterns, or with -r prefixes
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Everything below a prefix
    #[arg(long, short)]
    recursive: bool,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    changes: Changes,
    #[command(flatten)]
    filters: Filters,
}

/// What changes. Named as by `gcloud storage objects update`.
#[derive(Args, Debug)]
struct Changes {
    /// Content-Type
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Cache-Control
    #[arg(long, value_name = "VALUE")]
    cache_control: Option<String>,
    /// Content-Disposition
    #[arg(long, value_name = "VALUE")]
    content_disposition: Option<String>,
    /// Content-Encoding: says what the bytes are, encodes nothing
    #[arg(long, value_name = "VALUE")]
    content_encoding: Option<String>,
    /// Content-Language
    #[arg(long, value_name = "VALUE")]
    content_language: Option<String>,
    /// Metadata that is added, or gets another value; may be given several times
    #[arg(long, visible_alias = "update-custom-metadata", value_name = "K=V", value_parser = key_value)]
    metadata: Vec<(String, String)>,
    /// Names of metadata that go; may be given several times
    #[arg(long, visible_alias = "remove-custom-metadata", value_name = "K,...", value_delimiter = ',')]
    remove_metadata: Vec<String>,
    /// Take away all metadata but what --metadata adds
    #[arg(long, visible_alias = "clear-custom-metadata")]
    clear_metadata: bool,
    /// Storage class, in the store's words
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
}

const WORDING: Wording = Wording {
    noun: ("object", "objects"),
    done: " changed",
    planned: "would change",
    moves_bytes: false,
    resume: "interrupted; what is changed is changed, the same command does the rest",
};

impl Setmeta {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let targets = locations::versioned(&self.urls)?;
        let change = self.changes.change();
        if change.is_empty() {
            let why = "nothing is to be changed: --content-type, --metadata, --storage-class, ...";
            return Err(BadUsage::new(why).on(&targets).into());
        }
        let filter = self.filters.filter(SystemTime::now())?;
        let request = SetMetaRequest::new(targets, change);
        let request = request.recursive(self.recursive).dry_run(self.dry_run).filter(filter);
        job::run(context, WORDING, |client| client.set_meta(request))
    }
}

impl Changes {
    fn change(self) -> MetaChange {
        let mut change = MetaChange::default().clears_metadata(self.clear_metadata);
        change.content_type = self.content_type;
        change.cache_control = self.cache_control;
        change.content_disposition = self.content_disposition;
        change.content_encoding = self.content_encoding;
        change.content_language = self.content_language;
        change.storage_class = self.storage_class;
        change.metadata = self.metadata.into_iter().collect();
        change.removed = self.remove_metadata.into_iter().collect();
        change
    }
}
