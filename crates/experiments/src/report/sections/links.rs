//! The section on small and large objects together over many links.

use crate::Compared as _;
use crate::links::{Course, Leg, Links};
use crate::mixed::Figures;
use crate::report::{Part, Score, Section};

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
