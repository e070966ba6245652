//! Simulates calls to servers that are away for a while, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::{AttemptFailure, Backoff, RetryBudget, RetryLimits, RetryTurn};
use crate::config::DIAL_MAX;
use crate::outage::Outage;

const RETRY_FOR: Duration = Duration::from_secs(120);

/// A server's reaction to an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServerReply {
    Serve,
    /// The server refuses the connection, resets it or answers 502.
    Fail,
    /// The server is silent, so the attempt ends by its timeout.
    Hush,
    /// The network drops every packet. First the requests on open connections time out, and then the dials.
    Drop,
}

/// A dial that began while the network was down is answered this long after the network's return.
const NEXT_SYN_ANSWERED: Duration = Duration::from_secs(2);

/// The results of a simulation.
#[derive(Debug, Default)]
struct CallEnds {
    served: usize,
    failed: usize,
    attempts: usize,
    last: Duration,
}

/// An attempt: the time when it began, and, if it fails, how long the server had been silent. The second value is `None` if the attempt
/// succeeds.
type Attempt = (Instant, Option<Duration>);

/// Starts `calls` calls at once. The server reacts as `away` says until the time `back`, and serves requests after that.
fn run(calls: usize, away: ServerReply, back: Duration, timeout: Duration) -> CallEnds {
    let start = Instant::now();
    let (outage, mut budget) = (Outage::new(start), RetryBudget::new());
    let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
    let mut attempts: Vec<Backoff> = (0..calls).map(|_| Backoff::default()).collect();
    let mut failed_at = vec![None; calls];
    // The time of each call's next step. With `Some`, an attempt ends at that time. With `None`, the next attempt begins.
    let mut steps: BinaryHeap<Reverse<(Instant, usize, Option<Attempt>)>> =
        (0..calls).map(|call| Reverse((start, call, None))).collect();
    let (mut found, mut draw) = (CallEnds::default(), 0);
    while let Some(Reverse((now, call, began))) = steps.pop() {
        // Draw numbers that are spread evenly, and are the same in every run.
        draw = (draw * 7919 + 17) % 1000;
        let random = f64::from(draw) / 1000.0;
        let Some((began, silent)) = began else {
            if let Some(failed) = failed_at[call] {
                match budget.turn(failed, now, bounds, random) {
                    RetryTurn::Go => {}
                    RetryTurn::Wait(pause) => {
                        steps.push(Reverse((now + pause, call, None)));
                        continue;
                    }
                    RetryTurn::End => {
                        (found.failed, found.last) = (found.failed + 1, now - start);
                        continue;
                    }
                }
            }
            found.attempts += 1;
            let left = (start + back).saturating_duration_since(now);
            let soon = Duration::from_millis(50);
            let (takes, silent) = match if left.is_zero() { ServerReply::Serve } else { away } {
                ServerReply::Serve => (soon, None),
                ServerReply::Fail => (soon, Some(Duration::ZERO)),
                ServerReply::Drop if failed_at[call].is_some() && left + NEXT_SYN_ANSWERED <= DIAL_MAX => {
                    (left + NEXT_SYN_ANSWERED, None)
                }
                ServerReply::Drop if failed_at[call].is_some() => (DIAL_MAX, Some(DIAL_MAX)),
                ServerReply::Hush | ServerReply::Drop => (timeout, Some(timeout)),
            };
            steps.push(Reverse((now + takes, call, Some((now, silent)))));
            continue;
        };
        let Some(silent) = silent else {
            outage.heard(now);
            budget.succeed();
            (found.served, found.last) = (found.served + 1, now - start);
            continue;
        };
        failed_at[call] = Some(now);
        match attempts[call].next(AttemptFailure::Transient { silent }, began, now, bounds, random) {
            Some(pause) => steps.push(Reverse((now + pause, call, None))),
            None => (found.failed, found.last) = (found.failed + 1, now - start),
        }
    }
    found
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn servers_that_are_away_for_5_30_and_90_seconds_fail_nobody() {
    for calls in [1, 16, 5000] {
        for away in [5, 30, 90] {
            let found = run(calls, ServerReply::Fail, secs(away), secs(30));
            assert_eq!((found.served, found.failed), (calls, 0), "away for {away} s: {found:?}");
            assert!(found.last <= secs(away + 12), "away for {away} s: {found:?}");
        }
    }
}

#[test]
fn a_path_that_is_silent_for_45_seconds_fails_nobody() {
    for calls in [1, 16, 300] {
        let found = run(calls, ServerReply::Hush, secs(45), secs(30));
        assert_eq!((found.served, found.failed), (calls, 0), "{found:?}");
        assert!(found.last <= secs(75), "{found:?}");
    }
}

#[test]
fn a_network_that_is_cut_for_less_than_is_tried_again_fails_nobody() {
    for calls in [1, 16, 300] {
        for cut in 1..=117 {
            let found = run(calls, ServerReply::Drop, secs(cut), secs(30));
            assert_eq!((found.served, found.failed), (calls, 0), "cut for {cut} s: {found:?}");
        }
    }
}

#[test]
fn a_server_that_stays_away_is_given_up_by_all_when_its_time_is_over() {
    for does in [ServerReply::Fail, ServerReply::Hush, ServerReply::Drop] {
        for calls in [1, 5000] {
            let found = run(calls, does, secs(100_000), secs(30));
            assert_eq!((found.served, found.failed), (0, calls), "{found:?}");
            assert!(found.last >= RETRY_FOR && found.last <= RETRY_FOR + secs(40), "{found:?}");
        }
    }
}

#[test]
fn thousands_of_calls_do_not_storm_a_server_that_is_away() {
    let found = run(5000, ServerReply::Fail, secs(90), secs(30));
    // The maximum is the sum of the first attempts, the tokens in the budget, ten more per second, and the attempts that are served.
    assert!(found.attempts <= 5000 + 500 + 10 * 91 + 5000, "{found:?}");
}
