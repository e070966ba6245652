//! `laneway bench`: the measurements that Laneway comes from.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use laneway::{Location, Provider};
use laneway_experiments::ladder::{self, Event, Failure, Ladder, Plan, Remote, Row, Stop, Target};
use serde::Serialize;

use crate::context::{Context, complain, say};
use crate::exit::{BadUsage, Exit};
use crate::interrupt::Interrupt;
use crate::quantity;

/// Measure Laneway beside the usual ways
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    Ladder(LadderArguments),
}

/// Upload many small files in the five usual ways, then with Laneway
///
/// The ways are: resumable uploads with each request on a new connection, as Google's Ruby gem has them; one request a
/// file on a new connection; on one connection that is kept; all at once on a connection each; all at once over HTTP/2.
/// The store is one in this process, with TLS and a delay, unless an endpoint or a gs:// URL says otherwise; what is
/// uploaded elsewhere is removed again. The floor is the least time that the path allows. Of the options that all
/// verbs have, those for output count here, --ca-cert, --anonymous and --gcs-endpoint.
#[derive(Args, Debug)]
struct LadderArguments {
    /// A bucket, or a prefix in it, to upload to
    #[arg(value_name = "gs://BUCKET/PREFIX")]
    target: Option<OsString>,
    /// A server that speaks Google Cloud Storage's JSON API, such as fake-gcs-server; without a URL of a bucket, one
    /// is created there
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The delay that the store in this process imitates [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = laneway_server::parse_duration,
          conflicts_with_all = ["target", "endpoint"])]
    rtt: Option<Duration>,
    /// How many files
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: usize,
    /// Size of each file
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = laneway_server::parse_size)]
    size: u64,
    /// How often each rung runs, in turns; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
}

impl Bench {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.experiment {
            Experiment::Ladder(arguments) => arguments.run(context),
        }
    }
}

impl LadderArguments {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = self.plan(context)?;
        let stop = Stop::default();
        let pressed = stop.clone();
        let _interrupt = Interrupt::listen(move || pressed.stop())?;
        let shows_progress = context.shows_progress();
        let ladder = match ladder::run(&plan, &stop, |event| tell(&event, plan.runs, shows_progress)) {
            Err(ladder::Error::Stopped) => {
                complain("interrupted; what the ladder uploaded has been removed");
                return Ok(Exit::Interrupted);
            }
            Err(ladder::Error::Plan(why)) => return Err(BadUsage(why).into()),
            ended => ended?,
        };
        if context.options.json {
            for row in &ladder.rows {
                context.output.json(&RungRecord::new(row))?;
            }
            context.output.json(&LadderRecord::new(&plan, &ladder))?;
        } else {
            context.output.line(&heading(&plan, &ladder))?;
            context.output.line("")?;
            for line in table(&ladder.rows) {
                context.output.line(&line)?;
            }
        }
        Ok(if ladder.rows.iter().all(|row| row.result.is_ok()) { Exit::Done } else { Exit::Failed })
    }

    fn plan(&self, context: &Context) -> anyhow::Result<Plan> {
        let place = self.target.as_deref().map(Location::parse).transpose()?;
        let (bucket, prefix) = match place {
            None => (None, String::new()),
            Some(Location::Object { provider: Provider::Gcs, bucket, key }) if !bucket.is_empty() => {
                (Some(bucket), key)
            }
            Some(place) => {
                return Err(BadUsage(format!("{place}: the ladder uploads to gs://bucket/prefix")).into());
            }
        };
        let options = &context.options;
        let endpoint = self.endpoint.clone().or_else(|| options.gcs_endpoint.clone());
        let target = match (endpoint, bucket) {
            (None, None) => Target::Embedded { rtt: self.rtt.unwrap_or(Duration::from_millis(50)) },
            (endpoint, bucket) => {
                let emulator = || std::env::var("STORAGE_EMULATOR_HOST").ok().filter(|host| !host.is_empty());
                let endpoint = endpoint.or_else(emulator).unwrap_or_else(|| Remote::GOOGLE.to_owned());
                let ca_files: Vec<PathBuf> = options.ca_certs.clone();
                Target::Remote(Remote { endpoint, bucket, prefix, anonymous: options.anonymous, ca_files })
            }
        };
        Ok(Plan { files: self.files, size: self.size, runs: self.runs, target })
    }
}

fn tell(event: &Event<'_>, runs: usize, shows_progress: bool) {
    match event {
        Event::Left { url, failure } => {
            complain(&format!("warning: {url} is left behind: {}", reason(failure)))
        }
        Event::Ran { rung, run, result } if shows_progress => {
            let result = match result {
                Ok(time) => quantity::duration(*time),
                Err(failure) => format!("failed: {}", reason(failure)),
            };
            say(&format!("{}, run {run} of {runs}: {result}", rung.description()));
        }
        Event::Begun { .. } | Event::Running { .. } | Event::Ran { .. } => {}
    }
}

/// A failure with its causes, on one line.
fn reason(failure: &Failure) -> String {
    let mut text = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// What was measured, above the table.
fn heading(plan: &Plan, ladder: &Ladder) -> String {
    let files = quantity::count(plan.files as u64, "file", "files");
    let runs = match plan.runs {
        1 => "one run".to_owned(),
        runs => format!("median of {runs} runs"),
    };
    format!(
        "{files} of {} to {}, {runs}; round trip {:.1} ms, floor {:.3} s",
        quantity::size(plan.size),
        ladder.store,
        ladder.rtt.as_secs_f64() * 1000.0,
        ladder.floor.as_secs_f64(),
    )
}

/// The rows as lines: the first column to the left, numbers to the right.
fn table(rows: &[Row]) -> Vec<String> {
    let cells = |row: &Row| -> Vec<String> {
        let mut cells = vec![row.rung.description().to_owned()];
        if let Ok(figures) = &row.result {
            cells.extend([
                format!("{:.3}", figures.time.as_secs_f64()),
                figures.tally.requests.to_string(),
                figures.tally.connections.to_string(),
                format!("{:.1}", figures.round_trips),
                format!("{:.2}", figures.floor_ratio),
            ]);
        }
        cells
    };
    let head = ["rung", "seconds", "requests", "connections", "round trips", "times the floor"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    let failures = rows.iter().map(|row| row.result.as_ref().err());
    let mut texts = Vec::with_capacity(lines.len());
    for (line, failure) in lines.iter().zip(std::iter::once(None).chain(failures)) {
        let mut text = format!("{:<1$}", line[0], widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            text += &format!("  {cell:>width$}");
        }
        if let Some(failure) = failure {
            text += &format!("  failed: {}", reason(failure));
        }
        texts.push(text);
    }
    texts
}

/// A rung as a line of JSON. One that failed has `error` instead of figures.
#[derive(Serialize, Debug)]
struct RungRecord {
    kind: &'static str,
    rung: &'static str,
    seconds: Option<f64>,
    requests: Option<u64>,
    connections: Option<u64>,
    round_trips: Option<f64>,
    floor_ratio: Option<f64>,
    error: Option<String>,
}

impl RungRecord {
    fn new(row: &Row) -> Self {
        let figures = row.result.as_ref().ok();
        Self {
            kind: "rung",
            rung: row.rung.name(),
            seconds: figures.map(|f| f.time.as_secs_f64()),
            requests: figures.map(|f| f.tally.requests),
            connections: figures.map(|f| f.tally.connections),
            round_trips: figures.map(|f| f.round_trips),
            floor_ratio: figures.map(|f| f.floor_ratio),
            error: row.result.as_ref().err().map(reason),
        }
    }
}

/// The last line of JSON: what all rungs have in common.
#[derive(Serialize, Debug)]
struct LadderRecord<'a> {
    kind: &'static str,
    store: &'a str,
    files: usize,
    size: u64,
    runs: usize,
    rtt_s: f64,
    floor_s: f64,
}

impl<'a> LadderRecord<'a> {
    fn new(plan: &Plan, ladder: &'a Ladder) -> Self {
        Self {
            kind: "ladder",
            store: &ladder.store,
            files: plan.files,
            size: plan.size,
            runs: plan.runs,
            rtt_s: ladder.rtt.as_secs_f64(),
            floor_s: ladder.floor.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_experiments::ladder::{Figures, RivalError, Rung, Tally};

    use super::*;

    fn row(rung: Rung, ms: u64, requests: u64, connections: u64) -> Row {
        let time = Duration::from_millis(ms);
        let seconds = time.as_secs_f64();
        let tally = Tally { requests, connections };
        Row {
            rung,
            result: Ok(Figures { time, tally, round_trips: seconds / 0.05, floor_ratio: seconds / 0.15 }),
        }
    }

    fn failed() -> Row {
        Row { rung: Rung::Http2, result: Err(RivalError::NoHttp2.into()) }
    }

    #[test]
    fn the_table_is_aligned_and_a_failed_rung_says_why() {
        let rows = [row(Rung::Resumable, 15_000, 100, 100), failed(), row(Rung::Laneway, 165, 50, 2)];
        assert_eq!(
            table(&rows),
            [
                "rung                                         seconds  requests  connections  round trips  times the floor",
                "resumable, each request on a new connection   15.000       100          100        300.0           100.00",
                "all at once on one HTTP/2 connection         failed: the server doesn't offer HTTP/2",
                "Laneway                                        0.165        50            2          3.3             1.10",
            ]
        );
    }

    #[test]
    fn the_heading_tells_what_was_measured_and_the_floor() {
        let ladder = Ladder {
            store: "https://127.0.0.1:9".to_owned(),
            rtt: Duration::from_micros(50_300),
            floor: Duration::from_micros(150_900),
            rows: Vec::new(),
        };
        assert_eq!(
            heading(&Plan::default(), &ladder),
            "50 files of 0 B to https://127.0.0.1:9, median of 3 runs; round trip 50.3 ms, floor 0.151 s"
        );
    }

    #[test]
    fn json_has_the_same_fields_for_every_rung() {
        let fields = |row: &Row| {
            let value = serde_json::to_value(RungRecord::new(row)).expect("a record");
            value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(fields(&failed()), fields(&row(Rung::Single, 1, 1, 1)));
        let json = serde_json::to_value(RungRecord::new(&row(Rung::Single, 1, 50, 50))).expect("a record");
        assert_eq!((&json["rung"], &json["requests"]), (&"single".into(), &50.into()));
    }
}
