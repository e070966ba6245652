//! Deletes by the thousand.

use clap::Args;
use laneway_experiments::clean::{self, Clean, Plan};
use laneway_experiments::report::Page;
use laneway_experiments::{Error, Row, Table};
use serde_json::{Value, json};

use super::place::{Place, Tongue, Usual};
use super::report::Report;
use super::run::{self, Findings};
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
        let target = self.place.target(context, Usual::FAR, Tongue::Gcs)?;
        let plan = Plan { objects: self.objects, runs: self.runs, target };
        run::one(context, &self.report, |workers, stop, tell| clean::run(&plan, workers, stop, tell))
    }
}

impl Findings for Clean {
    fn heading(&self) -> String {
        let path = run::path(self.rtt_s, self.floor_s);
        format!("{} deletes at {}; {path}", self.objects, self.store)
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn records(&self) -> Vec<Value> {
        let mut records: Vec<_> = self.rows.iter().map(|row| row.record("clean")).collect();
        records.push(json!({
            "kind": "clean",
            "store": self.store,
            "objects": self.objects,
            "rtt_s": self.rtt_s,
            "floor_s": self.floor_s,
        }));
        records
    }

    fn draw(&self, page: &mut Page) -> Result<(), Error> {
        page.clean(self)
    }

    fn is_fine(&self) -> bool {
        self.rows.iter().all(Row::is_fine)
    }
}
