//! `laneway mb`: new buckets.

use std::ffi::OsString;

use clap::Args;

use crate::context::Context;
use crate::exit::{Exit, Tally};
use crate::locations;

/// Make buckets
///
/// On GCS in the project that GOOGLE_CLOUD_PROJECT names, on S3 in the region that requests go to.
#[derive(Args, Debug)]
pub(crate) struct Mb {
    /// Buckets: gs://BUCKET or s3://BUCKET
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Where objects lie, on GCS: EU, us-central1 [default: the store's]
    #[arg(long, short, value_name = "PLACE")]
    location: Option<String>,
    /// The storage class of objects that say nothing else, on GCS
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
