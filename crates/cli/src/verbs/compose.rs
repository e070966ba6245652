//! `laneway compose`: joins objects of one bucket.

use std::ffi::OsString;

use clap::Args;
use laneway::{Canceller, Condition, PutOptions};

use crate::context::Context;
use crate::exit::{BadUsage, Exit, OutcomeTally};
use crate::job::Interrupt;
use crate::locations;
use crate::report::json::class;
use crate::report::object::ObjectRecord;

/// Join objects of one bucket into a new object
///
/// The store joins the objects itself, in the order of the command line. GCS joins up to 1024 objects of any size. They must have the same
/// storage class, and the new object gets this class too. On S3, each object except the last must have at least 5 MiB. The sources are
/// kept.
#[derive(Args, Debug)]
pub(crate) struct Compose {
    /// Objects to join, followed by the new object
    #[arg(value_name = "URL", required = true, num_args = 2..)]
    urls: Vec<OsString>,
    /// Fail if the new object exists
    ///
    /// Example: laneway compose -n gs://my-bucket/1 gs://my-bucket/2 gs://my-bucket/all
    #[arg(long, short)]
    no_clobber: bool,
    /// Set the Content-Type [default: the Content-Type of the first object]
    ///
    /// Example: laneway compose --content-type text/csv gs://my-bucket/1 gs://my-bucket/2 gs://my-bucket/all
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

impl Compose {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut places = locations::versioned(&self.urls)?;
        let Some(destination) = places.pop().filter(|_| !places.is_empty()) else {
            return Err(BadUsage::new("give the objects to join, followed by the new object").into());
        };
        let mut put = PutOptions::default();
        put.content_type = self.content_type;
        if self.no_clobber {
            put.condition = Condition::Absent;
        }
        let client = context.client()?;
        let canceller = Canceller::default();
        let alone = context.together.is_none();
        let _interrupt = alone.then(|| Interrupt::cancelling(canceller.clone())).transpose()?;
        let _entered = context.together.as_ref().map(|together| together.enter(canceller.clone()));
        let mut tally = OutcomeTally::default();
        match client.compose_until(&canceller, &places, &destination, put) {
            Ok(meta) => {
                tally.done();
                let url = destination.to_string();
                let record = ObjectRecord::new(&url, &meta);
                match context.options.json {
                    true => context.output.json(&record)?,
                    false if context.options.quiet => {}
                    false => context.output.line(&record.details())?,
                }
            }
            Err(error) if error.is_cancelled() => {
                // `laneway run` reports Ctrl-C once for all of its commands.
                if alone {
                    context.report_failure(
                        Some(&destination.to_string()),
                        "interrupted",
                        class(error.kind()),
                    )?;
                }
                return Ok(Exit::Interrupted);
            }
            Err(error) => context.fail(&destination, &error, &mut tally)?,
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }
}
