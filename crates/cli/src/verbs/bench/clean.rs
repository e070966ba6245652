//! Deletes by the thousand.

use clap::Args;
use laneway_experiments::Row;
use laneway_experiments::clean::{self, Clean, Plan};
use serde_json::{Value, json};

use super::place::{Place, Tongue, Usual};
use super::report::Report;
use super::run;
use crate::context::Context;
use crate::exit::Exit;

/// Delete thousands of objects: one by one, in the store's batches, and with Laneway
///
/// One by one over a pool of 50 HTTP/1.1 connections; S3's DeleteObjects and GCS's batches, all at once; and Laneway's own
/// removing of a prefix, which has to list it first. The store in this process (RTT 50 ms) is spoken with in both tongues;
/// one elsewhere in its own.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// How many objects
    #[arg(long, value_name = "N", default_value_t = 5000)]
    objects: usize,
    /// How often each rung runs, in turns; the median counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    #[command(flatten)]
    report: Report,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        self.report.check()?;
        let target = self.place.target(context, Usual::FAR, Tongue::Gcs)?;
        let plan = Plan { objects: self.objects, runs: self.runs, target };
        let workers = run::workers()?;
        let found = match run::measure(context, |stop, tell| clean::run(&plan, &workers, stop, tell))? {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        run::print(context, &heading(&found), &[found.table()], records(&found))?;
        self.report.write(context, |page| page.clean(&found))?;
        Ok(run::exit(found.rows.iter().all(Row::is_fine)))
    }
}

pub(super) fn heading(found: &Clean) -> String {
    let path = run::path(found.rtt_s, found.floor_s);
    format!("{} deletes at {}; {path}", found.objects, found.store)
}

pub(super) fn records(found: &Clean) -> Vec<Value> {
    let mut records: Vec<_> = found.rows.iter().map(|row| row.record("clean")).collect();
    records.push(json!({
        "kind": "clean",
        "store": found.store,
        "objects": found.objects,
        "rtt_s": found.rtt_s,
        "floor_s": found.floor_s,
    }));
    records
}
