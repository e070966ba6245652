//! Runs every benchmark and writes one page about them.

use std::path::PathBuf;

use clap::Args;
use laneway_experiments::report::Page;
use laneway_experiments::verdict::RUNS_MIN;
use laneway_experiments::{
    Error, Event, Repeats, Stop, Target, Workers, clean, commit, ladder as steps, list, mixed, ranges, slices,
};

use super::counted::{self, SliceLegs};
use super::options::{DecisionOption, ProtocolOption, StoreOptions, StoreProtocol};
use super::{Findings, options};
use crate::context::{Context, complain};
use crate::exit::Exit;
use crate::verbs::bench;

/// Run every benchmark and write a page about them
///
/// By default, the benchmarks use a store inside this process and take about five minutes. Installed programs and --full take longer. The
/// page is a single HTML file and begins with a summary.
#[derive(Args, Debug)]
pub(super) struct AllBench {
    #[command(flatten)]
    place: StoreOptions,
    #[command(flatten)]
    spoken: ProtocolOption,
    #[command(flatten)]
    deciding: DecisionOption,
    /// Use the full sizes of each benchmark
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Run everything once in small sizes, to check that it works
    #[arg(long)]
    quick: bool,
    /// Write the page to FILE
    #[arg(long, value_name = "FILE", default_value = "laneway-report.html")]
    report: PathBuf,
}

/// The amount of work, and the number of runs.
#[derive(Clone, Copy, Debug)]
struct Scale {
    runs: usize,
    files: usize,
    object: u64,
    large: u64,
    large_up: u64,
    small: usize,
    /// Small objects that are requested each second while large ones are moved. `None` skips this measurement.
    arrivals: Option<f64>,
    commits: usize,
    deletes: usize,
    keys: usize,
    ranges: usize,
    /// True if installed programs are measured too. Even starting these programs takes seconds.
    programs: bool,
}

const MIB: u64 = 1 << 20;

impl Scale {
    const FULL: Self = Self {
        runs: RUNS_MIN,
        files: 50,
        object: 1024 * MIB,
        large: 256 * MIB,
        large_up: 256 * MIB,
        small: 200,
        arrivals: Some(50.0),
        commits: 500,
        deletes: 5000,
        keys: 100_000,
        ranges: 400,
        programs: true,
    };
    const USUAL: Self = Self {
        object: 256 * MIB,
        large: 64 * MIB,
        large_up: 32 * MIB,
        small: 100,
        commits: 100,
        deletes: 2000,
        keys: 50_000,
        ranges: 200,
        ..Self::FULL
    };
    const QUICK: Self = Self {
        runs: 1,
        files: 10,
        object: 64 * MIB,
        large: 12 * MIB,
        large_up: 4 * MIB,
        small: 30,
        arrivals: Some(60.0),
        commits: 20,
        deletes: 300,
        keys: 4000,
        ranges: 40,
        programs: false,
    };
}

impl AllBench {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        options::check(&self.report)?;
        let scale = match (self.full, self.quick) {
            (true, _) => Scale::FULL,
            (_, true) => Scale::QUICK,
            _ => Scale::USUAL,
        };
        let mut page = Page::default();
        let repeats = Repeats { least: scale.runs, until_decided: self.deciding.decide_for };
        let (place, tongue) = (&self.place, self.spoken.tongue);
        let exit = BenchSuite { context, place, tongue, scale, repeats, page: &mut page }.run()?;
        if exit != Exit::Interrupted {
            sum_up(context, &page)?;
            options::write(
                context,
                &self.report,
                &page,
                &options::heading(&options::command(std::env::args())),
            )?;
        }
        Ok(exit)
    }
}

/// Prints the summary, which is also the first part of the page: the jobs, grouped by verdict.
fn sum_up(context: &Context, page: &Page) -> anyhow::Result<()> {
    if context.options.json {
        context.output.json(&serde_json::json!({ "kind": "summary", "results": page.results() }))?;
    } else {
        for line in page.summary() {
            context.output.line(&line)?;
        }
    }
    Ok(context.output.flush()?)
}

struct BenchSuite<'a> {
    context: &'a Context,
    place: &'a StoreOptions,
    tongue: StoreProtocol,
    scale: Scale,
    repeats: Repeats,
    page: &'a mut Page,
}

/// A function that makes a measurement. It returns whether all of Laneway's runs succeeded, or an exit status if Ctrl-C ended it.
type Measurement<'a> = fn(&mut BenchSuite<'a>) -> anyhow::Result<Result<bool, Exit>>;

impl<'a> BenchSuite<'a> {
    fn run(mut self) -> anyhow::Result<Exit> {
        let all: [Measurement<'a>; 8] = [
            Self::downloads,
            Self::ladder,
            Self::slices,
            Self::uploads,
            Self::commit,
            Self::clean,
            Self::list,
            Self::ranges,
        ];
        let mut is_fine = true;
        for measure in all {
            match measure(&mut self)? {
                Ok(this) => is_fine &= this,
                Err(exit) => return Ok(exit),
            }
        }
        Ok(bench::exit(is_fine))
    }

    fn ladder(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let target = self.place.target(self.context, StoreProtocol::Gcs)?;
        if !counted::speaks(&target) {
            complain("skipping the benchmark ladder: it uploads only to Google Cloud Storage");
            return Ok(Ok(true));
        }
        let programs = self.scale.programs;
        let (files, runs) = (self.scale.files, self.repeats);
        let plan = steps::Plan { files, size: 0, runs, one_by_one: true, programs, target };
        self.one(|workers, stop, tell| steps::run(&plan, workers, stop, tell))
    }

    fn slices(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let Scale { object: size, programs, .. } = self.scale;
        let plan = slices::Plan { size, runs: self.repeats, folder: None, programs, target: self.target()? };
        self.one(|workers, stop, tell| Ok(SliceLegs(vec![slices::run(&plan, workers, stop, tell)?])))
    }

    fn downloads(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        self.mixed(false, self.scale.large, self.scale.arrivals)
    }

    fn uploads(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        self.mixed(true, self.scale.large_up, None)
    }

    fn mixed(
        &mut self,
        puts: bool,
        large_size: u64,
        arrivals: Option<f64>,
    ) -> anyhow::Result<Result<bool, Exit>> {
        let plan = mixed::Plan {
            large: 4,
            large_size,
            small: self.scale.small,
            small_size: mixed::SMALL_SIZE,
            arrivals,
            puts,
            seed: 1,
            runs: self.repeats,
            folder: None,
            programs: self.scale.programs,
            target: self.target()?,
        };
        self.one(|workers, stop, tell| mixed::run(&plan, workers, stop, tell))
    }

    fn commit(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let (objects, runs) = (self.scale.commits, self.repeats);
        let plan = commit::Plan { objects, size: 4 << 10, runs, target: self.target()? };
        self.one(|workers, stop, tell| commit::run(&plan, workers, stop, tell))
    }

    fn clean(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let (objects, runs) = (self.scale.deletes, self.repeats);
        let plan = clean::Plan { objects, runs, programs: self.scale.programs, target: self.target()? };
        self.one(|workers, stop, tell| clean::run(&plan, workers, stop, tell))
    }

    fn list(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let (objects, runs) = (self.scale.keys, self.repeats);
        let plan = list::Plan { objects, runs, programs: self.scale.programs, target: self.target()? };
        self.one(|workers, stop, tell| list::run(&plan, workers, stop, tell))
    }

    fn ranges(&mut self) -> anyhow::Result<Result<bool, Exit>> {
        let (Scale { ranges, object: size, .. }, runs) = (self.scale, self.repeats);
        let plan = ranges::Plan { ranges, size, runs, target: self.target()? };
        self.one(|workers, stop, tell| ranges::run(&plan, workers, stop, tell))
    }

    fn target(&self) -> anyhow::Result<Target> {
        self.place.target(self.context, self.tongue)
    }

    fn one<T: Findings>(
        &mut self,
        make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
    ) -> anyhow::Result<Result<bool, Exit>> {
        let workers = bench::workers()?;
        let found = match bench::measure(self.context, |stop, tell| make(&workers, stop, tell))? {
            Ok(found) => found,
            Err(exit) => return Ok(Err(exit)),
        };
        bench::print(self.context, &found)?;
        if !self.context.options.json {
            self.context.output.line("")?;
            self.context.output.flush()?;
        }
        found.draw(self.page);
        Ok(Ok(found.is_fine()))
    }
}
