//! Many ranges of one object.

use clap::Args;
use laneway_experiments::Table;
use laneway_experiments::ranges::{self, Plan, Ranges};
use laneway_experiments::report::Page;
use serde_json::Value;

use super::place::Spoken;
use super::run::Findings;
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;

/// Read hundreds of ranges of one object: scattered ones, and columns of a table
///
/// First come ranges of 4 to 64 KiB anywhere in the object. Then come a footer, and after it three columns of fifty in each of 64 row groups,
/// as in a Parquet file. The methods are: one after another, a pool of 50 connections, with neighbours within 1 MiB joined, the whole object,
/// and one call of Laneway's library. A method that returns wrong bytes gets no time. The store is one in this process unless an endpoint or a
/// URL is given.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    spoken: Spoken,
    /// Read N scattered ranges
    #[arg(long, value_name = "N", default_value_t = 400)]
    ranges: usize,
    /// Set the size of the object
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, self.spoken.tongue)?;
        let plan =
            Plan { ranges: self.ranges, size: self.size, runs: self.setting.repeating.repeats(), target };
        self.setting.measure(context, |workers, stop, tell| ranges::run(&plan, workers, stop, tell))
    }
}

impl Findings for Ranges {
    fn heading(&self) -> String {
        format!("{}\n{}", self.scattered.heading(), self.columns.heading())
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.scattered.table(), self.columns.table()]
    }

    fn records(&self) -> Vec<Value> {
        self.scattered.records().into_iter().chain(self.columns.records()).collect()
    }

    fn draw(&self, page: &mut Page) {
        self.scattered.draw(page);
        self.columns.draw(page);
    }

    fn is_fine(&self) -> bool {
        self.scattered.is_fine() && self.columns.is_fine()
    }
}
