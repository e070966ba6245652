//! Stragglers: what is watched of a request, and what becomes of two for the same.

use std::sync::Arc;

use super::*;
use crate::hedge::{Alike, Pulse, Watch, budget_left};

/// What the world knows of hedging.
#[derive(Default)]
pub(super) struct Hedging {
    watch: Option<Watch>,
    pulses: BTreeMap<WorkId, Arc<Pulse>>,
    /// The first of two, by the second, and the other way round.
    others: BTreeMap<WorkId, WorkId>,
    firsts: BTreeMap<WorkId, WorkId>,
}

impl World {
    /// The same world with a watch for stragglers.
    pub(in super::super) fn hedging(mut self) -> Self {
        self.hedging.watch = Some(Watch::new(true));
        self
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.now)
    }

    pub(super) fn next_look(&self) -> Option<Nanos> {
        let at = self.hedging.watch.as_ref()?.next_look()?;
        Some(nanos(at.saturating_duration_since(self.start)))
    }

    /// A request goes to a lane.
    pub(super) fn begin_watching(&mut self, work: WorkId) {
        self.sent += 1;
        let (now, request) = (self.instant(), &self.requests[work.0 as usize]);
        let (want, role) = (request.want, request.role);
        // What its answer makes more requests of is not doubled.
        let may_be_doubled = want.up == 0 && want.known && !self.hedging.firsts.contains_key(&work);
        if let Some(watch) = self.hedging.watch.as_mut().filter(|_| may_be_doubled) {
            let pulse = Arc::new(Pulse::new(now, Alike(0)));
            watch.begin(now, work, (OriginId(want.origin), role), Some(want.down), Arc::clone(&pulse));
            self.hedging.pulses.insert(work, pulse);
        }
    }

    pub(super) fn pulse(&self, work: WorkId, beat: impl FnOnce(&Pulse, Instant)) {
        if let Some(pulse) = self.hedging.pulses.get(&work) {
            beat(pulse, self.instant());
        }
    }

    /// Of a body so much is still to come. It has come without a silence: it flows.
    fn flowed(&self, work: WorkId, left: u64) {
        let total = self.requests[work.0 as usize].want.down;
        self.pulse(work, |pulse, now| {
            let before = pulse.shown().map_or(0, |shown| shown.bytes);
            let come = (total - left.min(total)).saturating_sub(before);
            if come > 0 {
                pulse.sunk(now);
                pulse.body(now, come as usize);
                pulse.sunk(now);
            }
        });
    }

    pub(super) fn hold_bulk(&mut self, is_held: bool) {
        let now = self.instant();
        if let Some(watch) = &mut self.hedging.watch {
            watch.hold_bulk(now, is_held);
        }
    }

    /// Looks for stragglers and sends second requests.
    pub(super) fn look(&mut self) {
        for (work, left) in self.down.flowing() {
            self.flowed(work, left);
        }
        let (now, is_all) = (self.instant(), self.dispatcher.works() <= 1);
        let most = budget_left(self.sent, self.hedged);
        let Some(watch) = &mut self.hedging.watch else { return };
        for first in watch.look(now, most, is_all) {
            self.hedged += 1;
            assert!(
                self.hedged <= (self.sent / 50).max(2),
                "{} hedges of {} requests",
                self.hedged,
                self.sent
            );
            let work = WorkId(self.requests.len() as u64);
            let (want, submitted) = (self.request(first).want, self.now);
            self.requests.push(Request { submitted, ..Request::new(want) });
            self.hedging.others.extend([(first, work), (work, first)]);
            self.hedging.firsts.insert(work, first);
            self.submitted(work);
        }
    }

    /// Tells the dispatcher of a request, a second one or not.
    pub(super) fn submitted(&mut self, work: WorkId) {
        let want = self.request(work).want;
        let (origin, piece) = (OriginId(want.origin), want.piece());
        self.tell(match self.hedging.firsts.get(&work) {
            Some(first) => Event::Hedged { work, origin, piece, beside: *first },
            None => Event::Submitted { work, origin, piece },
        });
    }

    /// A running request has ended.
    pub(super) fn stop_watching(&mut self, work: WorkId, well: bool) {
        let now = self.instant();
        if well {
            self.flowed(work, 0);
            self.pulse(work, |pulse, _| pulse.whole());
        }
        if let Some(watch) = &mut self.hedging.watch {
            watch.end(now, work);
        }
        self.hedging.pulses.remove(&work);
    }

    /// Cancels the other of two, where there is one.
    pub(super) fn cancel_other(&mut self, work: WorkId) {
        let other = self.hedging.others.get(&work).copied();
        if let Some(other) = other.filter(|other| self.request(*other).ended.is_none()) {
            self.cancel(other);
        }
    }
}
