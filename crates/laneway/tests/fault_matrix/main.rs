//! The matrix of faults: each fault of the embedded store is injected into each request of each operation, where that is possible. The
//! matrix runs in each dialect, and over HTTP/1.1 and HTTP/2 where the dialect has both. Azure's dialect runs over plain HTTP/1.1 and over
//! TLS with HTTP/1.1. Some of the HTTP/2 servers allow one stream per connection. A fault hits a request once or at every attempt. Only a
//! part of all these combinations runs.
//!
//! A cell is named `OPERATION/REQUEST/FAULT/HOW-OFTEN/KIND`, as in `get-file/get:1/reset@100/once/gcs-h1`. Its expected outcome comes from
//! [`expectations`], which depends only on the fault and the request, not on Laneway's code. Each cell also checks that it sends no more
//! requests than its operation allows, and leaves no file, upload or connection behind. The matrix fails if no running cell ends for five
//! minutes.
//!
//! `LANEWAY_CELLS=get-file/get:1/reset,list` runs only the cells whose names begin with `get-file/get:1/reset` or `list`.
//! `LANEWAY_CELLS_SHOWN=1` prints each cell's outcome.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod bytewise;
mod cell;
mod faults;
mod operations;
mod rig;

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cell::{Cell, cells};
use rig::{KINDS, ONE_STREAM_KINDS, Rig};

/// Threads per kind. Cells spend most of their time in pauses between attempts. With too many threads, a faulty answer can
/// come so late that Laneway sends a hedge, whose answer has no fault.
const THREADS: usize = 5;
/// If no cell ends for this long, the matrix hangs. Even on a busy machine, cells end sooner.
const CELL_MAX: Duration = Duration::from_secs(300);
const CELLS_MIN: usize = 3450;

#[test]
fn every_fault_ends_in_exact_success_or_the_right_error() {
    let only = std::env::var("LANEWAY_CELLS").unwrap_or_default();
    let shown = std::env::var_os("LANEWAY_CELLS_SHOWN").is_some();
    let (mut skipped, mut failures, mut run) = (BTreeMap::<&str, usize>::new(), Vec::new(), 0);
    let (report, reports) = channel();
    for kind in KINDS.into_iter().chain(ONE_STREAM_KINDS) {
        let mut queue = VecDeque::new();
        for cell in cells(kind) {
            match cell.skipped() {
                Some(why) => *skipped.entry(why).or_default() += 1,
                None if only.split(',').any(|begin| cell.name().starts_with(begin)) => queue.push_back(cell),
                None => {}
            }
        }
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, report) = (Arc::clone(&queue), report.clone());
            std::thread::spawn(move || work(kind, &queue, &report));
        }
    }
    drop(report);
    let mut begun = BTreeMap::new();
    loop {
        match reports.recv_timeout(CELL_MAX) {
            Ok(Progress::Begun(name)) => *begun.entry(name).or_insert(0) += 1,
            Ok(Progress::Ended(name, outcome)) => {
                begun.remove(&name);
                run += 1;
                match outcome {
                    Ok(how) if shown => println!("{name}: {how}"),
                    Ok(_) => {}
                    Err(problem) => {
                        if shown {
                            println!("{name}: FAILED {problem}");
                        }
                        failures.push(format!("{name}: {problem}"));
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("these cells hang: {:?}", begun.keys()),
        }
    }
    println!("{run} cells run; skipped: {skipped:?}");
    failures.sort();
    assert!(failures.is_empty(), "{} of {run} cells:\n{}", failures.len(), failures.join("\n"));
    assert!(begun.is_empty(), "cells that began and didn't end: {:?}", begun.keys());
    assert!(run >= CELLS_MIN || !only.is_empty(), "only {run} cells ran");
}

/// A thread's report on its cells.
enum Progress {
    Begun(String),
    Ended(String, Result<String, String>),
}

fn work(kind: rig::Kind, queue: &Mutex<VecDeque<Cell>>, report: &std::sync::mpsc::Sender<Progress>) {
    let next = || queue.lock().unwrap().pop_front();
    let Some(first) = next() else { return };
    let rig = Rig::new(kind);
    let mut cell = Some(first);
    while let Some(now) = cell {
        report.send(Progress::Begun(now.name())).unwrap();
        let outcome = now.run(&rig);
        report.send(Progress::Ended(now.name(), outcome)).unwrap();
        cell = next();
    }
}
