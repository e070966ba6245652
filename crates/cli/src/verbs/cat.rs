//! `laneway cat`: prints objects, or ranges of each, to standard output.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use clap::Args;
use laneway::{Client, Error, Location, ReadRequest};

use crate::arguments::filters::RangeOptions;
use crate::context::Context;
use crate::exit::{BadUsage, Exit, OutcomeTally};
use crate::{locations, standard_streams};

/// Print objects to standard output
#[derive(Args, Debug)]
pub(crate) struct Cat {
    /// Objects, versions or patterns, printed one after another
    ///
    /// A version is gs://bucket/key#generation or s3://bucket/key#id.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<OsString>,
    /// Print only these bytes, such as 0-99, 100- or -100 (the last hundred)
    ///
    /// Bytes are counted from 0, and both ends are included. Separate several ranges by commas. cat prints them in the order in which you
    /// write them.
    ///
    /// Example: laneway cat -r 0-99,-100 gs://my-bucket/key
    #[arg(long, short, value_name = "A-B,...", allow_hyphen_values = true)]
    range: Option<RangeOptions>,
}

impl Cat {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let places = locations::versioned(&self.urls)?;
        if context.options.json {
            let why = "--json can't be used here: standard output carries the objects' bytes";
            return Err(BadUsage::new(why).on(&places).into());
        }
        standard_streams::output()?;
        // Write to the file descriptor. `Stdout` would search every chunk for line ends, and copy the bytes after the last line end to its
        // buffer.
        let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let client = context.client()?;
        let mut tally = OutcomeTally::default();
        for place in &places {
            let objects = match locations::objects(&client, place) {
                Ok(objects) => objects,
                Err(error) => {
                    context.fail(place, &error, &mut tally)?;
                    continue;
                }
            };
            for at in objects {
                match self.write(&client, &at, &mut stdout) {
                    Ok(()) => tally.done(),
                    Err(error) if error.is_broken_pipe() => return Ok(tally.exit()),
                    Err(error) => context.fail(&at, &error, &mut tally)?,
                }
            }
        }
        context.print_stats(&client)?;
        Ok(tally.exit())
    }

    fn write(&self, client: &Client, at: &Location, to: &mut File) -> Result<(), Error> {
        let ranges = self.range.as_ref().map(|ranges| ranges.as_slice().to_vec()).unwrap_or_default();
        client.read(&ReadRequest::new(at.clone()).ranges(ranges), to).map(drop)
    }
}
