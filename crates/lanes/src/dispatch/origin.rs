//! The dispatcher's state for one origin.

use std::time::{Duration, Instant};

use super::bulk_controller::BulkInFlight;
use super::choose::{Demand, FreightDemand, LaneCost, LanePlan, ServerProfile, choose};
use super::freight_lanes::FreightLanes;
use super::ledger::{Attempt, OriginAccount};
use super::path_model::PathModel;
use super::rules::Rules;
use super::server_limits::{ConnectionLimit, IdleLimit};
use super::{Direction, Role};
use crate::Protocol;

#[derive(Debug, Default)]
pub(super) struct OriginState {
    pub(super) rules: &'static Rules,
    pub(super) path: PathModel,
    /// The limits of the origin's bulk in flight, for each direction.
    pub(super) in_flight: [BulkInFlight; 2],
    /// The number of attempts that the caller has announced but not yet submitted. Lanes are dialled for them meanwhile.
    pub(super) anticipated: usize,
    pub(super) idle: IdleLimit,
    pub(super) served: ConnectionLimit,
    /// The moving average of the body sizes of openers that turned out to be small.
    opener_size: Option<u64>,
    /// The moving average of the ratio between an answer's bytes and the expected bytes. This ratio is below 1 if ranges reach beyond
    /// the ends of small objects.
    part_answered: f64,
    pub(super) freight: FreightLanes,
    /// The numbers of lanes in the last `DispatchAction::Spare`.
    pub(super) said_spare: (usize, usize),
    /// The time when a freight attempt was last sent.
    pub(super) freight_sent: Option<Instant>,
    /// The time when this origin last gave up a lane for an origin without any.
    pub(super) gave_way: Option<Instant>,
    protocol: Option<Protocol>,
    /// True if the server has negotiated `protocol`. Otherwise the protocol is only expected.
    has_spoken: bool,
    /// The end and the start of the time in which only the first dial runs. Both are used only while the round trip is unknown.
    probing_until: Option<Instant>,
    probing_since: Option<Instant>,
    /// True once the time in which only the first dial runs is over.
    probed: bool,
    /// The time that the last successful dial took.
    dial: Option<Duration>,
    /// For each role, the number of recently failed dials, and the time of the last one.
    failed: [(usize, Option<Instant>); 2],
    /// The last plan by which express lanes were dialled.
    pub(super) plan: Option<LanePlan>,
    /// The time until which each lane of a burst takes only its share of the queued attempts.
    shares_end: Option<Instant>,
}

impl OriginState {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self {
            rules,
            path: PathModel::by(rules),
            in_flight: [BulkInFlight::by(rules), BulkInFlight::by(rules)],
            idle: IdleLimit::by(rules),
            served: ConnectionLimit::by(rules),
            part_answered: 1.0,
            freight: FreightLanes::by(rules),
            ..Self::default()
        }
    }

    pub(super) fn expect(&mut self, protocol: Protocol) {
        self.protocol.get_or_insert(protocol);
    }

    pub(super) fn learn(&mut self, now: Instant, protocol: Option<Protocol>, rtt: Duration, took: Duration) {
        self.protocol = protocol.or(self.protocol);
        self.has_spoken |= protocol.is_some();
        self.path.handshake(rtt);
        self.dial = Some(took);
        self.freight.reached(self.path.rtt());
        self.shares_end = Some(now + took / 2);
    }

    /// Records that a dial failed while other dials may succeed. The dial is repeated after [`dial_again`](Rules::dial_again).
    pub(super) fn dial_failed(&mut self, role: Role, now: Instant) {
        let count = self.failed_lately(role, now) + 1;
        self.failed[role as usize] = (count, Some(now));
    }

    /// Returns how many lanes of the role are missing because their dials failed recently.
    pub(super) fn failed_lately(&self, role: Role, now: Instant) -> usize {
        let (count, last) = self.failed[role as usize];
        if last.is_some_and(|at| now < at + self.rules.dial_again) { count } else { 0 }
    }

    /// Forgets the failed dials of a role, so that the next attempt dials without a pause.
    pub(super) fn forgive(&mut self, role: Role) {
        self.failed[role as usize] = (0, None);
    }

    /// Returns the protocol that the origin speaks, or is expected to speak.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// Returns how many more lanes may be dialled now. Only one dial is allowed until the round trip is known, or until a short wait is
    /// over.
    pub(super) fn may_dial(&mut self, now: Instant, missing: usize) -> usize {
        if self.path.round_trip().is_some() || missing == 0 {
            return missing;
        }
        match self.probing_until {
            None => {
                (self.probing_since, self.probing_until) = (Some(now), Some(now + self.rules.probe));
                1
            }
            // Only a tick ends the wait. Before a tick, the driver handles all events that have already come, including the one that
            // reports the round trip.
            Some(_) if !self.probed => 0,
            Some(_) => missing,
        }
    }

    /// Returns the expected maximum time from the start of a dial to its success.
    pub(super) fn sibling_wait(&self) -> Duration {
        self.dial.map_or(Duration::MAX / 4, |took| took + took / 2).min(Duration::from_secs(3600))
    }

    /// Ends the waiting times that are over at `now`.
    pub(super) fn tick(&mut self, now: Instant) {
        self.shares_end = self.shares_end.filter(|at| *at > now);
        for role in [Role::Express, Role::Freight] {
            if self.failed_lately(role, now) == 0 {
                self.forgive(role);
            }
        }
        if let Some(at) = self.probing_until.filter(|at| *at <= now && !self.probed) {
            // If this machine is so busy that the timer fires late, we may also see the server's answer late. So wait again.
            if now > at + self.rules.probe
                && now < self.probing_since.unwrap_or(now) + self.rules.probe * self.rules.probes
            {
                self.probing_until = Some(now + self.rules.probe);
            } else {
                self.probed = true;
            }
        }
    }

    pub(super) fn next_tick(&self, account: &OriginAccount) -> Option<Instant> {
        let queued = !account.queues.is_empty(Role::Express);
        let is_held = |to| account.queues.wait(Role::Express, to) && !self.has_room(account, to);
        let shares = self.shares_end.filter(|_| queued);
        let is_wanted = account.is_queued() || self.anticipated > 0;
        let probe =
            self.probing_until.filter(|_| self.path.round_trip().is_none() && !self.probed && is_wanted);
        let room = account.on_the_way.next_tick().filter(|_| Direction::BOTH.into_iter().any(is_held));
        // A hedge may wait until a failed dial is repeated. There may be no other event at that time, so a tick is needed.
        let failed = self.failed.iter().filter(|_| !account.hedges.is_empty()).filter_map(|(_, last)| *last);
        let dial = failed.map(|at| at + self.rules.dial_again).min();
        [shares, probe, room, dial, self.freight.next_tick()].into_iter().flatten().min()
    }

    /// Returns how many bytes an express attempt is likely to move.
    pub(super) fn likely_bytes(&self, attempt: &Attempt) -> u64 {
        let likely = self.opener_size.filter(|_| attempt.opener);
        likely.map_or(attempt.weight, |size| size + attempt.size.up)
    }

    /// Records the size of an answer, and the time from sending the request to the answer. `expected` is the size that the request
    /// expected, or `None` for an opener.
    pub(super) fn sized(&mut self, bytes: u64, expected: Option<u64>, took: Option<Duration>) {
        if let Some(took) = took {
            self.path.answered(took);
        }
        if let Some(expected) = expected {
            let part = (bytes as f64 / expected.max(1) as f64).min(1.0);
            self.part_answered += (part - self.part_answered) / f64::from(self.rules.smoothing);
        } else {
            let size = self.opener_size.unwrap_or(self.rules.opener_assumed);
            let part = u64::from(self.rules.smoothing);
            self.opener_size = Some(size - size / part + bytes / part);
        }
    }

    /// Records that there are no more requests, in flight or queued. The next ones may be of another kind.
    pub(super) fn rests(&mut self) {
        self.part_answered = 1.0;
        self.path.rests();
    }

    /// Returns whether another small request of this direction may be sent.
    pub(super) fn has_room(&self, account: &OriginAccount, direction: Direction) -> bool {
        account.on_the_way.has_room(direction, self.path.at_once(direction))
    }

    /// Returns how many bytes of small requests may be in flight in the direction that allows more.
    pub(super) fn at_once(&self) -> u64 {
        self.path.at_once(Direction::Down).max(self.path.at_once(Direction::Up)) as u64
    }

    /// Chooses the origin's lanes. `slots` are the existing ones, by role.
    pub(super) fn plan(&self, account: &OriginAccount, slots: [usize; 2]) -> LanePlan {
        let attempts = account.express + self.anticipated;
        let size = self.opener_size.unwrap_or(self.rules.opener_assumed);
        // `express_weight` contains the assumed size for each opener. If earlier openers were smaller on average, use their average size
        // instead.
        let openers = account.openers.min(account.express) as u64;
        let known =
            account.express_weight.saturating_sub(openers * self.rules.opener_assumed.saturating_sub(size));
        let bytes = known + self.anticipated as u64 * size;
        let is_up = account.outstanding(Direction::Up).small > bytes / 2;
        let bytes = if is_up { bytes } else { (bytes as f64 * self.part_answered) as u64 };
        let demand = Demand {
            attempts,
            bytes,
            so_far: attempts + account.express_ended,
            freight: self.freight_demand(account),
        };
        let server = ServerProfile {
            // Until the protocol is known, HTTP/2 is assumed.
            is_multiplexed: self.protocol.is_none_or(Protocol::is_multiplexed),
            has_spoken: self.has_spoken,
            rtt: self.path.round_trip(),
            service: self.path.service(),
            path: self.path.shown(if is_up { Direction::Up } else { Direction::Down }),
        };
        choose(self.rules, demand, server, slots, self.plan)
    }

    /// Describes the origin's bulk.
    pub(super) fn freight_demand(&self, account: &OriginAccount) -> FreightDemand {
        let bulk = |direction| account.outstanding(direction).bulk;
        let is_up = bulk(Direction::Up) > bulk(Direction::Down);
        let direction = if is_up { Direction::Up } else { Direction::Down };
        let throughput = self.path.throughput(direction);
        // Until the path's rate is known, an upload to a server that isn't far uses two lanes. This is the result for a tiny rate. The
        // first reading soon shows the path's rate. When the number of lanes for 1 Gbit/s was used instead, an upload at 50 Mbit/s had four
        // unfinished parts after 34 MiB. An interruption then lost all four parts.
        let shows_soon = is_up && throughput.can_be_read() && self.path.rtt() < self.rules.far;
        let rate = throughput.rate().unwrap_or(if shows_soon { 1.0 } else { self.rules.rate_unknown });
        let each = LaneCost {
            rounds: self.path.rtt().as_secs_f64() * self.rules.round_trips_between[direction as usize],
            transfer: account.mean_freight().max(1) as f64 / rate,
            ..LaneCost::default()
        };
        FreightDemand { attempts: account.freight, found: self.freight.target(), each }
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
