//! Small and large objects over many links.

use crate::Compared as _;
use crate::links::{Course, Leg, Links};
use crate::mixed::Figures;
use crate::report::glance::Glance;
use crate::report::{Part, Section};

pub(in crate::report) fn links(found: &Links) -> Section {
    let tables = Course::ALL.map(|course| Part::Table(found.table(course)));
    let links = laneway_quantity::count(found.links.len() as u64, "imitated link", "imitated links");
    Section {
        id: "links",
        title: "Small objects beside large ones, link by link".to_owned(),
        what: "small objects beside large ones, down and up".to_owned(),
        programs: Vec::new(),
        path: links,
        text: "Four large objects and sixty to two hundred of 32 to 512 KiB, as many as the link carries in some seconds, are \
               moved together. Each line is a link: its round trip, its rate, what its queue holds, how many packets it loses. \
               Each figure is Laneway's median, a multiple of the floor (three round trips, and the bytes at the link's rate, the \
               smallest objects first), and beside a pool of 50 HTTP/1.1 connections."
            .to_owned(),
        parts: tables.into_iter().chain([Part::Table(found.commands())]).collect(),
        glances: found.found.iter().flat_map(glances).collect(),
    }
}

fn glances(leg: &Leg) -> impl Iterator<Item = Glance> {
    let measures = Figures::MEASURES.iter().zip(leg.floors_s());
    measures.flat_map(|(measure, floor_s)| {
        let glances = Glance::of(&leg.mixed.together, measure, floor_s).into_iter();
        glances.map(|glance| Glance {
            short: format!("{}, {}, {}", leg.link, leg.course.title(), glance.short),
            what: format!("{}, {}: {}", leg.link, leg.course.title(), glance.what),
            ..glance
        })
    })
}
