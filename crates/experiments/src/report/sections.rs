//! The sections of the results, and their texts.

mod counted;
mod links;
mod mixed;
mod slices;

use super::bars::{Bar, bars};
use super::canvas::Colour;
use super::connections::connections;
use super::timeline::{LANES_MAX, Timeline};
use super::{Figure, Part};
use crate::place::Imitated;
use crate::table::seconds;
use crate::{Error, Row, Trace};
pub(super) use counted::counted;
use laneway_quantity::{link_rate, size};
pub(super) use links::links;
pub(super) use mixed::mixed;
pub(super) use slices::slices;

/// Describes the path to a store, for people.
pub(crate) fn path(link: Option<Imitated>, store: &str, rtt_s: f64) -> String {
    let Some(Imitated { rtt, bandwidth, queue, loss, connection_bandwidth, .. }) = link else {
        return format!("the path to {store} ({})", distance(rtt_s));
    };
    let rtt = distance(rtt.as_secs_f64());
    let capped = connection_bandwidth
        .map(|cap| format!(", at most {} a connection", link_rate(cap)))
        .unwrap_or_default();
    let Some(rate) = bandwidth else {
        return format!("an imitated delay of {rtt} without a limit of bandwidth{capped}");
    };
    let queue = queue.map_or_else(|| "a round trip".to_owned(), size);
    let lost = if loss > 0.0 {
        format!(" that loses {} % of its packets", (loss * 1e4).round() / 100.0)
    } else {
        String::new()
    };
    format!(
        "an imitated link of {rtt} and {}{lost}, shared by all connections, with a queue of {queue}{capped}",
        link_rate(rate)
    )
}

/// Formats a round trip for people.
fn distance(rtt_s: f64) -> String {
    match rtt_s * 1000.0 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Builds a bar. Its name stands beside it, so only Laneway needs its own colour.
fn bar(name: &str, rung: &str, value: Option<f64>) -> Bar {
    let number = value.map_or("no figure".to_owned(), |value| format!("{} s", seconds(value)));
    let colour = if rung.contains("laneway") { Colour::Ours } else { Colour::Rival(0) };
    Bar { name: name.to_owned(), value, colour, number }
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

/// Draws open connections, or returns `None` if no run can be drawn.
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_short_distance_has_a_digit_more() {
        assert_eq!([0.0056, 0.0504].map(distance), ["5.6 ms", "50 ms"]);
    }

    #[test]
    fn a_link_is_told_by_what_it_imitates() {
        let link = |bandwidth| Imitated { bandwidth, ..Imitated::at(Duration::from_millis(20)) };
        let path = |link| path(link, "https://h", 0.02);
        let gigabit = link(Some(125_000_000));
        assert_eq!(
            path(Some(gigabit)),
            "an imitated link of 20 ms and 1 Gbit/s, shared by all connections, with a queue of a round trip"
        );
        assert_eq!(
            path(Some(Imitated { queue: Some(256 << 10), loss: 0.005, ..gigabit })),
            "an imitated link of 20 ms and 1 Gbit/s that loses 0.5 % of its packets, shared by all connections, with a queue of 256 KiB"
        );
        assert_eq!(path(Some(link(None))), "an imitated delay of 20 ms without a limit of bandwidth");
        assert_eq!(
            path(Some(Imitated { connection_bandwidth: Some(50_000_000), ..link(None) })),
            "an imitated delay of 20 ms without a limit of bandwidth, at most 400 Mbit/s a connection"
        );
        assert_eq!(path(None), "the path to https://h (20 ms)");
    }
}
