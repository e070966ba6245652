//! Tests the code that passes data between the engine's threads. Two schedulers run it with many interleavings of the
//! threads. The first picks the next thread at random. The second gives threads priorities that change at a few points
//! (PCT). It finds faults that need a certain order of a few steps.
//!
//! The modules under test are files of `lanes`, `laneway` and the bindings' core. Here, their `threads` module uses
//! [`shuttle`], and minimal stand-ins replace the rest of their crates. A missing lock, a lost wake-up or a thread that
//! waits for ever fails the test. The message contains the schedule that leads to it.
//!
//! The scheduler doesn't interrupt a call of tokio's channels, semaphore and notifications, or of the waker cell of
//! `futures`. All operations have one global order, so the reordering of memory accesses by a processor isn't tested.
//! The driver and the dispatcher belong to one task, which a channel feeds. They aren't tested here but by
//! `lanes::simulator`. Directory walks and the plan of a sliced download aren't included, since they depend on file
//! systems and stores. The Python binding isn't included either, because it needs the Python interpreter and its lock.

// The unit tests of the included modules run in their own crates, so this crate is empty when it is built as a test.
#![cfg(not(test))]
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    reason = "modules of other crates, of which only a part is used here, and their tests"
)]

// The files of the bindings' core import from `laneway`. With this alias they get the stand-ins of this crate.
extern crate self as laneway;

#[path = "../../../bindings/core/src/call.rs"]
mod call;
#[path = "../../../bindings/core/src/events.rs"]
mod events;
#[path = "../../laneway/src/engine/files.rs"]
mod files;
#[path = "../../lanes/src/h2/first_flights.rs"]
mod first_flights;
#[path = "../../lanes/src/memory.rs"]
mod memory;
#[path = "../../lanes/src/outage.rs"]
mod outage;
#[path = "../../lanes/src/pace.rs"]
mod pace;
#[path = "../../../bindings/core/src/packed.rs"]
mod packed;
#[path = "../../laneway/src/content/range_writer.rs"]
mod range_writer;
mod stand_ins;
#[path = "../../lanes/src/hedge/tracker.rs"]
mod tracker;
#[path = "../../lanes/src/valve.rs"]
mod valve;
#[path = "../../lanes/src/streamed/waiting.rs"]
mod waiting;

pub mod scenarios;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use stand_ins::{Alike, Client, Error, Progress, ResponseHead, Spawned, engine, failure, threads};

/// Runs a scenario under many schedules.
///
/// # Panics
/// Panics if a schedule fails. The message has the text with which shuttle replays this schedule.
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

/// The numbers of priority changes that PCT tries. Most faults need only a few.
const DEPTHS: [usize; 3] = [1, 2, 3];
