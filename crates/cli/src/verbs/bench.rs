//! `laneway bench`: Laneway beside other methods.

pub(crate) mod all;
mod clean;
mod commit;
mod counted;
mod errand;
mod ladder;
mod links;
mod list;
mod mixed;
mod place;
mod ranges;
pub(crate) mod report;
pub(crate) mod run;
mod setting;
mod slices;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::exit::Exit;

/// Measure Laneway beside other methods and tools
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    Ladder(ladder::Arguments),
    Slices(slices::Arguments),
    Mixed(mixed::Arguments),
    Commit(commit::Arguments),
    Clean(clean::Arguments),
    List(list::Arguments),
    Ranges(ranges::Arguments),
    Links(links::Arguments),
    All(all::Arguments),
    Errand(errand::Arguments),
}

impl Bench {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.experiment {
            Experiment::Ladder(arguments) => arguments.run(context),
            Experiment::Slices(arguments) => arguments.run(context),
            Experiment::Mixed(arguments) => arguments.run(context),
            Experiment::Commit(arguments) => arguments.run(context),
            Experiment::Clean(arguments) => arguments.run(context),
            Experiment::List(arguments) => arguments.run(context),
            Experiment::Ranges(arguments) => arguments.run(context),
            Experiment::Links(arguments) => arguments.run(context),
            Experiment::All(arguments) => arguments.run(context),
            Experiment::Errand(arguments) => arguments.run(),
        }
    }
}
