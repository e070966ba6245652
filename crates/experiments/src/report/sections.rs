//! The sections of the results, and their texts.

mod counted;
mod links;
mod mixed;
mod slices;

use super::bars::{Bar, bars};
use super::svg::Colour;
use super::{Figure, Part};
use crate::place::Imitated;
use crate::table::seconds;
use crate::{Compared, Measure, Row};
pub(super) use counted::counted;
use laneway_quantity::{link_rate, size};
pub(super) use links::links;
pub(super) use mixed::mixed;
pub(super) use slices::slices;

/// Returns a human-readable description of the path to a store.
pub(crate) fn path(link: Option<Imitated>, store: &str, rtt_s: f64) -> String {
    let Some(Imitated { rtt, bandwidth, queue, loss, connection_bandwidth, .. }) = link else {
        return format!("the path to {store} (round trip {})", distance(rtt_s));
    };
    let rtt = distance(rtt.as_secs_f64());
    let capped = connection_bandwidth
        .map(|cap| format!(", with at most {} for each connection", link_rate(cap)))
        .unwrap_or_default();
    let Some(rate) = bandwidth else {
        return format!("an imitated round trip of {rtt} without a bandwidth limit{capped}");
    };
    let queue = queue.map_or_else(|| "one round trip's bytes".to_owned(), size);
    let lost = if loss > 0.0 {
        format!(", a loss of {} % of its packets", (loss * 1e4).round() / 100.0)
    } else {
        String::new()
    };
    format!(
        "an imitated link with a round trip of {rtt}, {} for all connections together{lost}, and a queue of {queue}{capped}",
        link_rate(rate)
    )
}

/// Returns a round trip as human-readable text.
fn distance(rtt_s: f64) -> String {
    match rtt_s * 1000.0 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Draws a bar for each row's median, and a line at the shortest time that the path permits.
fn against_floor<F: Compared>(
    rows: &[Row<F>],
    measure: &Measure<F>,
    floor_s: f64,
    title: &str,
    caption: &str,
) -> Part {
    let bar = |row: &Row<F>| {
        let value = row.spread(measure.value).map(|spread| spread.median);
        Bar {
            name: row.description.to_owned(),
            value,
            // Each bar has its name above it, so a colour is only needed to mark Laneway's.
            colour: if row.is_ours() { Colour::Ours } else { Colour::Rival(0) },
            number: value.map_or("no figure".to_owned(), |value| format!("{} s", seconds(value))),
        }
    };
    let floor = format!("shortest possible time {} s", seconds(floor_s));
    let rows: Vec<Bar> = rows.iter().map(bar).collect();
    let (drawing, is_logarithmic) = bars(&rows, (floor_s, &floor));
    let note = if is_logarithmic { "The axis is logarithmic. " } else { "" };
    Part::Figure(Figure {
        title: title.to_owned(),
        drawing,
        legend: Vec::new(),
        caption: format!("{note}{caption}"),
    })
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
            "an imitated link with a round trip of 20 ms, 1 Gbit/s for all connections together, and a queue of one round trip's bytes"
        );
        assert_eq!(
            path(Some(Imitated { queue: Some(256 << 10), loss: 0.005, ..gigabit })),
            "an imitated link with a round trip of 20 ms, 1 Gbit/s for all connections together, a loss of 0.5 % of its packets, and a queue of 256 KiB"
        );
        assert_eq!(path(Some(link(None))), "an imitated round trip of 20 ms without a bandwidth limit");
        assert_eq!(
            path(Some(Imitated { connection_bandwidth: Some(50_000_000), ..link(None) })),
            "an imitated round trip of 20 ms without a bandwidth limit, with at most 400 Mbit/s for each connection"
        );
        assert_eq!(path(None), "the path to https://h (round trip 20 ms)");
    }
}
