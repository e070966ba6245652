//! The options of every benchmark: where, how often, and the page.

use std::time::Duration;

use clap::Args;
use laneway_experiments::verdict::RUNS_MIN;
use laneway_experiments::{Error, Event, Repeats, Stop, Target, Workers};

use super::place::{Place, Tongue};
use super::report::Report;
use super::run::{self, Findings};
use crate::context::Context;
use crate::exit::Exit;

/// Where a benchmark takes place, how often, and the page that it writes.
#[derive(Args, Debug)]
pub(super) struct Setting {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) repeating: Repeating,
    #[command(flatten)]
    pub(super) report: Report,
}

/// Runs of each method.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Repeating {
    /// Run each method at least N times, in turns; a verdict needs three
    #[arg(long, value_name = "N", default_value_t = RUNS_MIN)]
    runs: usize,
    #[command(flatten)]
    deciding: Deciding,
}

/// The time for which unclear comparisons are repeated.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Deciding {
    /// Repeat unclear comparisons of each table for up to TIME
    ///
    /// Example: laneway bench slices --decide-for 2m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = laneway_quantity::parse_duration)]
    pub(super) decide_for: Duration,
}

impl Repeating {
    pub(super) fn repeats(self) -> Repeats {
        Repeats { least: self.runs, until_decided: self.deciding.decide_for }
    }
}

impl Setting {
    /// Returns the store that the options name.
    ///
    /// # Errors
    /// Bad usage for a URL that names no bucket.
    pub(super) fn target(&self, context: &Context, tongue: Tongue) -> anyhow::Result<Target> {
        self.place.target(context, tongue)
    }

    /// Makes a measurement and prints its result.
    ///
    /// # Errors
    /// If it can't be made or printed.
    pub(super) fn measure<T: Findings>(
        &self,
        context: &Context,
        make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
    ) -> anyhow::Result<Exit> {
        run::one(context, &self.report, make)
    }
}
