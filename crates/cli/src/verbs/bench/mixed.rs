//! Small objects beside large ones.

use std::path::PathBuf;

use clap::Args;
use laneway_experiments::mixed::{self, Mixed, Plan};
use laneway_experiments::report::Page;
use laneway_experiments::{Table, parse_arrivals};
use serde_json::{Value, json};

use super::place::Spoken;
use super::run::{self, Findings};
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;

/// Move small objects beside large ones, and measure how long the small ones wait
///
/// A few large and hundreds of small GETs start together: over a pool of 50 HTTP/1.1 connections, an unbounded pool, one HTTP/2 connection,
/// and Laneway. With --arrivals, small objects also arrive at random while bulk runs, and are compared with the same arrivals on an idle link.
/// Latencies count from the start of each GET. Rivals fetch large objects in ranges of 8 MiB, as SDKs' transfer managers do, and upload each
/// as one stream. The store is one in this process unless an endpoint or a URL is given. It imitates a bottleneck with a queue in each
/// direction, and connections that start slowly and send as TCP with BBR does.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    spoken: Spoken,
    /// Move N large objects
    #[arg(long, value_name = "N", default_value_t = 4)]
    large: usize,
    /// Set the size of each large object
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = laneway_quantity::parse_size)]
    large_size: u64,
    /// Move N small objects, of 32 to 512 KiB
    #[arg(long, value_name = "N", default_value_t = 200)]
    small: usize,
    /// Let small objects arrive at random while bulk runs: 50/s
    #[arg(long, value_name = "RATE", value_parser = parse_arrivals)]
    arrivals: Option<f64>,
    /// Upload instead of downloading
    #[arg(long)]
    puts: bool,
    /// Draw sizes and arrivals from this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep files in this folder [default: in memory if there is enough, else the temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = Plan {
            large: self.large,
            large_size: self.large_size,
            small: self.small,
            small_size: mixed::SMALL_SIZE,
            arrivals: self.arrivals,
            puts: self.puts,
            seed: self.seed,
            runs: self.setting.repeating.repeats(),
            folder: self.dir,
            programs: true,
            target: self.setting.target(context, self.spoken.tongue)?,
        };
        self.setting.measure(context, |workers, stop, tell| mixed::run(&plan, workers, stop, tell))
    }
}

impl Findings for Mixed {
    fn heading(&self) -> String {
        let way = if self.puts { "to" } else { "from" };
        format!("{} {way} {}; {}", self.what, self.store, run::path(self.rtt_s, self.floor_s))
    }

    fn tables(&self) -> Vec<Table> {
        let together = [self.table(), self.verdicts()];
        together.into_iter().chain(self.arrivals_table()).chain(self.arrivals_verdicts()).collect()
    }

    fn records(&self) -> Vec<Value> {
        let bench = if self.puts { "mixed-puts" } else { "mixed" };
        let arrivals = if self.puts { "mixed-puts-arrivals" } else { "mixed-arrivals" };
        let mut records: Vec<_> = self.together.iter().map(|row| row.record(&self.together, bench)).collect();
        records.extend(self.arrivals.iter().map(|row| row.record(&self.arrivals, arrivals)));
        records.push(json!({
            "kind": bench,
            "store": self.store,
            "rtt_s": self.rtt_s,
            "floor_s": self.floor_s,
            "total_floor_s": self.total_floor_s,
        }));
        records
    }

    fn draw(&self, page: &mut Page) {
        page.mixed(self);
    }

    fn is_fine(&self) -> bool {
        self.is_complete()
    }
}
