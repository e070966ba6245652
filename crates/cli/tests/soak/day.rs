//! A day in one scenario: mixed work by the program while credentials end after a minute, their server hangs now and then, the network is
//! cut, the store is restarted, one object is hot, and connections are limited.
//!
//! Every command has to succeed. Afterwards the store holds what was written and nothing else, and each write is one version.

mod store;
mod tokens;
mod work;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::network::{Network, State};
use crate::process::Samples;
use store::Store;
use work::{Kind, Worker};

/// The durations of a day.
#[derive(Debug)]
struct Times {
    /// The time in which new work is begun.
    lasts: Duration,
    /// The time from one round of a worker to its next.
    round: Duration,
    /// The time for which a command tries again, as its option takes it.
    retry_for: &'static str,
    /// The longest that a command may take.
    command: Duration,
    outages: [Duration; 4],
    restart: Duration,
    /// The time for which connections are limited.
    limit: Duration,
    /// The files of the tree that moves slowly, for a third of the day in each direction.
    slow_files: usize,
}

impl Times {
    /// Those of `make soak`, or those of a few minutes.
    fn of(minutes: Option<u64>) -> Self {
        let seconds = Duration::from_secs;
        match minutes {
            Some(minutes) => Self {
                lasts: seconds(60 * minutes),
                round: seconds(30),
                retry_for: "2m",
                command: seconds(60 * minutes),
                outages: [15, 45, 80, 115].map(seconds),
                restart: seconds(20),
                limit: seconds(60),
                slow_files: 1200,
            },
            None => Self {
                lasts: seconds(180),
                round: seconds(5),
                retry_for: "15s",
                command: seconds(150),
                outages: [3, 5, 8, 10].map(seconds),
                restart: seconds(2),
                limit: seconds(8),
                slow_files: 120,
            },
        }
    }
}

/// An event of the day.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The network is in this state, for as long as the outage of this number takes.
    Outage(State, usize),
    Restart,
    Limit,
}

/// When it happens, in hundredths of the day.
const EVENTS: [(u32, Event); 7] = [
    (6, Event::Limit),
    (15, Event::Outage(State::Broken, 0)),
    (30, Event::Outage(State::Silent, 1)),
    (44, Event::Restart),
    (56, Event::Outage(State::Broken, 2)),
    (72, Event::Outage(State::Silent, 3)),
    (90, Event::Limit),
];

/// Connections that are served at once while they are limited. Below the number of commands at work one of them would have none.
const CONNECTIONS: usize = 16;

#[test]
fn a_day_of_outages_loses_nothing_and_writes_nothing_twice() {
    let times = Times::of(crate::minutes());
    let mut store = Store::open();
    let network = Network::before(store.address());
    let workers = Kind::ALL.map(|kind| Worker::new(kind, &times, &store, network.port()));
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    let mut samples = Samples::default();
    let worked = thread::scope(|scope| {
        let (times, over) = (&times, &over);
        let workers = workers.map(|worker| scope.spawn(move || worker.work(times, began, over)));
        let mut wait_until = |moment: Instant| {
            while Instant::now() < moment && !workers.iter().any(|worker| is_broken(worker, over)) {
                samples.take();
                // The timeline's own moments are all that is waited for.
                thread::sleep(TICK.min(moment.saturating_duration_since(Instant::now())));
            }
        };
        for (share, event) in EVENTS {
            wait_until(began + times.lasts * share / 100);
            let from = Instant::now();
            match event {
                Event::Outage(state, number) => {
                    network.set(state);
                    store.disturbed_while(|_| wait_until(from + times.outages[number]));
                    network.set(State::Whole);
                }
                Event::Restart => store.disturbed_while(|store| {
                    store.stop();
                    wait_until(from + times.restart);
                    store.start();
                }),
                Event::Limit => {
                    store.server().set_served_connections(Some(CONNECTIONS));
                    store.disturbed_while(|_| wait_until(from + times.limit));
                    store.server().set_served_connections(None);
                }
            }
        }
        // The test fails with the first fault that a worker has found.
        workers.map(|worker| worker.join().unwrap_or_else(|found| std::panic::resume_unwind(found)))
    });
    println!("{samples}");
    for worker in &worked {
        println!("{worker}");
    }
    store.check(&worked);
    assert!(worked.iter().all(|worker| worker.hung() > 0), "a server of credentials has never hung");
    if crate::minutes().is_some() {
        samples.are_flat();
    }
}

/// The time between two looks at the workers.
const TICK: Duration = Duration::from_millis(200);

/// Returns whether a worker has ended before its day did, which ends it for all.
fn is_broken(worker: &thread::ScopedJoinHandle<'_, Worker>, over: &AtomicBool) -> bool {
    over.fetch_or(worker.is_finished(), Relaxed) || worker.is_finished()
}
