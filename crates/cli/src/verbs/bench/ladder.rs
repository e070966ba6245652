//! Many small files up, the usual ways and Laneway's.

use clap::Args;
use laneway::Provider;
use laneway_experiments::ladder::{self, Event, Ladder, Plan, Row};
use laneway_experiments::report::Page;
use laneway_experiments::{Error, Failure, Table, Target};
use serde::Serialize;
use serde_json::Value;

use super::place::{Tongue, Usual};
use super::run::{self, Findings};
use super::setting::Setting;
use crate::context::{Context, complain, say};
use crate::exit::{BadUsage, Exit};
use laneway_quantity as quantity;

/// How often each rung runs where nobody says.
const RUNS: usize = 3;

/// Upload many small files in the five usual ways, then with Laneway
///
/// The ways are: resumable uploads with each request on a new connection, as Google's Ruby gem has them; one request a
/// file on a new connection; on one connection that is kept; all at once on a connection each; all at once over HTTP/2.
/// The store is one in this process, with TLS and a delay, unless an endpoint or a gs:// URL says otherwise; what is
/// uploaded elsewhere is removed again. The floor is the least time that the path allows. Of the options that all
/// verbs have, those for output count here, --ca-cert, --anonymous and --gcs-endpoint.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// How many files
    #[arg(long, value_name = "N", default_value_t = 50)]
    files: usize,
    /// Size of each file
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = laneway_quantity::parse_size)]
    size: u64,
}

impl Arguments {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = self.plan(context)?;
        run::tell(context, &self.setting.report, || climb(context, plan))
    }

    fn plan(&self, context: &Context) -> anyhow::Result<Plan> {
        let target = self.setting.target(context, Usual::FAR, Tongue::Gcs)?;
        if !speaks(&target) {
            return Err(BadUsage::new("the ladder uploads to gs://bucket/prefix").into());
        }
        Ok(Plan { files: self.files, size: self.size, runs: self.setting.runs(RUNS), target })
    }
}

/// Whether a store speaks what the ladder does.
pub(super) fn speaks(target: &Target) -> bool {
    match target {
        Target::Embedded(_) => true,
        Target::Remote(remote) => remote.provider == Provider::Gcs,
    }
}

/// A ladder that was climbed, and how.
pub(super) struct Climbed {
    plan: Plan,
    ladder: Ladder,
}

/// Climbs, unless Ctrl-C ends it.
///
/// # Errors
/// What keeps the ladder from being climbed.
pub(super) fn climb(context: &Context, plan: Plan) -> anyhow::Result<Result<Climbed, Exit>> {
    let shows_progress = context.shows_progress();
    let tell = |event: Event<'_>| tell(&event, plan.runs, shows_progress);
    let climbed = run::measure(context, |stop, _| ladder::run(&plan, stop, tell))?;
    Ok(climbed.map(|ladder| Climbed { plan, ladder }))
}

fn tell(event: &Event<'_>, runs: usize, shows_progress: bool) {
    match event {
        Event::Left { url, failure } => {
            complain(&format!("warning: {url} is left behind: {}", failure.reason()))
        }
        Event::Ran { rung, run, result } if shows_progress => {
            let result = match result {
                Ok(time) => quantity::duration(*time),
                Err(failure) => format!("failed: {}", failure.reason()),
            };
            say(&format!("{}, run {run} of {runs}: {result}", rung.description()));
        }
        Event::Begun { .. } | Event::Running { .. } | Event::Ran { .. } => {}
    }
}

impl Findings for Climbed {
    fn heading(&self) -> String {
        heading(&self.plan, &self.ladder)
    }

    fn tables(&self) -> Vec<Table> {
        vec![self.ladder.table()]
    }

    fn records(&self) -> Vec<Value> {
        // Records are structs of numbers and text, which can't fail to become JSON.
        let record = |row| serde_json::to_value(RungRecord::new(row)).unwrap_or_default();
        let last = serde_json::to_value(LadderRecord::new(&self.plan, &self.ladder)).unwrap_or_default();
        self.ladder.rows.iter().map(record).chain([last]).collect()
    }

    fn draw(&self, page: &mut Page) -> Result<(), Error> {
        page.ladder(&self.ladder)
    }

    fn is_fine(&self) -> bool {
        self.ladder.rows.iter().all(|row| row.result.as_ref().err().is_none_or(Failure::is_absence))
    }
}

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
            error: row.result.as_ref().err().map(Failure::reason),
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
    use std::time::Duration;

    use laneway_experiments::ladder::{Figures, Rung};
    use laneway_experiments::{RivalError, Tally, Trace};

    use super::*;

    fn row(rung: Rung, ms: u64, requests: u64, connections: u64) -> Row {
        let time = Duration::from_millis(ms);
        let seconds = time.as_secs_f64();
        let tally = Tally { requests, connections };
        Row {
            rung,
            result: Ok(Figures { time, tally, round_trips: seconds / 0.05, floor_ratio: seconds / 0.15 }),
            trace: Trace::default(),
        }
    }

    fn failed() -> Row {
        Row { rung: Rung::Http2, result: Err(RivalError::NoHttp2.into()), trace: Trace::default() }
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
