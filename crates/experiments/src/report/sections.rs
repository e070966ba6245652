//! What is shown of each result, and what is said about it.

mod counted;
mod ladder;
mod mixed;
mod slices;

use super::bars::{Bar, bars};
use super::canvas::Colour;
use super::connections::connections;
use super::timeline::{LANES_MAX, Timeline};
use super::{Figure, Part};
use crate::table::seconds;
use crate::{Error, Row, Trace};
pub(super) use counted::counted;
pub(super) use ladder::ladder;
pub(super) use mixed::mixed;
pub(super) use slices::slices;

/// A measure of all rungs, for the head of the page.
#[derive(Clone, Debug)]
pub(super) struct Quickest {
    /// What is timed.
    pub(super) what: &'static str,
    /// Laneway's seconds, if it has any.
    pub(super) ours: Option<f64>,
    /// The seconds of the quickest other rung, and what it does.
    pub(super) other: Option<(f64, &'static str)>,
    /// The slowest other rung's seconds.
    pub(super) slowest: Option<f64>,
    /// The least seconds that the path allows.
    pub(super) floor_s: f64,
}

impl Quickest {
    /// The measure of rungs by their names, for programs and for people.
    fn of(
        what: &'static str,
        rungs: impl Iterator<Item = (&'static str, &'static str, Option<f64>)>,
        floor_s: f64,
    ) -> Self {
        let mut found = Self { what, ours: None, other: None, slowest: None, floor_s };
        for (name, description, value) in rungs {
            let Some(value) = value else { continue };
            if is_ours(name) {
                found.ours = Some(value);
                continue;
            }
            if found.other.is_none_or(|(quickest, _)| value < quickest) {
                found.other = Some((value, description));
            }
            found.slowest = Some(found.slowest.map_or(value, |slowest| slowest.max(value)));
        }
        found
    }
}

/// A round trip, for people.
fn distance(rtt_s: f64) -> String {
    match rtt_s * 1000.0 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Bars have their names beside them, so that only one's colour has to say something.
fn bar(name: &str, rung: &str, value: Option<f64>) -> Bar {
    let number = value.map_or("no figure".to_owned(), |value| format!("{} s", seconds(value)));
    let colour = if is_ours(rung) { Colour::Ours } else { Colour::Rival(0) };
    Bar { name: name.to_owned(), value, colour, number }
}

fn is_ours(rung: &str) -> bool {
    rung.contains("laneway")
}

fn against_floor(rungs: Vec<Bar>, floor_s: f64, title: &str, caption: &str) -> Result<Figure, Error> {
    let name = format!("floor {} s", seconds(floor_s));
    let drawing = bars(&rungs, Some((floor_s, &name)))?;
    Ok(Figure { title: title.to_owned(), drawing, legend: Vec::new(), caption: caption.to_owned() })
}

fn traces<F>(rows: &[Row<F>]) -> Vec<(&Trace, Colour, &'static str)> {
    let rows = rows.iter().enumerate();
    rows.filter_map(|(place, row)| Some((row.trace()?, Colour::of(row.rung, place), row.description)))
        .collect()
}

/// Nothing where no run can be drawn.
fn open_connections(runs: &[(&Trace, Colour, &str)], some_left_out: bool) -> Result<Option<Part>, Error> {
    if runs.is_empty() {
        return Ok(None);
    }
    let lines: Vec<_> = runs.iter().map(|(trace, colour, _)| (*trace, *colour)).collect();
    let left_out = if some_left_out { " The slowest ways are left out." } else { "" };
    Ok(Some(Part::Figure(Figure {
        title: "Open connections, by the time since the run began".to_owned(),
        drawing: connections(&lines)?,
        legend: legend(runs.iter().map(|(_, colour, name)| (*colour, *name))),
        caption: format!("Each of them costs a handshake, and memory at both ends.{left_out}"),
    })))
}

fn lanes(trace: &Trace, whose: &str) -> Result<Part, Error> {
    lanes_of(Timeline::of(trace), trace, whose)
}

fn lanes_of(timeline: Timeline<'_>, trace: &Trace, whose: &str) -> Result<Part, Error> {
    let drawn = match timeline.lanes {
        lanes if lanes > LANES_MAX => format!(" The first {LANES_MAX} of {lanes} connections are drawn."),
        _ => String::new(),
    };
    let small = trace.spans.iter().any(|span| span.role == crate::Role::Express);
    let bulk = trace.spans.iter().any(|span| span.role == crate::Role::Freight);
    let mut colours = Vec::new();
    if small {
        colours.push((Colour::Small, "small requests"));
    }
    if bulk {
        colours.push((Colour::Freight, "bulk"));
    }
    if bulk && !trace.held.is_empty() {
        colours.push((Colour::Held, "bulk that is held back for small requests"));
    }
    Ok(Part::Figure(Figure {
        title: format!("{whose}: who was sent when on which connection"),
        drawing: timeline.draw()?,
        legend: legend(colours.into_iter()),
        caption: format!(
            "A row is a connection, a bar a request from its sending to the end of its answer. Requests that share a \
             connection at the same time stand under each other in its row.{drawn}"
        ),
    }))
}

fn legend<'a>(entries: impl Iterator<Item = (Colour, &'a str)>) -> Vec<(Colour, String)> {
    entries.map(|(colour, name)| (colour, name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_other_way_is_named_and_failures_count_nothing() {
        let rungs =
            [("a", "A", Some(3.0)), ("b", "B", Some(1.0)), ("x-laneway", "L", Some(2.0)), ("c", "C", None)];
        let found = Quickest::of("all", rungs.into_iter(), 0.5);
        assert_eq!((found.ours, found.other, found.slowest), (Some(2.0), Some((1.0, "B")), Some(3.0)));
    }

    #[test]
    fn a_short_distance_has_a_digit_more() {
        assert_eq!([0.0056, 0.0504].map(distance), ["5.6 ms", "50 ms"]);
    }
}
