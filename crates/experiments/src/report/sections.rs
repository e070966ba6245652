//! What is shown of each result, and what is said about it.

use super::bars::{Bar, bars};
use super::canvas::Colour;
use super::connections::connections;
use super::distribution::{Curve, distribution};
use super::timeline::{LANES_MAX, Timeline};
use super::{Figure, Part, Section};
use crate::clean::Clean;
use crate::commit::Commit;
use crate::counted::Figures;
use crate::ladder::Ladder;
use crate::mixed::Mixed;
use crate::slices::Slices;
use crate::table::seconds;
use crate::{Error, Row, Trace};

pub(super) fn ladder(found: &Ladder) -> Result<Section, Error> {
    let rows = || found.rows.iter().enumerate();
    let bar = |(place, row): (usize, &crate::ladder::Row)| {
        let value = row.result.as_ref().ok().map(|figures| figures.time.as_secs_f64());
        bar(row.rung.description(), row.rung.name(), place, value)
    };
    let traces: Vec<_> = rows()
        // One after another for many seconds, they would press the others against the axis.
        .filter(|(_, row)| row.result.as_ref().is_ok_and(|figures| figures.floor_ratio < 8.0))
        .map(|(place, row)| (&row.trace, Colour::of(row.rung.name(), place), row.rung.description()))
        .collect();
    let mut parts = vec![
        Part::Table(found.table()),
        Part::Figure(against_floor(
            rows().map(bar).collect(),
            found.floor.as_secs_f64(),
            "Seconds until the last file is there",
            "Each rung pays for fewer round trips and handshakes than the one \
             above it; the line is the least time that the path allows.",
        )?),
    ];
    parts.push(open_connections(&traces)?);
    let laneway = found.rows.iter().find(|row| row.rung.name() == "laneway");
    if let Some(row) = laneway.filter(|row| row.result.is_ok()) {
        parts.push(lanes(&row.trace, "Laneway's lanes.")?);
    }
    Ok(Section {
        id: "ladder",
        title: "Many small files up".to_owned(),
        text: format!(
            "The same small files are uploaded to {} ({:.0} ms away) in five usual ways and with Laneway, each from \
             nothing: no connection is open before.",
            found.store,
            found.rtt.as_secs_f64() * 1000.0
        ),
        parts,
    })
}

pub(super) fn slices(found: &Slices) -> Result<Section, Error> {
    let rows = || found.rows.iter().enumerate();
    let time = |(place, row): (usize, &Row<crate::slices::Figures>)| {
        bar(row.description, row.rung, place, row.figures().map(|figures| figures.seconds))
    };
    let mut parts = vec![
        Part::Table(found.table()),
        Part::Figure(against_floor(
            rows().map(time).collect(),
            found.floor_s,
            "Seconds until the file is complete and its checksum compared",
            "The program of 2021 reads the file back for \
             that; Laneway adds the checksum up while the bytes pass.",
        )?),
    ];
    let cpu = |row: &Row<crate::slices::Figures>| row.figures().and_then(|figures| figures.cpu_s_per_gib);
    if found.rows.iter().any(|row| cpu(row).is_some()) {
        let bar = |(place, row): (usize, &Row<_>)| bar(row.description, row.rung, place, cpu(row));
        let drawing = bars(&rows().map(bar).collect::<Vec<_>>(), None)?;
        let title = "Processor seconds of the client for each GiB".to_owned();
        let caption =
            "In the kernel and outside: what the download takes from whatever else the machine does.";
        parts.push(Part::Figure(Figure { title, drawing, legend: Vec::new(), caption: caption.to_owned() }));
    }
    parts.push(open_connections(&traces(&found.rows))?);
    for row in found.rows.iter().filter(|row| row.result.is_ok()) {
        if let Some(trace) = row.trace() {
            parts.push(lanes(trace, row.description)?);
        }
    }
    let size = found.size as f64 / f64::from(1 << 20);
    Ok(Section {
        id: "slices",
        title: "One huge object down".to_owned(),
        text: format!(
            "An object of {size:.0} MiB is downloaded from {} ({:.0} ms away) into a file. Each run is a process of its \
             own.",
            found.store,
            found.rtt_s * 1000.0
        ),
        parts,
    })
}

pub(super) fn mixed(found: &Mixed) -> Result<Section, Error> {
    let rows = || found.together.iter().enumerate();
    let p50 = |(place, row): (usize, &Row<crate::mixed::Figures>)| {
        bar(row.description, row.rung, place, row.figures().map(|figures| figures.small_p50_s))
    };
    let curve = |(place, row): (usize, &'_ Row<crate::mixed::Figures>)| {
        row.figures().map(|f| (f.latencies.clone(), Colour::of(row.rung, place), row.description))
    };
    let curves: Vec<_> = rows().filter_map(curve).collect();
    let (verb, noun) = if found.puts { ("uploaded", "upload") } else { ("downloaded", "download") };
    let mut parts = vec![
        Part::Heading("Issued in one breath"),
        Part::Table(found.table()),
        Part::Figure(against_floor(
            rows().map(p50).collect(),
            found.floor_s,
            "Median seconds of the small objects, from the moment of issue",
            "The floor serves the smallest first at the link's full speed.",
        )?),
        Part::Figure(Figure {
            title: "Part of the small objects that are there, by the time since they were asked for".to_owned(),
            drawing: distribution(
                &curves
                    .iter()
                    .map(|(latencies, colour, _)| Curve { latencies, colour: *colour, reference: false })
                    .collect::<Vec<_>>(),
                Some(found.floor_s),
            )?,
            legend: legend(curves.iter().map(|(_, colour, name)| (*colour, *name)).chain([(Colour::Floor, "floor of the median")])),
            caption: "The time is logarithmic. A curve further to the left is better; a long way to the right at the top \
                      means that some wait for bulk to end."
                .to_owned(),
        }),
        open_connections(&traces(&found.together))?,
    ];
    for name in ["pool-50", "laneway"] {
        let row = found.together.iter().find(|row| row.rung == name);
        if let Some((row, trace)) = row.and_then(|row| Some((row, row.trace()?))) {
            parts.push(lanes(trace, row.description)?);
            // Where bulk goes on for long, what happens beside it is at the left edge.
            let beginning_s = trace.small_end_s() * 1.3;
            if name == "laneway" && beginning_s > 0.0 && beginning_s < trace.end_s() / 2.0 {
                parts.push(lanes_of(
                    Timeline::until(trace, beginning_s),
                    trace,
                    "Laneway, the beginning of the same run",
                )?);
            }
        }
    }
    parts.extend(arrivals(found)?);
    Ok(Section {
        id: if found.puts { "mixed-puts" } else { "mixed" },
        title: format!("Small {noun}s beside large ones"),
        text: format!(
            "{} are {verb} together, {} ({:.0} ms away{}). The question is what the small ones pay for the large ones' \
             company.",
            found.what,
            if found.puts { format!("to {}", found.store) } else { format!("from {}", found.store) },
            found.rtt_s * 1000.0,
            found.bandwidth.map(|rate| format!(", {} Mbit/s", rate * 8 / 1_000_000)).unwrap_or_default()
        ),
        parts,
    })
}

fn arrivals(found: &Mixed) -> Result<Vec<Part>, Error> {
    let Some(table) = found.arrivals_table() else { return Ok(Vec::new()) };
    let rows = || found.arrivals.iter().enumerate();
    let mut curves = Vec::new();
    for (place, row) in rows() {
        let Some(figures) = row.figures() else { continue };
        let colour = Colour::of(row.rung, place);
        curves.push(Curve { latencies: &figures.beside, colour, reference: false });
        curves.push(Curve { latencies: &figures.idle, colour, reference: true });
    }
    let names = rows().filter(|(_, row)| row.result.is_ok());
    let names = names.map(|(place, row)| (Colour::of(row.rung, place), row.description));
    let caption = "Thick: beside bulk; thin: the same arrivals on an idle link. The less the two differ, the less the \
                   small ones feel of the bulk. The time is logarithmic.";
    Ok(vec![
        Part::Heading("Arriving while bulk is running"),
        Part::Text(
            "Latency counts from the moment of arrival. On the idle link the first ones find no connection open.".to_owned(),
        ),
        Part::Table(table),
        Part::Figure(Figure {
            title: "Part of the small objects that are there, by the time since they arrived".to_owned(),
            drawing: distribution(&curves, Some(found.rtt_s))?,
            legend: legend(names.chain([(Colour::Floor, "one round trip")])),
            caption: caption.to_owned(),
        }),
    ])
}

pub(super) fn commit(found: &Commit) -> Result<Section, Error> {
    let text = format!(
        "{} objects are read, changed and written back under the condition that nobody else has changed them, at {} \
         ({:.0} ms away): what a commit of a lakehouse table does.",
        found.objects,
        found.store,
        found.rtt_s * 1000.0
    );
    let captions = (
        "Seconds until the last write is acknowledged",
        "The line is the least: TCP, TLS, all reads in one round trip, all writes in another.",
    );
    plain("commit", "Read-modify-writes", text, (&found.rows, found.table()), found.floor_s, captions)
}

pub(super) fn clean(found: &Clean) -> Result<Section, Error> {
    let text = format!(
        "{} objects are deleted at {} ({:.0} ms away). The rivals know the keys; Laneway is told a prefix and lists it \
         first.",
        found.objects,
        found.store,
        found.rtt_s * 1000.0
    );
    let captions =
        ("Seconds until the last object is gone", "The line is the least: TCP, TLS and one request.");
    plain("clean", "Deletes by the thousand", text, (&found.rows, found.table()), found.floor_s, captions)
}

/// A section of a table, bars, connections and Laneway's lanes.
fn plain(
    id: &'static str,
    title: &str,
    text: String,
    (rows, table): (&[Row<Figures>], crate::Table),
    floor_s: f64,
    (bars_title, caption): (&str, &str),
) -> Result<Section, Error> {
    let time = |(place, row): (usize, &Row<Figures>)| {
        bar(row.description, row.rung, place, row.figures().map(|figures| figures.seconds))
    };
    let bars = rows.iter().enumerate().map(time).collect();
    let mut parts =
        vec![Part::Table(table), Part::Figure(against_floor(bars, floor_s, bars_title, caption)?)];
    let quick = |row: &&Row<Figures>| row.figures().is_some_and(|figures| figures.floor_ratio < 12.0);
    let shown: Vec<_> = rows.iter().filter(quick).collect();
    let traces: Vec<_> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| shown.iter().any(|other| other.rung == row.rung))
        .filter_map(|(place, row)| Some((row.trace()?, Colour::of(row.rung, place), row.description)))
        .collect();
    if !traces.is_empty() {
        parts.push(open_connections(&traces)?);
    }
    for row in rows.iter().filter(|row| row.rung.contains("laneway")) {
        if let Some(trace) = row.trace() {
            parts.push(lanes(trace, row.description)?);
        }
    }
    Ok(Section { id, title: title.to_owned(), text, parts })
}

fn bar(name: &str, rung: &str, place: usize, value: Option<f64>) -> Bar {
    let number = value.map_or("no figure".to_owned(), |value| format!("{} s", seconds(value)));
    Bar { name: name.to_owned(), value, colour: bar_colour(rung, place), number }
}

/// Bars have their names beside them, so that only one's colour has to say something.
fn bar_colour(rung: &str, _: usize) -> Colour {
    if rung.contains("laneway") { Colour::Ours } else { Colour::Rival(0) }
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

fn open_connections(runs: &[(&Trace, Colour, &str)]) -> Result<Part, Error> {
    let lines: Vec<_> = runs.iter().map(|(trace, colour, _)| (*trace, *colour)).collect();
    Ok(Part::Figure(Figure {
        title: "Open connections, by the time since the run began".to_owned(),
        drawing: connections(&lines)?,
        legend: legend(runs.iter().map(|(_, colour, name)| (*colour, *name))),
        caption: "Each of them costs a handshake, and memory at both ends.".to_owned(),
    }))
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
        colours.push((Colour::Ours, "small requests"));
    }
    if bulk {
        colours.push((Colour::Freight, "bulk"));
    }
    if bulk && !trace.held.is_empty() {
        colours.push((Colour::Held, "bulk that is held back for small requests"));
    }
    Ok(Part::Figure(Figure {
        title: format!("{}: who was sent when on which connection", whose.trim_end_matches('.')),
        drawing: timeline.draw()?,
        legend: legend(colours.into_iter()),
        caption: format!(
            "A row is a connection, a bar a request from its first byte to the end of its answer. Requests that share a \
             connection stand under each other in its row.{drawn}"
        ),
    }))
}

fn legend<'a>(entries: impl Iterator<Item = (Colour, &'a str)>) -> Vec<(Colour, String)> {
    entries.map(|(colour, name)| (colour, name.to_owned())).collect()
}
