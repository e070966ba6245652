//! Benchmarks that count requests (small files, commits, cleaning, listings and ranges), and the download of one
//! object.

use std::path::PathBuf;

use clap::Args;
use laneway::Provider;
use laneway_experiments::ranges::{self, Ranges};
use laneway_experiments::report::Page;
use laneway_experiments::slices::{self, LINKS, Plan, Slices};
use laneway_experiments::{Counted, Imitated, Line, Row, Table, Target, clean, commit, ladder, list};
use serde_json::{Value, json};

use super::Findings;
use super::options::{BenchOptions, ProtocolOption, StoreProtocol};
use crate::context::Context;
use crate::exit::{BadUsage, Exit};
use crate::verbs::bench;

impl Findings for Counted {
    fn heading(&self) -> String {
        let path = bench::path(self.rtt_s, self.floor_s);
        format!("Each method has to {} at {}; {path}", self.what, self.store)
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn records(&self) -> Vec<Value> {
        let bench = self.bench.name();
        let mut records: Vec<_> = self.rows.iter().map(|row| row.record(&self.rows, bench)).collect();
        records.push(json!({
            "kind": bench,
            "store": self.store,
            "objects": self.objects,
            "what": self.what,
            "rtt_s": self.rtt_s,
            "floor_s": self.floor_s,
        }));
        records
    }

    fn draw(&self, page: &mut Page) {
        page.counted(self);
    }

    fn is_fine(&self) -> bool {
        self.rows.iter().all(Row::is_fine)
    }
}

/// Delete thousands of objects: one by one, in batches, and with Laneway
///
/// The methods are Laneway, single deletes over a pool of 50 HTTP/1.1 connections, and batches that are all sent at once (DeleteObjects on
/// S3). There are two separate comparisons: with known keys, and with a prefix that must be listed first. By default, the store runs in
/// this process. The benchmark then measures it with both protocols, and also measures the programs s5cmd, rclone, aws, gcloud and obstore
/// if they are installed.
#[derive(Args, Debug)]
pub(super) struct CleanBench {
    #[command(flatten)]
    setting: BenchOptions,
    /// Delete N objects
    #[arg(long, value_name = "N", default_value_t = 5000)]
    objects: usize,
}

impl CleanBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, StoreProtocol::Gcs)?;
        let plan = clean::Plan {
            objects: self.objects,
            runs: self.setting.repeating.repeats(),
            programs: true,
            target,
        };
        self.setting.measure(context, |workers, stop, tell| clean::run(&plan, workers, stop, tell))
    }
}

/// Change hundreds of objects: read each, and write it back with a precondition
///
/// Commits to lakehouse tables do this. The precondition is that no other writer has changed the object meanwhile. The methods are: one
/// object after another on a kept-alive connection, a pool of 50 connections, and Laneway's library. The store runs in this process, unless
/// you give an endpoint or a URL.
#[derive(Args, Debug)]
pub(super) struct CommitBench {
    #[command(flatten)]
    setting: BenchOptions,
    #[command(flatten)]
    spoken: ProtocolOption,
    /// Change N objects
    #[arg(long, value_name = "N", default_value_t = 500)]
    objects: usize,
    /// Set the size of each object
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl CommitBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, self.spoken.tongue)?;
        let plan = commit::Plan {
            objects: self.objects,
            size: self.size,
            runs: self.setting.repeating.repeats(),
            target,
        };
        self.setting.measure(context, |workers, stop, tell| commit::run(&plan, workers, stop, tell))
    }
}

/// Upload many small files with Laneway and with five other methods
///
/// The first method sends resumable uploads with each request on a new connection, as Google's Ruby gem does. The other methods send one
/// request per file. Two of these upload one file after another: on a new connection for each file, or on a single kept-alive connection.
/// Two upload all files at once: on a new connection for each file, or on a single HTTP/2 connection. The store runs in this process, with
/// TLS and a delay, unless you give an endpoint or a gs:// URL. Laneway removes the files that it uploads to another store. Only these
/// common options have an effect: those for output, --ca-cert, --anonymous and --gcs-endpoint.
#[derive(Args, Debug)]
pub(super) struct LadderBench {
    #[command(flatten)]
    setting: BenchOptions,
    /// Upload N files
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: usize,
    /// Set the size of each file
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl LadderBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = self.plan(context)?;
        self.setting.measure(context, |workers, stop, tell| ladder::run(&plan, workers, stop, tell))
    }

    fn plan(&self, context: &Context) -> anyhow::Result<ladder::Plan> {
        let target = self.setting.target(context, StoreProtocol::Gcs)?;
        if !speaks(&target) {
            return Err(BadUsage::new("bench ladder uploads only to gs://bucket/prefix").into());
        }
        Ok(ladder::Plan {
            files: self.files,
            size: self.size,
            runs: self.setting.repeating.repeats(),
            one_by_one: true,
            programs: true,
            target,
        })
    }
}

/// Returns whether a store speaks the protocol of `ladder`.
pub(super) fn speaks(target: &Target) -> bool {
    match target {
        Target::Embedded(_) => true,
        Target::Remote(remote) => remote.provider == Provider::Gcs,
    }
}

/// List hundreds of thousands of keys: page by page, folder by folder, and with Laneway
///
/// Half of the keys lie in one folder, a quarter in folders named after days, and the rest in many small folders. The first method fetches
/// one page after another. The second does too, but requests the next page before it has parsed the current one. The third is given the
/// names of all folders, and lists them at once. Laneway is given only the prefix. It lists once in key order, and once in the order in
/// which keys arrive. By default, the store runs in this process. The benchmark then measures it with both protocols, and also measures the
/// programs s5cmd, rclone, aws, gcloud and obstore if they are installed.
#[derive(Args, Debug)]
pub(super) struct ListBench {
    #[command(flatten)]
    setting: BenchOptions,
    /// List N keys
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    objects: usize,
}

impl ListBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, StoreProtocol::Gcs)?;
        let plan = list::Plan {
            objects: self.objects,
            runs: self.setting.repeating.repeats(),
            programs: true,
            target,
        };
        self.setting.measure(context, |workers, stop, tell| list::run(&plan, workers, stop, tell))
    }
}

/// Read hundreds of ranges of one object: scattered ranges, and columns of a table
///
/// There are two jobs. The first reads ranges of 4 to 64 KiB anywhere in the object. The second reads a footer, and then three of fifty
/// columns in each of 64 row groups, as in a Parquet file. The other methods read one range after another, use a pool of 50 connections,
/// join ranges that are at most 1 MiB apart, or read the whole object. Laneway reads each group of ranges with one call of its library:
/// all scattered ranges, the footer, or all columns. A method that returns wrong bytes counts as failed. The store runs in this process,
/// unless you give an endpoint or a URL.
#[derive(Args, Debug)]
pub(super) struct RangesBench {
    #[command(flatten)]
    setting: BenchOptions,
    #[command(flatten)]
    spoken: ProtocolOption,
    /// Read N scattered ranges
    #[arg(long, value_name = "N", default_value_t = 400)]
    ranges: usize,
    /// Set the size of the object
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl RangesBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = self.setting.target(context, self.spoken.tongue)?;
        let plan = ranges::Plan {
            ranges: self.ranges,
            size: self.size,
            runs: self.setting.repeating.repeats(),
            target,
        };
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
            let name = format!("{}; {}", leg.name(), bench::path(leg.rtt_s, leg.floor_s));
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
