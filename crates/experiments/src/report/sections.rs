//! The sections of the results, and their texts.

use laneway_quantity::{link_rate, readable_size, size};

use super::plots::{Bar, bars};
use crate::counted::{Bench, Counted};
use crate::links::{Course, Leg, Links};
use crate::mixed::{ArrivalFigures, Figures, Mixed};
use crate::place::Imitated;
use crate::report::plots::{LANES_MAX, Timeline, distribution};
use crate::report::svg::Colour;
use crate::report::{Figure, Part, Score, Section};
use crate::slices::Slices;
use crate::table::seconds;
use crate::{Compared, Latencies, Measure, Role, Row, Trace};

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

pub(in crate::report) fn counted(found: &Counted) -> Section {
    let [title, text, bars, floor] = words(found.bench);
    let measure = &crate::counted::Figures::MEASURES[0];
    let path = path(found.link, &found.store, found.rtt_s);
    Section {
        id: found.bench.name(),
        title: title.to_owned(),
        programs: found.programs.clone(),
        text: format!("Each method has to {} over {path}. {text}", found.what),
        parts: vec![
            against_floor(&found.rows, measure, found.floor_s, bars, floor),
            Part::Table(found.table()),
        ],
        scores: Score::of(title, &found.rows, measure),
    }
}

/// Returns the section's title, a paragraph, the title of the bar plot, and a sentence about the line in it.
fn words(bench: Bench) -> [&'static str; 4] {
    match bench {
        Bench::Ladder => [
            "Uploading many small files",
            "Every method starts without an open connection.",
            "Seconds until the last file is stored",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), and the round trips \
             that TCP needs for the largest file. It assumes that all files are uploaded at the same time.",
        ],
        Bench::Commit => [
            "Changing many objects",
            "Each method reads each object, changes it, and writes it back if no other client has changed it. Commits to lakehouse \
             tables do this.",
            "Seconds until the last write is acknowledged",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for all reads \
             together, and one for all writes together.",
        ],
        Bench::Clean => [
            "Deleting thousands of objects",
            "Some methods know the keys. Others know a prefix and list it first, which takes more round trips. The two groups are \
             compared separately.",
            "Seconds until the last object is gone",
            "The line shows the shortest possible time for a client that knows the keys. It includes one round trip for each handshake \
             (TCP and TLS), and one for all deletes together.",
        ],
        Bench::List => [
            "Listing many keys",
            "Half of the keys lie in one folder, a quarter in folders named after days, and the rest in many small folders. Laneway is \
             given only the prefix. The methods that list all folders at once are given the names of the folders.",
            "Seconds until the last key has arrived",
            "The line shows the shortest possible time for a single page of keys. It includes one round trip for each handshake (TCP and \
             TLS), and one for the request.",
        ],
        Bench::Ranges => [
            "Reading scattered ranges of one object",
            "The ranges are 4 to 64 KiB long and lie anywhere in the object. Readers of an index make such requests.",
            "Seconds until the last range has arrived",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for all ranges \
             together, and the time to move their bytes if the link's rate is known.",
        ],
        Bench::Columns => [
            "Reading columns of a table",
            "Each method reads a footer, and then three of fifty columns in each of 64 row groups. Queries of Parquet files make such \
             requests.",
            "Seconds until the last column has arrived",
            "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for the footer, \
             one for all columns together, and the time to move the bytes if the link's rate is known.",
        ],
    }
}

const TITLE: &str = "Downloading one object";

pub(in crate::report) fn slices(found: &[Slices]) -> Section {
    let mut programs: Vec<_> = found.iter().flat_map(|leg| leg.programs.clone()).collect();
    programs.sort();
    programs.dedup();
    Section {
        id: "slices",
        title: TITLE.to_owned(),
        programs,
        text: "Each method downloads an object into a file and compares its checksum. The method with five fixed parts reads the file back \
               to compute the checksum. Laneway and the method with one stream compute it while the bytes arrive. \"Sent again\" is \
               the number of segments that the link lost and the server sent again, as a share of the segments that the object needs."
            .to_owned(),
        parts: found.iter().flat_map(compared).collect(),
        scores: found.iter().flat_map(|leg| Score::of(&short_name(leg), &leg.rows, &crate::slices::Figures::MEASURES[0])).collect(),
    }
}

/// Shows one object over one link: the seconds of each method, and a table.
fn compared(leg: &Slices) -> [Part; 3] {
    let figure = against_floor(
        &leg.rows,
        &crate::slices::Figures::MEASURES[0],
        leg.floor_s,
        "Seconds until the file is complete and its checksum compared",
        "The line shows the shortest possible time. It includes one round trip for each handshake (TCP and TLS), one for the request, \
         and the time to move the bytes if the link's rate is known. It doesn't include processor time.",
    );
    [Part::Text(leg.name()), figure, Part::Table(leg.table())]
}

/// Returns a name for the object and its link that is short enough for a list.
fn short_name(leg: &Slices) -> String {
    let cap = leg.link.and_then(|link| link.connection_bandwidth);
    let cap = cap.map(|cap| format!(", at most {} for each connection", link_rate(cap))).unwrap_or_default();
    format!("{TITLE} of {}, {}{cap}", readable_size(leg.size), distance(leg.rtt_s))
}

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

pub(in crate::report) fn links(found: &Links) -> Section {
    let tables = Course::ALL.map(|course| Part::Table(found.table(course)));
    Section {
        id: "links",
        title: "Small and large objects at once, over each link".to_owned(),
        programs: Vec::new(),
        text: "Four large objects are moved together with 60 to 200 small ones of 32 to 512 KiB. Their sizes are chosen so that the link \
               carries all of them in a few seconds. Each line is an imitated link: its round trip, its rate, the size of its queue, and \
               the share of packets that it loses. Each figure is Laneway's median. Next to it are its multiple of the shortest possible \
               time, and a comparison with a pool of 50 HTTP/1.1 connections. The shortest possible time consists of three round trips \
               and the time to move the bytes at the link's rate, the smallest objects first."
            .to_owned(),
        parts: tables.into_iter().chain([Part::Table(found.commands())]).collect(),
        scores: found.found.iter().flat_map(scores).collect(),
    }
}

fn scores(leg: &Leg) -> impl Iterator<Item = Score> {
    let title = format!("{}, {}", leg.link, leg.course.title());
    Figures::MEASURES.iter().flat_map(move |measure| Score::of(&title, &leg.mixed.together, measure))
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
