//! Experiments that report a time and what it took: requests and connections.

use serde::{Deserialize, Serialize};

use crate::errand::Measured;
use crate::place::Imitated;
use crate::program::Took;
use crate::rival::Tally;
use crate::stage::Stage;
use crate::table::{Table, seconds};
use crate::turns::{Compared, Event, Measure, Repeats, Row, Rung, turns};
use crate::{Error, Failure};

/// What was found of many small things that are done to objects.
#[derive(Debug)]
pub struct Counted {
    /// Which experiment.
    pub bench: Bench,
    /// The store's URL.
    pub store: String,
    /// What the embedded store imitated, if it was one.
    pub link: Option<Imitated>,
    /// How many objects, or ranges of one.
    pub objects: usize,
    /// These, and what was done to them, for people: `50 uploads of empty files`.
    pub what: String,
    /// The programs of others that took part: names and versions.
    pub programs: Vec<String>,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// The least seconds that the path allows.
    pub floor_s: f64,
    /// A row for each rung.
    pub rows: Vec<Row<Figures>>,
}

/// An experiment that finds such figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bench {
    /// [Small files up](crate::ladder).
    Ladder,
    /// [Read-modify-writes](crate::commit).
    Commit,
    /// [Deletes](crate::clean).
    Clean,
    /// [Listings](crate::list).
    List,
    /// [Scattered ranges](crate::ranges).
    Ranges,
    /// [Columns of a table](crate::ranges).
    Columns,
}

impl Bench {
    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::Commit => "commit",
            Self::Clean => "clean",
            Self::List => "list",
            Self::Ranges => "ranges",
            Self::Columns => "ranges-columns",
        }
    }
}

/// What a run took.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Seconds from nothing to the last answer.
    pub seconds: f64,
    /// Requests sent.
    pub requests: u64,
    /// Connections opened.
    pub connections: u64,
    /// The time in round trips.
    pub round_trips: f64,
    /// The time over the floor.
    pub floor_ratio: f64,
}

/// What the errand of one run brings back.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) seconds: f64,
    pub(crate) tally: Tally,
}

impl Compared for Figures {
    const MEASURES: &'static [Measure<Self>] = &[Measure {
        name: "seconds",
        short: "",
        heads: ["range s", "Laneway"],
        value: |figures| figures.seconds,
    }];

    fn lasted_s(&self) -> f64 {
        self.seconds
    }
}

impl Measured<Found> {
    /// What a program took, as the errand of a run has it.
    pub(crate) fn of_program((took, tally): (Took, Tally)) -> Self {
        Self { found: Found { seconds: took.seconds, tally }, usage: None }
    }
}

fn figures(measured: Measured<Found>, rtt_s: f64, floor_s: f64) -> Figures {
    let Found { seconds, tally } = measured.found;
    Figures {
        seconds,
        requests: tally.requests,
        connections: tally.connections,
        round_trips: seconds / rtt_s.max(f64::MIN_POSITIVE),
        floor_ratio: seconds / floor_s.max(f64::MIN_POSITIVE),
    }
}

impl Counted {
    /// Has every rung take its turns at so many objects, so often.
    ///
    /// # Errors
    /// As `one`. A rung that fails is a row that says so.
    pub(crate) fn find<M: Copy>(
        bench: Bench,
        (objects, what, runs): (usize, String, Repeats),
        stage: &Stage<'_>,
        floor_s: f64,
        rungs: &[Rung<M>],
        tell: &mut dyn FnMut(Event<'_>),
        mut one: impl FnMut(M, usize) -> Result<Result<Measured<Found>, Failure>, Error>,
    ) -> Result<Self, Error> {
        tell(Event::Begun { bench: bench.name(), store: stage.store(), rtt: stage.rtt });
        let rtt_s = stage.rtt.as_secs_f64();
        let one = |method, run| Ok(one(method, run)?.map(|measured| figures(measured, rtt_s, floor_s)));
        let rows = turns(rungs, runs, tell, one)?;
        Ok(Self {
            bench,
            store: stage.store().to_owned(),
            link: stage.link,
            objects,
            what,
            programs: Vec::new(),
            rtt_s,
            floor_s,
            rows,
        })
    }

    /// What people are shown.
    pub fn table(&self) -> Table {
        let head = ["method", "seconds", "requests", "connections", "round trips", "times the least"];
        Table::compared(&head, &self.rows, |f| {
            vec![
                seconds(f.seconds),
                f.requests.to_string(),
                f.connections.to_string(),
                format!("{:.1}", f.round_trips),
                format!("{:.2}", f.floor_ratio),
            ]
        })
    }
}
