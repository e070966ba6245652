//! Hedging in the simulation: watches requests for stragglers, and handles the outcomes of a request and its hedge.

use std::sync::Arc;

use super::*;
use crate::addresses::SLOW_FOR;
use crate::hedge::{Alike, HedgeWatch, Tracker, budget_left};

/// The state of hedging.
#[derive(Default)]
pub(crate) struct Hedging {
    watch: Option<HedgeWatch>,
    trackers: BTreeMap<AttemptId, Arc<Tracker>>,
    /// `others` maps each request of a pair to the other one. `firsts` has the first request for each hedge.
    others: BTreeMap<AttemptId, AttemptId>,
    firsts: BTreeMap<AttemptId, AttemptId>,
}

impl World {
    /// Enables hedging in this world.
    pub(crate) fn hedging(mut self) -> Self {
        self.hedging.watch = Some(HedgeWatch::new(true));
        self
    }

    pub(crate) fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.now)
    }

    pub(crate) fn next_look(&self) -> Option<Nanos> {
        let at = self.hedging.watch.as_ref()?.next_look()?;
        Some(nanos(at.saturating_duration_since(self.start)))
    }

    /// Watches a request that is put on a lane.
    pub(crate) fn begin_watching(&mut self, attempt: AttemptId) {
        self.sent += 1;
        let (now, request) = (self.instant(), &self.requests[attempt.0 as usize]);
        let (want, role) = (request.want, request.role);
        // Uploads, openers and hedges aren't hedged.
        let may_be_hedged = want.up == 0 && want.known && !self.hedging.firsts.contains_key(&attempt);
        if let Some(watch) = self.hedging.watch.as_mut().filter(|_| may_be_hedged) {
            let tracker = Arc::new(Tracker::new(now, Alike(0)));
            watch.begin(now, attempt, (OriginId(want.origin), role), Some(want.down), Arc::clone(&tracker));
            self.hedging.trackers.insert(attempt, tracker);
        }
    }

    pub(crate) fn track(&self, attempt: AttemptId, note: impl FnOnce(&Tracker, Instant)) {
        if let Some(tracker) = self.hedging.trackers.get(&attempt) {
            note(tracker, self.instant());
        }
    }

    /// Records the progress of a body, of which `left` bytes are missing. Records it as if the body had moved without a
    /// silence.
    fn flowed(&self, attempt: AttemptId, left: u64) {
        let total = self.requests[attempt.0 as usize].want.down;
        self.track(attempt, |tracker, now| {
            let before = tracker.snapshot().map_or(0, |seen| seen.bytes);
            let come = (total - left.min(total)).saturating_sub(before);
            if come > 0 {
                tracker.sunk(now);
                tracker.body(now, come as usize);
                tracker.sunk(now);
            }
        });
    }

    pub(crate) fn hold_bulk(&mut self, is_held: bool) {
        let now = self.instant();
        if let Some(watch) = &mut self.hedging.watch {
            watch.hold_bulk(now, is_held);
        }
    }

    /// Looks for stragglers and sends hedges.
    pub(crate) fn look(&mut self) {
        let flowing: Vec<_> = self.network.down.flowing().collect();
        for (attempt, left) in flowing {
            self.flowed(attempt, left);
        }
        let (now, is_all) = (self.instant(), self.dispatcher.attempts() <= 1);
        let most = budget_left(self.sent, self.hedged);
        let Some(watch) = &mut self.hedging.watch else { return };
        for first in watch.look(now, most, is_all) {
            if let Some(lane) = self.request(first).lanes.last().copied() {
                self.avoid(lane, SLOW_FOR);
            }
            self.hedged += 1;
            assert!(
                self.hedged <= (self.sent / 50).max(2),
                "{} hedges of {} requests",
                self.hedged,
                self.sent
            );
            let attempt = AttemptId(self.requests.len() as u64);
            let (want, submitted) = (self.request(first).want, self.now);
            self.requests.push(SimulatedRequest { submitted, ..SimulatedRequest::new(want) });
            self.hedging.others.extend([(first, attempt), (attempt, first)]);
            self.hedging.firsts.insert(attempt, first);
            self.submitted(attempt);
        }
    }

    /// Submits a request, which may be a hedge, to the dispatcher.
    pub(crate) fn submitted(&mut self, attempt: AttemptId) {
        let want = self.request(attempt).want;
        let (origin, size) = (OriginId(want.origin), want.size());
        self.tell(match self.hedging.firsts.get(&attempt) {
            Some(first) => DispatchEvent::Hedged { attempt, origin, size, hedge_of: *first },
            None => DispatchEvent::Submitted { attempt, origin, size },
        });
    }

    /// Stops watching a request that has ended.
    pub(crate) fn stop_watching(&mut self, attempt: AttemptId, well: bool) {
        let now = self.instant();
        if well {
            self.flowed(attempt, 0);
            self.track(attempt, |tracker, _| tracker.whole());
        }
        if let Some(watch) = &mut self.hedging.watch {
            watch.end(now, attempt);
        }
        self.hedging.trackers.remove(&attempt);
    }

    /// Cancels the other request of a pair, if there is one.
    pub(crate) fn cancel_other(&mut self, attempt: AttemptId) {
        let other = self.hedging.others.get(&attempt).copied();
        if let Some(other) = other.filter(|other| self.request(*other).ended.is_none()) {
            self.cancel(other);
        }
    }
}
