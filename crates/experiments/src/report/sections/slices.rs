//! One huge object down.

use super::{against_floor, bar, distance, lanes, open_connections, path, traces};
use crate::report::bars::bars;
use crate::report::glance::Glance;
use crate::report::{Figure, Part, Section};
use crate::slices::{Figures, Slices};
use crate::{Compared as _, Error, Row};

pub(in crate::report) fn slices(found: &Slices) -> Result<Section, Error> {
    let time = |row: &Row<Figures>| row.figures().map(|figures| figures.seconds);
    let all_of = |value: &dyn Fn(&Row<Figures>) -> Option<f64>| -> Vec<_> {
        found.rows.iter().map(|row| bar(row.description, row.rung, value(row))).collect()
    };
    let mut parts = vec![
        Part::Table(found.table()),
        Part::Figure(against_floor(
            all_of(&time),
            found.floor_s,
            "Seconds until the file is complete and its checksum compared",
            "The program of 2021 reads the file back for its checksum; Laneway adds the checksum up while the bytes pass. \
             The floor knows the path, not how fast processors are.",
        )?),
    ];
    let cpu = |row: &Row<Figures>| row.figures().and_then(|figures| figures.cpu_s_per_gib);
    if found.rows.iter().any(|row| cpu(row).is_some()) {
        let drawing = bars(&all_of(&cpu), None)?;
        let title = "Processor seconds of the client for each GiB".to_owned();
        let caption =
            "In the kernel and outside: what the download takes from whatever else the machine does."
                .to_owned();
        parts.push(Part::Figure(Figure { title, drawing, legend: Vec::new(), caption }));
    }
    parts.extend(open_connections(&traces(&found.rows), false)?);
    for row in &found.rows {
        if let Some(trace) = row.trace() {
            parts.push(lanes(trace, row.description)?);
        }
    }
    let size = found.size as f64 / f64::from(1 << 20);
    Ok(Section {
        id: "slices",
        title: "One huge object down".to_owned(),
        what: format!("an object of {size:.0} MiB down"),
        programs: found.programs.clone(),
        path: path(found.link, &found.store, found.rtt_s),
        text: format!(
            "An object of {size:.0} MiB is downloaded from {} ({} away) into a file. Each run is a process of its own.",
            found.store,
            distance(found.rtt_s)
        ),
        parts,
        glances: Glance::of(&found.rows, &Figures::MEASURES[0], found.floor_s),
    })
}
