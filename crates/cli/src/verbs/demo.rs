//! `laneway demo`: does three jobs with Laneway and with other methods, shows the results on one screen, and writes a page with the
//! details.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use laneway_experiments::report::Page;
use laneway_experiments::verdict::{Comparison, RUNS_MIN, Spread, Verdict, times};
use laneway_experiments::{
    Compared, Counted, Error, Event, Imitated, Repeats, Row, Stop, Target, Workers, ladder, mixed,
    seconds as seconds_of, slices,
};
use laneway_quantity::{count, link_rate, size};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::verbs::bench::{self, options};

/// Compare Laneway with other methods, without an account or a network
///
/// The demo starts a store in this process, with TLS, behind an imitated link of 20 ms and 1 Gbit/s. It does three
/// jobs: small downloads during large ones, many small uploads, and one large download. It does each job with Laneway
/// and with other common methods. The methods take turns, at least three times each. The demo takes about a minute,
/// removes the files and objects that it made, and writes a page with all figures. `laneway bench all` has more jobs,
/// and also measures installed programs.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Set the size of the large download
    ///
    /// Example: laneway demo --size 1GiB
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = laneway_quantity::parse_size)]
    size: u64,
    /// Run each method at least N times, in turns; a verdict needs three runs
    ///
    /// Example: laneway demo --runs 9
    #[arg(long, value_name = "N", default_value_t = RUNS_MIN)]
    runs: usize,
    /// Write the page to FILE
    ///
    /// Example: laneway demo --report /tmp/report.html
    #[arg(long, value_name = "FILE", default_value = "laneway-report.html")]
    report: PathBuf,
    /// Don't write the page
    ///
    /// Example: laneway demo --no-report
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
}

const LINK: Imitated = Imitated::USUAL;
/// A job without a clear verdict is repeated for up to this long.
const UNTIL_DECIDED: Duration = Duration::from_secs(10);
/// The size of each small file. Files of web pages and of table commits are about this large. At this size, round trips take more time than
/// the bytes.
const FILE_BYTES: u64 = 4700;
const FILES: usize = 50;
/// Width of the longest bar in characters. `NAME` is the width of the column with the methods' names.
const BAR: f64 = 22.0;
const NAME: usize = 44;

/// A job and its result, as the screen and the README's picture show it.
#[derive(Serialize, Debug)]
struct DemoJob {
    kind: &'static str,
    job: String,
    /// The words after `seconds`, which say when the time ends.
    measure: &'static str,
    /// Laneway first, then the other methods, the fastest first.
    methods: Vec<DemoMethod>,
    /// `None` if Laneway or every other method failed, so that there is nothing to compare.
    #[serde(flatten)]
    found: Option<Comparison>,
    /// The verdict and its reason, as sentences.
    result: String,
}

#[derive(Serialize, Debug)]
struct DemoMethod {
    method: &'static str,
    is_laneway: bool,
    seconds: Option<Spread>,
    error: Option<String>,
}

/// The version, machine and link of a run of the demo, as the record of kind `demo`.
#[derive(Serialize, Debug)]
struct DemoRecord<'a> {
    kind: &'static str,
    date: &'a str,
    version: &'a str,
    machine: String,
    link: String,
}

impl Demo {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if !self.no_report {
            options::check(&self.report)?;
        }
        let heading = options::heading("laneway demo");
        let (mut page, mut number, mut is_fine) = (Page::default(), 1, true);
        let link = format!(
            "a link of {} ms and {}",
            LINK.rtt.as_millis(),
            LINK.bandwidth.map(link_rate).unwrap_or_default()
        );
        match context.options.json {
            true => context.output.json(&DemoRecord {
                kind: "demo",
                date: &heading.date,
                version: &heading.versions,
                machine: format!("{}, {} cores", heading.machine.processor, heading.machine.cores),
                link,
            })?,
            false => context.output.line(&format!(
                "Laneway and other methods, on a store in this process behind {link}.\n\
                 Methods take turns; the figures are medians. The demo takes about a minute."
            ))?,
        }
        context.output.flush()?;
        for measure in [Self::mixed, Self::ladder, Self::slices] {
            let (job, job_is_fine) = match measure(&self, context, &mut page)? {
                Ok(found) => found,
                Err(exit) => return Ok(exit),
            };
            is_fine &= job_is_fine;
            match context.options.json {
                true => context.output.json(&job)?,
                false => context.output.line(&format!("\n{number}. {}", job.text()))?,
            }
            context.output.flush()?;
            number += 1;
        }
        if !self.no_report {
            options::write(context, &self.report, &page, &heading)?;
        }
        Ok(bench::exit(is_fine))
    }

    fn repeats(&self) -> Repeats {
        Repeats { least: self.runs, until_decided: UNTIL_DECIDED }
    }

    fn mixed(&self, context: &Context, page: &mut Page) -> anyhow::Result<Result<(DemoJob, bool), Exit>> {
        let plan = mixed::Plan {
            large: 4,
            large_size: 40 << 20,
            small: 100,
            small_size: mixed::SMALL_SIZE,
            arrivals: None,
            puts: false,
            seed: 1,
            runs: self.repeats(),
            folder: None,
            programs: false,
            target: Target::Embedded(LINK),
        };
        let found = measured(context, |workers, stop, tell| mixed::run(&plan, workers, stop, tell))?;
        Ok(found.map(|found| {
            page.mixed(&found);
            let why = |verdict, _: &Row<_>, _: &Row<_>| {
                match verdict {
                    Verdict::Win => {
                        "Small objects have connections of their own and don't wait behind large ones."
                    }
                    _ => "Small objects had connections of their own, but that saved no time here.",
                }
                .to_owned()
            };
            let job = "100 small downloads during 4 large ones of 40 MiB each".to_owned();
            (
                DemoJob::of(job, "until half of the small ones have arrived", &found.together, why),
                found.is_complete(),
            )
        }))
    }

    fn ladder(&self, context: &Context, page: &mut Page) -> anyhow::Result<Result<(DemoJob, bool), Exit>> {
        let plan = ladder::Plan {
            files: FILES,
            size: FILE_BYTES,
            runs: self.repeats(),
            one_by_one: false,
            programs: false,
            target: Target::Embedded(LINK),
        };
        let found = measured(context, |workers, stop, tell| ladder::run(&plan, workers, stop, tell))?;
        Ok(found.map(|found: Counted| {
            page.counted(&found);
            let why = |verdict, ours: &Row<_>, other: &Row<laneway_experiments::Figures>| {
                let opened = |row: &Row<laneway_experiments::Figures>| {
                    count(row.figures().map_or(0, |figures| figures.connections), "connection", "connections")
                };
                let all_at_once =
                    if verdict == Verdict::Win { "Laneway sends all files at once. " } else { "" };
                format!("{all_at_once}Laneway opened {}, the other method {}.", opened(ours), opened(other))
            };
            let job = format!("{FILES} uploads of {:.1} KB", FILE_BYTES as f64 / 1e3);
            (
                DemoJob::of(job, "until the last file is stored", &found.rows, why),
                found.rows.iter().all(Row::is_fine),
            )
        }))
    }

    fn slices(&self, context: &Context, page: &mut Page) -> anyhow::Result<Result<(DemoJob, bool), Exit>> {
        let target = Target::Embedded(LINK);
        let plan =
            slices::Plan { size: self.size, runs: self.repeats(), folder: None, programs: false, target };
        let found = measured(context, |workers, stop, tell| slices::run(&plan, workers, stop, tell))?;
        Ok(found.map(|found| {
            page.slices(std::slice::from_ref(&found));
            let why = |_, ours: &Row<slices::Figures>, _: &Row<_>| {
                let ratio = ours.figures().map_or(0.0, |figures| figures.floor_ratio);
                format!("Laneway takes {} the shortest possible time.", times(ratio).replace('x', " times"))
            };
            let job = format!("One download of {}", size(self.size));
            (
                DemoJob::of(job, "until the file is checked", &found.rows, why),
                found.rows.iter().all(Row::is_fine),
            )
        }))
    }
}

/// Makes a measurement. It doesn't print a line for each run, because these lines would push the earlier results off
/// the screen.
fn measured<T>(
    context: &Context,
    make: impl FnOnce(&Workers, &Stop, &mut dyn FnMut(Event<'_>)) -> Result<T, Error>,
) -> anyhow::Result<Result<T, Exit>> {
    let workers = bench::workers()?;
    bench::measure(context, |stop, tell| {
        make(&workers, stop, &mut |event| {
            if matches!(event, Event::Left(_)) {
                tell(event);
            }
        })
    })
}

impl DemoJob {
    /// Compares Laneway with the best other method by the first measure. `why` returns the reason for the verdict, given the verdict and
    /// both rows.
    fn of<F: Compared>(
        job: String,
        measure: &'static str,
        rows: &[Row<F>],
        why: impl Fn(Verdict, &Row<F>, &Row<F>) -> String,
    ) -> Self {
        let value = F::MEASURES[0].value;
        let mut methods: Vec<DemoMethod> = rows
            .iter()
            .map(|row| DemoMethod {
                method: row.description,
                is_laneway: row.is_ours(),
                seconds: row.spread(value),
                error: row.result.as_ref().err().map(laneway_experiments::Failure::remark),
            })
            .collect();
        let median = |method: &DemoMethod| method.seconds.map_or(f64::INFINITY, |seconds| seconds.median);
        methods.sort_by(|a, b| {
            (!a.is_laneway, median(a))
                .partial_cmp(&(!b.is_laneway, median(b)))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let ours = rows.iter().find(|row| row.is_ours());
        let other = Row::best_other(rows, "", value);
        let found = other.and_then(|other| other.compared(rows, value));
        let result = match (found, ours, other) {
            (Some(found), Some(ours), Some(other)) => {
                let runs = ours.spread(value).map_or(0, |spread| spread.runs);
                format!("{} {}", sentence(&found, runs), why(found.verdict, ours, other))
            }
            _ => "There is no comparison, because Laneway or all other methods failed.".to_owned(),
        };
        Self { kind: "job", job, measure, methods, found, result }
    }

    /// Returns the job as text: a line for each method, then the verdict.
    fn text(&self) -> String {
        let most = self
            .methods
            .iter()
            .filter_map(|method| method.seconds)
            .map(|runs| runs.median)
            .fold(0.0, f64::max);
        let mut text = format!("{}: seconds {}\n", self.job, self.measure);
        for DemoMethod { method, seconds, error, .. } in &self.methods {
            let figures = match seconds {
                Some(runs) => {
                    let length = (runs.median / most * BAR).round().max(1.0);
                    format!("{:>8}  {}", seconds_of(runs.median), "█".repeat(length as usize))
                }
                None => format!("  {}", error.as_deref().unwrap_or_default()),
            };
            text += &format!("   {method:<NAME$}{figures}\n");
        }
        text + "   " + &self.result
    }
}

/// Returns the verdict as a sentence.
fn sentence(Comparison { verdict, ratio }: &Comparison, runs: usize) -> String {
    let ratio = times(*ratio);
    match verdict {
        Verdict::Win => format!("Win: Laneway is {ratio} as fast as the best other method."),
        Verdict::Tie => format!("Tie: Laneway is {ratio} as fast as the best other method, within noise."),
        Verdict::Behind => format!("Behind: Laneway is {ratio} as fast as the best other method."),
        Verdict::Unclear => format!(
            "Unclear: Laneway is {ratio} as fast as the best other method, after {}.",
            count(runs as u64, "run", "runs")
        ),
    }
}
