//! The handovers between the engine's threads, run under schedulers that draw the order of threads. One scheduler draws
//! at random. The other uses priorities that change at few points (PCT), and finds faults that need a certain order of
//! few steps.
//!
//! The modules under test are files of `lanes`, `laneway` and the bindings' core. Here, their `threads` module uses
//! [`shuttle`], and minimal stand-ins replace the rest of their crates. A missing lock, a lost wake-up or a thread that
//! waits for ever fails the test with the schedule that leads to it.
//!
//! A call of foreign code is one step here: tokio's channels, semaphore and notifications, and the waker cell of
//! `futures`. All operations have one global order, so a processor's reordering isn't tested. The driver, the
//! dispatcher and all roles of lanes belong to one task, which a channel feeds; `lanes::simulator` tests them.
//! Directory walks and the plan of a sliced download aren't included yet, since they depend on file systems and stores.
//! Python's binding hands over under the interpreter's lock, and would need a stand-in for the whole interpreter.

// The modules' own tests run in their own crates.
#![cfg(not(test))]
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    reason = "modules of other crates, of which only a part is used here, and their tests"
)]

// The bindings' files import `laneway`. Here, this crate takes the library's place.
extern crate self as laneway;

mod bindings;
mod body;
#[path = "../../../bindings/core/src/call.rs"]
mod call;
mod download;
mod engine;
#[path = "../../../bindings/core/src/events.rs"]
mod events;
mod h2;
mod hedge;
#[path = "../../lanes/src/memory.rs"]
mod memory;
#[path = "../../lanes/src/outage.rs"]
mod outage;
#[path = "../../lanes/src/pace.rs"]
mod pace;
#[path = "../../../bindings/core/src/packed.rs"]
mod packed;
#[path = "../../../bindings/core/src/queue.rs"]
mod queue;
mod stand_ins;
mod threads;
#[path = "../../lanes/src/valve.rs"]
mod valve;

pub mod scenarios;

use bindings::{Client, Spawned, failure};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use stand_ins::{Error, Head, Progress};

/// Runs a scenario under many schedules.
///
/// # Panics
/// Panics if a schedule fails. The message has the input that repeats the schedule.
pub fn explore(scenario: fn()) {
    let schedules = std::env::var("LANEWAY_SCHEDULES").map_or(600, |n| n.parse().expect("a number"));
    let config = || {
        let mut config = Config::new();
        // Futures need large stack frames in unoptimised builds.
        config.stack_size = 512 << 10;
        config
    };
    Runner::new(RandomScheduler::new(schedules), config()).run(scenario);
    for depth in DEPTHS {
        Runner::new(PctScheduler::new(depth, schedules / DEPTHS.len()), config()).run(scenario);
    }
}

/// The numbers of priority changes. A few changes find most faults.
const DEPTHS: [usize; 3] = [1, 2, 3];
