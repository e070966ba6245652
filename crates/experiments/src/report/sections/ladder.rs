//! Many small files up.

use super::{Quickest, against_floor, bar, distance, lanes, open_connections};
use crate::Error;
use crate::ladder::{Ladder, Row};
use crate::report::canvas::Colour;
use crate::report::{Part, Section};

/// A run that takes more than so many times the floor would press the others against the axis.
const SHOWN_RATIO: f64 = 4.0;

pub(in crate::report) fn ladder(found: &Ladder) -> Result<Section, Error> {
    let rows = || found.rows.iter().enumerate();
    let value = |row: &Row| row.result.as_ref().ok().map(|figures| figures.time.as_secs_f64());
    let bars = rows().map(|(_, row)| bar(row.rung.description(), row.rung.name(), value(row)));
    let traces: Vec<_> = rows()
        .filter(|(_, row)| row.result.as_ref().is_ok_and(|figures| figures.floor_ratio < SHOWN_RATIO))
        .map(|(place, row)| (&row.trace, Colour::of(row.rung.name(), place), row.rung.description()))
        .collect();
    let mut parts = vec![
        Part::Table(found.table()),
        Part::Figure(against_floor(
            bars.collect(),
            found.floor.as_secs_f64(),
            "Seconds until the last file is there",
            "Each way pays for fewer round trips and handshakes than the one above it; the line is the least time that \
             the path allows.",
        )?),
    ];
    parts.extend(open_connections(&traces, traces.len() < found.rows.len())?);
    let laneway = found.rows.iter().find(|row| row.rung.name() == "laneway");
    if let Some(row) = laneway.filter(|row| row.result.is_ok()) {
        parts.push(lanes(&row.trace, "Laneway")?);
    }
    let quickest = rows().map(|(_, row)| (row.rung.name(), row.rung.description(), value(row)));
    Ok(Section {
        id: "ladder",
        title: "Many small files up".to_owned(),
        text: format!(
            "The same small files are uploaded to {} ({} away) in five usual ways and with Laneway, each from nothing: no \
             connection is open before.",
            found.store,
            distance(found.rtt.as_secs_f64())
        ),
        parts,
        quickest: vec![Quickest::of("until the last file is there", quickest, found.floor.as_secs_f64())],
    })
}
