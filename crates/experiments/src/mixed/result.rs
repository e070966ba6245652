//! The results for small objects that were moved at the same time as large ones.

use serde::{Deserialize, Serialize};

use super::Found;
use crate::errand::Measured;
use crate::latency::Latencies;
use crate::place::Imitated;
use crate::table::{Table, seconds};
use crate::trace::Trace;
use crate::turns::{Compared, Measure, Row};

/// The result of a mixed experiment.
#[derive(Debug)]
pub struct Mixed {
    /// The store's URL.
    pub store: String,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// The conditions that the embedded store simulated, if the store was embedded.
    pub link: Option<Imitated>,
    /// Names and versions of the other vendors' programs that took part.
    pub programs: Vec<String>,
    /// Number and size of the objects, as human-readable text.
    pub what: String,
    /// `true` if the objects were uploaded.
    pub puts: bool,
    /// The lowest possible median time of small objects that are requested together with large ones, in seconds. This time consists of
    /// opening a connection and making a request. If the bandwidth is known, the time to move the smaller half of the small objects is
    /// added.
    pub floor_s: f64,
    /// The shortest possible time of each small object, in seconds, if the smallest are moved first.
    pub floors: Latencies,
    /// The shortest possible time in which all objects can be moved, in seconds.
    pub total_floor_s: f64,
    /// The case in which all objects are requested at once, with one row per method.
    pub together: Vec<Row<Figures>>,
    /// The case in which small objects arrive at random, if it was requested.
    pub arrivals: Vec<Row<ArrivalFigures>>,
}

/// Figures of a run in which all objects were requested at once. Latencies count from the moment of these requests.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Median of the small objects, in seconds.
    pub small_p50_s: f64,
    /// The 99th percentile of the small objects, in seconds.
    pub small_p99_s: f64,
    /// The maximum of the small objects, in seconds.
    pub small_max_s: f64,
    /// Seconds until the last object was complete.
    pub total_s: f64,
    /// Connections opened.
    pub connections: u64,
    /// Requests sent.
    pub requests: u64,
    /// The median divided by the floor.
    pub floor_ratio: f64,
    /// All latencies of small objects.
    #[serde(skip)]
    pub latencies: Latencies,
    /// The requests on each connection. Empty for an installed program.
    #[serde(skip)]
    pub trace: Trace,
}

/// Figures of small objects that arrived at random. Latencies count from each arrival.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ArrivalFigures {
    /// The median latency on the idle link, in seconds.
    pub idle_p50_s: f64,
    /// The 99th percentile on the idle link, in seconds.
    pub idle_p99_s: f64,
    /// The median latency while large objects are moved, in seconds.
    pub beside_p50_s: f64,
    /// The 99th percentile while large objects are moved, in seconds.
    pub beside_p99_s: f64,
    /// The maximum while large objects are moved, in seconds.
    pub beside_max_s: f64,
    /// Connections opened in the run with large objects.
    pub connections: u64,
    /// Seconds until the last small object was complete in the run with large objects.
    pub beside_total_s: f64,
    /// Throughput of the large objects meanwhile, in MiB per second.
    pub bulk_mib_s: f64,
    /// The median while large objects are moved, divided by the median on the idle link.
    pub idle_ratio: f64,
    /// All latencies on the idle link.
    #[serde(skip)]
    pub idle: Latencies,
    /// All latencies while large objects are moved.
    #[serde(skip)]
    pub beside: Latencies,
}

impl Mixed {
    /// Returns whether Laneway has all its figures, or was skipped because the store lacks a feature.
    pub fn is_complete(&self) -> bool {
        self.together.iter().all(Row::is_fine) && self.arrivals.iter().all(Row::is_fine)
    }

    /// Returns the human-readable table for the case in which all objects are requested at once.
    pub fn table(&self) -> Table {
        let head = ["method", "small p50 s", "p99 s", "max s", "total s", "connections", "p50 / shortest"];
        Table::of(&head, &self.together, |row, f| {
            vec![
                median(row, |f| f.small_p50_s),
                median(row, |f| f.small_p99_s),
                median(row, |f| f.small_max_s),
                median(row, |f| f.total_s),
                f.connections.to_string(),
                format!("{:.2}", f.floor_ratio),
            ]
        })
    }

    /// Returns a table that compares the methods in the case in which all objects are requested at once.
    pub fn verdicts(&self) -> Table {
        Table::compared(&["method"], &self.together, |_| Vec::new())
    }

    /// Returns the human-readable table for the case of random arrivals, or `None` if it wasn't measured.
    pub fn arrivals_table(&self) -> Option<Table> {
        let head = [
            "method",
            "idle p50 s",
            "idle p99 s",
            "with large p50 s",
            "p99 s",
            "max s",
            "large MiB/s",
            "connections",
            "p50 / idle",
        ];
        let table = Table::of(&head, &self.arrivals, |row, f| {
            vec![
                median(row, |f| f.idle_p50_s),
                median(row, |f| f.idle_p99_s),
                median(row, |f| f.beside_p50_s),
                median(row, |f| f.beside_p99_s),
                median(row, |f| f.beside_max_s),
                format!("{:.0}", f.bulk_mib_s),
                f.connections.to_string(),
                format!("{:.2}", f.idle_ratio),
            ]
        });
        (!self.arrivals.is_empty()).then_some(table)
    }

    /// Returns a table that compares the methods in the case of random arrivals, or `None` if it wasn't measured.
    pub fn arrivals_verdicts(&self) -> Option<Table> {
        let table = || Table::compared(&["method"], &self.arrivals, |_| Vec::new());
        (!self.arrivals.is_empty()).then(table)
    }
}

/// Returns the median of a figure over the runs. Each figure has its own median, so two medians can come from different runs.
fn median<F>(row: &Row<F>, value: fn(&F) -> f64) -> String {
    row.spread(value).map(|spread| seconds(spread.median)).unwrap_or_default()
}

impl Compared for Figures {
    const MEASURES: &'static [Measure<Self>] = &[
        Measure {
            name: "small_p50_s",
            short: "median of the small objects",
            heads: ["p50 range s", "Laneway"],
            value: |figures| figures.small_p50_s,
        },
        Measure {
            name: "small_p99_s",
            short: "99th percentile of the small objects",
            heads: ["p99 range s", "Laneway"],
            value: |figures| figures.small_p99_s,
        },
        Measure {
            name: "total_s",
            short: "time until all objects are complete",
            heads: ["total range s", "Laneway"],
            value: |figures| figures.total_s,
        },
    ];

    fn lasted_s(&self) -> f64 {
        self.total_s
    }
}

impl Compared for ArrivalFigures {
    const MEASURES: &'static [Measure<Self>] = &[
        Measure {
            name: "beside_p50_s",
            short: "median of small objects at random times",
            heads: ["p50 range s", "Laneway"],
            value: |figures| figures.beside_p50_s,
        },
        Measure {
            name: "beside_p99_s",
            short: "99th percentile of small objects at random times",
            heads: ["p99 range s", "Laneway"],
            value: |figures| figures.beside_p99_s,
        },
    ];

    fn lasted_s(&self) -> f64 {
        self.beside_total_s
    }
}

pub(super) fn figures(measured: Measured<Found>, floor_s: f64) -> Figures {
    let found = measured.found;
    Figures {
        small_p50_s: found.small.percentile(50.0),
        small_p99_s: found.small.percentile(99.0),
        small_max_s: found.small.max(),
        total_s: found.total_s,
        connections: found.tally.connections,
        requests: found.tally.requests,
        floor_ratio: found.small.percentile(50.0) / floor_s.max(f64::MIN_POSITIVE),
        latencies: found.small,
        trace: found.trace,
    }
}

pub(super) fn arrival_figures(idle: Measured<Found>, beside: Measured<Found>) -> ArrivalFigures {
    let (idle, beside) = (idle.found, beside.found);
    let mib = beside.bulk_bytes as f64 / f64::from(1 << 20);
    ArrivalFigures {
        idle_p50_s: idle.small.percentile(50.0),
        idle_p99_s: idle.small.percentile(99.0),
        beside_p50_s: beside.small.percentile(50.0),
        beside_p99_s: beside.small.percentile(99.0),
        beside_max_s: beside.small.max(),
        connections: beside.tally.connections,
        beside_total_s: beside.total_s,
        bulk_mib_s: mib / beside.total_s.max(f64::MIN_POSITIVE),
        idle_ratio: beside.small.percentile(50.0) / idle.small.percentile(50.0).max(f64::MIN_POSITIVE),
        idle: idle.small,
        beside: beside.small,
    }
}
