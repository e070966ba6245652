//! Measures the download of one object.

use std::path::PathBuf;

use clap::Args;
use laneway_experiments::report::Page;
use laneway_experiments::slices::{self, LINKS, Plan, Slices};
use laneway_experiments::{Imitated, Line, Row, Table, Target};
use serde_json::{Value, json};

use super::options::{BenchOptions, ProtocolOption};
use super::run::{self, Findings};
use crate::context::Context;
use crate::exit::Exit;

/// Download one object in one stream, in five fixed parts, and with Laneway
///
/// The method with one stream and Laneway verify bytes as they arrive. The method with five parts writes them to their
/// positions in the file, and then reads the file back to compute its checksum. The store runs in this process, behind
/// three links in turn. The first has a round trip of 20 ms, 1 Gbit/s and a deep queue. The second has 80 ms and 300
/// Mbit/s. The third has 20 ms and 1 Gbit/s, with at most 50 MB/s for each connection. If you give options for the
/// link, an endpoint or a URL, only that link is measured. All three links take about two and a half minutes. Installed
/// programs are measured too if you give a link or a size. Each run is a process of its own. The tables show its
/// processor time, its memory, and the segments that the imitated link lost and the store sent again.
#[derive(Args, Debug)]
pub(super) struct SlicesBench {
    #[command(flatten)]
    setting: BenchOptions,
    #[command(flatten)]
    spoken: ProtocolOption,
    /// Set the size of the object; repeat for more [default: 8MiB, 64MiB, and 256MiB if the link carries it within 5 s]
    #[arg(long = "size", value_name = "SIZE", value_parser = laneway_quantity::parse_size)]
    sizes: Vec<u64>,
    /// Write the file to this folder [default: in memory if there is enough, else the temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The sizes in bytes if no `--size` is given.
const SIZES: [u64; 3] = [8 << 20, 64 << 20, 256 << 20];
/// A size is skipped if the link needs more than this many seconds for it. With all sizes, the benchmark would take four minutes.
const CARRIED_MAX_S: f64 = 5.0;

impl SlicesBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, self.spoken.tongue)?;
        let targets = match target {
            Target::Embedded(Imitated { h1_only, provider, .. }) if !self.setting.place.names_a_link() => {
                LINKS.map(|link| Target::Embedded(Imitated { h1_only, provider, ..link })).to_vec()
            }
            target => vec![target],
        };
        let is_asked_for = targets.len() == 1 || !self.sizes.is_empty();
        let plan = |target: &Target, size| Plan {
            size,
            runs: self.setting.repeating.repeats(),
            folder: self.dir.clone(),
            programs: is_asked_for,
            target: target.clone(),
        };
        let sizes = if self.sizes.is_empty() { &SIZES[..] } else { &self.sizes };
        let plans = targets.iter().flat_map(|target| {
            let rate = target.imitated().and_then(|link| link.bandwidth).unwrap_or(u64::MAX);
            let is_short = move |size: &&u64| **size as f64 / rate as f64 <= CARRIED_MAX_S;
            let asked = !self.sizes.is_empty();
            sizes.iter().filter(move |size| asked || is_short(size)).map(move |size| plan(target, *size))
        });
        let plans: Vec<Plan> = plans.collect();
        self.setting.measure(context, |workers, stop, tell| {
            let found = plans.iter().map(|plan| slices::run(plan, workers, stop, tell));
            found.collect::<Result<_, _>>().map(SliceLegs)
        })
    }
}

/// The results for each size over each link.
pub(super) struct SliceLegs(pub(super) Vec<Slices>);

impl Findings for SliceLegs {
    fn heading(&self) -> String {
        "Each method downloads one object, in each size over each link.".to_owned()
    }

    fn tables(&self) -> Vec<Table> {
        let table = |leg: &Slices| {
            let mut table = leg.table();
            let name = format!("{}; {}", leg.name(), run::path(leg.rtt_s, leg.floor_s));
            table.rows.insert(0, Line { name, cells: Vec::new(), failure: None });
            table
        };
        self.0.iter().map(table).collect()
    }

    fn records(&self) -> Vec<Value> {
        self.0.iter().flat_map(records).collect()
    }

    fn draw(&self, page: &mut Page) {
        page.slices(&self.0);
    }

    fn is_fine(&self) -> bool {
        self.0.iter().flat_map(|leg| &leg.rows).all(Row::is_fine)
    }
}

/// Returns a record for each method, with its object and link, and one with the shortest time that the link permits.
fn records(leg: &Slices) -> Vec<Value> {
    let mut records: Vec<_> = leg.rows.iter().map(|row| row.record(&leg.rows, "slices")).collect();
    records.push(json!({
        "kind": "slices",
        "store": leg.store,
        "rtt_s": leg.rtt_s,
        "floor_s": leg.floor_s,
    }));
    for fields in records.iter_mut().filter_map(Value::as_object_mut) {
        fields.insert("size".to_owned(), leg.size.into());
        fields.insert("path".to_owned(), leg.path().into());
    }
    records
}
