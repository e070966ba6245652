//! Learns a server's limits: the number of connections that it serves, and how long it keeps idle ones open.
//!
//! A server resets connections beyond its limit, or accepts them but doesn't answer. A few such connections in a row, while the server
//! answers on others, show the limit. If the server later serves one more connection, the limit that we assume rises by one.
//!
//! A request on a connection that the server has just closed fails with a reset one round trip later. If a middlebox has forgotten the
//! connection, the request gets no answer at all. So Laneway closes an idle lane a little before the server is likely to close it. Laneway
//! learns the server's idle timeout from answers (`Keep-Alive: timeout`), or from connections that the server has closed.

use std::time::{Duration, Instant};

use super::ledger::Lane;
use super::origin::OriginState;
use super::rules::Rules;
use super::{DispatchAction, Dispatcher, LaneId, OriginId};

/// An origin's limit of connections, if known.
#[derive(Debug, Default)]
pub(super) struct ConnectionLimit {
    rules: &'static Rules,
    /// The number of unserved connections in a row, and the time when the latest of them opened.
    unserved: u32,
    opened: Option<Instant>,
    /// The number of connections that the server serves, and the time until which no more are opened.
    most: Option<(usize, Instant)>,
    /// The last time when a request was answered within [`quick`](Rules::quick).
    pub(super) quick: Option<Instant>,
}

impl ConnectionLimit {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Records the first answer on a connection that opened at `opened`. `served` is the number of connections with answers, this one
    /// included.
    fn answered(&mut self, now: Instant, opened: Instant, served: usize) {
        if self.opened.is_none_or(|last| opened > last) {
            self.unserved = 0;
        }
        match self.most {
            Some((most, until)) if served > most => self.most = (now < until).then_some((served, until)),
            Some(_) => {}
            None => self.learn(now, served),
        }
    }

    /// Records that a connection without any answer has ended or is silent. The connection opened at `opened`. `served` is the number of
    /// connections with answers.
    fn unserved(&mut self, now: Instant, opened: Instant, served: usize) {
        self.unserved += 1;
        self.opened = Some(self.opened.map_or(opened, |last| last.max(opened)));
        self.learn(now, served);
    }

    fn learn(&mut self, now: Instant, served: usize) {
        if self.unserved >= self.rules.unserved_in_a_row && served > 0 {
            // Lanes also fail for other reasons, so a limit that is still valid isn't lowered.
            let holds = self.most.filter(|(_, until)| now < *until);
            let most = holds.map_or(served, |(most, _)| most.max(served));
            self.most = Some((most, now + self.rules.limit_for));
        }
    }

    /// Returns the maximum number of connections. After [`limit_for`](Rules::limit_for), the maximum is one higher, to test if the server
    /// now serves more connections.
    pub(super) fn most(&self, now: Instant) -> usize {
        self.most.map_or(usize::MAX, |(most, until)| most + usize::from(now >= until))
    }
}

/// The idle timeout of a server's connections, if known.
#[derive(Debug, Default)]
pub(super) struct IdleLimit {
    rules: &'static Rules,
    announced: Option<Duration>,
    /// The shortest idle time after which a connection seems to have been closed, and the time when we noticed this.
    seen: Option<(Duration, Instant)>,
    /// The longest idle time after which a connection still worked.
    served: Duration,
}

impl IdleLimit {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Records the idle timeout that the server announces.
    pub(super) fn tell(&mut self, limit: Duration) {
        self.announced = Some(limit);
    }

    /// Records that a connection worked after it was idle for `rested`.
    pub(super) fn served(&mut self, rested: Duration) {
        self.served = self.served.max(rested);
    }

    /// Records that a connection was found closed after it was idle for `rested`. The server closed it at an unknown earlier time. So
    /// the assumed limit is half of `rested`, or the longest idle time that worked if that is longer. After a few such failures, the
    /// assumed limit is below the true one.
    pub(super) fn gone(&mut self, now: Instant, rested: Duration) {
        self.closed(now, (rested / 2).max(self.served.min(rested)));
    }

    /// Records that the server closed a connection after it was idle for `idle`.
    pub(super) fn closed(&mut self, now: Instant, idle: Duration) {
        // If the idle time was so short, an idle timeout wasn't the reason. The server was restarted, or it limits the number of requests
        // per connection.
        if idle < self.rules.idle_min {
            return;
        }
        self.served = self.served.min(idle);
        if self.seen(now).is_none_or(|limit| idle < limit) {
            self.seen = Some((idle, now));
        }
    }

    /// Returns the idle time up to which a connection may be used again. Returns `None` while no limit is known.
    pub(super) fn usable(&self, now: Instant, rtt: Duration) -> Option<Duration> {
        let limit = self.announced.into_iter().chain(self.seen(now)).min()?;
        // The server's idle time began half a round trip before ours, and a request needs another half to reach it. The result is never below `service_min`. So even if the server closes idle connections at once, a new
        // connection isn't closed before it takes the request that it was dialled for.
        Some(limit.saturating_sub(rtt + limit / self.rules.idle_margin).max(self.rules.service_min))
    }

    fn is_known(&self) -> bool {
        self.announced.is_some() || self.seen.is_some()
    }

    fn seen(&self, now: Instant) -> Option<Duration> {
        let (limit, at) = self.seen?;
        (now < at + self.rules.idle_believed_for).then_some(limit)
    }
}

impl Dispatcher {
    /// Records that the first answer on a lane has begun.
    pub(super) fn answered(&mut self, now: Instant, id: LaneId) {
        let Some(lane) = self.ledger.lane_mut(id).filter(|lane| !lane.has_answered) else { return };
        lane.has_answered = true;
        let (origin, opened) = (lane.origin, lane.since);
        let served = self.served(origin);
        self.origin(origin).served.answered(now, opened, served);
    }

    /// Records that a lane without any answer has ended or is silent. Each lane is counted only once. If the server's limit is now known,
    /// idle lanes that have never answered are closed.
    pub(super) fn unserved(&mut self, now: Instant, id: LaneId) {
        let is_first = |lane: &&mut Lane| !lane.has_answered && !lane.is_unserved;
        let Some(lane) = self.ledger.lane_mut(id).filter(is_first) else { return };
        lane.is_unserved = true;
        let (origin, opened) = (lane.origin, lane.since);
        // If no other request is answered either, the origin is down. An outage doesn't show a limit.
        let is_quick = |at| now.saturating_duration_since(at) < self.rules.quick + self.rules.silent_max;
        if !self.origins[origin.0].served.quick.is_some_and(is_quick) {
            return;
        }
        let served = self.served(origin);
        self.origin(origin).served.unserved(now, opened, served);
        if self.origins[origin.0].served.most(now) <= self.ledger.account(origin).lanes.len() {
            self.give_up_idle(origin, |lane| !lane.has_answered);
        }
    }

    /// Closes a lane that has just opened if the server already serves as many connections as its limit allows.
    pub(super) fn close_surplus(&mut self, now: Instant, id: LaneId, origin: OriginId) {
        if self.served(origin) >= self.origins[origin.0].served.most(now) {
            self.ledger.forget(id);
            self.actions.push_back(DispatchAction::Close { lane: id });
        }
    }

    /// Returns whether the origin has as many connections as its server's limit allows.
    pub(super) fn has_all_served(&self, now: Instant, origin: OriginId) -> bool {
        self.ledger.account(origin).lanes.len() >= self.origins[origin.0].served.most(now)
    }

    /// Returns the lanes whose first request has had no answer for [`silent_max`](Rules::silent_max), while other lanes of their origin
    /// have answered.
    pub(crate) fn silent(&self, now: Instant) -> impl Iterator<Item = LaneId> {
        let is_silent = move |lane: &Lane| {
            let quick = self.origins[lane.origin.0].served.quick;
            !lane.has_answered
                && lane.is_open()
                && lane.in_flight > 0
                && now.saturating_duration_since(lane.asked) >= self.rules.silent_max
                && quick.is_some_and(|at| at > lane.asked)
        };
        self.ledger.lanes().filter(move |(_, lane)| is_silent(lane)).map(|(id, _)| id)
    }

    /// Records the time if a lane has answered quickly.
    pub(super) fn note_quick(&mut self, now: Instant, id: LaneId) {
        let is_quick =
            |lane: &&Lane| lane.has_answered && now.saturating_duration_since(lane.asked) < self.rules.quick;
        if let Some(origin) = self.ledger.lane(id).filter(is_quick).map(|lane| lane.origin) {
            self.origin(origin).served.quick = Some(now);
        }
    }

    /// Returns how many lanes of an origin have answered.
    fn served(&self, origin: OriginId) -> usize {
        self.ledger.lanes_of(origin).filter(|(_, lane)| lane.has_answered).count()
    }

    /// Records that a request found that the server had already closed its lane. Also closes the origin's other lanes that have been idle
    /// for at least half as long as this one had been. The server has probably closed them too, and further requests on them would fail one
    /// after the other.
    pub(super) fn stale(&mut self, now: Instant, id: LaneId) {
        let Some(lane) = self.ledger.lane(id) else { return };
        let (origin, rested) = (lane.origin, lane.rested);
        if rested < self.rules.idle_min {
            return;
        }
        self.origin(origin).idle.gone(now, rested);
        // Lanes that were used more recently are likely to work.
        let age = rested / 2;
        self.give_up_idle(origin, |lane| now.saturating_duration_since(lane.idle_since) >= age);
    }

    /// Closes all idle lanes after the machine was suspended. The servers have most likely closed them meanwhile.
    pub(super) fn slept(&mut self) {
        for origin in 0..self.origins.len() {
            self.give_up_idle(OriginId(origin), |_| true);
        }
    }

    /// Closes an origin's idle lanes that have been idle for almost as long as the server allows.
    pub(super) fn give_up_old(&mut self, now: Instant, origin: OriginId) {
        let state = &self.origins[origin.0];
        if let Some(usable) = state.idle.usable(now, state.path.rtt()) {
            self.give_up_idle(origin, |lane| now.saturating_duration_since(lane.idle_since) >= usable);
        }
    }

    /// Returns the time when the next of an origin's idle lanes must be closed.
    pub(super) fn next_too_old(&self, origin: OriginId, state: &OriginState) -> Option<Instant> {
        if !state.idle.is_known() {
            return None;
        }
        let oldest = self.ledger.lanes_of(origin).filter(|(_, lane)| lane.is_idle());
        let oldest = oldest.map(|(_, lane)| lane.idle_since).min()?;
        let due = oldest + state.idle.usable(oldest, state.path.rtt())?;
        // By then, the limit may have expired.
        state.idle.usable(due, state.path.rtt()).map(|usable| oldest + usable)
    }

    pub(super) fn give_up_idle(&mut self, origin: OriginId, which: impl Fn(&Lane) -> bool) {
        let given_up = self.ledger.lanes_of(origin).filter(|(_, lane)| lane.is_idle() && which(lane));
        let given_up: Vec<_> = given_up.map(|(id, _)| id).collect();
        if !given_up.is_empty() {
            // The announced attempts haven't come while these lanes were idle. If they still counted, lanes would be dialled for them again
            // and again.
            self.origin(origin).anticipated = 0;
        }
        for lane in given_up {
            self.ledger.forget(lane);
            self.actions.push_back(DispatchAction::Close { lane });
        }
    }
}

#[cfg(test)]
mod tests {
    mod served {
        use std::time::Duration;

        use super::super::*;
        use crate::Protocol;
        use crate::dispatch::{AttemptId, DispatchEvent, RequestSize, Role};

        const ORIGIN: OriginId = OriginId(0);

        /// A server that serves four connections at once, with a dispatcher that sends requests to it.
        struct Limited {
            dispatcher: Dispatcher,
            now: Instant,
            /// The lanes on which the server answers, and their maximum number at once. The other lanes get no answer, or are reset at
            /// their first request.
            served: Vec<LaneId>,
            most: usize,
            waiting: Vec<LaneId>,
            resets: bool,
            dials: usize,
            asked: u64,
            sent: Vec<(AttemptId, LaneId)>,
        }

        impl Limited {
            /// Creates a server to which `attempts` requests were submitted. With `resets`, it resets the connections beyond its limit.
            fn asked(resets: bool, attempts: usize) -> Self {
                let mut server = Self {
                    dispatcher: Dispatcher::new(Rules::CHOSEN.connections_max),
                    now: Instant::now(),
                    served: Vec::new(),
                    most: 4,
                    waiting: Vec::new(),
                    resets,
                    dials: 0,
                    asked: 0,
                    sent: Vec::new(),
                };
                server.tell(DispatchEvent::Expected { origin: ORIGIN, protocol: Protocol::H1 });
                server.dials_for(attempts);
                server
            }

            fn tell(&mut self, event: DispatchEvent) {
                self.dispatcher.handle(self.now, event);
            }

            fn submit(&mut self) {
                let (attempt, size) = (AttemptId(self.asked), RequestSize::new(0, Some(1000), false));
                self.asked += 1;
                self.tell(DispatchEvent::Submitted { attempt, origin: ORIGIN, size });
            }

            /// Carries out all actions of the dispatcher. An answer takes a millisecond.
            fn run(&mut self) {
                let mut is_moving = true;
                loop {
                    let actions: Vec<_> = std::iter::from_fn(|| self.dispatcher.poll()).collect();
                    if actions.is_empty() && !std::mem::take(&mut is_moving) {
                        return;
                    }
                    for action in actions {
                        match action {
                            DispatchAction::Dial { lane, .. } => self.open(lane),
                            DispatchAction::Send { attempt, lane, .. } => self.sent.push((attempt, lane)),
                            DispatchAction::Close { lane } => self.close(lane),
                            _ => {}
                        }
                    }
                    self.now += Duration::from_millis(1);
                    for (attempt, lane) in std::mem::take(&mut self.sent) {
                        let is_served = self.served.contains(&lane);
                        is_moving |= is_served || self.resets;
                        match is_served {
                            true => {
                                self.tell(DispatchEvent::Answered { lane });
                                self.tell(DispatchEvent::Finished { attempt, reusable: true });
                            }
                            false if self.resets => self.give_up(attempt, lane),
                            false => self.sent.push((attempt, lane)),
                        }
                    }
                    self.tell(DispatchEvent::Tick);
                }
            }

            fn open(&mut self, lane: LaneId) {
                self.dials += 1;
                let place = if self.served.len() < self.most { &mut self.served } else { &mut self.waiting };
                place.push(lane);
                self.tell(DispatchEvent::Opened {
                    lane,
                    protocol: Protocol::H1,
                    rtt: Duration::from_millis(1),
                });
            }

            fn close(&mut self, lane: LaneId) {
                self.served.retain(|l| *l != lane);
                self.waiting.retain(|l| *l != lane);
            }

            /// Reports that a connection is unserved, and submits its request again.
            fn give_up(&mut self, attempt: AttemptId, lane: LaneId) {
                self.tell(DispatchEvent::Unserved { lane });
                self.tell(DispatchEvent::Finished { attempt, reusable: false });
                self.submit();
            }

            /// Submits more attempts, and returns how many connections were opened for them.
            fn dials_for(&mut self, attempts: usize) -> usize {
                let before = self.dials;
                (0..attempts).for_each(|_| self.submit());
                self.run();
                self.dials - before
            }
        }

        #[test]
        fn requests_on_connections_that_are_not_served_go_elsewhere_after_seconds() {
            let mut server = Limited::asked(false, 500);
            assert_eq!(server.dispatcher.silent(server.now).count(), 0, "no sooner");
            assert!(!server.sent.is_empty() && server.sent.len() == server.dispatcher.attempts());
            let dials = server.dials;
            server.now += Rules::CHOSEN.silent_max;
            let silent: Vec<_> = server.dispatcher.silent(server.now).collect();
            for (attempt, lane) in std::mem::take(&mut server.sent) {
                assert!(silent.contains(&lane));
                server.give_up(attempt, lane);
            }
            server.run();
            assert_eq!((server.dispatcher.attempts(), server.served.len(), server.waiting.len()), (0, 4, 0));
            assert_eq!(server.dials, dials, "no more than are served");
        }

        #[test]
        fn a_server_that_resets_surplus_connections_is_not_dialled_again() {
            let server = Limited::asked(true, 2000);
            assert_eq!((server.dispatcher.attempts(), server.served.len()), (0, 4));
            assert!(server.dials <= Rules::CHOSEN.connections_max / 2, "{} dials", server.dials);
        }

        #[test]
        fn a_limit_is_tried_after_a_minute_and_forgotten_once_it_is_passed() {
            let mut server = Limited::asked(true, 2000);
            assert_eq!(server.dials_for(200), 0);
            server.now += Rules::CHOSEN.limit_for;
            assert_eq!(server.dials_for(200), 1);
            assert_eq!(server.dials_for(200), 0);
            server.now += Rules::CHOSEN.limit_for;
            server.most = Rules::CHOSEN.connections_max;
            assert!(server.dials_for(200) > 4);
        }

        #[test]
        fn a_network_that_is_cut_says_nothing_of_a_limit() {
            let mut server = Limited::asked(false, 500);
            let waiting = std::mem::take(&mut server.sent);
            assert!(waiting.len() > 3);
            server.now += Duration::from_secs(15);
            for (attempt, lane) in waiting {
                server.tell(DispatchEvent::Unserved { lane });
                server.tell(DispatchEvent::Finished { attempt, reusable: false });
            }
            assert_eq!(server.dispatcher.origins[ORIGIN.0].served.most(server.now), usize::MAX);
        }

        #[test]
        fn a_limit_that_holds_is_not_lowered_by_connections_that_end() {
            let (mut served, now) = (ConnectionLimit::default(), Instant::now());
            for left in [8, 8, 8, 5, 1] {
                served.unserved(now, now, left);
            }
            assert_eq!(served.most(now), 8);
        }

        #[test]
        fn a_reset_now_and_then_is_no_limit() {
            let (mut served, now) = (ConnectionLimit::default(), Instant::now());
            for second in 0..100 {
                let opened = now + Duration::from_secs(second);
                served.unserved(opened, opened, 8);
                served.answered(opened, opened + Duration::from_millis(1), 8);
            }
            assert_eq!(served.most(now), usize::MAX);
        }

        #[test]
        fn bulk_uses_the_connections_that_there_are_where_no_more_are_served() {
            let mut server = Limited::asked(true, 500);
            let size = RequestSize::new(0, Some(64 << 20), false);
            server.tell(DispatchEvent::Submitted { attempt: AttemptId(server.asked), origin: ORIGIN, size });
            let actions: Vec<_> = std::iter::from_fn(|| server.dispatcher.poll()).collect();
            let is_sent =
                |action: &DispatchAction| matches!(action, DispatchAction::Send { role: Role::Freight, .. });
            assert!(actions.iter().any(is_sent), "{actions:?}");
        }
    }

    mod idle {
        use super::super::*;

        const RTT: Duration = Duration::from_millis(100);

        fn secs(secs: u64) -> Duration {
            Duration::from_secs(secs)
        }

        #[test]
        fn announced_and_seen_limits_are_kept_by_a_round_trip_and_a_margin() {
            let (mut limit, now) = (IdleLimit::default(), Instant::now());
            assert_eq!(limit.usable(now, RTT), None);
            limit.tell(secs(5));
            assert_eq!(limit.usable(now, RTT), Some(Duration::from_millis(4400)));
            limit.closed(now, secs(30));
            assert_eq!(limit.usable(now, RTT), Some(Duration::from_millis(4400)), "the shorter holds");
            limit.closed(now, secs(1));
            assert_eq!(limit.usable(now, RTT), Some(Duration::from_millis(800)));
            limit.tell(secs(60));
            assert_eq!(limit.usable(now + Rules::CHOSEN.idle_believed_for, RTT), Some(secs(54) - RTT));
        }

        #[test]
        fn a_restart_is_no_limit_of_used_connections_and_is_forgotten_else() {
            let (mut limit, now) = (IdleLimit::default(), Instant::now());
            limit.closed(now, Duration::from_millis(30));
            assert_eq!(limit.usable(now, RTT), None);
            limit.closed(now, secs(2));
            assert!(limit.usable(now, RTT).is_some());
            assert_eq!(limit.usable(now + Rules::CHOSEN.idle_believed_for, RTT), None);
        }

        #[test]
        fn a_limit_that_nobody_saw_is_found_by_halves_from_above() {
            let (mut limit, now) = (IdleLimit::default(), Instant::now());
            limit.gone(now, secs(60));
            assert_eq!(limit.seen(now), Some(secs(30)));
            limit.served(secs(6));
            limit.gone(now, secs(10));
            assert_eq!(limit.seen(now), Some(secs(6)));
            limit.gone(now, secs(4));
            assert_eq!(limit.seen(now), Some(secs(4)), "a time that worked before no longer does");
        }

        #[test]
        fn a_path_that_is_longer_than_the_limit_leaves_a_new_lane_for_each() {
            let (mut limit, now) = (IdleLimit::default(), Instant::now());
            limit.closed(now, secs(1));
            assert_eq!(limit.usable(now, secs(3)), Some(Rules::CHOSEN.service_min));
        }
    }
}
