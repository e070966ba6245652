//! What the dispatcher knows of one origin.

use std::time::{Duration, Instant};

use super::directions::DirectionState;
use super::express_lanes::{Known, Work};
use super::freight_lanes::{FreightLanes, covering};
use super::idle::IdleLimit;
use super::in_flight::InFlight;
use super::queue::Queues;
use super::rules::Rules;
use super::served::Served;
use super::{AttemptId, Direction, LaneId, Role, Size, express_lanes};
use crate::Protocol;

#[derive(Debug)]
pub(super) struct OriginState {
    pub(super) rules: &'static Rules,
    pub(super) lanes: Vec<LaneId>,
    pub(super) queues: Queues,
    pub(super) down: DirectionState,
    pub(super) up: DirectionState,
    /// Hedges that wait for a lane, few at a time.
    pub(super) hedges: Vec<AttemptId>,
    /// Attempts of each role, queued and running.
    pub(super) express_live: usize,
    pub(super) freight_live: usize,
    /// Express ones that have ended since there was none.
    express_ended: usize,
    /// Openers among them.
    pub(super) openers: usize,
    pub(super) express_weight: u64,
    /// Attempts that were announced and have not come yet: lanes for them are dialled meanwhile.
    pub(super) anticipated: usize,
    pub(super) in_flight: InFlight,
    pub(super) idle: IdleLimit,
    pub(super) served: Served,
    /// How large openers were of late that turned out small, in bytes.
    opener_size: Option<u64>,
    pub(super) freight: FreightLanes,
    /// Bytes of freight attempts, queued and running.
    freight_bytes: u64,
    /// The number of spare lanes in the last `Action::Spare`.
    pub(super) said_spare: usize,
    /// When bulk was sent last.
    pub(super) freight_sent: Option<Instant>,
    /// When it last gave a lane up for an origin that had none.
    pub(super) gave_way: Option<Instant>,
    protocol: Option<Protocol>,
    /// Whether it has shown that it speaks that.
    has_spoken: bool,
    rtt: Option<Duration>,
    /// The round trip that a TCP handshake showed, until a TLS flight has shown it better.
    reached: Option<Duration>,
    /// While nothing is known of the path, when more than one lane may be dialled.
    probing_until: Option<Instant>,
    probing_since: Option<Instant>,
    /// Whether that time has come.
    probed: bool,
    /// How long the last dial took that succeeded.
    dial: Option<Duration>,
    /// Dials of each role that failed lately, and when the last did.
    failed: [(usize, Option<Instant>); 2],
    /// The last answer of [`express_wanted`](Self::express_wanted): of what was known, beside how many lanes for bulk, and for how many
    /// attempts.
    wanted: Option<(Known, Work, usize)>,
    /// When the shares of a burst end.
    shares_end: Option<Instant>,
}

impl OriginState {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self {
            rules,
            lanes: Vec::new(),
            queues: Queues::default(),
            down: DirectionState::by(rules),
            up: DirectionState::by(rules),
            hedges: Vec::new(),
            express_live: 0,
            freight_live: 0,
            express_ended: 0,
            openers: 0,
            express_weight: 0,
            anticipated: 0,
            in_flight: InFlight::by(rules),
            idle: IdleLimit::by(rules),
            served: Served::by(rules),
            opener_size: None,
            freight: FreightLanes::by(rules),
            freight_bytes: 0,
            said_spare: 0,
            freight_sent: None,
            gave_way: None,
            protocol: None,
            has_spoken: false,
            rtt: None,
            reached: None,
            probing_until: None,
            probing_since: None,
            probed: false,
            dial: None,
            failed: [(0, None); 2],
            wanted: None,
            shares_end: None,
        }
    }

    pub(super) fn expect(&mut self, protocol: Protocol) {
        self.protocol.get_or_insert(protocol);
    }

    pub(super) fn learn(&mut self, now: Instant, protocol: Option<Protocol>, rtt: Duration, took: Duration) {
        self.protocol = protocol.or(self.protocol);
        self.has_spoken |= protocol.is_some();
        // The smallest seen: a busy machine stretches a handshake, nothing shortens it.
        self.rtt = Some(self.rtt.map_or(rtt, |r| r.min(rtt)));
        self.dial = Some(took);
        self.freight.reached(self.rtt());
        self.shares_end = Some(now + took / 2);
    }

    /// A dial failed: while others may succeed it isn't repeated before a turn.
    pub(super) fn dial_failed(&mut self, role: Role, now: Instant) {
        let count = self.failed_lately(role, now) + 1;
        self.failed[role as usize] = (count, Some(now));
    }

    /// Lanes of the role that are missing because their dial failed just now.
    pub(super) fn failed_lately(&self, role: Role, now: Instant) -> usize {
        let (count, last) = self.failed[role as usize];
        if last.is_some_and(|at| now < at + self.rules.dial_again) { count } else { 0 }
    }

    /// Nothing of the role is left to wait for: the next attempt begins anew.
    pub(super) fn forgive(&mut self, role: Role) {
        self.failed[role as usize] = (0, None);
    }

    /// What the origin speaks, or is expected to.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    pub(super) fn rtt(&self) -> Duration {
        self.path().unwrap_or_default()
    }

    /// The round trip, as far as it is known. A TCP handshake may end at a proxy nearby, where a TLS flight shows the
    /// server; but a TLS flight holds the work of both ends too, many milliseconds where they are busy with a burst of
    /// them. So the shorter of the two is believed unless it is shorter by far.
    pub(super) fn path(&self) -> Option<Duration> {
        match (self.rtt, self.reached) {
            (Some(tls), Some(tcp)) if tls <= tcp * self.rules.proxy_factor => Some(tcp.min(tls)),
            (tls, tcp) => tls.or(tcp),
        }
    }

    /// A TCP handshake has shown the round trip, perhaps only to a middlebox.
    pub(super) fn reached(&mut self, rtt: Duration) {
        self.reached = Some(self.reached.map_or(rtt, |r| r.min(rtt)));
    }

    /// How many more lanes may be dialled now: one, while the first shows how far the server is.
    pub(super) fn may_dial(&mut self, now: Instant, missing: usize) -> usize {
        if self.path().is_some() || missing == 0 {
            return missing;
        }
        match self.probing_until {
            None => {
                (self.probing_since, self.probing_until) = (Some(now), Some(now + self.rules.probe));
                1
            }
            // A tick ends it, before which everything else is heard that has come.
            Some(_) if !self.probed => 0,
            Some(_) => missing,
        }
    }

    /// How long after its start a dial still counts as about to open.
    pub(super) fn sibling_wait(&self) -> Duration {
        self.dial.map_or(Duration::MAX / 4, |took| took + took / 2).min(Duration::from_secs(3600))
    }

    fn is_queued(&self) -> bool {
        !self.queues.is_empty(Role::Express) || !self.queues.is_empty(Role::Freight)
    }

    /// Takes note that `now` has come.
    pub(super) fn tick(&mut self, now: Instant) {
        self.in_flight.tick(now);
        self.shares_end = self.shares_end.filter(|at| *at > now);
        for role in [Role::Express, Role::Freight] {
            if self.failed_lately(role, now) == 0 {
                self.forgive(role);
            }
        }
        if let Some(at) = self.probing_until.filter(|at| *at <= now && !self.probed) {
            // A machine that is so busy that this comes late may have kept the answer from coming, too. With 200 files to read, two cores
            // noticed it 10 ms late, a server 2 ms away was taken for one far away, and the handshakes of 32 lanes and more took 0.1 s.
            if now > at + self.rules.probe
                && now < self.probing_since.unwrap_or(now) + self.rules.probe * self.rules.probes
            {
                self.probing_until = Some(now + self.rules.probe);
            } else {
                self.probed = true;
            }
        }
    }

    pub(super) fn next_tick(&self) -> Option<Instant> {
        let queued = !self.queues.is_empty(Role::Express);
        let is_held = |direction| self.queues.wait(Role::Express, direction) && !self.has_room(direction);
        let shares = self.shares_end.filter(|_| queued);
        let is_wanted = self.is_queued() || self.anticipated > 0;
        let probe = self.probing_until.filter(|_| self.path().is_none() && !self.probed && is_wanted);
        let room = self.in_flight.next_tick().filter(|_| Direction::BOTH.into_iter().any(is_held));
        // Nothing else need happen while a hedge waits for a dial to be repeated.
        let failed = self.failed.iter().filter(|_| !self.hedges.is_empty()).filter_map(|(_, last)| *last);
        let dial = failed.map(|at| at + self.rules.dial_again).min();
        [shares, probe, room, dial, self.freight.next_tick()].into_iter().flatten().min()
    }

    pub(super) fn direction(&mut self, direction: Direction) -> &mut DirectionState {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }

    pub(super) fn admit(&mut self, now: Instant, attempt: AttemptId, role: Role, size: Size, opener: bool) {
        self.anticipated = self.anticipated.saturating_sub(1);
        let weight = size.weight(self.rules);
        self.count(role, weight, opener);
        let queue = self.queues.of(role, size.direction(self.rules));
        match role {
            Role::Express => queue.push_by_size(now, attempt, weight, self.rules),
            Role::Freight => queue.push_in_turn(now, attempt),
        }
    }

    pub(super) fn count(&mut self, role: Role, weight: u64, opener: bool) {
        self.openers += usize::from(opener);
        match role {
            Role::Express => {
                self.express_live += 1;
                self.express_weight += weight;
            }
            Role::Freight => {
                self.freight_live += 1;
                self.freight_bytes += weight;
            }
        }
    }

    pub(super) fn release(&mut self, role: Role, weight: u64, opener: bool) {
        self.openers -= usize::from(opener);
        match role {
            Role::Express => {
                self.express_live -= 1;
                self.express_weight -= weight;
                self.express_ended = if self.express_live > 0 { self.express_ended + 1 } else { 0 };
            }
            Role::Freight => {
                self.freight_live -= 1;
                self.freight_bytes -= weight;
            }
        }
    }

    /// Takes note that an express attempt is on its way.
    pub(super) fn sent(&mut self, now: Instant, attempt: AttemptId, weight: u64, up: u64, opener: bool) {
        let likely = self.opener_size.filter(|_| opener);
        self.in_flight.add(now, attempt, likely.map_or(weight, |size| size + up), up);
    }

    /// Takes note of an opener's size.
    pub(super) fn sized(&mut self, now: Instant, attempt: AttemptId, bytes: u64) {
        self.in_flight.answered(now, attempt, bytes, self.rtt());
        let size = self.opener_size.unwrap_or(self.rules.opener_assumed);
        self.opener_size = Some(size - size / 8 + bytes / 8);
    }

    /// Whether another small request may be sent that moves most in this direction.
    pub(super) fn has_room(&self, direction: Direction) -> bool {
        let shown = match direction {
            Direction::Down => self.down.shown(),
            Direction::Up => self.up.shown(),
        };
        self.in_flight.has_room(direction, shown, self.rtt())
    }

    /// How many bytes of small requests are sent before some are answered.
    pub(super) fn at_once(&self) -> u64 {
        let turn = self.in_flight.turn(self.rtt());
        self.down.shown().at_once(self.rules, turn).max(self.up.shown().at_once(self.rules, turn)) as u64
    }

    /// Returns whether the origin's express lanes most likely carry many requests at once. Before anything is known, ALPN's preference decides.
    fn is_likely_multiplexed(&self) -> bool {
        self.protocol.is_none_or(Protocol::is_multiplexed)
    }

    pub(super) fn express_wanted(&mut self) -> usize {
        let live = self.express_live + self.anticipated;
        let size = self.opener_size.unwrap_or(self.rules.opener_assumed);
        // What was assumed of openers is corrected by what others brought.
        let openers = self.openers.min(self.express_live) as u64;
        let known =
            self.express_weight.saturating_sub(openers * self.rules.opener_assumed.saturating_sub(size));
        let bytes = known + self.anticipated as u64 * size;
        let path = if self.up.small > bytes / 2 { self.up.shown() } else { self.down.shown() };
        let service = self.in_flight.service();
        let (is_multiplexed, has_spoken) = (self.is_likely_multiplexed(), self.has_spoken);
        let known = Known { is_multiplexed, has_spoken, rtt: self.path(), service, path };
        let freight = self.freight_wanted();
        // Asked after every event while attempts queue, so the answer is kept while its ground has hardly moved.
        let work = Work { attempts: live, so_far: live + self.express_ended, bytes, freight };
        let is_about = |now: usize, then: usize| now.abs_diff(then) <= then / 16;
        if let Some((of, then, wanted)) = self.wanted
            && (of, freight) == (known, then.freight)
            && is_about(live, then.attempts)
            && is_about(work.so_far, then.so_far)
        {
            return wanted;
        }
        let wanted = express_lanes::wanted(self.rules, work, known);
        self.wanted = Some((known, work, wanted));
        wanted
    }

    pub(super) fn freight_wanted(&self) -> usize {
        self.freight.target().max(self.covering()).min(self.freight_live)
    }

    /// Lanes that cover each other's pauses between the requests for bulk that there are.
    pub(super) fn covering(&self) -> usize {
        let mean = self.freight_bytes / self.freight_live.max(1) as u64;
        let (direction, way) = match self.up.bulk > self.down.bulk {
            true => (Direction::Up, &self.up),
            false => (Direction::Down, &self.down),
        };
        covering(self.rules, direction, mean, self.rtt(), way.path.rate()).min(self.freight_live)
    }

    /// Returns how many more attempts would each get a lane that pays, where there may be `lanes_max` for bulk.
    pub(super) fn spare(&self, lanes_max: usize) -> usize {
        let target = self.freight.target().min(lanes_max);
        if self.freight_live == 0 { 0 } else { target.saturating_sub(self.freight_live) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_whose_end_is_noticed_late_is_begun_again() {
        let (mut origin, mut now) = (OriginState::by(&Rules::CHOSEN), Instant::now());
        assert_eq!(origin.may_dial(now, 9), 1);
        for _ in 0..4 {
            now += Rules::CHOSEN.probe * 3;
            origin.tick(now);
            assert_eq!(origin.may_dial(now, 9), 0);
        }
        now += Rules::CHOSEN.probe;
        origin.tick(now);
        assert_eq!(origin.may_dial(now, 9), 9);
    }

    #[test]
    fn where_timers_always_come_late_a_probe_ends_too() {
        let (mut origin, mut now) = (OriginState::by(&Rules::CHOSEN), Instant::now());
        assert_eq!(origin.may_dial(now, 9), 1);
        for _ in 0..Rules::CHOSEN.probes {
            now += Rules::CHOSEN.probe + Duration::from_millis(1);
            origin.tick(now);
        }
        assert_eq!(origin.may_dial(now, 9), 9);
    }

    #[test]
    fn a_probe_that_ends_in_time_has_ended() {
        let (mut origin, now) = (OriginState::by(&Rules::CHOSEN), Instant::now());
        assert_eq!(origin.may_dial(now, 9), 1);
        origin.tick(now + Rules::CHOSEN.probe);
        assert_eq!(origin.may_dial(now + Rules::CHOSEN.probe, 9), 9);
    }
}
