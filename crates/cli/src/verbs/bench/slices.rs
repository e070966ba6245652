//! One huge object down.

use std::path::PathBuf;

use clap::Args;
use laneway_experiments::report::Page;
use laneway_experiments::slices::{self, Plan, Slices};
use laneway_experiments::{Error, Row, Table};
use serde_json::{Value, json};

use super::place::Spoken;
use super::run::{self, Findings};
use super::setting::Setting;
use crate::context::Context;
use crate::exit::Exit;
use laneway_quantity as quantity;

/// Download one huge object in one stream, as a program of 2021 does, and with Laneway
///
/// The one stream is checked while it comes. The program of 2021 takes slices of at least 64 MiB, two threads a core, a connection for each slice, writes them into
/// the destination in place and reads the file back for its checksum. Each run is a process of its own, whose processor
/// time and memory are told. The store is one in this process unless an endpoint or a URL says otherwise.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    spoken: Spoken,
    /// Size of the object
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
    /// Where the file is written [default: in memory where there is enough, or among the temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, self.spoken.tongue)?;
        let plan =
            Plan { size: self.size, runs: self.setting.runs, folder: self.dir, programs: true, target };
        self.setting.measure(context, |workers, stop, tell| slices::run(&plan, workers, stop, tell))
    }
}

impl Findings for Slices {
    fn heading(&self) -> String {
        let size = quantity::readable_size(self.size);
        format!("{size} from {}; {}", self.store, run::path(self.rtt_s, self.floor_s))
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn records(&self) -> Vec<Value> {
        let mut records: Vec<_> = self.rows.iter().map(|row| row.record(&self.rows, "slices")).collect();
        records.push(json!({
            "kind": "slices",
            "store": self.store,
            "size": self.size,
            "rtt_s": self.rtt_s,
            "floor_s": self.floor_s,
        }));
        records
    }

    fn draw(&self, page: &mut Page) -> Result<(), Error> {
        page.slices(self)
    }

    fn is_fine(&self) -> bool {
        self.rows.iter().all(Row::is_fine)
    }
}
