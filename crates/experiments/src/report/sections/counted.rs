//! Read-modify-writes, deletes by the thousand, and ranges.

use super::{Quickest, against_floor, bar, distance, lanes, open_connections};
use crate::counted::{Bench, Counted, Figures};
use crate::report::canvas::Colour;
use crate::report::{Part, Section};
use crate::{Error, Row};

/// As in the ladder.
const SHOWN_RATIO: f64 = 6.0;

struct Words {
    title: &'static str,
    text: String,
    bars: &'static str,
    floor: &'static str,
    /// What is timed, and what the names of those rungs begin with that can be compared.
    timed: &'static [(&'static str, &'static str)],
}

pub(in crate::report) fn counted(found: &Counted) -> Result<Section, Error> {
    let Words { title, text, bars: bars_title, floor, timed } = words(found);
    let rows = &found.rows;
    let value = |row: &Row<Figures>| row.figures().map(|figures| figures.seconds);
    let bars = rows.iter().map(|row| bar(row.description, row.rung, value(row))).collect();
    let mut parts = vec![
        Part::Table(found.table()),
        Part::Figure(against_floor(bars, found.floor_s, bars_title, floor)?),
    ];
    let is_shown = |row: &Row<Figures>| row.figures().is_some_and(|f| f.floor_ratio < SHOWN_RATIO);
    let shown = rows.iter().enumerate().filter(|(_, row)| is_shown(row));
    let traces: Vec<_> = shown
        .filter_map(|(place, row)| Some((row.trace()?, Colour::of(row.rung, place), row.description)))
        .collect();
    parts.extend(open_connections(&traces, traces.len() < rows.len())?);
    for row in rows.iter().filter(|row| row.rung.contains("laneway")) {
        if let Some(trace) = row.trace() {
            parts.push(lanes(trace, row.description)?);
        }
    }
    let quickest = timed.iter().filter_map(|(what, store)| {
        let of_store = rows.iter().filter(|row| row.rung.starts_with(store));
        let of_store: Vec<_> = of_store.map(|row| (row.rung, row.description, value(row))).collect();
        (!of_store.is_empty()).then(|| Quickest::of(what, of_store.into_iter(), found.floor_s))
    });
    let quickest = quickest.collect();
    Ok(Section { id: found.bench.name(), title: title.to_owned(), text, parts, quickest })
}

fn words(found: &Counted) -> Words {
    let (objects, store, away) = (found.objects, &found.store, distance(found.rtt_s));
    match found.bench {
        Bench::Commit => Words {
            title: "Read-modify-writes",
            text: format!(
                "{objects} objects are read, changed and written back under the condition that nobody else has changed \
                 them, at {store} ({away} away): what a commit of a lakehouse table does."
            ),
            bars: "Seconds until the last write is acknowledged",
            floor: "The line is the least: TCP, TLS, all reads in one round trip, all writes in another.",
            timed: &[("until the last write is acknowledged", "")],
        },
        Bench::Clean => Words {
            title: "Deletes by the thousand",
            text: format!(
                "{objects} objects are deleted at {store} ({away} away). The rivals know the keys; Laneway is told a \
                 prefix and lists it first, which takes round trips that they don't pay."
            ),
            bars: "Seconds until the last object is gone",
            floor: "The line is the least for whoever knows the keys: TCP, TLS and one request.",
            timed: &[
                ("GCS, until the last object is gone", "gcs"),
                ("S3, until the last object is gone", "s3"),
            ],
        },
        Bench::Ranges => Words {
            title: "Scattered ranges",
            text: format!(
                "{objects} ranges of 4 to 64 KiB are read anywhere in one object at {store} ({away} away): what a reader of an \
                 index does."
            ),
            bars: "Seconds until the last range is there",
            floor: "The line is the least: TCP, TLS, all ranges in one round trip, and their bytes.",
            timed: &[("until the last range is there", "")],
        },
        Bench::Columns => Words {
            title: "Columns of a table",
            text: format!(
                "{objects} ranges are read of one object at {store} ({away} away): a footer, and when that is there three \
                 columns of fifty in each of 64 row groups, as a query does with a Parquet file."
            ),
            bars: "Seconds until the last column is there",
            floor: "The line is the least: TCP, TLS, the footer in one round trip, all columns in another, and their bytes.",
            timed: &[("until the last column is there", "")],
        },
    }
}
