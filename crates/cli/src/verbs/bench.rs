//! `laneway bench`: compares Laneway with other methods.

pub(crate) mod all;
mod counted;
mod mixed;
pub(crate) mod options;
pub(crate) mod run;
mod slices;

use std::io;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::exit::Exit;

/// Compare Laneway's speed with other methods and tools
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    Ladder(counted::LadderBench),
    Slices(slices::SlicesBench),
    Mixed(mixed::MixedBench),
    Commit(counted::CommitBench),
    Clean(counted::CleanBench),
    List(counted::ListBench),
    Ranges(counted::RangesBench),
    Links(mixed::LinksBench),
    All(all::AllBench),
    Errand(ErrandBench),
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

// A benchmark starts this hidden command for each run of each method, so that every run is a process of its own.

/// Carry out one run of a benchmark, as standard input describes it
#[derive(Args, Debug)]
#[command(hide = true)]
struct ErrandBench {}

impl ErrandBench {
    fn run(self) -> anyhow::Result<Exit> {
        laneway_experiments::carry_out(io::stdin().lock(), io::stdout().lock())?;
        Ok(Exit::Done)
    }
}
