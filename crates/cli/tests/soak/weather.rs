//! What goes wrong meanwhile: the store's faults, or cuts of the network.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use laneway_server::{Faults, Server};

use crate::model::Random;
use crate::network::{LinkState, Network};

/// Faults that pass. Of those that falsify bytes only what has a checksum is hit: a range has none.
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
/// Most that hold at once.
const FAULTS_MAX: usize = 4;
/// How long no operation may end.
const STANDSTILL_MAX: Duration = Duration::from_secs(240);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Season {
    Faults,
    Cuts,
}

/// What an actor is doing, for when it doesn't end.
pub(crate) type Log = Sender<(usize, String)>;

pub(crate) struct Weather {
    season: Season,
    /// How long it stays as it is.
    stays: Duration,
    /// How long a cut lasts.
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

    /// Where actors say what they begin.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// Has the weather change until all is over, and leaves it calm.
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
                    // Who hangs would be waited for by a panic as well.
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

    /// Some of the faults, and at times none.
    fn faults(&mut self) -> Faults {
        let many = self.random.below(FAULTS_MAX + 1);
        let rules: Vec<&str> = (0..many).map(|_| self.random.one_of(&FAULTS)).collect();
        Faults::parse(rules).expect("faults that can be read")
    }
}

/// How often it is looked whether all is over.
const TICK: Duration = Duration::from_millis(200);

#[test]
fn each_fault_can_be_read() {
    assert_eq!(Faults::parse(FAULTS).expect("they can be read").rules.len(), FAULTS.len());
}
