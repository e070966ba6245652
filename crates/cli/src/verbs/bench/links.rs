//! One job over many links.

use clap::Args;
use laneway_experiments::links::{self, Course, Leg, Link, Links, Plan, parse_link};
use laneway_experiments::report::Page;
use laneway_experiments::{Row, Table};
use serde_json::{Value, json};

use super::report::Report;
use super::run::{self, Findings};
use super::setting::Repeating;
use crate::context::Context;
use crate::exit::Exit;

/// Move small objects beside large ones over eight links: down over HTTP/1.1 and HTTP/2, and up
///
/// The store in this process imitates eight links from 0.5 to 120 ms and from 100 Mbit/s to 1 Gbit/s, with deep and shallow queues, with and
/// without loss. Each run moves what its link carries in some seconds. Three runs of all take some eight minutes. Laneway stands beside a
/// pool of 50 HTTP/1.1 connections. Each of its figures is also given as a multiple of what the link allows: three round trips, and the
/// bytes at its rate, smallest objects first. The last lines show the commands that measure one link, beside more rivals.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Measure this link instead of the eight: 20ms,1Gbit/s,256KiB,0.1%; repeat for more
    ///
    /// The fields are round trip, rate, queue and loss.
    #[arg(long = "link", value_name = "LINK", value_parser = parse_link)]
    links: Vec<Link>,
    #[command(flatten)]
    repeating: Repeating,
    #[command(flatten)]
    report: Report,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let links = if self.links.is_empty() { Link::USUAL.to_vec() } else { self.links };
        let plan = Plan { links, runs: self.repeating.repeats() };
        run::one(context, &self.report, |workers, stop, tell| links::run(&plan, workers, stop, tell))
    }
}

impl Findings for Links {
    fn heading(&self) -> String {
        "Four large objects and many of 32 to 512 KiB together over each link (round trip, rate, queue, loss): Laneway's medians, as \
         multiples of the least possible, and beside a pool of 50 HTTP/1.1 connections"
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

/// A record for each rung, with the link and the course that it is of, and one of what the link allows.
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
