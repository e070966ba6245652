//! The result of experiments with many operations: the time of all operations together, and the number of requests and
//! connections.

use serde::{Deserialize, Serialize};

use crate::errand::Measured;
use crate::place::Imitated;
use crate::program::Took;
use crate::rival::Tally;
use crate::stage::Stage;
use crate::table::{Table, seconds};
use crate::turns::{Compared, Event, Measure, Repeats, Row, Rung, turns};
use crate::{Error, Failure};

/// The result of an experiment with many small operations on objects.
#[derive(Debug)]
pub struct Counted {
    /// The experiment.
    pub bench: Bench,
    /// The store's URL.
    pub store: String,
    /// The conditions that the embedded store simulated, if the store was embedded.
    pub link: Option<Imitated>,
    /// Number of objects, or of ranges of one object.
    pub objects: usize,
    /// The job as a readable text that begins with a verb: `upload 50 empty files`.
    pub what: String,
    /// Names and versions of the other vendors' programs that took part.
    pub programs: Vec<String>,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// The shortest time that the path permits, in seconds.
    pub floor_s: f64,
    /// One row per method.
    pub rows: Vec<Row<Figures>>,
}

/// The experiments whose result is a [`Counted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bench {
    /// [Uploads of small files](crate::ladder).
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
    /// Returns the experiment's name in JSON.
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

/// The cost of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Seconds from the client's start to the last answer.
    pub seconds: f64,
    /// Requests sent.
    pub requests: u64,
    /// Connections opened.
    pub connections: u64,
    /// The time in round trips.
    pub round_trips: f64,
    /// The time divided by [`Counted::floor_s`].
    pub floor_ratio: f64,
}

/// The result of one run.
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
    /// Converts the measurements of an installed program into the result of a run.
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
    /// Runs every method on `objects` objects, `runs` times, with the methods taking turns.
    ///
    /// # Errors
    /// Returns the error of `one`. If only one method fails, its row holds the failure.
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

    /// Returns the human-readable table.
    pub fn table(&self) -> Table {
        let head = ["method", "seconds", "requests", "connections", "round trips", "time / shortest"];
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
