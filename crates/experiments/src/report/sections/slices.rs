//! The section on the download of one object.

use super::{against_floor, distance};
use crate::Compared as _;
use crate::report::{Part, Score, Section};
use crate::slices::{Figures, Slices};
use laneway_quantity::{link_rate, readable_size};

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
        scores: found.iter().flat_map(|leg| Score::of(&short_name(leg), &leg.rows, &Figures::MEASURES[0])).collect(),
    }
}

/// Shows one object over one link: the seconds of each method, and a table.
fn compared(leg: &Slices) -> [Part; 3] {
    let figure = against_floor(
        &leg.rows,
        &Figures::MEASURES[0],
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
