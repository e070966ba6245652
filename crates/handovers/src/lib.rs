//! What threads of the engine hand over to each other, run under schedulers that draw who goes on: at random, and by priorities that change
//! at few places (PCT), which finds what takes a certain order of few steps.
//!
//! The modules are those of `lanes`, `laneway` and the bindings' core, file for file; what they call `threads` is [`shuttle`]'s here, and what else they
//! know of their crates is stood in for by the least that they need. A lock that is missing, a wake-up that is lost and a thread that waits for ever
//! end a test with the schedule that leads there.
//!
//! What isn't ours is one step here: tokio's channels, semaphore and notifications, and the waker cell of `futures`. All orders are those of
//! one memory; what a processor may reorder further is not looked at. The driver, the dispatcher and all lanes' roles belong to one task,
//! which is told by a channel; `lanes::simulator` tests them. Directory walks and the plan of a sliced download are not here yet: they stand
//! on file systems and stores. Python's binding hands over under the interpreter's lock, which would have to be stood in for as a whole.

// The modules' own tests stay with their crates.
#![cfg(not(test))]
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::expect_used,
    reason = "modules of other crates, of which only a part is used here, and their tests"
)]

// What the binding's files call the library is here.
extern crate self as laneway;

mod bindings;
mod body;
#[path = "../../../bindings/core/src/call.rs"]
mod call;
mod download;
#[path = "../../../bindings/core/src/events.rs"]
mod events;
#[path = "../../laneway/src/files.rs"]
mod files;
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
/// Where one of them fails, with what it takes to run it again.
pub fn explore(scenario: fn()) {
    let schedules = std::env::var("LANEWAY_SCHEDULES").map_or(600, |n| n.parse().expect("a number"));
    let config = || {
        let mut config = Config::new();
        // Unoptimised frames of futures are large.
        config.stack_size = 512 << 10;
        config
    };
    Runner::new(RandomScheduler::new(schedules), config()).run(scenario);
    for depth in DEPTHS {
        Runner::new(PctScheduler::new(depth, schedules / DEPTHS.len()), config()).run(scenario);
    }
}

/// At how many places a priority changes: few find most of what there is to be found.
const DEPTHS: [usize; 3] = [1, 2, 3];
