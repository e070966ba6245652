//! `laneway mb`: makes buckets.

use std::ffi::OsString;

use clap::Args;

use crate::context::Context;
use crate::exit::{Exit, Tally};
use crate::locations;

/// Make buckets
///
/// On GCS, --project or GOOGLE_CLOUD_PROJECT names the project. On S3, buckets are made in the region of the requests; see --region.
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
    /// Set the default storage class of its objects, on GCS
    ///
    /// Example: laneway mb --storage-class NEARLINE gs://my-bucket
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
}

impl Mb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::remote(&self.urls)?;
        let client = context.client()?;
        let mut tally = Tally::default();
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
