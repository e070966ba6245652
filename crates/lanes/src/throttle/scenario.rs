//! Simulates thousands of requests to a server with a token bucket, in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use super::{Admission, AdmissionPass, AdmissionRequest, Throttles};

/// A server whose limit changes. `limits` has the times in seconds, and the limits in requests per second.
struct Server {
    limits: Vec<(f64, f64)>,
    burst: f64,
    tokens: f64,
    last_s: f64,
}

impl Server {
    fn takes(&mut self, at_s: f64) -> bool {
        let rate = self.limits.iter().rfind(|(from, _)| *from <= at_s).map_or(0.0, |(_, rate)| *rate);
        self.tokens = (self.tokens + (at_s - self.last_s) * rate).min(self.burst);
        self.last_s = at_s;
        let takes = self.tokens >= 1.0;
        self.tokens -= if takes { 1.0 } else { 0.0 };
        takes
    }
}

struct ThrottledRun {
    /// The time of the last successful answer.
    seconds: f64,
    refused: usize,
    /// The number of successful answers in each second.
    good: Vec<usize>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ClientStep {
    Arrive,
    Answer(bool),
    Ask,
}

/// The client stops requesting a hot object after this many refusals.
const GIVEN_UP: usize = 20;

fn run(
    limits: &[(f64, f64)],
    burst: f64,
    rtt: Duration,
    (requests, under_way, at_once): (usize, usize, usize),
) -> ThrottledRun {
    run_with(limits, burst, rtt, (requests, under_way, at_once), 0)
}

/// Makes `requests` requests, each for another object. At most `under_way` requests exist at the same time, and at most `at_once` of them
/// are in flight. The server always refuses the first `hot` objects.
fn run_with(
    limits: &[(f64, f64)],
    burst: f64,
    rtt: Duration,
    (requests, under_way, at_once): (usize, usize, usize),
    hot: usize,
) -> ThrottledRun {
    let names: Vec<String> = (0..requests).map(|n| n.to_string()).collect();
    let mut refusals = vec![0; hot];
    let mut server = Server { limits: limits.to_vec(), burst, tokens: burst, last_s: 0.0 };
    let start = Instant::now();
    let mut throttles = Throttles::default();
    let mut places: Vec<AdmissionRequest> = (0..requests).map(|_| AdmissionRequest::default()).collect();
    let mut own_places: Vec<Option<AdmissionRequest>> =
        (0..requests).map(|_| Some(AdmissionRequest::default())).collect();
    let mut admitted = vec![start; requests];
    let mut gates = vec![None; requests];
    let mut unsent = VecDeque::new();
    let mut steps: BinaryHeap<Reverse<(Instant, u64, ClientStep, usize)>> = BinaryHeap::new();
    let (mut on_wire, mut count, mut next, mut done) = (0, 0, under_way, 0);
    let mut found = ThrottledRun { seconds: 0.0, refused: 0, good: Vec::new() };
    let mut plan = |steps: &mut BinaryHeap<_>, at: Instant, step, request: usize| {
        count += 1;
        steps.push(Reverse((at, count, step, request)));
    };
    (0..under_way.min(requests)).for_each(|n| plan(&mut steps, start, ClientStep::Ask, n));
    while let Some(Reverse((now, _, step, n))) = steps.pop() {
        let since = now.duration_since(start).as_secs_f64();
        match step {
            ClientStep::Ask => {
                let alone =
                    own_places[n].as_mut().and_then(|place| throttles.wait_alone(&names[n], place, now));
                if let Some(wait) = alone {
                    plan(&mut steps, now + wait, ClientStep::Ask, n);
                    continue;
                }
                own_places[n] = None;
                match throttles.admit("b", &mut places[n], now) {
                    Admission::Wait(wait) => plan(&mut steps, now + wait, ClientStep::Ask, n),
                    Admission::Go(gate) => {
                        (admitted[n], gates[n]) = (now, Some(AdmissionPass::new(gate, Some(&names[n]), now)));
                        unsent.push_back(n);
                    }
                }
            }
            ClientStep::Arrive => {
                let takes = n >= hot && server.takes(since);
                plan(&mut steps, now + rtt / 2, ClientStep::Answer(takes), n);
            }
            ClientStep::Answer(true) => {
                throttles.succeeded("b", Some(&names[n]), now);
                (on_wire, done) = (on_wire - 1, done + 1);
                found.good.resize(since as usize + 1, 0);
                found.good[since as usize] += 1;
                found.seconds = since;
                if next < requests {
                    plan(&mut steps, now, ClientStep::Ask, next);
                    next += 1;
                }
            }
            ClientStep::Answer(false) => {
                throttles.throttled("b", Some(&names[n]), admitted[n], now, None);
                (on_wire, found.refused) = (on_wire - 1, found.refused + 1);
                own_places[n] = Some(AdmissionRequest::default());
                refusals.get_mut(n).into_iter().for_each(|refusals| *refusals += 1);
                if refusals.get(n).is_none_or(|refusals| *refusals < GIVEN_UP) {
                    plan(&mut steps, now + Duration::from_millis(200), ClientStep::Ask, n);
                }
            }
        }
        // As in the engine, a request must ask again if a throttle came while it waited for a lane.
        while on_wire < at_once
            && let Some(n) = unsent.pop_front()
        {
            if gates[n].as_ref().is_some_and(AdmissionPass::is_shut) {
                plan(&mut steps, now, ClientStep::Ask, n);
                continue;
            }
            on_wire += 1;
            // The server needs a tenth of a millisecond for each request.
            plan(
                &mut steps,
                now + rtt / 2 + Duration::from_micros(100) * (on_wire as u32),
                ClientStep::Arrive,
                n,
            );
        }
    }
    assert_eq!(done, requests - hot);
    found
}

const RTTS: [Duration; 3] =
    [Duration::from_micros(200), Duration::from_millis(20), Duration::from_millis(100)];

#[test]
fn five_thousand_requests_keep_to_what_a_server_bears() {
    for rtt in RTTS {
        for (limit, seconds_max) in [(500.0, 13.0), (200.0, 30.0), (50.0, 115.0)] {
            let found = run(&[(0.0, limit)], 20.0, rtt, (5000, 1800, 64));
            let ThrottledRun { seconds, refused, .. } = found;
            assert!(seconds <= seconds_max, "{limit}/s, {rtt:?}: {seconds} s");
            assert!(refused <= 250, "{limit}/s, {rtt:?}: {refused} were refused");
        }
    }
}

#[test]
fn a_limit_that_changes_is_found_again_both_ways() {
    let changes: [(&[(f64, f64)], f64); 3] = [
        (&[(0.0, 200.0), (10.0, 50.0), (30.0, 500.0)], 45.0),
        (&[(0.0, 50.0), (10.0, 1000.0)], 26.0),
        (&[(0.0, 1000.0), (3.0, 100.0)], 45.0),
    ];
    for rtt in RTTS {
        for (limits, seconds_max) in changes {
            let ThrottledRun { seconds, refused, good } = run(limits, 20.0, rtt, (5000, 1800, 64));
            assert!(seconds <= seconds_max, "{limits:?}, {rtt:?}: {seconds} s, {good:?}");
            assert!(refused <= 250, "{limits:?}, {rtt:?}: {refused} were refused");
            assert!(good.iter().all(|good| *good >= 20), "{limits:?}, {rtt:?}: {good:?}");
        }
    }
}

#[test]
fn a_server_that_throttles_for_a_moment_only_is_soon_used_as_before() {
    let moment = [(0.0, 1e5), (2.0, 0.0), (2.1, 1e5)];
    let ThrottledRun { seconds, refused, good } = run(&moment, 50.0, RTTS[1], (40_000, 1800, 64));
    assert!(refused > 0 && refused <= 200, "{refused}");
    assert!(seconds <= 21.0, "{seconds} s, {good:?}");
}

#[test]
fn one_hot_object_or_two_delay_no_other() {
    for rtt in RTTS {
        let alone = run(&[(0.0, 1e6)], 1e6, rtt, (4000, 1800, 64)).seconds;
        for hot in [1, 2] {
            let beside = run_with(&[(0.0, 1e6)], 1e6, rtt, (4000, 1800, 64), hot);
            // Requests for hot objects sometimes occupy places in flight that other requests need, so allow 5 % more time.
            assert!(
                beside.seconds <= alone * 1.05,
                "{hot} hot, {rtt:?}: {} s, {alone} s alone",
                beside.seconds
            );
        }
    }
}

#[test]
fn a_hot_object_in_a_throttled_folder_costs_the_folder_little() {
    let limits = [(0.0, 200.0)];
    let alone = run(&limits, 20.0, RTTS[1], (4000, 1800, 64)).seconds;
    let beside = run_with(&limits, 20.0, RTTS[1], (4000, 1800, 64), 1).seconds;
    assert!(beside <= alone * 1.2, "{beside} s, {alone} s alone");
}
