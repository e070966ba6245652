//! Hedges of slow requests: on another lane, and before anything that waits.

use std::time::Instant;

use super::ledger::Attempt;
use super::{Action, AttemptId, Dispatcher, LaneId, OriginId, Role, Size};

impl Dispatcher {
    /// Admits the hedge of a running attempt. It rides as what the first has become, however its size was judged before.
    pub(super) fn hedge(
        &mut self,
        now: Instant,
        id: AttemptId,
        origin: OriginId,
        size: Size,
        hedge_of: AttemptId,
    ) {
        self.origin(origin);
        let usual = self.attempt(now, origin, size, false);
        let role = self.ledger.attempt(hedge_of).map_or(usual.role, |first| first.role);
        self.ledger.admit(id, Attempt { role, hedge_of: Some(hedge_of), ..usual });
        self.schedule(now, origin);
    }

    /// Sends the origin's hedges for which there is a lane that isn't the first one's. The others keep waiting, without
    /// keeping anybody else from the lanes that they can't use.
    pub(super) fn send_hedges(&mut self, now: Instant, origin: OriginId, role: Role) {
        for id in self.waiting_hedges(origin, role) {
            let Some(weight) = self.ledger.attempt(id).map(|w| w.weight) else { continue };
            let Some(lane) = self.pick(now, origin, role, weight, None, self.lane_of_first(id)) else {
                continue;
            };
            self.ledger.account_mut(origin).hedges.retain(|hedge| *hedge != id);
            self.put_on(now, id, lane, role);
            self.actions.push_back(Action::Send { attempt: id, lane, role });
        }
    }

    /// The hedges of a role that wait for a lane.
    pub(super) fn waiting_hedges(&self, origin: OriginId, role: Role) -> Vec<AttemptId> {
        let of_role = |id: &&AttemptId| self.ledger.attempt(**id).is_some_and(|w| w.role == role);
        self.ledger.account(origin).hedges.iter().filter(of_role).copied().collect()
    }

    /// The lane that an attempt runs on.
    pub(crate) fn lane_of(&self, attempt: AttemptId) -> Option<LaneId> {
        self.ledger.attempt(attempt)?.lane
    }

    /// The lane that a hedge must not go on.
    fn lane_of_first(&self, hedge: AttemptId) -> Option<LaneId> {
        self.lane_of(self.ledger.attempt(hedge)?.hedge_of?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::time::Duration;

    use super::*;
    use crate::Protocol;
    use crate::dispatch::{Direction, Event, Rules};

    const ORIGIN: OriginId = OriginId(0);
    const RTT: Duration = Duration::from_millis(20);

    fn small() -> Size {
        Size::new(0, Some(1000), false)
    }

    fn actions(dispatcher: &mut Dispatcher) -> Vec<Action> {
        std::iter::from_fn(|| dispatcher.poll()).collect()
    }

    /// The lane that an attempt was sent on.
    fn sent(actions: &[Action], wanted: u64) -> Option<LaneId> {
        actions.iter().find_map(|action| match action {
            Action::Send { attempt, lane, .. } if *attempt == AttemptId(wanted) => Some(*lane),
            _ => None,
        })
    }

    fn dialled(actions: &[Action]) -> Vec<LaneId> {
        let lane = |action: &Action| match action {
            Action::Dial { lane, .. } => Some(*lane),
            _ => None,
        };
        actions.iter().filter_map(lane).collect()
    }

    /// A dispatcher with one lane on which attempt 0 runs.
    fn running(protocol: Protocol, ceiling: usize) -> (Dispatcher, Instant, LaneId) {
        let (mut dispatcher, now) = (Dispatcher::new(ceiling), Instant::now());
        dispatcher.handle(now, Event::Submitted { attempt: AttemptId(0), origin: ORIGIN, size: small() });
        let lane = dialled(&actions(&mut dispatcher))[0];
        dispatcher.handle(now, Event::Opened { lane, protocol, rtt: RTT });
        assert_eq!(sent(&actions(&mut dispatcher), 0), Some(lane));
        (dispatcher, now, lane)
    }

    fn hedge(dispatcher: &mut Dispatcher, now: Instant) -> Vec<Action> {
        hedge_as(dispatcher, now, 1)
    }

    fn hedge_as(dispatcher: &mut Dispatcher, now: Instant, attempt: u64) -> Vec<Action> {
        let event = Event::Hedged {
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
            dispatcher.handle(now, Event::Tick);
            assert_eq!(actions(&mut dispatcher), [], "one lane is enough");
            dispatcher.handle(now, Event::Opened { lane: other, protocol, rtt: RTT });
            assert_eq!(sent(&actions(&mut dispatcher), 1), Some(other));
            assert_ne!(first, other);
            dispatcher.handle(now, Event::Finished { attempt: AttemptId(1), reusable: true });
            dispatcher.handle(now, Event::Finished { attempt: AttemptId(0), reusable: false });
            assert_eq!((dispatcher.attempts(), dispatcher.ledger.outstanding(Direction::Down).small), (0, 0));
        }
    }

    #[test]
    fn a_lane_to_another_address_is_preferred() {
        let (mut dispatcher, now) = (Dispatcher::new(Rules::CHOSEN.connections_max), Instant::now());
        for attempt in 0..3 {
            dispatcher
                .handle(now, Event::Submitted { attempt: AttemptId(attempt), origin: ORIGIN, size: small() });
        }
        dispatcher.handle(now, Event::Expected { origin: ORIGIN, protocol: Protocol::H1 });
        // When the first dial has been waited for, and not so late that it is waited for again.
        dispatcher.handle(now + Duration::from_millis(5), Event::Tick);
        let lanes = dialled(&actions(&mut dispatcher));
        for (lane, last) in lanes.iter().copied().zip([1, 1, 2]) {
            let address = std::net::SocketAddr::from(([127, 0, 0, last], 80));
            dispatcher.handle(now, Event::Located { lane, address });
            dispatcher.handle(now, Event::Opened { lane, protocol: Protocol::H1, rtt: RTT });
        }
        let sent_on = actions(&mut dispatcher);
        assert_eq!(sent(&sent_on, 0), Some(lanes[0]));
        for attempt in [1, 2] {
            dispatcher.handle(now, Event::Finished { attempt: AttemptId(attempt), reusable: true });
        }
        assert_eq!(sent(&hedge_as(&mut dispatcher, now, 3), 3), Some(lanes[2]));
        assert_eq!(
            sent(&hedge_as(&mut dispatcher, now, 4), 4),
            Some(lanes[1]),
            "any other is better than none"
        );
    }

    #[test]
    fn what_comes_after_a_hedge_that_waits_is_not_kept_waiting() {
        let (mut dispatcher, now, first) = running(Protocol::H2, Rules::CHOSEN.connections_max);
        hedge(&mut dispatcher, now);
        dispatcher.handle(now, Event::Submitted { attempt: AttemptId(2), origin: ORIGIN, size: small() });
        dispatcher.handle(now + Duration::from_secs(9), Event::Tick);
        assert_eq!(sent(&actions(&mut dispatcher), 2), Some(first));
    }

    #[test]
    fn at_the_ceiling_a_hedge_waits_until_it_is_not_wanted_any_more() {
        let (mut dispatcher, now, _) = running(Protocol::H2, 1);
        assert_eq!(hedge(&mut dispatcher, now), []);
        dispatcher.handle(now, Event::Cancelled { attempt: AttemptId(1) });
        dispatcher.handle(now, Event::Finished { attempt: AttemptId(0), reusable: true });
        assert_eq!((dispatcher.attempts(), dispatcher.ledger.outstanding(Direction::Down).small), (0, 0));
        assert!(dispatcher.ledger.account(ORIGIN).hedges.is_empty());
    }

    #[test]
    fn when_the_first_has_failed_its_lane_is_as_good_as_any() {
        let (mut dispatcher, now, lane) = running(Protocol::H2, 1);
        assert_eq!(hedge(&mut dispatcher, now), []);
        dispatcher.handle(now, Event::Finished { attempt: AttemptId(0), reusable: true });
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
                    dispatcher.handle(now, Event::DialFailed { lane });
                    dispatcher.handle(now, Event::Tick);
                    assert_eq!(actions(&mut dispatcher), [], "{protocol:?}: not at once");
                }
                now = dispatcher.next_tick().unwrap();
                dispatcher.handle(now, Event::Moved { origin: ORIGIN, down: 0, up: Some(0), flow: None });
                dispatcher.handle(now, Event::Tick);
                dialling = dialled(&actions(&mut dispatcher));
                (dials, ticks) = (dials + dialling.len(), ticks + 1);
                assert!(ticks < 250, "{protocol:?}: ticks that come to nothing");
            }
            assert_eq!(dials, 11, "{protocol:?}");
            dispatcher.handle(now, Event::Opened { lane: dialling[0], protocol, rtt: RTT });
            assert_eq!(sent(&actions(&mut dispatcher), 1), Some(dialling[0]));
        }
    }

    #[test]
    fn a_hedge_whose_first_lane_is_gone_fails_with_the_last_dial() {
        let (mut dispatcher, now, first) = running(Protocol::H1, Rules::CHOSEN.connections_max);
        let other = dialled(&hedge(&mut dispatcher, now))[0];
        dispatcher.handle(now, Event::Closed { lane: first });
        dispatcher.handle(now, Event::Finished { attempt: AttemptId(0), reusable: false });
        let (mut dialling, mut failed) = (vec![other], Vec::new());
        dialling.extend(dialled(&actions(&mut dispatcher)));
        while let Some(lane) = dialling.pop() {
            dispatcher.handle(now, Event::DialFailed { lane });
            let then = actions(&mut dispatcher);
            dialling.extend(dialled(&then));
            failed.extend(then.into_iter().filter(|a| matches!(a, Action::Fail { .. })));
        }
        assert!(matches!(failed[..], [Action::Fail { attempt: AttemptId(1), .. }]), "{failed:?}");
        assert_eq!(dispatcher.attempts(), 0);
    }
}
