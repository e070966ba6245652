//! Decides how many lanes an origin has, which lanes are dialled or closed, and on which lane each attempt is sent.
//!
//! A connection costs about a millisecond of CPU time for its handshake, and saves round trips. [`choose`] weighs the cost against the
//! saving by a [`LaneCost`]. So a far server gets many express lanes, and a near one gets few. All origins together stay below the limit of
//! connections. Hedges are sent before queued attempts.

use std::time::{Duration, Instant};

use super::ledger::{Attempt, INITIAL_SEGMENTS, INITIAL_WINDOW, Lane, LaneState, OriginAccount};
use super::path_model::PathRate;
use super::rules::Rules;
use super::{AttemptId, Direction, DispatchAction, Dispatcher, LaneId, OriginId, RequestSize, Role};

/// The attempts of an origin, queued and running, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// The number of small attempts, and their bytes.
    pub(super) attempts: usize,
    pub(super) bytes: u64,
    /// The number of these attempts, plus those that have ended since the origin last had none. A job submits its attempts a few at a time,
    /// so the number of present attempts doesn't show the size of the job. If many attempts have ended, about the same number is likely to
    /// follow.
    pub(super) so_far: usize,
    pub(super) freight: FreightDemand,
}

/// The bulk attempts of an origin, queued and running.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FreightDemand {
    pub(super) attempts: usize,
    /// The number of lanes that the [trials](super::freight_lanes) have found.
    pub(super) found: usize,
    /// The cost of one request of mean size on one lane.
    pub(super) each: LaneCost,
}

/// The measured properties of an origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ServerProfile {
    /// True if each of the origin's lanes carries many requests at once. This is a guess until `has_spoken` is true.
    pub(super) is_multiplexed: bool,
    pub(super) has_spoken: bool,
    pub(super) rtt: Option<Duration>,
    /// The time that the server takes to answer, in addition to the round trip.
    pub(super) service: Duration,
    /// The measured rate of the path, in the direction in which more bytes move.
    pub(super) path: PathRate,
}

/// The estimated time that requests take over a number of lanes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LaneCost {
    /// The round trips in which slow start holds the bytes back.
    pub(super) rounds: f64,
    /// The turns in which a request waits for a lane or a stream, the last turn being its own. A turn is a round trip and the time that the
    /// server takes to answer.
    pub(super) queueing: f64,
    /// The bytes divided by the rate of the path.
    pub(super) transfer: f64,
    /// The CPU time of both ends for opening the lanes.
    pub(super) handshakes: f64,
}

impl LaneCost {
    /// Returns the total time. The path carries bytes while requests wait, so only the longer of these two times counts.
    fn total(self) -> f64 {
        self.rounds + self.queueing.max(self.transfer) + self.handshakes
    }
}

/// The lanes of an origin, as [`choose`] wants them. Arrays are indexed by [`Role`].
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePlan {
    /// The number of lanes that the origin should have.
    pub(super) lanes: [usize; 2],
    /// The number of lanes to dial now.
    pub(super) dial: [usize; 2],
    /// The measurements for which the number of express lanes was chosen.
    demand: Demand,
    server: ServerProfile,
}

/// Chooses how many lanes an origin should have, and how many to dial in addition to the existing ones (`slots`, by role). While the demand
/// and the measurements are about the same as in the `last` plan, the number of express lanes stays the same. This saves time, because
/// Laneway plans after every event while attempts wait.
pub(super) fn choose(
    rules: &Rules,
    demand: Demand,
    server: ServerProfile,
    slots: [usize; 2],
    last: Option<LanePlan>,
) -> LanePlan {
    let freight = demand.freight.lanes(rules);
    let is_about = |now: usize, then: usize| now.abs_diff(then) <= then / rules.demand_change_min;
    let kept = last.filter(|last| {
        (last.server, last.lanes[Role::Freight as usize]) == (server, freight)
            && is_about(demand.attempts, last.demand.attempts)
            && is_about(demand.so_far, last.demand.so_far)
    });
    let express = kept.map_or_else(
        || express_lanes(rules, demand, server, freight),
        |last| last.lanes[Role::Express as usize],
    );
    // If only a few express lanes are missing, none is dialled: they would open only after two round trips, and help little.
    let [missing, dial] = [express.saturating_sub(slots[0]), freight.saturating_sub(slots[1])];
    let is_worth_it = missing.saturating_mul(rules.change_min as usize) > slots[0];
    LanePlan {
        lanes: [express, freight],
        dial: [if is_worth_it { missing } else { 0 }, dial],
        demand: kept.map_or(demand, |last| last.demand),
        server,
    }
}

impl FreightDemand {
    /// Returns the number of freight lanes that the origin should have.
    fn lanes(&self, rules: &Rules) -> usize {
        self.found.max(self.covering(rules)).min(self.attempts)
    }

    /// Returns how many lanes keep the path busy with the present bulk. While one lane waits for its next answer (`rounds`), the other lanes
    /// use the path.
    pub(super) fn covering(&self, rules: &Rules) -> usize {
        let others = (self.each.rounds / self.each.transfer).ceil() as usize;
        (1 + others.min(rules.side_by_side_max - 1)).min(self.attempts)
    }

    /// Returns how many bulk attempts, in addition to the present ones, would raise goodput, each on a lane of its own. Bulk may have at
    /// most `lanes_max` lanes.
    pub(super) fn spare(&self, lanes_max: usize) -> usize {
        if self.attempts == 0 { 0 } else { self.found.min(lanes_max).saturating_sub(self.attempts) }
    }
}

/// Returns how many express lanes an origin should have in addition to `freight` lanes.
fn express_lanes(rules: &Rules, demand: Demand, server: ServerProfile, freight: usize) -> usize {
    if demand.attempts == 0 {
        return 0;
    }
    let rtt = server.rtt.unwrap_or(rules.rtt_assumed);
    let at_once = server.path.at_once(rules, rtt + server.service);
    let turn = (rtt + server.service).as_secs_f64();
    let (live, bytes) = (demand.attempts as f64, demand.bytes as f64);
    let handshake = rules.handshake_cost.as_secs_f64();
    if server.is_multiplexed {
        // In each round trip, slow start limits the bytes that a lane sends: first to the initial window, then to twice as much each time.
        // Slow start also limits the segments of its answers. Attempts for which no stream is free are sent in later turns, when the
        // windows have grown.
        let bytes = bytes.min(at_once);
        let cost = |lanes: usize| {
            // The lane with the most bytes takes longest, so it determines the time of all attempts.
            let fullest = demand.attempts.div_ceil(lanes) as f64 * bytes / live;
            let windows = fullest * rules.framing / INITIAL_WINDOW;
            let lanes = lanes as f64;
            let answers = live / lanes * rules.answer_segments / INITIAL_SEGMENTS;
            let rounds = (windows.max(answers) + 1.0).log2().ceil().max(1.0) * rtt.as_secs_f64();
            let queueing = (live / (lanes * rules.streams_max as f64)).ceil() * turn;
            LaneCost { rounds, queueing, transfer: bytes * turn / at_once, handshakes: lanes * handshake }
        };
        let costs = (1..=rules.lanes_max.min(demand.attempts)).map(|lanes| (cost(lanes).total(), lanes));
        return costs.min_by(|(a, _), (b, _)| a.total_cmp(b)).map_or(1, |(_, lanes)| lanes);
    }
    // Each lane carries one attempt at a time, so n attempts over c lanes take n/c turns. The total is smallest if the lanes' handshakes
    // take as long as the queueing. But once the attempts in flight fill the path, more lanes don't make the job faster.
    let one = LaneCost {
        rounds: 0.0,
        queueing: live * turn,
        transfer: bytes * turn / at_once,
        handshakes: handshake,
    };
    let best = (one.queueing / one.handshakes).sqrt().ceil() as usize;
    let fill = (one.queueing / one.transfer).ceil() as usize;
    let usual = (rules.connections_max / 2).saturating_sub(freight);
    let documented = (rules.requests_a_second * turn) as usize;
    let most = if server.has_spoken && server.rtt.is_some() {
        usual.max(documented.min(demand.so_far / rules.attempts_min))
    } else {
        // The protocol isn't known yet. The number of lanes is kept low, because the server may turn out to use HTTP/2, and then needs
        // fewer lanes.
        rules.attempts_min
    };
    best.min(fill.max(rules.attempts_min / 2)).clamp(1, demand.attempts.min(most))
}

impl Dispatcher {
    pub(super) fn dial_missing(&mut self, now: Instant, origin: OriginId, role: Role) {
        // An origin's first lane may use one of the connections that are otherwise kept free for express lanes.
        let is_first = self.ledger.account(origin).lanes.is_empty();
        let ceiling = if is_first { self.connections_max } else { self.ceiling(role) };
        let hedges = self.waiting_hedges(origin, role).len();
        let (account, state) = (self.ledger.account(origin), &mut self.origins[origin.0]);
        let anticipated = role == Role::Express && state.anticipated > 0;
        let is_queued = !account.queues.is_empty(role) || hedges > 0;
        if !is_queued && !anticipated {
            return;
        }
        let failed = [Role::Express, Role::Freight].map(|role| state.failed_lately(role, now));
        let (mut slots, mut dialling) = ([0; 2], [0; 2]);
        for (_, lane) in self.ledger.lanes_of(origin) {
            slots[lane.role as usize] += usize::from(!lane.is_draining());
            dialling[lane.role as usize] += usize::from(lane.is_dialling());
        }
        for (slots, failed) in slots.iter_mut().zip(failed).filter(|(slots, _)| **slots > 0) {
            *slots += failed;
        }
        let plan = state.plan(account, slots);
        // The number of freight lanes follows each change of the demand, so only plans for express lanes are kept.
        if role == Role::Express {
            state.plan = Some(plan);
        }
        // A hedge that waits can't use any of the open lanes, or it would have been sent already.
        let for_hedges = hedges.saturating_sub(dialling[role as usize] + failed[role as usize]);
        let missing = state.may_dial(now, plan.dial[role as usize].max(for_hedges));
        for _ in 0..missing {
            if self.has_all_served(now, origin) {
                return;
            }
            // Only queued attempts may close an idle lane of another origin. If announced attempts could also close one, two origins could
            // take a lane from each other again and again.
            if self.ledger.lanes().len() >= ceiling && !(is_queued && self.close_an_idle_lane(origin)) {
                return;
            }
            let lane = self.ledger.dial(now, origin, role);
            self.actions.push_back(DispatchAction::Dial { lane, origin, role });
        }
    }

    /// Returns the total number of lanes up to which lanes of this role are dialled. For freight lanes it is three quarters of the limit
    /// of connections, so that later express attempts can still open lanes.
    pub(super) fn ceiling(&self, role: Role) -> usize {
        match role {
            Role::Express => self.connections_max,
            Role::Freight => self.freight_part(self.connections_max),
        }
    }

    /// Returns the number of the origin's freight lanes, plus the number that it can still open within the limit of connections.
    pub(super) fn freight_lanes_max(&self, origin: OriginId) -> usize {
        let is_there = |(_, lane): &(LaneId, &Lane)| lane.role == Role::Freight && !lane.is_draining();
        let have = self.ledger.lanes_of(origin).filter(is_there).count();
        have + self.ceiling(Role::Freight).saturating_sub(self.ledger.lanes().len())
    }

    /// Closes an idle lane of another origin, so that this origin can open a lane within the limit. Returns whether there was an idle lane.
    fn close_an_idle_lane(&mut self, origin: OriginId) -> bool {
        let idle = self.ledger.lanes().filter(|(_, lane)| lane.origin != origin && lane.is_idle());
        let Some(id) = idle.map(|(id, _)| id).min() else { return false };
        self.ledger.forget(id);
        self.actions.push_back(DispatchAction::Close { lane: id });
        true
    }

    /// Gives up a lane after an attempt on it has ended, if the limit of connections is reached and another origin waits without any
    /// lane. An origin keeps its only lane for at least one [`turn`](super::Rules::turn) after it opened.
    pub(super) fn give_way(&mut self, now: Instant, id: LaneId) {
        let Some((own, since)) = self.ledger.lane(id).map(|l| (l.origin, l.since)) else { return };
        if self.ledger.lanes().len() < self.connections_max || self.waiting_without_lane(own).is_none() {
            return;
        }
        let lanes = &self.ledger.account(own).lanes;
        let gives_one = self.ledger.lanes_of(own).any(|(_, lane)| lane.is_draining());
        if gives_one || lanes.len() == 1 && now < since + self.rules.turn {
            return;
        }
        self.origins[own.0].gave_way = Some(now);
        if let Some(lane) = self.ledger.lane_mut(id) {
            lane.state = LaneState::Draining;
        }
    }

    /// Returns another origin that has attempts but no lane. If there are several, it returns the one that gave up a lane longest ago.
    pub(super) fn waiting_without_lane(&self, own: OriginId) -> Option<OriginId> {
        let waits = |(origin, account): &(OriginId, &OriginAccount)| {
            *origin != own && account.lanes.is_empty() && account.express + account.freight > 0
        };
        let waiting = self.ledger.accounts().filter(waits).map(|(origin, _)| origin);
        waiting.min_by_key(|origin| self.origins[origin.0].gave_way)
    }

    pub(super) fn send_queued(&mut self, now: Instant, origin: OriginId, role: Role) {
        if self.ledger.account(origin).queues.is_empty(role) {
            return;
        }
        let share = self.share(now, origin, role);
        loop {
            let (account, state) = (self.ledger.account(origin), &self.origins[origin.0]);
            let may_go = |direction: Direction| match role {
                Role::Express => state.has_room(account, direction),
                Role::Freight => self.links[direction as usize].bulk_may_begin(now),
            };
            let Some((direction, id)) = account.queues.front_that(role, may_go) else { return };
            let Some(weight) = self.ledger.attempt(id).map(|w| w.weight) else {
                self.ledger.account_mut(origin).queues.pop_of(role, direction);
                continue;
            };
            let Some(lane) = self.pick(now, origin, role, weight, share, None) else { return };
            self.ledger.account_mut(origin).queues.pop_of(role, direction);
            self.put_on(now, id, lane, role);
            self.actions.push_back(DispatchAction::Send { attempt: id, lane, role });
        }
    }

    /// Records that an attempt is sent on a lane.
    pub(super) fn put_on(&mut self, now: Instant, id: AttemptId, lane_id: LaneId, role: Role) {
        let Some(attempt) = self.ledger.attempt(id) else { return };
        let origin = attempt.origin;
        let bytes = self.origins[origin.0].likely_bytes(attempt);
        self.ledger.put_on(now, id, lane_id, role, bytes);
        if role == Role::Freight {
            self.origins[origin.0].freight_sent = Some(now);
        }
    }

    /// Returns the least loaded lane that can take an attempt of this weight, but never the lane `but`. Prefers lanes whose address differs
    /// from that of `but`.
    pub(super) fn pick(
        &self,
        now: Instant,
        origin: OriginId,
        role: Role,
        weight: u64,
        share: Option<u64>,
        but: Option<LaneId>,
    ) -> Option<LaneId> {
        let may_borrow = (self.ledger.lanes().len() >= self.ceiling(role)
            || self.has_all_served(now, origin))
            && (role == Role::Express || self.has_lanes_for_bulk(origin));
        let avoided = but.and_then(|lane| self.ledger.lane(lane)).and_then(|lane| lane.address);
        let mut best: Option<((bool, bool, u64, bool), LaneId)> = None;
        for (id, lane) in self.ledger.lanes_of(origin).filter(|(id, _)| Some(*id) != but) {
            let own = lane.role == role;
            // A lane of the other role is used only if it is idle and no more lanes can be dialled.
            if !(own || may_borrow && lane.in_flight == 0) || !lane.can_take(role, weight, share) {
                continue;
            }
            let key = (avoided.is_some() && lane.address == avoided, !own, lane.weight, !lane.has_answered);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, id));
            }
        }
        best.map(|(_, id)| id)
    }

    /// Returns whether freight may use one more of the origin's lanes. If there are several lanes, a quarter of them, and at least one, is
    /// kept for express.
    fn has_lanes_for_bulk(&self, origin: OriginId) -> bool {
        let freight = self.ledger.lanes_of(origin).filter(|(_, lane)| lane.role == Role::Freight).count();
        freight < self.freight_part(self.ledger.account(origin).lanes.len())
    }

    /// Returns how many of these lanes freight may use.
    fn freight_part(&self, lanes: usize) -> usize {
        lanes - (lanes / self.rules.express_part).max(usize::from(lanes > 1))
    }

    /// Returns how many bytes one open express lane may take while other lanes of its burst are still being dialled. Each lane gets an
    /// equal share, so that the first lane to open doesn't take all attempts. Returns `None` if no lanes are about to open.
    fn share(&self, now: Instant, origin: OriginId, role: Role) -> Option<u64> {
        let state = &self.origins[origin.0];
        let timeout = state.sibling_wait();
        let of_role = || self.ledger.lanes_of(origin).map(|(_, lane)| lane).filter(|lane| lane.role == role);
        let young = of_role().filter(|l| l.is_dialling() && now < l.since + timeout).count() as u64;
        if young == 0 || role == Role::Freight {
            return None;
        }
        let open = of_role().filter(|l| l.is_open()).count() as u64;
        // Divide only the bytes that may be in flight now. Further attempts wait until all lanes are open.
        Some(self.ledger.account(origin).express_weight.min(state.at_once()).div_ceil((open + young).max(1)))
    }

    /// Returns whether freight has waited for a [`turn`](super::Rules::turn), because the limit of connections is reached. One freight
    /// attempt is then sent before express attempts. If all queued freight attempts were sent first, express attempts would have to wait
    /// for a long queue of bulk.
    pub(super) fn freight_is_overdue(&self, now: Instant, origin: OriginId) -> bool {
        let state = &self.origins[origin.0];
        let Some((_, front)) = self.ledger.account(origin).queues.front(Role::Freight) else { return false };
        let since = self
            .ledger
            .attempt(front)
            .map(|w| state.freight_sent.map_or(w.submitted, |s| s.max(w.submitted)));
        let waited = since.map(|since| now.saturating_duration_since(since));
        let is_full =
            self.ledger.lanes().len() >= self.ceiling(Role::Freight) || self.has_all_served(now, origin);
        is_full && waited.is_some_and(|w| w >= self.rules.turn)
    }

    /// Admits the hedge of a running attempt. The hedge gets the present role of the first attempt, even if the hedge's own size suggests
    /// the other role.
    pub(super) fn hedge(
        &mut self,
        now: Instant,
        id: AttemptId,
        origin: OriginId,
        size: RequestSize,
        hedge_of: AttemptId,
    ) {
        self.origin(origin);
        let usual = self.attempt(now, origin, size, false);
        let role = self.ledger.attempt(hedge_of).map_or(usual.role, |first| first.role);
        self.ledger.admit(id, Attempt { role, hedge_of: Some(hedge_of), ..usual });
        self.schedule(now, origin);
    }

    /// Sends each hedge that can use a lane other than that of its first attempt. The remaining hedges keep waiting, and don't block
    /// later attempts.
    pub(super) fn send_hedges(&mut self, now: Instant, origin: OriginId, role: Role) {
        for id in self.waiting_hedges(origin, role) {
            let Some(weight) = self.ledger.attempt(id).map(|w| w.weight) else { continue };
            let Some(lane) = self.pick(now, origin, role, weight, None, self.lane_of_first(id)) else {
                continue;
            };
            self.ledger.account_mut(origin).hedges.retain(|hedge| *hedge != id);
            self.put_on(now, id, lane, role);
            self.actions.push_back(DispatchAction::Send { attempt: id, lane, role });
        }
    }

    /// Returns the hedges of a role that wait for a lane.
    pub(super) fn waiting_hedges(&self, origin: OriginId, role: Role) -> Vec<AttemptId> {
        let of_role = |id: &&AttemptId| self.ledger.attempt(**id).is_some_and(|w| w.role == role);
        self.ledger.account(origin).hedges.iter().filter(of_role).copied().collect()
    }

    /// Returns the lane of a running attempt.
    pub(crate) fn lane_of(&self, attempt: AttemptId) -> Option<LaneId> {
        self.ledger.attempt(attempt)?.lane
    }

    /// Returns the lane of the attempt that this one hedges. The hedge must use another lane.
    fn lane_of_first(&self, hedge: AttemptId) -> Option<LaneId> {
        self.lane_of(self.ledger.attempt(hedge)?.hedge_of?)
    }
}

#[cfg(test)]
mod tests {
    mod express_lanes {
        use super::super::*;

        const FAR: Option<Duration> = Some(Duration::from_millis(50));
        const NEAR: Option<Duration> = Some(Duration::from_micros(200));
        const GIGABIT: PathRate = PathRate { rate: 125e6, is_full: true };
        const EXCLUSIVE: bool = false;
        const MULTIPLEXED: bool = true;

        const NO_BULK: FreightDemand = FreightDemand {
            attempts: 0,
            found: 1,
            each: LaneCost { rounds: 0.0, queueing: 0.0, transfer: 1.0, handshakes: 0.0 },
        };

        /// Returns the number of lanes that are wanted over a path of unknown rate.
        fn wanted(is_multiplexed: bool, attempts: usize, bytes: u64, rtt: Option<Duration>) -> usize {
            over(PathRate::default(), is_multiplexed, attempts, bytes, rtt)
        }

        fn over(
            path: PathRate,
            is_multiplexed: bool,
            attempts: usize,
            bytes: u64,
            rtt: Option<Duration>,
        ) -> usize {
            express(demand(attempts, bytes), ServerProfile { path, ..server(is_multiplexed, rtt) })
        }

        fn express(demand: Demand, server: ServerProfile) -> usize {
            choose(&Rules::CHOSEN, demand, server, [0; 2], None).lanes[0]
        }

        fn demand(attempts: usize, bytes: u64) -> Demand {
            Demand { attempts, so_far: attempts, bytes, freight: NO_BULK }
        }

        fn server(is_multiplexed: bool, rtt: Option<Duration>) -> ServerProfile {
            let (service, path) = (Rules::CHOSEN.service_min, PathRate::default());
            ServerProfile { is_multiplexed, has_spoken: true, rtt, service, path }
        }

        #[test]
        fn lanes_are_added_where_there_are_none_or_clearly_too_few() {
            let missing = |have, wanted| {
                // As many attempts as lanes, each of which needs a lane.
                let far = server(EXCLUSIVE, Some(Duration::from_secs(1)));
                choose(&Rules::CHOSEN, demand(wanted, 0), far, [have, 0], None).dial[0]
            };
            assert_eq!(
                [missing(0, 1), missing(4, 5), missing(12, 13), missing(12, 16), missing(9, 4)],
                [1, 1, 0, 4, 0]
            );
        }

        #[test]
        fn lanes_stay_while_the_demand_is_about_the_same() {
            let far = server(MULTIPLEXED, FAR);
            let plan = |attempts: usize, last| {
                choose(&Rules::CHOSEN, demand(attempts, attempts as u64 * 6000), far, [0; 2], last)
            };
            let first = plan(320, None);
            assert_eq!(plan(330, Some(first)).lanes, first.lanes);
            assert_eq!(plan(340, Some(plan(330, Some(first)))).lanes, first.lanes);
            assert_eq!(plan(640, Some(first)).lanes, plan(640, None).lanes);
        }

        #[test]
        fn no_work_wants_no_lane_and_one_wants_one() {
            for is_multiplexed in [false, true] {
                assert_eq!(wanted(is_multiplexed, 0, 0, FAR), 0);
                assert_eq!(wanted(is_multiplexed, 1, 1024, FAR), 1);
            }
        }

        #[test]
        fn a_thousand_small_files_take_many_lanes_far_away_and_few_nearby() {
            let bytes = 1000 * (4700 + 1024);
            assert!((24..=Rules::CHOSEN.lanes_max).contains(&wanted(MULTIPLEXED, 1000, bytes, FAR)));
            assert!(wanted(MULTIPLEXED, 1000, bytes, NEAR) <= 6);
            assert_eq!(wanted(EXCLUSIVE, 1000, bytes, FAR), (Rules::CHOSEN.connections_max / 2));
            assert!(wanted(EXCLUSIVE, 1000, bytes, NEAR) <= 48);
        }

        #[test]
        fn a_slow_server_nearby_is_worth_as_many_lanes_as_one_far_away() {
            let known = |service| ServerProfile { service, ..server(EXCLUSIVE, NEAR) };
            let demand = demand(1000, 1000 * 6000);
            assert!(express(demand, known(Rules::CHOSEN.service_min)) <= 48);
            let slow = known(Duration::from_millis(30));
            assert_eq!(express(demand, slow), Rules::CHOSEN.connections_max / 2);
            let freight = FreightDemand { attempts: 2, found: 2, ..NO_BULK };
            let beside = Demand { freight, ..demand };
            assert_eq!(express(beside, slow), Rules::CHOSEN.connections_max / 2 - 2, "of all together");
        }

        #[test]
        fn a_long_queue_of_tiny_far_objects_wants_every_exclusive_lane() {
            // A job submits only a limited number of attempts at a time.
            let after =
                |so_far, rtt| express(Demand { so_far, ..demand(1500, 1500 * 2048) }, server(EXCLUSIVE, rtt));
            assert_eq!([1500, 2048, 3200, 20_000].map(|so_far| after(so_far, FAR)), [128, 128, 178, 178]);
            assert_eq!(
                after(20_000, Some(Duration::from_millis(20))),
                (Rules::CHOSEN.connections_max / 2),
                "no more than stores promise to bear"
            );
        }

        #[test]
        fn seventy_five_files_of_5_kb_leave_in_two_rounds() {
            let lanes = wanted(MULTIPLEXED, 75, 75 * (4700 + 1024), FAR);
            assert!((12..=16).contains(&lanes), "{lanes}");
        }

        #[test]
        fn objects_that_fill_the_path_get_as_many_exclusive_lanes_as_go_at_once() {
            let objects =
                |path, rtt_ms| over(path, EXCLUSIVE, 200, 200 * 272_000, Some(Duration::from_millis(rtt_ms)));
            assert!((8..=16).contains(&objects(PathRate::default(), 2)));
            assert!((24..=34).contains(&objects(PathRate::default(), 20)));
            assert!((24..=34).contains(&objects(PathRate::default(), 120)), "however far");
            assert_eq!(
                objects(GIGABIT, 2),
                objects(PathRate::default(), 2),
                "a server may take longer than is known"
            );
            let fast = PathRate { rate: 1.25e9, is_full: false };
            assert!(objects(fast, 50) > 100, "and more where the path carries it");
        }

        #[test]
        fn before_a_server_has_shown_what_it_speaks_lanes_are_not_too_many() {
            let (demand, known) = (demand(1000, 1000 * 6000), server(EXCLUSIVE, FAR));
            let unknown = ServerProfile { has_spoken: false, ..known };
            assert_eq!(express(demand, unknown), Rules::CHOSEN.attempts_min);
            assert!(express(demand, known) > Rules::CHOSEN.lanes_max);
        }

        #[test]
        fn fifty_empty_files_stay_within_sixteen_multiplexed_lanes() {
            assert!((1..=16).contains(&wanted(MULTIPLEXED, 50, 50 * 1024, FAR)));
        }

        #[test]
        fn never_more_lanes_than_attempts() {
            for live in 1..300 {
                for rtt in [None, FAR, NEAR] {
                    assert!(wanted(EXCLUSIVE, live, 1 << 20, rtt) <= live);
                    assert!(wanted(MULTIPLEXED, live, 1 << 20, rtt) <= live);
                }
            }
        }
    }

    mod freight_lanes {
        use super::super::*;

        /// Returns the number of freight lanes for many requests of `mean` bytes over a path of `rate` bytes per second.
        fn covering(direction: Direction, mean: u64, rtt: Duration, rate: f64) -> usize {
            let rounds = rtt.as_secs_f64() * Rules::CHOSEN.round_trips_between[direction as usize];
            let each = LaneCost { rounds, transfer: mean as f64 / rate, ..LaneCost::default() };
            FreightDemand { attempts: 100, found: 1, each }.lanes(&Rules::CHOSEN)
        }

        #[test]
        fn lanes_cover_each_others_pauses_between_requests() {
            let rtt = Duration::from_millis(20);
            let down = |mean: u64| covering(Direction::Down, mean, rtt, 125e6);
            assert_eq!([1 << 20, 8 << 20, 16 << 20, 256 << 20].map(down), [11, 3, 2, 2]);
            let up = |rate| covering(Direction::Up, 16 << 20, rtt, rate);
            assert_eq!([1.0, 6e6, 125e6].map(up), [2, 2, 3]);
            let most = covering(Direction::Up, 1, Duration::from_secs(1), 1e9);
            assert_eq!(most, Rules::CHOSEN.side_by_side_max);
        }
    }

    mod hedges {
        #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

        use std::time::Duration;

        use super::super::*;
        use crate::Protocol;
        use crate::dispatch::{Direction, DispatchEvent, Rules};

        const ORIGIN: OriginId = OriginId(0);
        const RTT: Duration = Duration::from_millis(20);

        fn small() -> RequestSize {
            RequestSize::new(0, Some(1000), false)
        }

        fn actions(dispatcher: &mut Dispatcher) -> Vec<DispatchAction> {
            std::iter::from_fn(|| dispatcher.poll()).collect()
        }

        /// Returns the lane on which an attempt was sent.
        fn sent(actions: &[DispatchAction], wanted: u64) -> Option<LaneId> {
            actions.iter().find_map(|action| match action {
                DispatchAction::Send { attempt, lane, .. } if *attempt == AttemptId(wanted) => Some(*lane),
                _ => None,
            })
        }

        fn dialled(actions: &[DispatchAction]) -> Vec<LaneId> {
            let lane = |action: &DispatchAction| match action {
                DispatchAction::Dial { lane, .. } => Some(*lane),
                _ => None,
            };
            actions.iter().filter_map(lane).collect()
        }

        /// Returns a dispatcher with one lane, on which attempt 0 runs.
        fn running(protocol: Protocol, ceiling: usize) -> (Dispatcher, Instant, LaneId) {
            let (mut dispatcher, now) = (Dispatcher::new(ceiling), Instant::now());
            dispatcher.handle(
                now,
                DispatchEvent::Submitted { attempt: AttemptId(0), origin: ORIGIN, size: small() },
            );
            let lane = dialled(&actions(&mut dispatcher))[0];
            dispatcher.handle(now, DispatchEvent::Opened { lane, protocol, rtt: RTT });
            assert_eq!(sent(&actions(&mut dispatcher), 0), Some(lane));
            (dispatcher, now, lane)
        }

        fn hedge(dispatcher: &mut Dispatcher, now: Instant) -> Vec<DispatchAction> {
            hedge_as(dispatcher, now, 1)
        }

        fn hedge_as(dispatcher: &mut Dispatcher, now: Instant, attempt: u64) -> Vec<DispatchAction> {
            let event = DispatchEvent::Hedged {
                attempt: AttemptId(attempt),
                origin: ORIGIN,
                size: small(),
                hedge_of: AttemptId(0),
            };
            dispatcher.handle(now, event);
            actions(dispatcher)
        }

        #[test]
        fn a_hedge_goes_on_another_lane_which_is_dialled_for_it() {
            for protocol in [Protocol::H1, Protocol::H2] {
                let (mut dispatcher, now, first) = running(protocol, Rules::CHOSEN.connections_max);
                let asked = hedge(&mut dispatcher, now);
                assert_eq!(sent(&asked, 1), None, "the first's lane has free streams, and is not for it");
                let [other] = dialled(&asked)[..] else { panic!("{protocol:?}: {asked:?}") };
                dispatcher.handle(now, DispatchEvent::Tick);
                assert_eq!(actions(&mut dispatcher), [], "one lane is enough");
                dispatcher.handle(now, DispatchEvent::Opened { lane: other, protocol, rtt: RTT });
                assert_eq!(sent(&actions(&mut dispatcher), 1), Some(other));
                assert_ne!(first, other);
                dispatcher.handle(now, DispatchEvent::Finished { attempt: AttemptId(1), reusable: true });
                dispatcher.handle(now, DispatchEvent::Finished { attempt: AttemptId(0), reusable: false });
                assert_eq!(
                    (dispatcher.attempts(), dispatcher.ledger.outstanding(Direction::Down).small),
                    (0, 0)
                );
            }
        }

        #[test]
        fn a_lane_to_another_address_is_preferred() {
            let (mut dispatcher, now) = (Dispatcher::new(Rules::CHOSEN.connections_max), Instant::now());
            for attempt in 0..3 {
                dispatcher.handle(
                    now,
                    DispatchEvent::Submitted { attempt: AttemptId(attempt), origin: ORIGIN, size: small() },
                );
            }
            dispatcher.handle(now, DispatchEvent::Expected { origin: ORIGIN, protocol: Protocol::H1 });
            // At this time the wait for the first dial is over, but the tick isn't so late that the wait begins again.
            dispatcher.handle(now + Duration::from_millis(5), DispatchEvent::Tick);
            let lanes = dialled(&actions(&mut dispatcher));
            for (lane, last) in lanes.iter().copied().zip([1, 1, 2]) {
                let address = std::net::SocketAddr::from(([127, 0, 0, last], 80));
                dispatcher.handle(now, DispatchEvent::Located { lane, address });
                dispatcher.handle(now, DispatchEvent::Opened { lane, protocol: Protocol::H1, rtt: RTT });
            }
            let sent_on = actions(&mut dispatcher);
            assert_eq!(sent(&sent_on, 0), Some(lanes[0]));
            for attempt in [1, 2] {
                dispatcher
                    .handle(now, DispatchEvent::Finished { attempt: AttemptId(attempt), reusable: true });
            }
            assert_eq!(sent(&hedge_as(&mut dispatcher, now, 3), 3), Some(lanes[2]));
            assert_eq!(
                sent(&hedge_as(&mut dispatcher, now, 4), 4),
                Some(lanes[1]),
                "a lane to the same address is better than none"
            );
        }

        #[test]
        fn what_comes_after_a_hedge_that_waits_is_not_kept_waiting() {
            let (mut dispatcher, now, first) = running(Protocol::H2, Rules::CHOSEN.connections_max);
            hedge(&mut dispatcher, now);
            dispatcher.handle(
                now,
                DispatchEvent::Submitted { attempt: AttemptId(2), origin: ORIGIN, size: small() },
            );
            dispatcher.handle(now + Duration::from_secs(9), DispatchEvent::Tick);
            assert_eq!(sent(&actions(&mut dispatcher), 2), Some(first));
        }

        #[test]
        fn at_the_ceiling_a_hedge_waits_until_it_is_not_wanted_any_more() {
            let (mut dispatcher, now, _) = running(Protocol::H2, 1);
            assert_eq!(hedge(&mut dispatcher, now), []);
            dispatcher.handle(now, DispatchEvent::Cancelled { attempt: AttemptId(1) });
            dispatcher.handle(now, DispatchEvent::Finished { attempt: AttemptId(0), reusable: true });
            assert_eq!((dispatcher.attempts(), dispatcher.ledger.outstanding(Direction::Down).small), (0, 0));
            assert!(dispatcher.ledger.account(ORIGIN).hedges.is_empty());
        }

        #[test]
        fn when_the_first_has_failed_its_lane_is_as_good_as_any() {
            let (mut dispatcher, now, lane) = running(Protocol::H2, 1);
            assert_eq!(hedge(&mut dispatcher, now), []);
            dispatcher.handle(now, DispatchEvent::Finished { attempt: AttemptId(0), reusable: true });
            assert_eq!(sent(&actions(&mut dispatcher), 1), Some(lane));
        }

        #[test]
        fn a_hedge_whose_dials_are_refused_has_one_dialled_each_second() {
            for protocol in [Protocol::H1, Protocol::H2] {
                let (mut dispatcher, mut now, _) = running(protocol, Rules::CHOSEN.connections_max);
                let (begun, mut dialling) = (now, dialled(&hedge(&mut dispatcher, now)));
                let (mut dials, mut ticks) = (dialling.len(), 0);
                while now < begun + Duration::from_secs(10) {
                    for lane in std::mem::take(&mut dialling) {
                        dispatcher.handle(now, DispatchEvent::DialFailed { lane });
                        dispatcher.handle(now, DispatchEvent::Tick);
                        assert_eq!(actions(&mut dispatcher), [], "{protocol:?}: not at once");
                    }
                    now = dispatcher.next_tick().unwrap();
                    dispatcher.handle(
                        now,
                        DispatchEvent::Moved { origin: ORIGIN, down: 0, up: Some(0), flow: None },
                    );
                    dispatcher.handle(now, DispatchEvent::Tick);
                    dialling = dialled(&actions(&mut dispatcher));
                    (dials, ticks) = (dials + dialling.len(), ticks + 1);
                    assert!(ticks < 250, "{protocol:?}: ticks that come to nothing");
                }
                assert_eq!(dials, 11, "{protocol:?}");
                dispatcher.handle(now, DispatchEvent::Opened { lane: dialling[0], protocol, rtt: RTT });
                assert_eq!(sent(&actions(&mut dispatcher), 1), Some(dialling[0]));
            }
        }

        #[test]
        fn a_hedge_whose_first_lane_is_gone_fails_with_the_last_dial() {
            let (mut dispatcher, now, first) = running(Protocol::H1, Rules::CHOSEN.connections_max);
            let other = dialled(&hedge(&mut dispatcher, now))[0];
            dispatcher.handle(now, DispatchEvent::Closed { lane: first });
            dispatcher.handle(now, DispatchEvent::Finished { attempt: AttemptId(0), reusable: false });
            let (mut dialling, mut failed) = (vec![other], Vec::new());
            dialling.extend(dialled(&actions(&mut dispatcher)));
            while let Some(lane) = dialling.pop() {
                dispatcher.handle(now, DispatchEvent::DialFailed { lane });
                let then = actions(&mut dispatcher);
                dialling.extend(dialled(&then));
                failed.extend(then.into_iter().filter(|a| matches!(a, DispatchAction::Fail { .. })));
            }
            assert!(matches!(failed[..], [DispatchAction::Fail { attempt: AttemptId(1), .. }]), "{failed:?}");
            assert_eq!(dispatcher.attempts(), 0);
        }
    }
}
