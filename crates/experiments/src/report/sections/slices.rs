//! The download of one object.

use super::{against_floor, bar, distance, lanes, open_connections, traces};
use crate::report::bars::bars;
use crate::report::glance::Glance;
use crate::report::{Figure, Part, Section};
use crate::slices::{Figures, Slices};
use crate::{Compared as _, Error, Row};
use laneway_quantity::{link_rate, readable_size};

pub(in crate::report) fn slices(found: &[Slices]) -> Result<Section, Error> {
    let mut parts = Vec::new();
    for leg in found {
        parts.extend(compared(leg)?);
    }
    if let Some(last) = found.last() {
        parts.extend(details(last)?);
    }
    let mut paths: Vec<_> = found.iter().map(Slices::path).collect();
    paths.dedup();
    let mut programs: Vec<_> = found.iter().flat_map(|leg| leg.programs.clone()).collect();
    programs.sort();
    programs.dedup();
    Ok(Section {
        id: "slices",
        title: "One object down".to_owned(),
        what: match found {
            [leg] => format!("an object of {:.0} MiB down", leg.size as f64 / f64::from(1 << 20)),
            _ => "single objects down".to_owned(),
        },
        programs,
        path: match &paths[..] {
            [one] => one.clone(),
            all => laneway_quantity::count(all.len() as u64, "imitated link", "imitated links"),
        },
        text: "An object is downloaded into a file, in each size and over each link. Each run is a process of its own. Segments \
               that the link lost were sent again; they are told as a share of those that the object takes."
            .to_owned(),
        parts,
        glances: found.iter().flat_map(|leg| glances(leg, found.len() > 1)).collect(),
    })
}

/// Compares the ways for one object over one link, in a table and a plot of seconds.
fn compared(leg: &Slices) -> Result<[Part; 3], Error> {
    let time = |row: &Row<Figures>| row.figures().map(|figures| figures.seconds);
    let rungs = leg.rows.iter().map(|row| bar(row.description, row.rung, time(row))).collect();
    let figure = against_floor(
        rungs,
        leg.floor_s,
        "Seconds until the file is complete and its checksum compared",
        "The five fixed parts read the file back for its checksum; Laneway and the one stream add it up while the bytes pass. The floor \
         knows the path, not how fast processors are.",
    )?;
    Ok([Part::Text(leg.name()), Part::Table(leg.table()), Part::Figure(figure)])
}

/// Returns the processor time and the connections of one leg.
fn details(leg: &Slices) -> Result<Vec<Part>, Error> {
    let mut parts = vec![Part::Text(format!("Connections, {}:", leg.name()))];
    let cpu = |row: &Row<Figures>| row.figures().and_then(|figures| figures.cpu_s_per_gib);
    if leg.rows.iter().any(|row| cpu(row).is_some()) {
        let rungs: Vec<_> = leg.rows.iter().map(|row| bar(row.description, row.rung, cpu(row))).collect();
        let drawing = bars(&rungs, None)?;
        let title = "Processor seconds of the client for each GiB".to_owned();
        let caption =
            "In the kernel and outside: the time that the download takes from other work on the machine."
                .to_owned();
        parts.push(Part::Figure(Figure { title, drawing, legend: Vec::new(), caption }));
    }
    parts.extend(open_connections(&traces(&leg.rows), false)?);
    for row in &leg.rows {
        if let Some(trace) = row.trace() {
            parts.push(lanes(trace, row.description)?);
        }
    }
    Ok(parts)
}

fn glances(leg: &Slices, is_one_of_many: bool) -> Vec<Glance> {
    let glances = Glance::of(&leg.rows, &Figures::MEASURES[0], leg.floor_s);
    if !is_one_of_many {
        return glances;
    }
    let name = short_name(leg);
    let named =
        |glance: Glance| Glance { short: name.clone(), what: format!("{name}: {}", glance.what), ..glance };
    glances.into_iter().map(named).collect()
}

/// Names the object and its link, short enough for a list.
fn short_name(leg: &Slices) -> String {
    let cap = leg.link.and_then(|link| link.connection_bandwidth);
    let cap = cap.map(|cap| format!(", {} a connection", link_rate(cap))).unwrap_or_default();
    format!("{}, {}{cap}", readable_size(leg.size), distance(leg.rtt_s))
}
