//! `laneway bench`: compares Laneway with other methods. Also contains the common parts of all benchmarks: Ctrl-C,
//! progress and output.

pub(crate) mod all;
mod counted;
mod mixed;
pub(crate) mod options;

use std::io;
use std::time::Duration;

use clap::{Args, Subcommand};
use laneway_experiments::report::Page;
use laneway_experiments::{Error, Event, Stop, Table, Workers};
use laneway_quantity as quantity;
use serde_json::Value;

use crate::context::{Context, complain, say};
use crate::exit::{BadUsage, Exit};
use crate::job::Interrupt;
use options::ReportOption;

/// Compare Laneway's speed with other methods and tools
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    Ladder(counted::LadderBench),
    Slices(counted::SlicesBench),
    Mixed(mixed::MixedBench),
    Commit(counted::CommitBench),
    Clean(counted::CleanBench),
    List(counted::ListBench),
    Ranges(counted::RangesBench),
    Links(mixed::LinksBench),
    All(all::AllBench),
    Errand(ErrandBench),
}

impl Bench {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.experiment {
            Experiment::Ladder(arguments) => arguments.run(context),
            Experiment::Slices(arguments) => arguments.run(context),
            Experiment::Mixed(arguments) => arguments.run(context),
            Experiment::Commit(arguments) => arguments.run(context),
            Experiment::Clean(arguments) => arguments.run(context),
            Experiment::List(arguments) => arguments.run(context),
            Experiment::Ranges(arguments) => arguments.run(context),
            Experiment::Links(arguments) => arguments.run(context),
            Experiment::All(arguments) => arguments.run(context),
            Experiment::Errand(arguments) => arguments.run(),
        }
    }
}

// A benchmark starts this hidden command for each run of each method, so that every run is a process of its own.

/// Carry out one run of a benchmark, as standard input describes it
#[derive(Args, Debug)]
#[command(hide = true)]
struct ErrandBench {}

impl ErrandBench {
    fn run(self) -> anyhow::Result<Exit> {
        laneway_experiments::carry_out(io::stdin().lock(), io::stdout().lock())?;
        Ok(Exit::Done)
    }
}

/// The result of a benchmark, as it is printed.
trait Findings {
    /// Returns the line above the tables.
    fn heading(&self) -> String;

    /// Returns the human-readable tables.
    fn tables(&self) -> Vec<Table>;

    /// Returns the lines of JSON.
    fn records(&self) -> Vec<Value>;

    /// Adds the result to a page.
    fn draw(&self, page: &mut Page);

    /// Returns false if one of Laneway's runs failed. A run that was skipped because the store lacks a feature isn't a failure.
    fn is_fine(&self) -> bool;
}

/// Makes a measurement, with each run in a process of its own. Prints the result, and writes a page if one was
/// requested.
///
/// # Errors
/// Fails if the measurement can't be made, or its result can't be printed.
fn one<T: Findings>(
    context: &Context,
    report: &ReportOption,
    make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
) -> anyhow::Result<Exit> {
    report.check()?;
    let workers = workers()?;
    let found = match measure(context, |stop, tell| make(&workers, stop, tell))? {
        Ok(found) => found,
        Err(exit) => return Ok(exit),
    };
    print(context, &found)?;
    report.write(context, |page| found.draw(page))?;
    Ok(exit(found.is_fine()))
}

/// Returns workers that carry out each run in a process of its own, with this program.
///
/// # Errors
/// Fails if the path of this program is unknown.
pub(crate) fn workers() -> anyhow::Result<Workers> {
    let arguments = ["bench", "errand"].map(str::to_owned).to_vec();
    Ok(Workers::Program(std::env::current_exe()?, arguments))
}

/// Makes a measurement, and prints its progress. Returns an exit status if Ctrl-C ended it.
///
/// # Errors
/// Fails if the measurement can't be made.
pub(crate) fn measure<T>(
    context: &Context,
    measure: impl FnOnce(&Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
) -> anyhow::Result<Result<T, Exit>> {
    let stop = Stop::default();
    let pressed = stop.clone();
    let _interrupt = Interrupt::listen(move || pressed.stop())?;
    let shows_progress = context.shows_progress();
    match measure(&stop, &mut |event| progress(&event, shows_progress)) {
        Ok(found) => Ok(Ok(found)),
        Err(Error::Stopped) => {
            complain("Interrupted. Everything that the benchmark wrote has been removed.");
            Ok(Err(Exit::Interrupted))
        }
        Err(Error::Plan(why)) => Err(BadUsage::new(why).into()),
        Err(error) => Err(error.into()),
    }
}

fn progress(event: &Event<'_>, shows_progress: bool) {
    match event {
        Event::Left(left) => {
            complain(&format!("warning: the benchmark can't remove {}: {}", left.url, left.failure.reason()));
        }
        Event::Begun { bench, store, rtt } if shows_progress => {
            let rtt = rtt.as_secs_f64() * 1000.0;
            say(&format!("{bench}: {store}, with a round trip of {rtt:.1} ms"));
        }
        Event::Ran { rung, run, runs, result } if shows_progress => {
            let result = match result {
                Ok(seconds) => quantity::duration(Duration::from_secs_f64(*seconds)),
                Err(failure) => format!("failed: {}", failure.reason()),
            };
            let run = if run <= runs { format!("run {run} of {runs}") } else { format!("extra run {run}") };
            say(&format!("  {rung}, {run}: {result}"));
        }
        Event::Begun { .. } | Event::Ran { .. } => {}
    }
}

/// Prints a result: a heading and human-readable tables, or lines of JSON.
///
/// # Errors
/// Fails if standard output can't be written.
fn print(context: &Context, found: &impl Findings) -> anyhow::Result<()> {
    if context.options.json {
        for record in found.records() {
            context.output.json(&record)?;
        }
        return Ok(context.output.flush()?);
    }
    context.output.line(&found.heading())?;
    for table in found.tables() {
        context.output.line("")?;
        for line in table.lines() {
            context.output.line(&line)?;
        }
    }
    Ok(context.output.flush()?)
}

/// Returns the exit status: success only if all of Laneway's runs succeeded.
pub(crate) fn exit(all_done: bool) -> Exit {
    if all_done { Exit::Done } else { Exit::Failed }
}

/// Returns the end of a heading: the round trip, and the shortest possible time.
fn path(rtt_s: f64, floor_s: f64) -> String {
    format!("the round trip is {:.1} ms, and the shortest possible time is {floor_s:.3} s", rtt_s * 1000.0)
}
