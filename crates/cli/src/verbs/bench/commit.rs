//! Read-modify-writes.

use clap::Args;
use laneway_experiments::Row;
use laneway_experiments::commit::{self, Commit, Plan};
use serde_json::{Value, json};

use super::place::{Place, Tongue, Usual};
use super::report::Report;
use super::run;
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
        self.report.check()?;
        let target = self.place.target(context, Usual::FAR, self.store)?;
        let plan = Plan { objects: self.objects, size: self.size, runs: self.runs, target };
        let workers = run::workers()?;
        let found = match run::measure(context, |stop, tell| commit::run(&plan, &workers, stop, tell))? {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        run::print(context, &heading(&found), &[found.table()], records(&found))?;
        self.report.write(context, |page| page.commit(&found))?;
        Ok(run::exit(found.rows.iter().all(Row::is_fine)))
    }
}

pub(super) fn heading(found: &Commit) -> String {
    let path = run::path(found.rtt_s, found.floor_s);
    format!("{} read-modify-writes at {}; {path}", found.objects, found.store)
}

pub(super) fn records(found: &Commit) -> Vec<Value> {
    let mut records: Vec<_> = found.rows.iter().map(|row| row.record("commit")).collect();
    records.push(json!({
        "kind": "commit",
        "store": found.store,
        "objects": found.objects,
        "rtt_s": found.rtt_s,
        "floor_s": found.floor_s,
    }));
    records
}
