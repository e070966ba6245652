//! One object over many links, down and up: how often what the link takes at best, over how many lanes, and which part of its packets was
//! lost.
//!
//! The links are those of the rig's `oneobject`, and a server that caps each connection. `cargo test -p laneway-lanes --lib one_object --
//! --nocapture` prints the table, for senders that go by rate (BBR) and by loss (CUBIC).

use super::matrix::in_parallel;
use super::mixed::{CASES, Mixed, Rig, Took, case};
use super::*;
use crate::simulator::Control;

const LINKS: [Rig; 7] = [
    Rig(0.25, 1000, 1024, 0.0),
    Rig(5.0, 200, 256, 0.0),
    Rig(10.0, 1000, 512, 0.0),
    Rig(10.0, 1000, 2560, 0.0),
    Rig(10.0, 1000, 1024, 0.1),
    Rig(40.0, 300, 1024, 0.0),
    Rig(100.0, 1000, 8192, 0.0),
];

/// A server that lets each connection have so many bytes a second, as real stores do.
const CAP: f64 = 20e6;

#[derive(Clone, Copy, Debug)]
struct Cell {
    rig: Rig,
    protocol: Protocol,
    is_up: bool,
    control: Control,
    is_capped: bool,
}

impl Cell {
    fn run(&self) -> Took {
        let server = Server { control: self.control, ..self.rig.server(self.protocol) };
        let stream_rate = if self.is_capped { CAP } else { f64::INFINITY };
        let job = Mixed {
            wires: vec![self.rig.wire()],
            servers: vec![Server { stream_rate, ..server }],
            is_up: self.is_up,
            large: vec![256 * MIB],
            small: Vec::new(),
            seed: 1,
        };
        job.run()
    }
}

fn run(cells: &[Cell]) -> Vec<Took> {
    let all = in_parallel(cells, Cell::run);
    for (cell, took) in cells.iter().zip(&all) {
        let capped = if cell.is_capped { " capped" } else { "" };
        println!(
            "{:?} {:8} {:?}{capped}: {:.2} of the floor, {} lanes, {:.1} % lost",
            cell.rig,
            case(cell.protocol, cell.is_up),
            cell.control,
            took.over_floor.total,
            took.lanes,
            took.lost * 1e2
        );
    }
    all
}

#[test]
fn one_object_takes_what_its_link_allows_over_few_lanes() {
    let cells = |control| {
        let cases = LINKS.into_iter().flat_map(|rig| CASES.map(|case| (rig, case)));
        cases.map(move |(rig, (protocol, is_up))| Cell { rig, protocol, is_up, control, is_capped: false })
    };
    let cells: Vec<_> = cells(Control::Rate).chain(cells(Control::Loss)).collect();
    for (cell, took) in cells.iter().zip(run(&cells)) {
        let (is_clean, is_far) = (cell.rig.3 == 0.0, cell.rig.0 >= 100.0);
        let total = match (cell.control, is_clean, is_far) {
            (Control::Rate, _, true) => 2.1,
            (Control::Rate, ..) => 1.35,
            // One stream of them takes 1.6 times the least where the queue is short.
            (Control::Loss, true, false) => 1.8,
            (Control::Loss, ..) => 4.0,
        };
        assert!(took.over_floor.total <= total, "{cell:?}: {took:?}");
        if is_clean && !is_far {
            assert!(took.lanes <= if cell.is_up { 6 } else { 4 }, "{cell:?}: {took:?}");
        }
    }
}

#[test]
fn an_object_of_a_capping_server_comes_over_enough_lanes() {
    let cells: Vec<_> = [10.0, 40.0]
        .map(|half_ms| Rig(half_ms, 1000, 2560, 0.0))
        .into_iter()
        .map(|rig| Cell {
            rig,
            protocol: Protocol::H1,
            is_up: false,
            control: Control::Rate,
            is_capped: true,
        })
        .collect();
    for (cell, took) in cells.iter().zip(run(&cells)) {
        assert!(took.over_floor.total <= if cell.rig.0 > 10.0 { 2.4 } else { 1.35 }, "{cell:?}: {took:?}");
    }
}
