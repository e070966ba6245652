//! `laneway mv`: copies, and removes each source once its copy has arrived.

use std::time::SystemTime;

use clap::Args;
use laneway::Location;

use crate::arguments::filters::Filters;
use crate::context::Context;
use crate::exit::{BadUsage, Exit};
use crate::job;
use crate::report::line::Wording;
use crate::standard_streams;
use crate::verbs::cp::{Copying, Items};

/// Move files and objects: copy, verify, then remove the source
///
/// DST works as it does for cp: DST's text alone decides where a tree goes.
///
/// Laneway removes a source only after its copy is complete and verified. Sources that fail stay where they are.
#[derive(Args, Debug)]
pub(crate) struct Mv {
    #[command(flatten)]
    items: Items,
    /// Move folders and prefixes with everything below them
    ///
    /// Example: laneway mv -r logs s3://my-bucket/logs
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    #[command(flatten)]
    pub(super) copying: Copying,
    /// Also remove sources whose copy could only be compared by size
    ///
    /// Some stores tell no checksum that fits. Without this option such a source is kept, and is an error.
    ///
    /// Example: laneway mv --allow-unverified s3://my-bucket/dump dump
    #[arg(hide_short_help = true, long)]
    allow_unverified: bool,
    #[command(flatten)]
    filters: Filters,
}

const WORDING: Wording = Wording {
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
        job::run(context, WORDING, |client| client.copy(request))
    }
}
