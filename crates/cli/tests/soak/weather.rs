//! The disturbances of the soak: the store's faults, or cuts of the network.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use laneway_server::{Faults, Server};

use crate::model::Random;
use crate::network::{LinkState, Network};

/// Transient faults. They corrupt only objects whose checksum is verified. Ranges have no
/// checksum.
const FAULTS: [&str; 32] = [
    "any:2% status 503",
    "any:2% status 500",
    "put:3% status 429 retry-after 1s",
    "any:2% reset",
    "any:2% drop@1KiB",
    "any:2% goaway",
    "any:2% refuse-stream",
    "any:3% delay 100ms",
    "any:1% stall",
    "any:1% garble",
    "any:1% error-in-200",
    "get:4% reset@8KiB",
    "get:3% cut@4KiB",
    "get:3% truncate",
    "get:2% stall@16KiB",
    "get:5% slow 4MB/s",
    "get:2% length -1",
    "get:3% length none",
    "get:2% wrong-checksum",
    "get:2% range shifted",
    "get:3% key=*checked* corrupt",
    "get:3% key=*/tree/* corrupt",
    "put:3% corrupt",
    "put:3% lose-answer",
    "part:4% reset@64KiB",
    "part:3% corrupt",
    "complete:10% lose-answer",
    "begin:5% status 503",
    "copy:5% lose-answer",
    "delete:4% lose-answer",
    "list:4% malformed",
    "list:4% drop@300",
];
/// The maximum number of faults at a time.
const FAULTS_MAX: usize = 4;
/// If no operation begins for this long, the soak counts as hanging and fails.
const STANDSTILL_MAX: Duration = Duration::from_secs(240);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Season {
    Faults,
    Cuts,
}

/// An actor's number and its present operation, for messages about a hang.
pub(crate) type Log = Sender<(usize, String)>;

pub(crate) struct Weather {
    season: Season,
    /// The time until the next change.
    stays: Duration,
    /// The length of a cut.
    cut: Duration,
    random: Random,
    log: Log,
    logged: Receiver<(usize, String)>,
}

impl Weather {
    pub(crate) fn new(season: Season, is_long: bool, seed: u64) -> Self {
        let (log, logged) = channel();
        let (stays, cut) = match (season, is_long) {
            (Season::Faults, true) => (Duration::from_secs(5), Duration::ZERO),
            (Season::Cuts, true) => (Duration::from_secs(55), Duration::from_secs(5)),
            (Season::Faults, false) => (Duration::from_millis(500), Duration::ZERO),
            (Season::Cuts, false) => (Duration::from_millis(1500), Duration::from_millis(400)),
        };
        Self { season, stays, cut, random: Random::new(seed), log, logged }
    }

    /// Returns the channel on which actors report their operations.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Changes the disturbances until all actors end, and then removes them.
    pub(crate) fn pass(mut self, server: &Server, network: &Network, mut is_over: impl FnMut() -> bool) {
        let mut under_way = BTreeMap::new();
        let mut moved = Instant::now();
        while !is_over() {
            let lasts = match self.season {
                Season::Faults => {
                    server.set_faults(self.faults());
                    self.stays
                }
                Season::Cuts if network.state() == LinkState::Whole => {
                    let cut = if self.random.below(2) == 0 { LinkState::Broken } else { LinkState::Silent };
                    network.set(cut);
                    self.cut
                }
                Season::Cuts => {
                    network.set(LinkState::Whole);
                    self.stays
                }
            };
            let until = Instant::now() + lasts;
            while !is_over() {
                match self.logged.recv_timeout(until.saturating_duration_since(Instant::now()).min(TICK)) {
                    Ok((actor, doing)) => {
                        under_way.insert(actor, doing);
                        moved = Instant::now();
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if moved.elapsed() > STANDSTILL_MAX {
                    // A panic would wait for the hanging thread.
                    eprintln!("nothing moves any more: {under_way:?}");
                    std::process::abort();
                }
                if Instant::now() >= until {
                    break;
                }
            }
        }
        server.set_faults(Faults::default());
        network.set(LinkState::Whole);
    }

    /// Returns a random set of faults, which may be empty.
    fn faults(&mut self) -> Faults {
        let many = self.random.below(FAULTS_MAX + 1);
        let rules: Vec<&str> = (0..many).map(|_| self.random.one_of(&FAULTS)).collect();
        Faults::parse(rules).expect("faults that can be read")
    }
}

/// The interval between checks for the end.
const TICK: Duration = Duration::from_millis(200);

#[test]
fn each_fault_can_be_read() {
    assert_eq!(Faults::parse(FAULTS).expect("they can be read").rules.len(), FAULTS.len());
}
