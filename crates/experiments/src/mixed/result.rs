//! What was found of small objects beside large ones.

use serde::{Deserialize, Serialize};

use super::Found;
use crate::errand::Measured;
use crate::latency::Latencies;
use crate::table::{Line, Table, seconds};
use crate::turns::{Row, Run};

/// What was found.
#[derive(Debug)]
pub struct Mixed {
    /// The store's URL.
    pub store: String,
    /// The path's round trip in seconds.
    pub rtt_s: f64,
    /// Bytes a second that the embedded store's link carries, where it imitates one.
    pub bandwidth: Option<u64>,
    /// How many objects of what size.
    pub what: String,
    /// Whether objects went up.
    pub puts: bool,
    /// The least median of small objects that are issued with large ones, in seconds: connecting, asking, and the
    /// smaller half of them where the bandwidth is known.
    pub floor_s: f64,
    /// The least seconds of each of the small objects, if the smallest go first.
    pub floors: Latencies,
    /// The least seconds that everything together can take.
    pub total_floor_s: f64,
    /// Everything issued in one breath: a row for each rung.
    pub together: Vec<Row<Figures>>,
    /// Small objects that arrive at random, if they were asked for.
    pub arrivals: Vec<Row<ArrivalFigures>>,
}

/// What a run took in which everything was issued in one breath. Latencies count from there.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Median of the small objects, in seconds.
    pub small_p50_s: f64,
    /// Their 99th percentile.
    pub small_p99_s: f64,
    /// Their maximum.
    pub small_max_s: f64,
    /// Until the last object was there.
    pub total_s: f64,
    /// Connections opened.
    pub connections: u64,
    /// Requests sent.
    pub requests: u64,
    /// The median over the floor.
    pub floor_ratio: f64,
    /// Every latency of a small object.
    #[serde(skip)]
    pub latencies: Latencies,
}

/// What small objects took that arrived at random. Latencies count from the moment of arrival.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct ArrivalFigures {
    /// On the idle link: the median, in seconds.
    pub idle_p50_s: f64,
    /// On the idle link: the 99th percentile.
    pub idle_p99_s: f64,
    /// Beside bulk: the median.
    pub beside_p50_s: f64,
    /// Beside bulk: the 99th percentile.
    pub beside_p99_s: f64,
    /// Beside bulk: the maximum.
    pub beside_max_s: f64,
    /// Connections opened beside bulk.
    pub connections: u64,
    /// Bytes of bulk that went by a second meanwhile, in MiB.
    pub bulk_mib_s: f64,
    /// The median beside bulk over the median on the idle link.
    pub idle_ratio: f64,
    /// Every latency on the idle link.
    #[serde(skip)]
    pub idle: Latencies,
    /// Every latency beside bulk.
    #[serde(skip)]
    pub beside: Latencies,
}

impl Mixed {
    /// Whether every rung has figures, or was skipped.
    pub fn is_complete(&self) -> bool {
        self.together.iter().all(Row::is_fine) && self.arrivals.iter().all(Row::is_fine)
    }

    /// What people are shown of what was issued in one breath.
    pub fn table(&self) -> Table {
        let head = vec!["way", "small p50 s", "p99 s", "max s", "total s", "connections", "p50 / floor"];
        let cells = |f: &Figures| {
            vec![
                seconds(f.small_p50_s),
                seconds(f.small_p99_s),
                seconds(f.small_max_s),
                seconds(f.total_s),
                f.connections.to_string(),
                format!("{:.2}", f.floor_ratio),
            ]
        };
        Table { head, rows: self.together.iter().map(|row| Line::new(row, cells)).collect() }
    }

    /// What people are shown of random arrivals; `None` where there were none.
    pub fn arrivals_table(&self) -> Option<Table> {
        let head = vec![
            "way",
            "idle p50 s",
            "idle p99 s",
            "beside bulk p50 s",
            "p99 s",
            "max s",
            "bulk MiB/s",
            "connections",
            "p50 / idle",
        ];
        let cells = |f: &ArrivalFigures| {
            vec![
                seconds(f.idle_p50_s),
                seconds(f.idle_p99_s),
                seconds(f.beside_p50_s),
                seconds(f.beside_p99_s),
                seconds(f.beside_max_s),
                format!("{:.0}", f.bulk_mib_s),
                f.connections.to_string(),
                format!("{:.2}", f.idle_ratio),
            ]
        };
        let rows: Vec<_> = self.arrivals.iter().map(|row| Line::new(row, cells)).collect();
        (!rows.is_empty()).then_some(Table { head, rows })
    }
}

pub(super) fn figures(measured: Measured<Found>, floor_s: f64) -> Run<Figures> {
    let found = measured.found;
    let figures = Figures {
        small_p50_s: found.small.percentile(50.0),
        small_p99_s: found.small.percentile(99.0),
        small_max_s: found.small.max(),
        total_s: found.total_s,
        connections: found.tally.connections,
        requests: found.tally.requests,
        floor_ratio: found.small.percentile(50.0) / floor_s.max(f64::MIN_POSITIVE),
        latencies: found.small,
    };
    Run { figures, trace: found.trace }
}

pub(super) fn arrival_figures(idle: Measured<Found>, beside: Measured<Found>) -> Run<ArrivalFigures> {
    let (idle, beside) = (idle.found, beside.found);
    let mib = beside.bulk_bytes as f64 / f64::from(1 << 20);
    let figures = ArrivalFigures {
        idle_p50_s: idle.small.percentile(50.0),
        idle_p99_s: idle.small.percentile(99.0),
        beside_p50_s: beside.small.percentile(50.0),
        beside_p99_s: beside.small.percentile(99.0),
        beside_max_s: beside.small.max(),
        connections: beside.tally.connections,
        bulk_mib_s: mib / beside.total_s.max(f64::MIN_POSITIVE),
        idle_ratio: beside.small.percentile(50.0) / idle.small.percentile(50.0).max(f64::MIN_POSITIVE),
        idle: idle.small,
        beside: beside.small,
    };
    Run { figures, trace: beside.trace }
}
