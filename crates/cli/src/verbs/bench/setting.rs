//! What every benchmark is told: where, how often, and whether a page is wanted.

use clap::Args;
use laneway_experiments::{Error, Event, Stop, Target, Workers};

use super::place::{Place, Tongue, Usual};
use super::report::Report;
use super::run::{self, Findings};
use crate::context::Context;
use crate::exit::Exit;

/// Where a benchmark takes place, how often, and what it leaves.
#[derive(Args, Debug)]
pub(super) struct Setting {
    #[command(flatten)]
    place: Place,
    /// How often each way runs, in turns; the median counts [default: 1; of ladder and slices 3]
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    #[command(flatten)]
    pub(super) report: Report,
}

impl Setting {
    /// How often each way runs.
    pub(super) fn runs(&self, usual: usize) -> usize {
        self.runs.unwrap_or(usual)
    }

    /// The store.
    ///
    /// # Errors
    /// For what names no bucket of a store.
    pub(super) fn target(&self, context: &Context, usual: Usual, tongue: Tongue) -> anyhow::Result<Target> {
        self.place.target(context, usual, tongue)
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
