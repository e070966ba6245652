//! `laneway mb` makes buckets, and `laneway rb` removes them and, if requested, their content.

use std::ffi::OsString;

use clap::Args;
use laneway::{Client, Event, Location, Outcome, RemoveRequest};

use super::rm;
use crate::context::{Context, complain};
use crate::exit::{Exit, OutcomeTally};
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
    /// Put the bucket into this location, on GCS: EU, us-central1
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
/// A bucket must be empty, unless --force removes its objects first, with all versions that the bucket keeps. --force asks first, as
/// rm -r does.
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
            // If the URL names a prefix, remove nothing here. `remove` then refuses it.
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
                // Noncurrent versions keep the bucket from being empty. A listing of objects doesn't show them.
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
        if let Event::Item(item) = event
            && let Outcome::Failed(error) = item.outcome
        {
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(()), Err)
}
