//! `laneway mb` makes buckets, `laneway rb` removes them and, if requested, their content, and `laneway bucket`
//! shows and changes their settings.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use laneway::{BucketSetting, Client, Event, Location, Outcome, Provider, RemoveRequest};

use super::rm;
use crate::context::{Context, complain};
use crate::exit::{BadUsage, Exit, OutcomeTally};
use crate::locations;

/// Make buckets
///
/// On GCS, --project or GOOGLE_CLOUD_PROJECT names the project. On S3, the bucket is made in the region that --region, AWS_REGION or the
/// profile names.
#[derive(Args, Debug)]
pub(crate) struct Mb {
    /// Buckets, as gs://BUCKET or s3://BUCKET
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Put the bucket into this location on GCS, such as EU or us-central1
    ///
    /// By default the store chooses.
    ///
    /// Example: laneway mb --location EU gs://my-bucket
    #[arg(long, short, value_name = "PLACE")]
    location: Option<String>,
    /// Set the default storage class of the bucket's objects, on GCS
    ///
    /// Example: laneway mb --storage-class NEARLINE gs://my-bucket
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
}

impl Mb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::remote(&self.urls)?;
        let client = context.client()?;
        let mut tally = OutcomeTally::default();
        for at in &places {
            match client.bucket(&at.to_string()).and_then(|bucket| self.create(&bucket)) {
                Ok(()) => {
                    tally.done();
                    context.bucket(at, "made")?;
                }
                Err(error) => context.fail(at, &error, &mut tally)?,
            }
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    fn create(&self, bucket: &laneway::Bucket) -> Result<(), laneway::Error> {
        let mut create = bucket.create();
        if let Some(location) = &self.location {
            create = create.location(location);
        }
        if let Some(class) = &self.storage_class {
            create = create.storage_class(class);
        }
        create.call()
    }
}

/// The HTTP status with which a store refuses to delete a bucket that isn't empty.
const CONFLICT: u16 = 409;

/// Remove buckets
///
/// A bucket must be empty. With --force, Laneway first removes its objects and all their versions. Laneway asks before it removes objects,
/// like rm -r.
#[derive(Args, Debug)]
pub(crate) struct Rb {
    /// Buckets, as gs://BUCKET or s3://BUCKET
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Remove all objects in the buckets first
    ///
    /// Example: laneway rb --force gs://my-bucket
    #[arg(long)]
    force: bool,
    /// Remove without asking
    ///
    /// Example: laneway rb --force -y gs://my-bucket
    #[arg(long, short)]
    yes: bool,
}

impl Rb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::remote(&self.urls)?;
        if self.force && !self.yes && !rm::confirmed(context, &places)? {
            complain("nothing was removed");
            return Ok(Exit::Failed);
        }
        let client = context.client()?;
        let mut tally = OutcomeTally::default();
        for at in &places {
            // If the URL names a prefix, don't empty the bucket. `remove` then refuses the URL.
            let emptied = client.bucket(&at.to_string()).and_then(|bucket| {
                if self.force && bucket.prefix().is_empty() {
                    empty(context, &client, at, false)?;
                }
                Ok(bucket)
            });
            if context.is_stopped() {
                return Ok(Exit::Interrupted);
            }
            let removed = emptied.and_then(|bucket| match bucket.remove().call() {
                // The bucket may still have noncurrent versions, which a listing of objects doesn't show. Remove these too.
                Err(error) if self.force && error.status() == Some(CONFLICT) => {
                    empty(context, &client, at, true)?;
                    bucket.remove().call()
                }
                removed => removed,
            });
            if context.is_stopped() {
                return Ok(Exit::Interrupted);
            }
            match removed {
                Ok(()) => {
                    tally.done();
                    context.bucket(at, "removed")?;
                }
                Err(error) => context.fail(at, &error, &mut tally)?,
            }
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }
}

/// Removes all objects in a bucket, and their noncurrent versions too if `all_versions` is true.
///
/// # Errors
/// Returns the error of the first object that couldn't be removed.
fn empty(
    context: &Context,
    client: &Client,
    bucket: &Location,
    all_versions: bool,
) -> Result<(), laneway::Error> {
    let request = RemoveRequest::new(vec![bucket.clone()]).recursive(true).all_versions(all_versions);
    let mut job = client.remove(request);
    let _entered = context.together.as_ref().map(|together| together.enter(job.canceller()));
    let mut first = None;
    while let Some(event) = job.next_blocking() {
        match event {
            Event::Item(item) => {
                if let Outcome::Failed(error) = item.outcome {
                    first.get_or_insert(error);
                }
            }
            Event::Warning(warning) => context.complain(&format!("warning: {warning}")),
            _ => {}
        }
    }
    first.map_or(Ok(()), Err)
}

/// Show or change settings of a bucket
#[derive(Args, Debug)]
pub(crate) struct BucketVerb {
    #[command(subcommand)]
    setting: SettingVerb,
}

#[derive(Subcommand, Debug)]
enum SettingVerb {
    Versioning(VersioningArguments),
    Lifecycle(LifecycleArguments),
}

/// Show or change whether a bucket keeps versions
///
/// Without on or off, the command prints the setting as JSON in the store's own format.
#[derive(Args, Debug)]
struct VersioningArguments {
    /// Bucket, as gs://BUCKET or s3://BUCKET
    #[arg(value_name = "URL")]
    url: OsString,
    /// on or off; off keeps the versions that exist
    #[arg(value_name = "on|off", value_parser = ["on", "off"])]
    state: Option<String>,
}

/// Show, replace or clear the lifecycle rules of a bucket
///
/// The rules are JSON in the store's own format. On GCS it is the format of `gcloud storage buckets update --lifecycle-file`. On S3 it is
/// the format of `aws s3api put-bucket-lifecycle-configuration`. Without an option, the command prints the rules.
#[derive(Args, Debug)]
struct LifecycleArguments {
    /// Bucket, as gs://BUCKET or s3://BUCKET
    #[arg(value_name = "URL")]
    url: OsString,
    /// Replace all rules with the rules in FILE; - is stdin
    ///
    /// Example: laneway bucket lifecycle s3://my-bucket --set rules.json
    #[arg(long, value_name = "FILE", conflicts_with = "clear")]
    set: Option<PathBuf>,
    /// Remove all rules
    ///
    /// Example: laneway bucket lifecycle s3://my-bucket --clear
    #[arg(long)]
    clear: bool,
}

impl BucketVerb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let (url, setting) = match &self.setting {
            SettingVerb::Versioning(arguments) => (&arguments.url, BucketSetting::Versioning),
            SettingVerb::Lifecycle(arguments) => (&arguments.url, BucketSetting::Lifecycle),
        };
        let places = locations::remote(std::slice::from_ref(url))?;
        let Some(at) = places.first() else { return Ok(Exit::Usage) };
        let change = match &self.setting {
            SettingVerb::Versioning(arguments) => {
                arguments.state.as_deref().map(|state| Ok(Some(versioning(at, state == "on"))))
            }
            SettingVerb::Lifecycle(LifecycleArguments { clear: true, .. }) => Some(Ok(None)),
            SettingVerb::Lifecycle(arguments) => arguments.set.as_deref().map(|file| text_of(file).map(Some)),
        };
        let change = change.transpose()?;
        let client = context.client()?;
        let mut tally = OutcomeTally::default();
        let done = match &change {
            Some(value) => client.set_bucket_setting(at, setting, value.as_deref()).map(|()| None),
            None => client.bucket_setting(at, setting).map(Some),
        };
        match done {
            Ok(shown) => {
                tally.done();
                match shown {
                    Some(text) => context.output.line(&text)?,
                    None => context.bucket(at, "changed")?,
                }
            }
            Err(error) => context.fail(at, &error, &mut tally)?,
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }
}

/// Returns the setting that turns versions on or off, in the format of the bucket's store.
fn versioning(at: &Location, is_on: bool) -> String {
    let is_s3 = matches!(at, Location::Object { provider: Provider::S3, .. });
    match (is_s3, is_on) {
        (true, true) => r#"{"Status":"Enabled"}"#.to_owned(),
        (true, false) => r#"{"Status":"Suspended"}"#.to_owned(),
        (false, is_on) => format!(r#"{{"enabled":{is_on}}}"#),
    }
}

fn text_of(file: &Path) -> anyhow::Result<String> {
    let read = match file == Path::new("-") {
        true => io::read_to_string(io::stdin()),
        false => std::fs::read_to_string(file),
    };
    read.map_err(|e| BadUsage::of(file.display().to_string(), format!("can't be read: {e}")).into())
}
