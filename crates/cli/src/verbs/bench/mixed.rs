//! Measures small objects that are moved at the same time as large ones, over one link or several.

use std::path::PathBuf;

use clap::Args;
use laneway_experiments::links::{Course, Leg, Link, Links, parse_link};
use laneway_experiments::mixed::Mixed;
use laneway_experiments::report::Page;
use laneway_experiments::{Row, Table, links, mixed, parse_arrivals};
use serde_json::{Value, json};

use super::Findings;
use super::options::{BenchOptions, ProtocolOption, RepeatOptions, ReportOption};
use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::bench;

/// Move small and large objects at once, and measure how long the small ones wait
///
/// Each method starts to move a few large and hundreds of small objects at the same time. The methods are a pool of 50 HTTP/1.1
/// connections, an unbounded pool, one HTTP/2 connection, and Laneway. With --arrivals, each method also requests small objects at random
/// times, first on an idle link, and then while large objects are moved. A latency is the time from an object's request until the object is
/// complete. The other methods download large objects in ranges of 8 MiB, as the transfer managers of SDKs do. The other methods upload
/// each large object as one stream. The store runs in this process, unless you give an endpoint or a URL. The store in this process
/// imitates a bottleneck with a queue in each direction. Its connections begin with TCP's slow start, and then send as TCP with BBR does.
#[derive(Args, Debug)]
pub(super) struct MixedBench {
    #[command(flatten)]
    setting: BenchOptions,
    #[command(flatten)]
    spoken: ProtocolOption,
    /// Move N large objects
    #[arg(long, value_name = "N", default_value_t = 4)]
    large: usize,
    /// Set the size of each large object
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = laneway_quantity::parse_size)]
    large_size: u64,
    /// Move N small objects, of 32 to 512 KiB
    #[arg(long, value_name = "N", default_value_t = 200)]
    small: usize,
    /// Also request small objects at this rate while large ones are moved, such as 50/s
    #[arg(long, value_name = "RATE", value_parser = parse_arrivals)]
    arrivals: Option<f64>,
    /// Upload instead of downloading
    #[arg(long)]
    puts: bool,
    /// Use this seed for the random sizes and times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep files in this folder [default: in memory if there is enough, else the temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl MixedBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = mixed::Plan {
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
        let (verb, way) = if self.puts { ("upload", "to") } else { ("download", "from") };
        let path = bench::path(self.rtt_s, self.floor_s);
        format!("Each method has to {verb} {} {way} {}; {path}", self.what, self.store)
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

/// Move small and large objects at once over eight links: download over HTTP/1.1 and HTTP/2, and upload
///
/// The store in this process imitates eight links from 0.5 to 120 ms and from 100 Mbit/s to 1 Gbit/s, with deep and
/// shallow queues, with and without loss. Each run moves as many bytes as its link carries in a few seconds. Three runs
/// over all links take about eight minutes. Laneway is compared with a pool of 50 HTTP/1.1 connections. Each of
/// Laneway's times is also given as a multiple of the shortest time that the link permits. The shortest time is three
/// round trips plus the time to send all bytes at the link's rate, the smallest objects first. The last lines show, for
/// each link, a command that measures it with more methods.
#[derive(Args, Debug)]
pub(super) struct LinksBench {
    /// Measure this link instead of the eight, such as 20ms,1Gbit/s,256KiB,0.1%; repeat for more
    ///
    /// The fields are round trip, rate, queue and loss.
    #[arg(long = "link", value_name = "LINK", value_parser = parse_link)]
    links: Vec<Link>,
    #[command(flatten)]
    repeating: RepeatOptions,
    #[command(flatten)]
    report: ReportOption,
}

impl LinksBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let links = if self.links.is_empty() { Link::USUAL.to_vec() } else { self.links };
        let plan = links::Plan { links, runs: self.repeating.repeats() };
        bench::one(context, &self.report, |workers, stop, tell| links::run(&plan, workers, stop, tell))
    }
}

impl Findings for Links {
    fn heading(&self) -> String {
        "Four large objects are moved together with many small ones of 32 to 512 KiB. Each line is a link: round trip, rate, queue and \
         loss. Figures are Laneway's medians. Next to each are its multiple of the shortest possible time, and a comparison with a \
         pool of 50 HTTP/1.1 connections."
            .to_owned()
    }

    fn tables(&self) -> Vec<Table> {
        Course::ALL.map(|course| self.table(course)).into_iter().chain([self.commands()]).collect()
    }

    fn records(&self) -> Vec<Value> {
        self.found.iter().flat_map(records).collect()
    }

    fn draw(&self, page: &mut Page) {
        page.links(self);
    }

    fn is_fine(&self) -> bool {
        self.found.iter().all(|leg| leg.mixed.is_complete())
    }
}

/// Returns a record for each method, with its link and direction, and one with the shortest times that the
/// link permits.
fn records(leg: &Leg) -> Vec<Value> {
    let rows = &leg.mixed.together;
    let mut records: Vec<Value> = rows.iter().map(|row: &Row<_>| row.record(rows, "links")).collect();
    records.push(json!({
        "kind": "links",
        "command": leg.link.command(leg.course),
        "rtt_s": leg.mixed.rtt_s,
        "floor_s": leg.mixed.floor_s,
        "p99_floor_s": leg.mixed.floors.percentile(99.0),
        "total_floor_s": leg.mixed.total_floor_s,
    }));
    for fields in records.iter_mut().filter_map(Value::as_object_mut) {
        fields.insert("link".to_owned(), leg.link.to_string().into());
        fields.insert("course".to_owned(), leg.course.name().into());
    }
    records
}
