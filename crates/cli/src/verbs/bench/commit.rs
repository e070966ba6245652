//! Read-modify-writes.

use clap::Args;
use laneway_experiments::commit::{self, Commit, Plan};
use laneway_experiments::report::Page;
use laneway_experiments::{Error, Row, Table};
use serde_json::{Value, json};

use super::place::{Place, Tongue, Usual};
use super::report::Report;
use super::run::{self, Findings};
use crate::context::Context;
use crate::exit::Exit;

/// Change hundreds of objects: read, change, write back if nobody else has
///
/// As a commit of a lakehouse table: one after another on a kept-alive connection, over a pool of 50, and with Laneway's
/// store. The store is one in this process (RTT 50 ms) unless an endpoint or a URL says otherwise.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Whose protocol is spoken with the store in this process
    #[arg(long, value_enum, default_value_t)]
    store: Tongue,
    /// How many objects
    #[arg(long, value_name = "N", default_value_t = 500)]
    objects: usize,
    /// Size of each
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = laneway_server::parse_size)]
    size: u64,
    /// How often each rung runs, in turns; the median counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    #[command(flatten)]
    report: Report,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.place.target(context, Usual::FAR, self.store)?;
        let plan = Plan { objects: self.objects, size: self.size, runs: self.runs, target };
        run::one(context, &self.report, |workers, stop, tell| commit::run(&plan, workers, stop, tell))
    }
}

impl Findings for Commit {
    fn heading(&self) -> String {
        let path = run::path(self.rtt_s, self.floor_s);
        format!("{} read-modify-writes at {}; {path}", self.objects, self.store)
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn records(&self) -> Vec<Value> {
        let mut records: Vec<_> = self.rows.iter().map(|row| row.record("commit")).collect();
        records.push(json!({
            "kind": "commit",
            "store": self.store,
            "objects": self.objects,
            "rtt_s": self.rtt_s,
            "floor_s": self.floor_s,
        }));
        records
    }

    fn draw(&self, page: &mut Page) -> Result<(), Error> {
        page.commit(self)
    }

    fn is_fine(&self) -> bool {
        self.rows.iter().all(Row::is_fine)
    }
}
