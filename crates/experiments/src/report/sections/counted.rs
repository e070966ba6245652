//! Uploads of small files, read-modify-writes, deletes by the thousand, listings, and ranges.

use super::{against_floor, bar, distance, lanes, open_connections, path};
use crate::Compared as _;
use crate::counted::{Bench, Counted, Figures};
use crate::report::canvas::Colour;
use crate::report::glance::Glance;
use crate::report::{Part, Section};
use crate::{Error, Row};

/// A run above this multiple of the floor isn't drawn, because the other curves would become too flat.
const SHOWN_RATIO: f64 = 6.0;

struct Words {
    title: &'static str,
    text: String,
    bars: &'static str,
    floor: &'static str,
}

pub(in crate::report) fn counted(found: &Counted) -> Result<Section, Error> {
    let Words { title, text, bars: bars_title, floor } = words(found);
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
    for row in rows.iter().filter(|row| row.is_ours()) {
        if let Some(trace) = row.trace() {
            parts.push(lanes(trace, row.description)?);
        }
    }
    Ok(Section {
        id: found.bench.name(),
        title: title.to_owned(),
        what: found.what.clone(),
        programs: found.programs.clone(),
        path: path(found.link, &found.store, found.rtt_s),
        text,
        parts,
        glances: Glance::of(rows, &Figures::MEASURES[0], found.floor_s),
    })
}

fn words(found: &Counted) -> Words {
    let (objects, store, away) = (found.objects, &found.store, distance(found.rtt_s));
    match found.bench {
        Bench::Ladder => Words {
            title: "Many small files up",
            text: format!(
                "{} to {store} ({away} away), in five usual ways and with Laneway, each from nothing: no connection is open \
                 before.",
                found.what
            ),
            bars: "Seconds until the last file is there",
            floor: "Each way pays for fewer round trips and handshakes than the one above it; the line is the least time \
                    that the path allows.",
        },
        Bench::Commit => Words {
            title: "Read-modify-writes",
            text: format!(
                "{objects} objects are read, changed and written back under the condition that nobody else has changed \
                 them, at {store} ({away} away): what a commit of a lakehouse table does."
            ),
            bars: "Seconds until the last write is acknowledged",
            floor: "The line is the least: TCP, TLS, all reads in one round trip, all writes in another.",
        },
        Bench::Clean => Words {
            title: "Deletes by the thousand",
            text: format!(
                "{objects} objects are deleted at {store} ({away} away): once by whoever knows their keys, and once by whoever \
                 knows a prefix and has to list it first, which takes round trips more. Each is compared with its like."
            ),
            bars: "Seconds until the last object is gone",
            floor: "The line is the least for whoever knows the keys: TCP, TLS and one request.",
        },
        Bench::List => Words {
            title: "Listings",
            text: format!(
                "{objects} keys are listed at {store} ({away} away): half of them lie in one folder, a quarter in folders of days, \
                 and the rest in many small ones. Laneway is told the prefix alone; the chains of folders know them all."
            ),
            bars: "Seconds until the last key is there",
            floor: "The line is the least for one page: TCP, TLS and one request.",
        },
        Bench::Ranges => Words {
            title: "Scattered ranges",
            text: format!(
                "{objects} ranges of 4 to 64 KiB are read anywhere in one object at {store} ({away} away): what a reader of an \
                 index does."
            ),
            bars: "Seconds until the last range is there",
            floor: "The line is the least: TCP, TLS, all ranges in one round trip, and their bytes.",
        },
        Bench::Columns => Words {
            title: "Columns of a table",
            text: format!(
                "{objects} ranges are read of one object at {store} ({away} away): a footer, and when that is there three \
                 columns of fifty in each of 64 row groups, as a query does with a Parquet file."
            ),
            bars: "Seconds until the last column is there",
            floor: "The line is the least: TCP, TLS, the footer in one round trip, all columns in another, and their bytes.",
        },
    }
}
