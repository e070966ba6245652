//! The section on small objects that are moved at the same time as large ones.

use super::{against_floor, path};
use crate::mixed::{ArrivalFigures, Figures, Mixed};
use crate::report::distribution::distribution;
use crate::report::svg::Colour;
use crate::report::timeline::{LANES_MAX, Timeline};
use crate::report::{Figure, Part, Score, Section};
use crate::{Compared as _, Latencies, Role, Row, Trace};

pub(in crate::report) fn mixed(found: &Mixed) -> Section {
    let noun = if found.puts { "uploads" } else { "downloads" };
    let title = format!("Small {noun} together with large ones");
    let rows = &found.together;
    let caption = match found.link.and_then(|link| link.bandwidth) {
        Some(_) => {
            "The line shows the shortest possible time. It assumes that the smallest objects are moved first, at the link's full speed."
        }
        None => {
            "The line shows the shortest possible time. It includes only the round trips, not the time to move the bytes, because the \
             link's rate is unknown."
        }
    };
    let mut parts = vec![
        against_floor(
            rows,
            &Figures::MEASURES[0],
            found.floor_s,
            "Seconds that the median small object takes when all objects start together",
            caption,
        ),
        Part::Table(found.table()),
        Part::Table(found.verdicts()),
        latencies(rows, |figures: &Figures| &figures.latencies, (&found.floors, "shortest possible time")),
    ];
    let traces = ["pool-50", "laneway"].into_iter().filter_map(|name| {
        let row = rows.iter().find(|row| row.rung == name)?;
        Some((&row.figures()?.trace, row.description))
    });
    let traces: Vec<(&Trace, &str)> = traces.collect();
    // End the plot when the small objects are complete. The large ones take much longer, so the plot would be mostly
    // empty.
    let end_s = traces.iter().map(|(trace, _)| trace.small_end_s() * 1.1).fold(0.0, f64::max);
    parts.extend(traces.into_iter().map(|(trace, name)| requests(trace, name, end_s)));
    let mut scores: Vec<_> =
        Figures::MEASURES.iter().flat_map(|measure| Score::of(&title, rows, measure)).collect();
    if let (Some(table), Some(verdicts)) = (found.arrivals_table(), found.arrivals_verdicts()) {
        let one_trip = Latencies::new(vec![found.rtt_s]);
        parts.extend([
            Part::Heading("Small objects at random times while large ones move"),
            Part::Text(
                "The same small objects are requested at random times, once on an idle link and once while large ones move. A latency \
                 is the time from an object's request until the object is complete. On the idle link, the first objects find no open \
                 connection."
                    .to_owned(),
            ),
            Part::Table(table),
            Part::Table(verdicts),
            latencies(&found.arrivals, |figures: &ArrivalFigures| &figures.beside, (&one_trip, "one round trip")),
        ]);
        let measures = ArrivalFigures::MEASURES.iter();
        scores.extend(measures.flat_map(|measure| Score::of(&title, &found.arrivals, measure)));
    }
    Section {
        id: if found.puts { "mixed-puts" } else { "mixed" },
        text: format!(
            "{} start together over {}. How long do small objects wait because large ones move at the same time?",
            found.what,
            path(found.link, &found.store, found.rtt_s)
        ),
        title,
        programs: found.programs.clone(),
        parts,
        scores,
    }
}

/// Plots the latencies of each method that has figures.
fn latencies<F>(
    rows: &[Row<F>],
    of: impl Fn(&F) -> &Latencies,
    (floor, floor_name): (&Latencies, &str),
) -> Part {
    // Draw only the experiment's own methods. With installed programs, there would be too many curves.
    let rows = rows.iter().enumerate().filter(|(_, row)| row.group.is_empty());
    let named = rows
        .filter_map(|(place, row)| Some((of(row.figures()?), Colour::of(row.rung, place), row.description)));
    let all: Vec<_> = [(floor, Colour::Floor, floor_name)].into_iter().chain(named).collect();
    let curves: Vec<_> = all.iter().map(|(latencies, colour, _)| (*latencies, *colour)).collect();
    Part::Figure(Figure {
        title: "Share of the small objects that have arrived, by the time since they were requested".to_owned(),
        drawing: distribution(&curves),
        legend: all.iter().map(|(_, colour, name)| (*colour, (*name).to_owned())).collect(),
        caption: "The time is logarithmic. A curve further to the left is better. A curve that bends right at the top shows objects \
                  that waited for large ones to end."
            .to_owned(),
    })
}

/// Plots the requests of a run until the small objects have arrived.
fn requests(trace: &Trace, name: &str, end_s: f64) -> Part {
    let timeline = Timeline::until(trace, end_s);
    let more = match timeline.lanes {
        lanes if lanes > LANES_MAX => format!(" These are the first {LANES_MAX} of {lanes} connections."),
        _ => String::new(),
    };
    let has = |role| trace.spans.iter().any(|span| span.role == role);
    let colours = [
        (Colour::Small, "small objects", has(Role::Express)),
        (Colour::Freight, "large objects", has(Role::Freight)),
        (Colour::Held, "large objects, held back for small ones", !trace.held.is_empty()),
    ];
    let shown = colours.into_iter().filter(|(.., is_shown)| *is_shown);
    Part::Figure(Figure {
        title: format!("{name}: requests on each connection, until the small objects have arrived"),
        drawing: timeline.draw(),
        legend: shown.map(|(colour, name, _)| (colour, name.to_owned())).collect(),
        caption: format!(
            "A row is a connection. A bar is a request, from its start to the end of its answer.{more}"
        ),
    })
}
