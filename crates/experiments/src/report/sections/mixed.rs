//! Small objects beside large ones.

use super::{against_floor, bar, distance, lanes, lanes_of, legend, open_connections, path, traces};
use crate::mixed::{ArrivalFigures, Figures, Mixed};
use crate::report::canvas::Colour;
use crate::report::distribution::{Curve, distribution, range};
use crate::report::glance::Glance;
use crate::report::timeline::Timeline;
use crate::report::{Figure, Part, Section};
use crate::{Compared as _, Error, Latencies, Row};

pub(in crate::report) fn mixed(found: &Mixed) -> Result<Section, Error> {
    let rows = &found.together;
    let p50 = |row: &Row<Figures>| row.spread(|figures| figures.small_p50_s).map(|spread| spread.median);
    let bandwidth = found.link.and_then(|link| link.bandwidth);
    let bars = rows.iter().map(|row| bar(row.description, row.rung, p50(row))).collect();
    let (verb, noun) = if found.puts { ("uploaded", "upload") } else { ("downloaded", "download") };
    let floor = match bandwidth {
        Some(_) => "The floor serves the smallest first at the link's full speed.",
        None => "The floor counts round trips only: how much the link carries is not known.",
    };
    let mut parts = vec![
        Part::Heading("Issued in one breath"),
        Part::Table(found.table()),
        Part::Table(found.verdicts()),
        Part::Figure(against_floor(
            bars,
            found.floor_s,
            "Median seconds of the small objects, from the moment of issue",
            floor,
        )?),
    ];
    let of = |f: &'_ Figures| f.latencies.clone();
    let latencies = Part::Figure(distributions(
        "Part of the small objects that are there, by the time since they were asked for",
        "The time is logarithmic. A curve further to the left is better; a long way to the right at the top means that \
         some wait for bulk to end.",
        &named(rows, of),
        (&found.floors, "floor"),
        None,
    )?);
    parts.push(latencies);
    parts.extend(open_connections(&traces(rows), false)?);
    for name in ["pool-50", "laneway"] {
        let row = rows.iter().find(|row| row.rung == name);
        if let Some((row, trace)) = row.and_then(|row| Some((row, row.trace()?))) {
            parts.push(lanes(trace, row.description)?);
            // If bulk runs for long, the small objects are all at the left edge, so this draws the beginning by itself.
            let beginning_s = trace.small_end_s() * 1.3;
            if name == "laneway" && beginning_s > 0.0 && beginning_s < trace.end_s() / 2.0 {
                let beginning = Timeline::until(trace, beginning_s);
                parts.push(lanes_of(beginning, trace, "Laneway, the beginning of the same run")?);
            }
        }
    }
    parts.extend(arrivals(found)?);
    Ok(Section {
        id: if found.puts { "mixed-puts" } else { "mixed" },
        title: format!("Small {noun}s beside large ones"),
        what: format!("{} {}", found.what, if found.puts { "up" } else { "down" }),
        programs: found.programs.clone(),
        path: path(found.link, &found.store, found.rtt_s),
        text: format!(
            "{} are {verb} together, {} {} ({} away{}). The question is what the small ones pay for the large ones' \
             company.",
            found.what,
            if found.puts { "to" } else { "from" },
            found.store,
            distance(found.rtt_s),
            bandwidth.map(|rate| format!(", {}", laneway_quantity::link_rate(rate))).unwrap_or_default()
        ),
        parts,
        glances: glances(found),
    })
}

fn glances(found: &Mixed) -> Vec<Glance> {
    let floors = [found.floor_s, found.floors.percentile(99.0), found.total_floor_s];
    let together = Figures::MEASURES.iter().zip(floors);
    let mut glances: Vec<_> =
        together.flat_map(|(measure, floor_s)| Glance::of(&found.together, measure, floor_s)).collect();
    if !found.arrivals.is_empty() {
        let measures = ArrivalFigures::MEASURES.iter();
        glances.extend(measures.flat_map(|measure| Glance::of(&found.arrivals, measure, found.rtt_s)));
    }
    glances
}

fn arrivals(found: &Mixed) -> Result<Vec<Part>, Error> {
    let Some(table) = found.arrivals_table() else { return Ok(Vec::new()) };
    let beside = named(&found.arrivals, |f: &ArrivalFigures| f.beside.clone());
    let idle = named(&found.arrivals, |f: &ArrivalFigures| f.idle.clone());
    // Both plots have the same axis, so that readers can compare them.
    let one_trip = Latencies::new(vec![found.rtt_s]);
    let all = beside.iter().chain(&idle).map(|(latencies, ..)| latencies).chain([&one_trip]);
    let range = range(all);
    let mut parts = vec![
        Part::Heading("Arriving while bulk is running"),
        Part::Text(
            "The same small objects arrive at random, once on an idle link and once while bulk is running. Latency \
             counts from the moment of arrival. On the idle link the first ones find no connection open."
                .to_owned(),
        ),
        Part::Table(table),
    ];
    parts.extend(found.arrivals_verdicts().map(Part::Table));
    for (latencies, title, caption) in [
        (
            &idle,
            "On the idle link: part of the small objects that are there, by the time since they arrived",
            "What the way itself takes. The time is logarithmic.",
        ),
        (
            &beside,
            "Beside bulk: part of the small objects that are there, by the time since they arrived",
            "The less a curve has moved to the right against the plot above, the less the small ones feel of the bulk.",
        ),
    ] {
        let figure = distributions(title, caption, latencies, (&one_trip, "one round trip"), Some(range))?;
        parts.push(Part::Figure(figure));
    }
    let laneway = found.arrivals.iter().find(|row| row.rung == "laneway").and_then(Row::trace);
    if let Some(trace) = laneway {
        parts.push(lanes(trace, "Laneway, small ones arriving beside bulk")?);
    }
    Ok(parts)
}

/// Returns the latencies of rungs with figures, and their colours and names.
fn named<F>(rows: &[Row<F>], latencies: impl Fn(&F) -> Latencies) -> Vec<(Latencies, Colour, &'static str)> {
    let rows = rows.iter().enumerate();
    // Readers couldn't tell more curves than these apart.
    let rows = rows.filter(|(_, row)| row.group.is_empty());
    rows.filter_map(|(place, row)| {
        Some((latencies(row.figures()?), Colour::of(row.rung, place), row.description))
    })
    .collect()
}

fn distributions(
    title: &str,
    caption: &str,
    latencies: &[(Latencies, Colour, &'static str)],
    (floor, floor_name): (&Latencies, &str),
    axis: Option<(f64, f64)>,
) -> Result<Figure, Error> {
    let mut curves = vec![Curve { latencies: floor, colour: Colour::Floor }];
    curves.extend(latencies.iter().map(|(latencies, colour, _)| Curve { latencies, colour: *colour }));
    let axis = axis.unwrap_or_else(|| range(curves.iter().map(|curve| curve.latencies)));
    let names = latencies.iter().map(|(_, colour, name)| (*colour, *name));
    Ok(Figure {
        title: title.to_owned(),
        drawing: distribution(&curves, axis)?,
        legend: legend(names.chain([(Colour::Floor, floor_name)])),
        caption: caption.to_owned(),
    })
}
