//! `laneway mv`: a copy whose sources are removed as each of them has arrived.

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

/// Copy, then remove what was copied
///
/// DST is read as cp reads it: a tree goes by DST's text alone, whether DST exists or not.
///
/// Each source is removed when its copy is complete and verified, and never before; what fails stays where it is.
#[derive(Args, Debug)]
pub(crate) struct Mv {
    #[command(flatten)]
    items: Items,
    /// Move folders and prefixes with everything below them
    #[arg(long, short, short_alias = 'R')]
    recursive: bool,
    #[command(flatten)]
    pub(super) copying: Copying,
    #[command(flatten)]
    filters: Filters,
}

const WORDING: Wording = Wording {
    noun: ("file", "files"),
    done: " moved",
    planned: "would move",
    moves_bytes: true,
    resume: "interrupted; nothing is half-written, and the same command moves the rest",
};

impl Mv {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let request = self.copying.request(context, &self.items, self.recursive)?.remove_source(true);
        if request.sources.contains(&Location::Standard) {
            return Err(BadUsage::of("-", "standard input can't be moved; cp copies it").into());
        }
        let request = request.filter(self.filters.filter(SystemTime::now())?);
        if context.options.json && request.destination == Location::Standard {
            let why = "--json: standard output carries the object's bytes";
            return Err(BadUsage::new(why).on(&request.sources).into());
        }
        standard_streams::check(&request)?;
        job::run(context, WORDING, |client| client.copy(request))
    }
}
