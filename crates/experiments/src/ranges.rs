//! Reads of many ranges of one object. There are two cases: scattered ranges, as the reader of an index needs them, and
//! columns of a table file, as a query engine needs them.

mod jobs;
mod laneway;
mod rivals;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use laneway_quantity::size;
use serde::{Deserialize, Serialize};

use crate::counted::{Bench, Counted, Found};
use crate::errand;
use crate::place::Target;
use crate::random::Random;
use crate::site::Site;
use crate::slices::floor_s;
use crate::stage::{Stage, Supply, on_stage};
use crate::turns::{Event, Repeats, Rung};
use crate::{Error, Failure, Stop, Workers};

/// The seed of the object's bytes and of the ranges' positions.
const SEED: u64 = 11;

/// The ranges to read, and the store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of scattered ranges.
    pub ranges: usize,
    /// Size of the object in bytes.
    pub size: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// The store.
    pub target: Target,
}

/// The results for scattered ranges and for a table's columns.
#[derive(Debug)]
pub struct Ranges {
    /// Ranges from all over the object, requested at once.
    pub scattered: Counted,
    /// A footer, and after it three of fifty columns in each of 64 row groups.
    pub columns: Counted,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Reader {
    OneByOne,
    Pool,
    FixedGap,
    Whole,
    Laneway,
}

const RUNGS: [Rung<Reader>; 5] = [
    Rung {
        method: Reader::OneByOne,
        name: "one-by-one",
        description: "one range after another on a kept-alive connection",
        group: "",
    },
    Rung {
        method: Reader::Pool,
        name: "pool-50",
        description: "each range by itself over a pool of 50 HTTP/1.1 connections",
        group: "",
    },
    Rung {
        method: Reader::FixedGap,
        name: "fixed-gap",
        description: "one request for ranges with gaps of at most 1 MiB, over 10 connections",
        group: "",
    },
    Rung {
        method: Reader::Whole,
        name: "whole",
        description: "the whole object in slices, over 10 connections",
        group: "",
    },
    Rung { method: Reader::Laneway, name: "laneway", description: "Laneway", group: "" },
];

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    reader: Reader,
    key: String,
    size: u64,
    /// Groups of ranges. The ranges of a group are requested together, once the group before is complete.
    lots: Vec<Vec<Range<u64>>>,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "ranges";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        let (found, came) = match self.reader {
            Reader::Laneway => laneway::read(&site, &self.key, &self.lots).await?,
            reader => rivals::read(reader, &site, &self).await?,
        };
        let asked = self.lots.iter().flatten();
        if asked.clone().count() != came.len() {
            return Err(Failure::Different(format!("{} ranges arrived", came.len())));
        }
        // A method that returns wrong bytes gets no figures.
        match asked.zip(&came).find(|(range, bytes)| Random::content_at(SEED, range) != **bytes) {
            Some((range, _)) => {
                Err(Failure::Different(format!("the bytes {range:?} differ from those that were stored")))
            }
            None => Ok(found),
        }
    }
}

/// The result of a run, and the bytes of the ranges in the requested order.
type Came = (Found, Vec<Bytes>);

/// Reads the ranges with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ranges, Error> {
    if plan.ranges == 0 || plan.runs.least == 0 || plan.ranges > 100_000 || plan.size < jobs::SIZE_MIN {
        let why =
            "the plan needs from 1 to 100,000 ranges of an object of at least 16 MiB, and at least one run";
        return Err(Error::Plan(why.to_owned()));
    }
    on_stage((&plan.target, None, plan.size), (workers, stop), tell, |stage, tell| climb(plan, stage, tell))
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Ranges, Error> {
    stage.may_be_parted("object");
    stage.stock(&[Supply { name: "object".to_owned(), seed: SEED, size: plan.size }])?;
    let mut job = |bench: Bench, lots: Vec<Vec<Range<u64>>>| {
        let bytes = lots.iter().flatten().map(|range| range.end - range.start).sum();
        // `floor_s` includes the round trip for one group of requests. Add one for each further group.
        let floor_s = floor_s(stage, bytes, &plan.target) + (lots.len() - 1) as f64 * stage.rtt.as_secs_f64();
        let one = |reader, _| {
            stage.carry(Errand { reader, key: stage.key("object"), size: plan.size, lots: lots.clone() })
        };
        let ranges = lots.iter().map(Vec::len).sum();
        let size = size(plan.size);
        let what = match bench {
            Bench::Columns => format!("read the footer and columns of a table of {size}, in {ranges} ranges"),
            _ => format!("read {ranges} scattered ranges of an object of {size}"),
        };
        Counted::find(bench, (ranges, what, plan.runs), stage, floor_s, &RUNGS, tell, one)
    };
    let scattered = job(Bench::Ranges, jobs::scattered(plan.ranges, plan.size))?;
    let columns = job(Bench::Columns, jobs::columns(plan.size))?;
    Ok(Ranges { scattered, columns })
}
