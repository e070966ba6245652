//! How long a server keeps connections that nobody uses, and which of ours are not used again.
//!
//! A request that is sent on a connection which the server has just closed comes back with nothing but a reset, a round
//! trip later; where a middlebox has forgotten the connection it never comes back. So a lane is given up a little before
//! its server is likely to close it: as its answers tell (`Keep-Alive: timeout`), or as it was seen to do.

use std::time::{Duration, Instant};

use super::ledger::Lane;
use super::origin::OriginState;
use super::rules::Rules;
use super::{Action, Dispatcher, LaneId, OriginId};

/// What is known of how long a server keeps idle connections.
#[derive(Debug, Default)]
pub(super) struct IdleLimit {
    rules: &'static Rules,
    announced: Option<Duration>,
    /// The shortest time after which one is taken to be closed, and when that was seen.
    seen: Option<(Duration, Instant)>,
    /// The longest rest after which one was still there.
    served: Duration,
}

impl IdleLimit {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// The server says how long it keeps them.
    pub(super) fn tell(&mut self, limit: Duration) {
        self.announced = Some(limit);
    }

    /// A connection that had been idle for so long has served another request.
    pub(super) fn served(&mut self, rested: Duration) {
        self.served = self.served.max(rested);
    }

    /// A connection was found closed that had been idle for so long: since when is unknown. What has shown to be safe is
    /// kept, and beyond it half, so that the limit is found by few of these.
    pub(super) fn gone(&mut self, now: Instant, rested: Duration) {
        self.closed(now, (rested / 2).max(self.served.min(rested)));
    }

    /// A connection was closed when it had been idle for so long.
    pub(super) fn closed(&mut self, now: Instant, idle: Duration) {
        // What is closed sooner was not closed for being idle: a server was restarted, or counts requests.
        if idle < self.rules.idle_min {
            return;
        }
        self.served = self.served.min(idle);
        if self.seen(now).is_none_or(|limit| idle < limit) {
            self.seen = Some((idle, now));
        }
    }

    /// How long a connection may have been idle to be used again; `None` while nothing is known.
    pub(super) fn usable(&self, now: Instant, rtt: Duration) -> Option<Duration> {
        let limit = self.announced.into_iter().chain(self.seen(now)).min()?;
        // The server's clock began half a round trip before ours, and a request needs another half; timers are coarse, by a tenth. But a
        // new lane takes what it was dialled for, however impatient its server is.
        Some(limit.saturating_sub(rtt + limit / 10).max(self.rules.service_min))
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
    /// A lane is gone that a request was sent on, or about to be, and that the server had closed before. What is as old as it
    /// was is given up too, so that what comes next gets a new one instead of finding out about each of them.
    pub(super) fn stale(&mut self, now: Instant, id: LaneId) {
        let Some(lane) = self.ledger.lane(id) else { return };
        let (origin, rested) = (lane.origin, lane.rested);
        if rested < self.rules.idle_min {
            return;
        }
        self.origin(origin).idle.gone(now, rested);
        // What was used since is as good as new.
        let age = rested / 2;
        self.give_up_idle(origin, |lane| now.saturating_duration_since(lane.idle_since) >= age);
    }

    /// The machine has stood still: whoever is at the other end of what is idle has most likely gone.
    pub(super) fn slept(&mut self) {
        for origin in 0..self.origins.len() {
            self.give_up_idle(OriginId(origin), |_| true);
        }
    }

    /// Gives up the lanes of an origin that its server is about to close.
    pub(super) fn give_up_old(&mut self, now: Instant, origin: OriginId) {
        let state = &self.origins[origin.0];
        if let Some(usable) = state.idle.usable(now, state.rtt()) {
            self.give_up_idle(origin, |lane| now.saturating_duration_since(lane.idle_since) >= usable);
        }
    }

    /// When the next of an origin's idle lanes is to be given up.
    pub(super) fn next_too_old(&self, origin: OriginId, state: &OriginState) -> Option<Instant> {
        if !state.idle.is_known() {
            return None;
        }
        let oldest = self.ledger.lanes_of(origin).filter(|(_, lane)| lane.is_idle());
        let oldest = oldest.map(|(_, lane)| lane.idle_since).min()?;
        let due = oldest + state.idle.usable(oldest, state.rtt())?;
        // Unless it will be forgotten by then.
        state.idle.usable(due, state.rtt()).map(|usable| oldest + usable)
    }

    pub(super) fn give_up_idle(&mut self, origin: OriginId, which: impl Fn(&Lane) -> bool) {
        let given_up = self.ledger.lanes_of(origin).filter(|(_, lane)| lane.is_idle() && which(lane));
        let given_up: Vec<_> = given_up.map(|(id, _)| id).collect();
        if !given_up.is_empty() {
            // What was announced hasn't come: lanes would be dialled for it again and again.
            self.origin(origin).anticipated = 0;
        }
        for lane in given_up {
            self.ledger.forget(lane);
            self.actions.push_back(Action::Close { lane });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn what_is_announced_and_what_is_seen_are_kept_clear_of_by_a_round_trip_and_a_margin() {
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
    fn a_restart_is_no_limit_where_connections_were_just_used_and_is_forgotten_where_not() {
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
        assert_eq!(limit.seen(now), Some(secs(4)), "what was safe then is not any more");
    }

    #[test]
    fn a_path_that_is_longer_than_the_limit_leaves_a_new_lane_for_each() {
        let (mut limit, now) = (IdleLimit::default(), Instant::now());
        limit.closed(now, secs(1));
        assert_eq!(limit.usable(now, secs(3)), Some(Rules::CHOSEN.service_min));
    }
}
