//! What every benchmark is told: where, how often, and whether a page is wanted.

use clap::Args;
use laneway_experiments::verdict::RUNS_MIN;
use laneway_experiments::{Error, Event, Stop, Target, Workers};

use super::place::{Place, Tongue};
use super::report::Report;
use super::run::{self, Findings};
use crate::context::Context;
use crate::exit::Exit;

/// Where a benchmark takes place, how often, and what it leaves.
#[derive(Args, Debug)]
pub(super) struct Setting {
    #[command(flatten)]
    pub(super) place: Place,
    /// Run each way N times, in turns; a verdict needs at least three
    #[arg(long, value_name = "N", default_value_t = RUNS_MIN)]
    pub(super) runs: usize,
    #[command(flatten)]
    pub(super) report: Report,
}

impl Setting {
    /// The store.
    ///
    /// # Errors
    /// For what names no bucket of a store.
    pub(super) fn target(&self, context: &Context, tongue: Tongue) -> anyhow::Result<Target> {
        self.place.target(context, tongue)
    }

    /// Makes a measurement and tells what was found.
    ///
    /// # Errors
    /// What keeps it from being made or told.
    pub(super) fn measure<T: Findings>(
        &self,
        context: &Context,
        make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
    ) -> anyhow::Result<Exit> {
        run::one(context, &self.report, make)
    }
}
