//! Tests the decisions about hedges in virtual time.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

const MIB: u64 = 1 << 20;
const PLENTY: u64 = 1000;

/// A hedge watch, with a clock that the test advances.
struct Desk {
    watch: HedgeWatch,
    now: Instant,
    attempts: u64,
    role: Role,
    expected: Option<u64>,
}

impl Desk {
    fn new(role: Role, expected: u64) -> Self {
        Self {
            watch: HedgeWatch::new(true),
            now: Instant::now(),
            attempts: 0,
            role,
            expected: Some(expected),
        }
    }

    fn small() -> Self {
        Self::new(Role::Express, 5000)
    }

    fn bulk() -> Self {
        Self::new(Role::Freight, 16 * MIB)
    }

    /// Lets time pass, and makes each check when it is due. Returns the stragglers.
    fn pass(&mut self, ms: u64) -> Vec<AttemptId> {
        let end = self.now + Duration::from_millis(ms);
        let mut found = Vec::new();
        while let Some(at) = self.watch.next_look().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            found.extend(self.watch.look(self.now, PLENTY, true));
        }
        self.now = end;
        found
    }

    fn send(&mut self) -> (AttemptId, Arc<Tracker>) {
        let (attempt, tracker) = (AttemptId(self.attempts), Arc::new(Tracker::new(self.now, Alike(0))));
        self.attempts += 1;
        self.watch.begin(self.now, attempt, (OriginId(0), self.role), self.expected, Arc::clone(&tracker));
        tracker.sent(self.now);
        (attempt, tracker)
    }

    fn receive(&self, tracker: &Tracker, bytes: u64) {
        if tracker.snapshot().unwrap().head.is_none() {
            tracker.head(self.now);
        }
        tracker.body(self.now, bytes as usize);
        tracker.sunk(self.now);
    }

    fn end(&mut self, (attempt, tracker): &(AttemptId, Arc<Tracker>)) {
        tracker.whole();
        self.watch.end(self.now, *attempt);
    }

    /// Sends requests one after the other, and answers each after `ms`. Returns the stragglers.
    fn answer(&mut self, count: usize, ms: u64) -> Vec<AttemptId> {
        let mut found = Vec::new();
        for _ in 0..count {
            let sent = self.send();
            found.extend(self.pass(ms));
            self.receive(&sent.1, self.expected.unwrap());
            self.end(&sent);
        }
        found
    }
}

#[test]
fn what_is_silent_while_others_are_answered_is_a_straggler() {
    let mut desk = Desk::small();
    desk.answer(5, 20);
    let stalled = desk.send();
    assert_eq!(desk.answer(2, 20), [], "no hedge before three times the usual time");
    assert_eq!(desk.answer(5, 20), [stalled.0]);
    assert_eq!(desk.answer(100, 20), [], "once");
}

#[test]
fn a_body_that_stops_is_one_as_well() {
    let mut desk = Desk::small();
    let stalled = desk.send();
    desk.answer(5, 20);
    desk.receive(&stalled.1, 1000);
    assert_eq!(desk.answer(2, 20), []);
    assert_eq!(desk.answer(5, 20), [stalled.0]);
}

#[test]
fn nearby_a_silence_that_a_busy_machine_explains_is_none() {
    let mut desk = Desk::small();
    desk.answer(5, 2);
    let stalled = desk.send();
    assert_eq!(desk.answer(29, 2), [], "no hedge before 60 ms, even after 29 times the usual time");
    assert_eq!(desk.answer(30, 2), [stalled.0]);
}

#[test]
fn far_away_the_same_silence_says_nothing() {
    let mut desk = Desk::small();
    desk.answer(5, 120);
    let stalled = desk.send();
    assert_eq!(desk.answer(2, 120), []);
    assert_eq!(desk.answer(3, 120), [stalled.0]);
}

#[test]
fn when_everything_is_slow_nothing_is_a_straggler() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let many: Vec<_> = (0..20).map(|_| desk.send()).collect();
    // The link is full. The answers come one after the other, and the last takes a hundred times longer than usual.
    for sent in &many {
        assert_eq!(desk.pass(100), []);
        desk.receive(&sent.1, 5000);
        desk.end(sent);
    }
}

#[test]
fn when_nothing_moves_at_all_only_a_long_silence_is_worth_a_probe() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let both = [desk.send().0, desk.send().0];
    assert_eq!(desk.pass(4900), []);
    assert_eq!(desk.pass(200), both);
}

#[test]
fn at_the_end_of_a_run_only_stragglers_are_left() {
    let mut desk = Desk::small();
    let all: Vec<_> = (0..20).map(|_| desk.send()).collect();
    assert_eq!(desk.pass(20), []);
    for sent in &all[2..] {
        desk.receive(&sent.1, 5000);
        desk.end(sent);
    }
    assert_eq!(desk.pass(35), []);
    assert_eq!(desk.pass(50), [all[0].0, all[1].0]);
}

#[test]
fn a_path_that_dies_makes_no_stragglers() {
    let mut desk = Desk::small();
    let all: Vec<_> = (0..20).map(|_| desk.send()).collect();
    assert_eq!(desk.pass(20), []);
    for sent in &all[10..] {
        desk.receive(&sent.1, 5000);
        desk.end(sent);
    }
    assert_eq!(desk.pass(4900), []);
}

#[test]
fn a_request_that_is_alone_is_compared_with_those_before_it() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let stalled = desk.send();
    assert_eq!(desk.pass(490), []);
    assert_eq!(desk.pass(60), [stalled.0]);
}

#[test]
fn without_a_few_answers_nothing_is_known_to_be_slow() {
    let mut desk = Desk::small();
    desk.answer(2, 20);
    desk.send();
    assert_eq!(desk.pass(60_000), []);
}

#[test]
fn what_was_usual_long_ago_is_forgotten() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    desk.now += Duration::from_secs(61);
    desk.send();
    assert_eq!(desk.pass(60_000), []);
}

#[test]
fn other_kinds_of_requests_are_no_measure() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let tracker = Arc::new(Tracker::new(desk.now, Alike(1)));
    desk.watch.begin(desk.now, AttemptId(900), (OriginId(0), Role::Express), None, Arc::clone(&tracker));
    tracker.sent(desk.now);
    assert_eq!(desk.pass(60_000), []);
}

#[test]
fn the_wait_for_a_lane_is_no_silence() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let waiting = Arc::new(Tracker::new(desk.now, Alike(0)));
    desk.watch.begin(desk.now, AttemptId(900), (OriginId(0), Role::Express), None, Arc::clone(&waiting));
    assert_eq!(desk.answer(100, 20), []);
    waiting.sent(desk.now);
    assert_eq!(desk.answer(2, 20), []);
    assert_eq!(desk.answer(5, 20), [AttemptId(900)]);
}

#[test]
fn a_slow_disk_makes_no_straggler() {
    let mut desk = Desk::bulk();
    desk.answer(10, 100);
    let writing = desk.send();
    writing.1.head(desk.now);
    writing.1.body(desk.now, 1 << 18);
    assert_eq!(desk.answer(100, 100), []);
    writing.1.sunk(desk.now);
    assert_eq!(desk.answer(9, 100), []);
}

#[test]
fn a_process_that_stood_still_blames_nobody() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let sent = desk.send();
    desk.now += Duration::from_secs(10);
    assert_eq!(desk.pass(10), []);
    desk.receive(&sent.1, 5000);
    desk.end(&sent);
    let stalled = desk.send();
    assert_eq!(desk.answer(20, 20), [stalled.0], "it goes on watching");
}

#[test]
fn bulk_that_is_held_back_is_not_slow() {
    let mut desk = Desk::bulk();
    desk.answer(10, 150);
    let held = desk.send();
    desk.receive(&held.1, MIB);
    desk.watch.hold_bulk(desk.now, true);
    assert_eq!(desk.answer(20, 150), []);
    desk.watch.hold_bulk(desk.now, false);
    assert_eq!(desk.answer(6, 150), [], "the silence counts only from the time when bulk no longer yields");
    assert_eq!(desk.answer(3, 150), [held.0]);
}

#[test]
fn a_slice_far_slower_than_the_others_is_a_straggler_though_it_moves() {
    let mut desk = Desk::bulk();
    // Each slice brings 16 MiB in 160 ms, in chunks of 1 MiB.
    let slice = |desk: &mut Desk, slow: Option<&Arc<Tracker>>| {
        let sent = desk.send();
        let mut found = Vec::new();
        for _ in 0..16 {
            desk.receive(&sent.1, MIB);
            slow.inspect(|tracker| desk.receive(tracker, 64 << 10));
            found.extend(desk.pass(10));
        }
        desk.end(&sent);
        found
    };
    for _ in 0..5 {
        assert_eq!(slice(&mut desk, None), []);
    }
    let slow = desk.send();
    let found: Vec<_> = (0..10).flat_map(|_| slice(&mut desk, Some(&slow.1))).collect();
    assert_eq!(found, [slow.0]);
}

#[test]
fn slices_that_share_a_full_link_are_not_slow() {
    let mut desk = Desk::bulk();
    let mut slices: Vec<_> = (0..2).map(|_| desk.send()).collect();
    // First two slices share the link, then eight. So each slice is four times slower than before.
    for lanes in [2, 8] {
        slices.extend((slices.len()..lanes).map(|_| desk.send()));
        for _ in 0..100 {
            for slot in &mut slices {
                desk.receive(&slot.1, 2 * MIB / lanes as u64);
                if slot.1.snapshot().unwrap().bytes >= 16 * MIB {
                    desk.end(&slot.clone());
                    *slot = desk.send();
                }
            }
            assert_eq!(desk.pass(100), []);
        }
    }
}

#[test]
fn where_the_caller_caps_the_rate_only_heads_are_judged() {
    let mut desk = Desk { watch: HedgeWatch::new(false), ..Desk::small() };
    desk.answer(10, 20);
    let (body, head) = (desk.send(), desk.send());
    desk.receive(&body.1, 1000);
    assert_eq!(desk.answer(100, 20), [head.0]);
}

#[test]
fn the_budget_is_two_or_a_fiftieth_of_the_requests() {
    assert_eq!([0, 1, 99, 150, 1000].map(|sent| budget_left(sent, 0)), [2, 2, 2, 3, 20]);
    assert_eq!([1, 2, 3, 500].map(|hedges| budget_left(100, hedges)), [1, 0, 0, 0]);
}

#[test]
fn the_longest_silent_are_hedged_first_and_others_as_the_budget_allows() {
    let mut desk = Desk::small();
    desk.answer(10, 20);
    let stalled: Vec<_> = (0..3)
        .map(|_| {
            desk.answer(1, 20);
            desk.send()
        })
        .collect();
    desk.watch.next_look = None;
    for _ in 0..15 {
        let sent = desk.send();
        desk.now += Duration::from_millis(20);
        desk.receive(&sent.1, 5000);
        desk.end(&sent);
    }
    desk.watch.next_look = None;
    assert_eq!(desk.watch.look(desk.now, 2, true), [stalled[0].0, stalled[1].0]);
    assert_eq!(desk.watch.look(desk.now, 2, true), [stalled[2].0]);
}
