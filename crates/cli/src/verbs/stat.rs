//! `laneway stat`: shows a store's metadata of objects.

use std::ffi::OsString;

use clap::Args;

use crate::context::Context;
use crate::exit::{Exit, Tally};
use crate::locations;
use crate::report::object::ObjectRecord;

/// Show the metadata of objects: size, checksums, times, headers
#[derive(Args, Debug)]
pub(crate) struct Stat {
    /// Objects, versions or patterns
    ///
    /// A version is gs://bucket/key#generation or s3://bucket/key#id.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
}

impl Stat {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::versioned(&self.urls)?;
        let client = context.client()?;
        let mut tally = Tally::default();
        let mut objects = Vec::new();
        for at in &places {
            match locations::objects(&client, at) {
                Ok(found) => objects.extend(found),
                Err(error) => context.fail(at, &error, &mut tally)?,
            }
        }
        let mut stats = client.stats(objects);
        while let Some((at, known)) = stats.next_blocking() {
            match known {
                Ok(meta) => {
                    tally.done();
                    let url = at.to_string();
                    let record = ObjectRecord::new(&url, &meta);
                    if context.options.json {
                        context.output.json(&record)?;
                    } else {
                        context.output.line(&record.details())?;
                    }
                }
                Err(error) => context.fail(&at, &error, &mut tally)?,
            }
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }
}
