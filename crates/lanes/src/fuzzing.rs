//! Entry points for fuzzers. Each is a function that takes any bytes, and panics if an invariant doesn't hold. They are built only for
//! `crates/fuzz`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use arbitrary::{Result, Unstructured};

use crate::Protocol;
use crate::dispatch::{
    AttemptId, DispatchAction, DispatchEvent, Dispatcher, LaneId, OriginId, RequestSize, Role,
};
pub use crate::h1::fuzzing::answer as h1_answer;

/// Parses an origin. If this succeeds, the written form of the origin must parse to the same origin.
pub fn origin(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(origin) = crate::Origin::parse(text) {
        let again = crate::Origin::parse(&origin.to_string());
        assert_eq!(again.ok(), Some(origin), "{text:?}");
    }
}

// Sends events to the dispatcher in random order, as a network and callers can produce them. Checks the dispatcher's invariants.

/// The number of origins, and the largest limit of connections that the input can select.
const ORIGINS_MAX: usize = 3;
const CEILING_MAX: usize = 12;

/// The maximum number of random events.
const EVENTS_MAX: usize = 600;

/// After the random events, all attempts must end within this many steps.
const SETTLING_MAX: usize = 20_000;

/// A simulated connection.
#[derive(Debug)]
struct SimulatedConnection {
    origin: OriginId,
    protocol: Option<Protocol>,
    is_draining: bool,
    /// The attempts that run on the connection, with their roles.
    running: BTreeMap<AttemptId, Role>,
}

/// A simulated driver, which keeps its own record of attempts and lanes to check the dispatcher's.
struct DriverModel {
    dispatcher: Dispatcher,
    now: Instant,
    ceiling: usize,
    /// The waiting attempts. A hedge is stored with the attempt that it hedges.
    waiting: BTreeMap<AttemptId, (OriginId, Option<AttemptId>)>,
    /// The running attempts with their lanes. Some of these lanes may already have been closed.
    running: BTreeMap<AttemptId, LaneId>,
    lanes: BTreeMap<LaneId, SimulatedConnection>,
    dialled: BTreeSet<LaneId>,
    attempts: u64,
    moved: u64,
}

/// Runs a sequence of events that these bytes select.
pub fn events(input: &[u8]) {
    let mut drawn = Unstructured::new(input);
    // An error means that the bytes ended in the middle of an event. This is fine.
    let _ = run(&mut drawn);
}

fn run(drawn: &mut Unstructured<'_>) -> Result<()> {
    let ceiling = drawn.int_in_range(1..=CEILING_MAX)?;
    let mut driver = DriverModel {
        dispatcher: Dispatcher::new(ceiling),
        now: Instant::now(),
        ceiling,
        waiting: BTreeMap::new(),
        running: BTreeMap::new(),
        lanes: BTreeMap::new(),
        dialled: BTreeSet::new(),
        attempts: 0,
        moved: 0,
    };
    let mut drawing = Ok(());
    for _ in 0..EVENTS_MAX {
        if drawn.is_empty() {
            break;
        }
        drawing = driver.happen(drawn);
        if drawing.is_err() {
            break;
        }
    }
    driver.settle();
    drawing
}

impl DriverModel {
    /// Selects an event that is possible now, and sends it to the dispatcher.
    fn happen(&mut self, drawn: &mut Unstructured<'_>) -> Result<()> {
        let origin = |drawn: &mut Unstructured<'_>| Ok(OriginId(drawn.int_in_range(0..=ORIGINS_MAX - 1)?));
        match drawn.int_in_range(0..=19_u8)? {
            0..=4 => {
                let (origin, size) = (origin(drawn)?, size(drawn)?);
                let attempt = self.new_attempt(origin, None);
                self.tell(DispatchEvent::Submitted { attempt, origin, size });
            }
            5 => {
                let Some((first, lane)) = pick(drawn, &self.running)? else { return Ok(()) };
                let size = size(drawn)?;
                let Some(origin) = self.lanes.get(&lane).map(|lane| lane.origin) else { return Ok(()) };
                let attempt = self.new_attempt(origin, Some(first));
                self.tell(DispatchEvent::Hedged { attempt, origin, size, hedge_of: first });
            }
            6 => {
                let among_waiting = drawn.arbitrary()?;
                let attempt = match among_waiting {
                    true => pick(drawn, &self.waiting)?.map(|(attempt, _)| attempt),
                    false => pick(drawn, &self.running)?.map(|(attempt, _)| attempt),
                };
                let Some(attempt) = attempt else { return Ok(()) };
                self.waiting.remove(&attempt);
                self.tell(DispatchEvent::Cancelled { attempt });
            }
            7..=9 => {
                let dialling = self.lanes.iter().filter(|(_, lane)| lane.protocol.is_none());
                let dialling: BTreeMap<_, _> = dialling.map(|(id, _)| (*id, ())).collect();
                let Some((lane, ())) = pick(drawn, &dialling)? else { return Ok(()) };
                self.dial_ends(lane, drawn)?;
            }
            10..=12 => {
                let Some((attempt, _)) = pick(drawn, &self.running)? else { return Ok(()) };
                self.finish(attempt, drawn.ratio(7, 8)?);
            }
            13 => {
                let Some((attempt, lane)) = pick(drawn, &self.running)? else { return Ok(()) };
                if drawn.arbitrary()? {
                    let bytes = drawn.arbitrary()?;
                    self.tell(DispatchEvent::Sized { attempt, bytes });
                    return Ok(());
                }
                // This is possible only on a connection that carries one attempt at a time.
                if let Some(lane) = self.lanes.get_mut(&lane)
                    && lane.protocol.is_some_and(|protocol| !protocol.is_multiplexed())
                    && let Some(role) = lane.running.get_mut(&attempt)
                {
                    *role = Role::Freight;
                    self.tell(DispatchEvent::TurnedFreight { attempt });
                }
            }
            14 => {
                let Some(lane) = self.open_lane(drawn)? else { return Ok(()) };
                match drawn.int_in_range(0..=3_u8)? {
                    0 => self.drain(lane),
                    1 => self.close(lane),
                    2 => self.tell(DispatchEvent::Streams { lane, max: drawn.arbitrary::<u8>()?.into() }),
                    _ => {
                        let limit = Duration::from_millis(drawn.arbitrary::<u32>()?.into());
                        self.tell(DispatchEvent::KeepsIdle { lane, limit });
                    }
                }
            }
            15 => {
                let Some(lane) = self.open_lane(drawn)? else { return Ok(()) };
                self.tell(DispatchEvent::Stale { lane });
                self.close(lane);
            }
            16 => {
                let (origin, attempts) = (origin(drawn)?, drawn.int_in_range(0..=40)?);
                self.tell(DispatchEvent::Anticipated { origin, attempts });
            }
            17 => {
                let protocol = if drawn.arbitrary()? { Protocol::H1 } else { Protocol::H2 };
                let event = match drawn.int_in_range(0..=3_u8)? {
                    0 => DispatchEvent::Slept,
                    _ => DispatchEvent::Expected { origin: origin(drawn)?, protocol },
                };
                self.tell(event);
            }
            _ => {
                self.now +=
                    Duration::from_micros(drawn.arbitrary::<u16>()?.into()) * drawn.int_in_range(1..=200)?;
                self.moved += u64::from(drawn.arbitrary::<u32>()?);
                self.tick();
            }
        }
        Ok(())
    }

    fn new_attempt(&mut self, origin: OriginId, hedge_of: Option<AttemptId>) -> AttemptId {
        let attempt = AttemptId(self.attempts);
        self.attempts += 1;
        self.waiting.insert(attempt, (origin, hedge_of));
        attempt
    }

    fn dial_ends(&mut self, lane: LaneId, drawn: &mut Unstructured<'_>) -> Result<()> {
        let rtt = Duration::from_micros(drawn.int_in_range(1..=500_000)?);
        if drawn.arbitrary()? {
            self.tell(DispatchEvent::Reached { lane, rtt });
        }
        if drawn.ratio(1, 5)? {
            self.lanes.remove(&lane);
            self.tell(DispatchEvent::DialFailed { lane });
        } else {
            self.open(lane, if drawn.arbitrary()? { Protocol::H1 } else { Protocol::H2 }, rtt);
        }
        Ok(())
    }

    fn open(&mut self, lane: LaneId, protocol: Protocol, rtt: Duration) {
        if let Some(connection) = self.lanes.get_mut(&lane) {
            connection.protocol = Some(protocol);
            self.tell(DispatchEvent::Opened { lane, protocol, rtt });
        }
    }

    fn open_lane(&self, drawn: &mut Unstructured<'_>) -> Result<Option<LaneId>> {
        let open = self.lanes.iter().filter(|(_, lane)| lane.protocol.is_some());
        let open: BTreeMap<_, _> = open.map(|(id, _)| (*id, ())).collect();
        Ok(pick(drawn, &open)?.map(|(lane, ())| lane))
    }

    fn finish(&mut self, attempt: AttemptId, reusable: bool) {
        let Some(lane) = self.running.remove(&attempt) else { return };
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.running.remove(&attempt);
            lane.is_draining |= !reusable;
        }
        self.tell(DispatchEvent::Finished { attempt, reusable });
    }

    fn drain(&mut self, lane: LaneId) {
        if let Some(connection) = self.lanes.get_mut(&lane) {
            connection.is_draining = true;
        }
        self.tell(DispatchEvent::Draining { lane });
    }

    /// Closes the connection, and then ends the attempts that ran on it.
    fn close(&mut self, lane: LaneId) {
        let running = self.lanes.remove(&lane).map(|lane| lane.running).unwrap_or_default();
        self.tell(DispatchEvent::Closed { lane });
        for attempt in running.into_keys() {
            self.finish(attempt, false);
        }
    }

    fn tick(&mut self) {
        for origin in 0..ORIGINS_MAX {
            let event = DispatchEvent::Moved {
                origin: OriginId(origin),
                down: self.moved,
                up: Some(self.moved / 3),
                flow: None,
            };
            self.tell(event);
        }
        self.tell(DispatchEvent::Tick);
    }

    fn tell(&mut self, event: DispatchEvent) {
        self.dispatcher.handle(self.now, event);
        while let Some(action) = self.dispatcher.poll() {
            self.carry_out(action);
        }
        assert!(self.lanes.len() <= self.ceiling, "{} connections of {}", self.lanes.len(), self.ceiling);
        let attempts = self.waiting.len() + self.running.len();
        assert_eq!(
            self.dispatcher.attempts(),
            attempts,
            "the dispatcher knows another number of attempts after {event:?}"
        );
    }

    fn carry_out(&mut self, action: DispatchAction) {
        match action {
            DispatchAction::Dial { lane, origin, .. } => {
                assert!(self.dialled.insert(lane), "{lane:?} is dialled twice");
                let connection = SimulatedConnection {
                    origin,
                    protocol: None,
                    is_draining: false,
                    running: BTreeMap::new(),
                };
                self.lanes.insert(lane, connection);
            }
            DispatchAction::Send { attempt, lane, role } => {
                let waited = self.waiting.remove(&attempt);
                let (origin, hedge_of) = waited.unwrap_or_else(|| panic!("{attempt:?} doesn't wait"));
                let first = hedge_of.and_then(|first| self.running.get(&first));
                assert_ne!(first, Some(&lane), "a hedge was sent on the lane of its first attempt");
                let connection = self.lanes.get_mut(&lane);
                let connection = connection.unwrap_or_else(|| panic!("sent on {lane:?}, which is gone"));
                assert_eq!(connection.origin, origin, "sent to another origin");
                assert!(!connection.is_draining, "sent on {lane:?}, which takes no new requests");
                let protocol =
                    connection.protocol.unwrap_or_else(|| panic!("sent on {lane:?}, which isn't open"));
                if protocol.is_multiplexed() {
                    let is_other = |other: &Role| *other != role;
                    assert!(!connection.running.values().any(is_other), "express beside freight");
                } else {
                    assert!(connection.running.is_empty(), "two at once on {protocol:?}");
                }
                connection.running.insert(attempt, role);
                self.running.insert(attempt, lane);
            }
            DispatchAction::Close { lane } => {
                if let Some(connection) = self.lanes.remove(&lane) {
                    assert!(connection.running.is_empty(), "{lane:?} is closed in use");
                }
            }
            DispatchAction::Fail { attempt, because } => {
                assert!(self.waiting.remove(&attempt).is_some(), "{attempt:?} fails, and doesn't wait");
                assert!(!self.lanes.contains_key(&because), "{because:?} hasn't failed");
            }
            DispatchAction::Window { bytes, .. } | DispatchAction::SendBuffer { bytes, .. } => {
                assert_ne!(bytes, Some(0))
            }
            DispatchAction::Unsent { bytes, .. } => assert_ne!(bytes, 0),
            DispatchAction::Pace { rate, .. } => assert_ne!(rate, Some(0)),
            DispatchAction::Spare { .. } => {}
            DispatchAction::Yield { rate, .. } => assert_ne!(rate, Some(0), "bulk would never move again"),
        }
    }

    /// Lets every dial succeed and every attempt end from now on. Panics unless all submitted attempts end.
    fn settle(&mut self) {
        for _ in 0..SETTLING_MAX {
            if self.waiting.is_empty() && self.running.is_empty() {
                return;
            }
            let dialling = self.lanes.iter().find(|(_, lane)| lane.protocol.is_none()).map(|(id, _)| *id);
            let running = self.running.keys().next().copied();
            match (dialling, running) {
                // Running attempts end first, since a dial takes a round trip.
                (_, Some(attempt)) => self.finish(attempt, true),
                (Some(lane), None) => {
                    self.now += Duration::from_millis(10);
                    self.open(lane, Protocol::H1, Duration::from_millis(10));
                }
                (None, None) => {
                    let next = self.dispatcher.next_tick();
                    let next = next.unwrap_or_else(|| panic!("{:?} wait for nothing", self.waiting.keys()));
                    self.now = self.now.max(next) + Duration::from_millis(1);
                    self.tick();
                }
            }
        }
        panic!("{} attempts never end: {:?}", self.waiting.len(), self.dispatcher);
    }
}

fn size(drawn: &mut Unstructured<'_>) -> Result<RequestSize> {
    let bytes = |drawn: &mut Unstructured<'_>| {
        Ok(match drawn.int_in_range(0..=3_u8)? {
            0 => 0,
            1 => u64::from(drawn.arbitrary::<u16>()?),
            2 => u64::from(drawn.arbitrary::<u32>()?),
            _ => drawn.arbitrary::<u64>()?,
        })
    };
    let up = if drawn.ratio(3, 4)? { 0 } else { bytes(drawn)? };
    let down = if drawn.arbitrary()? { Some(bytes(drawn)?) } else { None };
    Ok(RequestSize::new(up, down, drawn.arbitrary()?))
}

/// Selects one of these entries, if there are any.
fn pick<K: Copy + Ord, V: Copy>(
    drawn: &mut Unstructured<'_>,
    among: &BTreeMap<K, V>,
) -> Result<Option<(K, V)>> {
    if among.is_empty() {
        return Ok(None);
    }
    let chosen = drawn.choose_index(among.len())?;
    Ok(among.iter().nth(chosen).map(|(key, value)| (*key, *value)))
}
