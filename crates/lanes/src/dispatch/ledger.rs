//! The ledger records attempts and the lanes that carry them. The ledger also keeps every sum over attempts and over lanes. No other
//! module counts them.
//!
//! An attempt is in exactly one of three places: in a queue, among the hedges that wait, or on a lane. From its admission to its end, an
//! attempt is included in the sums of its origin and of the machine's link, in each direction.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::rules::Rules;
use super::{AttemptId, Direction, LaneId, OriginId, RequestSize, Role};
use crate::Protocol;

/// The number of bytes that a new connection can send in its first round trip: ten segments (RFC 6928) of 1448 bytes.
pub(super) const INITIAL_WINDOW: f64 = INITIAL_SEGMENTS * 1448.0;
pub(super) const INITIAL_SEGMENTS: f64 = 10.0;

/// Returns whether the driver reports the beginning of an answer with this expected size. The beginning of a smaller answer isn't needed,
/// because its end gives the same information. The beginning of a bulk answer says nothing about small answers.
pub(crate) fn is_announced_to_dispatcher(expected: u64) -> bool {
    expected as f64 > Rules::CHOSEN.grown_window && expected <= Rules::CHOSEN.freight_above
}

/// One try of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) origin: OriginId,
    pub(super) role: Role,
    pub(super) size: RequestSize,
    pub(super) weight: u64,
    pub(super) submitted: Instant,
    pub(super) lane: Option<LaneId>,
    pub(super) opener: bool,
    /// The attempt that this attempt hedges.
    pub(super) hedge_of: Option<AttemptId>,
}

/// Sums over the attempts of one direction, queued and running.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutstandingWork {
    /// The bytes of small attempts.
    pub(super) small: u64,
    /// The number of bulk attempts.
    pub(super) bulk: usize,
}

impl OutstandingWork {
    pub(super) fn is_none(self) -> bool {
        self.small == 0 && self.bulk == 0
    }
}

/// The part of the ledger that belongs to one origin.
#[derive(Debug, Default)]
pub(super) struct OriginAccount {
    pub(super) lanes: Vec<LaneId>,
    pub(super) queues: OriginQueues,
    /// Hedges that wait for a lane. Only a few hedges wait at a time.
    pub(super) hedges: Vec<AttemptId>,
    /// The number of attempts of each role, queued and running.
    pub(super) express: usize,
    pub(super) freight: usize,
    /// The number of express attempts that have ended since the origin last had none.
    pub(super) express_ended: usize,
    /// The number of requests of unknown size, in both roles together.
    pub(super) openers: usize,
    pub(super) express_weight: u64,
    freight_weight: u64,
    outstanding: [OutstandingWork; 2],
    pub(super) on_the_way: ExpressInFlight,
}

impl OriginAccount {
    pub(super) fn outstanding(&self, direction: Direction) -> OutstandingWork {
        self.outstanding[direction as usize]
    }

    /// Returns the mean size of freight attempts in bytes.
    pub(super) fn mean_freight(&self) -> u64 {
        self.freight_weight / self.freight.max(1) as u64
    }

    pub(super) fn is_queued(&self) -> bool {
        !self.queues.is_empty(Role::Express) || !self.queues.is_empty(Role::Freight)
    }

    fn count(&mut self, role: Role, weight: u64, opener: bool) {
        self.openers += usize::from(opener);
        match role {
            Role::Express => {
                self.express += 1;
                self.express_weight += weight;
            }
            Role::Freight => {
                self.freight += 1;
                self.freight_weight += weight;
            }
        }
    }

    fn release(&mut self, role: Role, weight: u64, opener: bool) {
        self.openers -= usize::from(opener);
        match role {
            Role::Express => {
                self.express -= 1;
                self.express_weight -= weight;
                self.express_ended = if self.express > 0 { self.express_ended + 1 } else { 0 };
            }
            Role::Freight => {
                self.freight -= 1;
                self.freight_weight -= weight;
            }
        }
    }
}

/// All attempts and lanes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rules: &'static Rules,
    accounts: Vec<OriginAccount>,
    // The ids are our own counters, which no peer can choose. So a fast hash without protection against chosen collisions is safe.
    lanes: FxHashMap<LaneId, Lane>,
    attempts: FxHashMap<AttemptId, Attempt>,
    lanes_made: u64,
    /// The sums over all origins, for each direction.
    outstanding: [OutstandingWork; 2],
}

impl Ledger {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Creates the missing accounts of all origins up to this one.
    pub(super) fn open_account(&mut self, origin: OriginId) {
        while self.accounts.len() <= origin.0 {
            let on_the_way = ExpressInFlight { rules: self.rules, ..ExpressInFlight::default() };
            self.accounts.push(OriginAccount { on_the_way, ..OriginAccount::default() });
        }
    }

    pub(super) fn account(&self, origin: OriginId) -> &OriginAccount {
        &self.accounts[origin.0]
    }

    pub(super) fn account_mut(&mut self, origin: OriginId) -> &mut OriginAccount {
        &mut self.accounts[origin.0]
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = (OriginId, &OriginAccount)> {
        self.accounts.iter().enumerate().map(|(i, account)| (OriginId(i), account))
    }

    /// Returns the outstanding work of all origins in a direction.
    pub(super) fn outstanding(&self, direction: Direction) -> OutstandingWork {
        self.outstanding[direction as usize]
    }

    pub(super) fn attempt(&self, id: AttemptId) -> Option<&Attempt> {
        self.attempts.get(&id)
    }

    pub(super) fn attempts(&self) -> impl ExactSizeIterator<Item = &Attempt> {
        self.attempts.values()
    }

    pub(super) fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(&id)
    }

    pub(super) fn lane_mut(&mut self, id: LaneId) -> Option<&mut Lane> {
        self.lanes.get_mut(&id)
    }

    pub(super) fn lanes(&self) -> impl ExactSizeIterator<Item = (LaneId, &Lane)> {
        self.lanes.iter().map(|(id, lane)| (*id, lane))
    }

    pub(super) fn lanes_of(&self, origin: OriginId) -> impl Iterator<Item = (LaneId, &Lane)> {
        let lanes = self.accounts.get(origin.0).into_iter().flat_map(|account| &account.lanes);
        lanes.filter_map(|id| self.lanes.get(id).map(|lane| (*id, lane)))
    }

    /// Returns how many of the origin's lanes carry bulk.
    pub(super) fn freight_busy(&self, origin: OriginId) -> usize {
        self.lanes_of(origin).filter(|(_, l)| l.role == Role::Freight && l.in_flight > 0).count()
    }

    /// Adds a lane that is being dialled.
    pub(super) fn dial(&mut self, now: Instant, origin: OriginId, role: Role) -> LaneId {
        let lane = LaneId(self.lanes_made);
        self.lanes_made += 1;
        self.lanes.insert(lane, Lane::dialling(self.rules, origin, role, now));
        self.accounts[origin.0].lanes.push(lane);
        lane
    }

    /// Forgets a lane, and returns its origin.
    pub(super) fn forget(&mut self, id: LaneId) -> Option<OriginId> {
        let lane = self.lanes.remove(&id)?;
        self.accounts[lane.origin.0].lanes.retain(|l| *l != id);
        Some(lane.origin)
    }

    /// Admits an attempt. The attempt is put into a queue, or among the hedges that wait.
    pub(super) fn admit(&mut self, id: AttemptId, attempt: Attempt) {
        let Attempt { origin, role, size, weight, submitted, opener, hedge_of, .. } = attempt;
        self.attempts.insert(id, attempt);
        self.count(&attempt);
        let account = &mut self.accounts[origin.0];
        account.count(role, weight, opener);
        if hedge_of.is_some() {
            account.hedges.push(id);
            return;
        }
        let queue = account.queues.of(role, size.direction(self.rules));
        match role {
            Role::Express => queue.push_by_size(submitted, id, weight, self.rules),
            Role::Freight => queue.push_in_turn(submitted, id),
        }
    }

    /// Adds an attempt to the sums of both directions.
    fn count(&mut self, attempt: &Attempt) {
        for (direction, bytes, bulk) in self.shares(attempt) {
            for sum in self.sums(attempt.origin, direction) {
                sum.small += bytes;
                sum.bulk += bulk;
            }
        }
    }

    fn discount(&mut self, attempt: &Attempt) {
        for (direction, bytes, bulk) in self.shares(attempt) {
            for sum in self.sums(attempt.origin, direction) {
                sum.small -= bytes;
                sum.bulk -= bulk;
            }
        }
    }

    /// Returns the numbers that an attempt adds to the sums of each direction: its bytes if it is small, and 1 if it is bulk of this
    /// direction.
    fn shares(&self, attempt: &Attempt) -> [(Direction, u64, usize); 2] {
        let (is_small, size) = (attempt.role == Role::Express, attempt.size);
        let share = |direction, bytes| {
            let is_bulk = !is_small && size.direction(self.rules) == direction;
            (direction, bytes * u64::from(is_small), usize::from(is_bulk))
        };
        [share(Direction::Down, size.down(self.rules)), share(Direction::Up, size.up)]
    }

    fn sums(&mut self, origin: OriginId, direction: Direction) -> [&mut OutstandingWork; 2] {
        let way = direction as usize;
        [&mut self.outstanding[way], &mut self.accounts[origin.0].outstanding[way]]
    }

    /// Puts an attempt on a lane, which then has this role. `bytes` is the number of bytes that the attempt is likely to move.
    pub(super) fn put_on(&mut self, now: Instant, id: AttemptId, lane_id: LaneId, role: Role, bytes: u64) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        attempt.lane = Some(lane_id);
        if let Some(lane) = self.lanes.get_mut(&lane_id) {
            lane.role = role;
            lane.take(now, attempt.weight);
            lane.uploads += usize::from(attempt.size.up > self.rules.freight_above);
        }
        if attempt.role == Role::Express {
            self.accounts[attempt.origin.0].on_the_way.add(now, id, bytes, attempt.size.up);
        }
    }

    /// Removes an attempt that has ended from its lane. Returns the lane.
    pub(super) fn take_off(&mut self, now: Instant, attempt: &Attempt) -> Option<&mut Lane> {
        let lane = self.lanes.get_mut(&attempt.lane?)?;
        lane.give_back(now, attempt.weight);
        lane.uploads -= usize::from(attempt.size.up > self.rules.freight_above);
        Some(lane)
    }

    /// Replaces the assumed or expected size of an express attempt's answer with the real size. Returns the attempt before this change, and
    /// how long ago it was sent.
    pub(super) fn resize(
        &mut self,
        now: Instant,
        id: AttemptId,
        bytes: u64,
    ) -> Option<(Attempt, Option<Duration>)> {
        let attempt = self.attempts.get_mut(&id).filter(|w| w.role == Role::Express)?;
        // An opener with a larger answer becomes freight or is stopped, so the sums for small attempts stay as they are.
        if bytes > self.rules.freight_above {
            return None;
        }
        let before = *attempt;
        attempt.size.down = Some(bytes);
        let after = *attempt;
        self.discount(&before);
        self.count(&after);
        let took = self.accounts[after.origin.0].on_the_way.answered(now, id, bytes);
        Some((before, took))
    }

    /// Makes a running express attempt and its lane freight, if the lane carries one attempt at a time. Returns the attempt's origin.
    pub(super) fn turn_freight(&mut self, id: AttemptId) -> Option<OriginId> {
        let attempt = self.attempts.get_mut(&id).filter(|attempt| attempt.role == Role::Express)?;
        let lane = self.lanes.get_mut(&attempt.lane?).filter(|lane| lane.is_exclusive())?;
        let before = *attempt;
        (attempt.role, lane.role) = (Role::Freight, Role::Freight);
        let after = *attempt;
        self.discount(&before);
        self.count(&after);
        let account = &mut self.accounts[after.origin.0];
        account.on_the_way.remove(id);
        account.release(Role::Express, after.weight, after.opener);
        account.count(Role::Freight, after.weight, after.opener);
        Some(after.origin)
    }

    /// Removes a cancelled attempt that isn't on a lane. The attempt's entry in the queue stays and is skipped later. If each cancellation
    /// searched the queue, n cancellations would take time proportional to n².
    pub(super) fn withdraw(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.get(&id).copied().filter(|w| w.lane.is_none()) else { return };
        self.attempts.remove(&id);
        self.discount(&attempt);
        let account = &mut self.accounts[attempt.origin.0];
        account.release(attempt.role, attempt.weight, attempt.opener);
        account.hedges.retain(|hedge| *hedge != id);
    }

    /// Removes an attempt, and subtracts it from every sum.
    pub(super) fn retire(&mut self, id: AttemptId) -> Option<Attempt> {
        let attempt = self.attempts.remove(&id)?;
        self.discount(&attempt);
        let account = &mut self.accounts[attempt.origin.0];
        account.on_the_way.remove(id);
        account.release(attempt.role, attempt.weight, attempt.opener);
        Some(attempt)
    }
}

/// A connection, open or being dialled.
#[derive(Debug)]
pub(super) struct Lane {
    rules: &'static Rules,
    pub(super) origin: OriginId,
    pub(super) role: Role,
    pub(super) state: LaneState,
    /// The time when the dial began. Once the lane is open, the time when it opened.
    pub(super) since: Instant,
    pub(super) in_flight: usize,
    /// The weight of the attempts in flight, in bytes.
    pub(super) weight: u64,
    /// The number of attempts in flight that upload bulk.
    pub(super) uploads: usize,
    /// The time since which the lane has been idle.
    pub(super) idle_since: Instant,
    /// The length of the idle time before the lane's present attempts, or before its last attempts if the
    /// lane is idle now.
    pub(super) rested: Duration,
    /// The time when the first of the lane's present attempts, or of the last ones, was put on the lane.
    pub(super) asked: Instant,
    /// The bytes of the largest attempt that has ended on this lane. The connection's window has grown to about as many.
    pub(super) grown: u64,
    /// True once the server has answered on this lane.
    pub(super) has_answered: bool,
    /// True once we have concluded that the server doesn't serve this lane.
    pub(super) is_unserved: bool,
    /// The server's address.
    pub(super) address: Option<SocketAddr>,
    streams_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LaneState {
    Dialling,
    Open(Protocol),
    /// The lane is open, but takes no new attempts.
    Draining,
}

impl Lane {
    pub(super) fn dialling(rules: &'static Rules, origin: OriginId, role: Role, now: Instant) -> Self {
        let state = LaneState::Dialling;
        Self {
            rules,
            origin,
            role,
            state,
            since: now,
            in_flight: 0,
            weight: 0,
            uploads: 0,
            idle_since: now,
            rested: Duration::ZERO,
            asked: now,
            grown: 0,
            has_answered: false,
            is_unserved: false,
            address: None,
            streams_max: rules.streams_max,
        }
    }

    pub(super) fn open(&mut self, now: Instant, protocol: Protocol) {
        self.state = LaneState::Open(protocol);
        (self.since, self.idle_since) = (now, now);
    }

    pub(super) fn limit_streams(&mut self, max: usize) {
        self.streams_max = max.clamp(1, self.rules.streams_max);
    }

    pub(super) fn is_dialling(&self) -> bool {
        self.state == LaneState::Dialling
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, LaneState::Open(_))
    }

    /// Returns whether the lane is open and carries no attempt.
    pub(super) fn is_idle(&self) -> bool {
        self.is_open() && self.in_flight == 0
    }

    pub(super) fn is_draining(&self) -> bool {
        self.state == LaneState::Draining
    }

    /// Returns whether the lane is open and carries one attempt at a time. If its attempt becomes freight, so does the lane.
    pub(super) fn is_exclusive(&self) -> bool {
        matches!(self.state, LaneState::Open(protocol) if !protocol.is_multiplexed())
    }

    /// Returns how many attempts the lane can carry at once in this role. It is 0 unless the lane is open.
    fn attempts_max(&self, role: Role) -> usize {
        match (self.state, role) {
            (LaneState::Open(protocol), _) if !protocol.is_multiplexed() => 1,
            (LaneState::Open(_), Role::Express) => self.streams_max,
            (LaneState::Open(_), Role::Freight) => self.rules.freight_streams.min(self.streams_max),
            _ => 0,
        }
    }

    /// Returns whether the lane can take another attempt. There must be a free stream for the attempt. If the lane already carries
    /// attempts, all of them together must not exceed the lane's share.
    pub(super) fn can_take(&self, role: Role, weight: u64, share: Option<u64>) -> bool {
        self.in_flight < self.attempts_max(role)
            && (self.in_flight == 0 || share.is_none_or(|s| self.weight + weight <= s))
    }

    pub(super) fn take(&mut self, now: Instant, weight: u64) {
        if self.in_flight == 0 {
            self.rested = now.saturating_duration_since(self.idle_since);
            self.asked = now;
        }
        self.in_flight += 1;
        self.weight += weight;
    }

    pub(super) fn give_back(&mut self, now: Instant, weight: u64) {
        self.in_flight -= 1;
        self.idle_since = now;
        self.weight -= weight;
    }
}

/// An attempt in flight: the time when it was sent, its bytes in both directions, and how many of them are uploaded.
#[derive(Clone, Copy, Debug)]
struct Flight {
    since: Instant,
    bytes: u64,
    up: u64,
    /// True once its answer has begun.
    is_answered: bool,
}

/// The express attempts of one origin that are on lanes.
#[derive(Debug, Default)]
pub(super) struct ExpressInFlight {
    rules: &'static Rules,
    flights: FxHashMap<AttemptId, Flight>,
    bytes: u64,
    up: u64,
    /// The attempts in flight with the times when they were sent, the oldest first. Some may already have ended.
    sent: VecDeque<(Instant, AttemptId)>,
}

impl ExpressInFlight {
    fn add(&mut self, now: Instant, attempt: AttemptId, bytes: u64, up: u64) {
        self.flights.insert(attempt, Flight { since: now, bytes, up, is_answered: false });
        self.bytes += bytes;
        self.up += up;
        self.sent.push_back((now, attempt));
    }

    /// Records that an attempt's answer has begun. `bytes` is the size of the answer. Returns the time from sending the request to the
    /// answer.
    fn answered(&mut self, now: Instant, attempt: AttemptId, bytes: u64) -> Option<Duration> {
        let flight = self.flights.get_mut(&attempt)?;
        let bytes = bytes + flight.up;
        self.bytes = self.bytes - flight.bytes + bytes;
        (flight.bytes, flight.is_answered) = (bytes, true);
        Some(now.saturating_duration_since(flight.since))
    }

    /// Returns how long an attempt has taken, if its bytes fit into one window of its lane. `grown` is the size of the largest earlier
    /// attempt on the lane. Returns `None` if the attempt's answer was already timed.
    pub(super) fn single_flight(&self, now: Instant, attempt: AttemptId, grown: u64) -> Option<Duration> {
        let flight = self.flights.get(&attempt)?;
        let window = INITIAL_WINDOW.max(self.rules.grown_window.min(grown as f64));
        let is_single = !flight.is_answered && flight.bytes as f64 <= window;
        is_single.then(|| now.saturating_duration_since(flight.since))
    }

    fn remove(&mut self, attempt: AttemptId) {
        if let Some(flight) = self.flights.remove(&attempt) {
            self.bytes -= flight.bytes;
            self.up -= flight.up;
        }
        while self.sent.front().is_some_and(|(_, attempt)| !self.flights.contains_key(attempt)) {
            self.sent.pop_front();
        }
    }

    /// Stops counting attempts that have been in flight for [`counted_for`](Rules::counted_for).
    pub(super) fn tick(&mut self, now: Instant) {
        let counted_for = self.rules.counted_for;
        while let Some((_, attempt)) = self.sent.front().copied().filter(|(at, _)| *at + counted_for <= now) {
            self.sent.pop_front();
            self.remove(attempt);
        }
    }

    /// Returns the time from which the oldest attempt is no longer counted. Another attempt can then be sent.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.sent.front().map(|(at, _)| *at + self.rules.counted_for)
    }

    /// Returns whether another attempt of this direction may be sent. `at_once` bytes in flight keep the path full.
    pub(super) fn has_room(&self, direction: Direction, at_once: f64) -> bool {
        let bytes = match direction {
            Direction::Down => self.bytes - self.up,
            Direction::Up => self.up,
        };
        self.flights.len() < self.rules.attempts_min || (bytes as f64) < at_once
    }
}

/// The attempts of one role and direction that wait for a lane.
#[derive(Debug, Default)]
pub(super) struct AttemptQueue(BinaryHeap<Reverse<(Instant, AttemptId)>>);

impl AttemptQueue {
    /// Adds an express attempt. Smaller attempts that are submitted soon after it can overtake it.
    pub(super) fn push_by_size(&mut self, now: Instant, attempt: AttemptId, weight: u64, rules: &Rules) {
        let timeout = rules.overtaken_for.mul_f64(weight as f64 / f64::from(1 << 20));
        self.push_at(now + timeout, attempt);
    }

    /// Adds a freight attempt. Freight attempts are sent in the order of submission. Ordering them by size would gain nothing, because an
    /// object's slices have about the same size.
    pub(super) fn push_in_turn(&mut self, now: Instant, attempt: AttemptId) {
        self.push_at(now, attempt);
    }

    fn push_at(&mut self, at: Instant, attempt: AttemptId) {
        self.0.push(Reverse((at, attempt)));
    }

    /// Returns the next attempt, and the time by which the queue is ordered.
    fn front(&self) -> Option<(Instant, AttemptId)> {
        self.0.peek().map(|Reverse(front)| *front)
    }

    /// Removes and returns the next attempt.
    fn pop(&mut self) -> Option<AttemptId> {
        self.0.pop().map(|Reverse((_, attempt))| attempt)
    }
}

/// The queues of an origin. Each direction has its own queue, so that a full direction doesn't block the other.
#[derive(Debug, Default)]
pub(super) struct OriginQueues([[AttemptQueue; 2]; 2]);

impl OriginQueues {
    pub(super) fn of(&mut self, role: Role, direction: Direction) -> &mut AttemptQueue {
        &mut self.0[role as usize][direction as usize]
    }

    pub(super) fn is_empty(&self, role: Role) -> bool {
        Direction::BOTH.into_iter().all(|direction| !self.wait(role, direction))
    }

    /// Returns whether any attempts of this role and direction wait.
    pub(super) fn wait(&self, role: Role, direction: Direction) -> bool {
        self.0[role as usize][direction as usize].front().is_some()
    }

    /// Returns the next attempt of a role, and its direction.
    pub(super) fn front(&self, role: Role) -> Option<(Direction, AttemptId)> {
        self.front_that(role, |_| true)
    }

    /// Returns the next attempt of a role among the directions that `may_go` allows, and its direction.
    pub(super) fn front_that(
        &self,
        role: Role,
        may_go: impl Fn(Direction) -> bool,
    ) -> Option<(Direction, AttemptId)> {
        let front = |direction: Direction| {
            let front = self.0[role as usize][direction as usize].front();
            front.filter(|_| may_go(direction)).map(|front| (front, direction))
        };
        let first = Direction::BOTH.into_iter().filter_map(front).min_by_key(|(front, _)| *front);
        first.map(|((_, attempt), direction)| (direction, attempt))
    }

    /// Removes and returns the next attempt of a role.
    pub(super) fn pop(&mut self, role: Role) -> Option<AttemptId> {
        let (direction, _) = self.front(role)?;
        self.pop_of(role, direction)
    }

    /// Removes and returns the next attempt of a role and direction.
    pub(super) fn pop_of(&mut self, role: Role, direction: Direction) -> Option<AttemptId> {
        self.of(role, direction).pop()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test fails by panicking")]

    use super::*;

    const RULES: &Rules = &Rules::CHOSEN;

    fn order(queue: &mut AttemptQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|attempt| attempt.0).collect()
    }

    #[test]
    fn smaller_attempts_go_first_and_equal_ones_in_turn() {
        let (mut queue, now) = (AttemptQueue::default(), Instant::now());
        for (attempt, weight) in [(0, 500_000), (1, 5_000), (2, 100_000), (3, 5_000)] {
            queue.push_by_size(now, AttemptId(attempt), weight, RULES);
        }
        assert_eq!(order(&mut queue), [1, 3, 2, 0]);
    }

    #[test]
    fn nothing_is_overtaken_for_ever() {
        let (mut queue, now) = (AttemptQueue::default(), Instant::now());
        queue.push_by_size(now, AttemptId(0), 1 << 20, RULES);
        queue.push_by_size(now + Duration::from_millis(900), AttemptId(1), 1024, RULES);
        queue.push_by_size(now + Duration::from_millis(1100), AttemptId(2), 1024, RULES);
        assert_eq!(order(&mut queue), [1, 0, 2]);
    }

    #[test]
    fn freight_goes_in_turn() {
        let (mut queue, now) = (AttemptQueue::default(), Instant::now());
        for attempt in 0..100 {
            queue.push_in_turn(now, AttemptId(attempt));
        }
        assert!(order(&mut queue).is_sorted());
    }

    /// The number of bytes that may be in flight on a path of 1 Gbit/s with a round trip of 1 ms.
    const AT_ONCE: f64 = 250e3;

    fn on_the_way(count: u64, bytes: u64) -> (ExpressInFlight, Instant) {
        let (mut on_the_way, now) = (ExpressInFlight::default(), Instant::now());
        (0..count).for_each(|attempt| on_the_way.add(now, AttemptId(attempt), bytes, 0));
        (on_the_way, now)
    }

    #[test]
    fn attempts_that_ended_make_room() {
        let (mut on_the_way, _) = on_the_way(16, 1 << 20);
        assert!(!on_the_way.has_room(Direction::Down, AT_ONCE));
        on_the_way.remove(AttemptId(3));
        assert!(on_the_way.has_room(Direction::Down, AT_ONCE));
        (0..16).for_each(|attempt| on_the_way.remove(AttemptId(attempt)));
        assert_eq!((on_the_way.bytes, on_the_way.next_tick()), (0, None));
    }

    #[test]
    fn an_attempt_counts_for_the_size_that_its_answer_tells() {
        let (mut on_the_way, now) = on_the_way(16, 256 << 10);
        assert!(!on_the_way.has_room(Direction::Down, AT_ONCE));
        let took = Duration::from_millis(1);
        for attempt in 0..16 {
            assert_eq!(on_the_way.answered(now + took, AttemptId(attempt), 4 << 10), Some(took));
        }
        assert!(on_the_way.has_room(Direction::Down, AT_ONCE));
        (0..16).for_each(|attempt| on_the_way.remove(AttemptId(attempt)));
        on_the_way.answered(now, AttemptId(3), 1 << 20);
        assert_eq!(on_the_way.bytes, 0, "an ended attempt doesn't count");
    }

    #[test]
    fn attempts_on_a_silent_lane_do_not_hold_up_the_others_for_long() {
        let (mut on_the_way, _) = on_the_way(16, 1 << 20);
        let at = on_the_way.next_tick().expect("a tick");
        on_the_way.tick(at - Duration::from_millis(1));
        assert!(!on_the_way.has_room(Direction::Down, AT_ONCE));
        on_the_way.tick(at);
        assert!(on_the_way.has_room(Direction::Down, AT_ONCE));
        on_the_way.remove(AttemptId(0));
        assert_eq!(on_the_way.bytes, 0);
    }
}
