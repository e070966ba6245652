//! Limits the rate of requests to a server that throttles.
//!
//! Laneway searches for the rate that the server accepts. The rate doubles every third of a second until the next throttle. Then it is
//! reduced, and rises slowly towards the rate that was throttled. So the server's token bucket seldom runs empty: with a limit of 200
//! requests per second and 20 tokens, the rate stays between 160 and 230. If the rate reaches a quarter more than the throttled one, the
//! fast search begins again.

use std::time::{Duration, Instant};

/// A throttle multiplies the rate by this factor.
const CUT: f64 = 0.7;

/// The first limit is the number of successful answers per second before the first throttle, multiplied by this factor.
const FIRST: f64 = 0.9;

/// The minimum of the first limit, and the minimum of any limit, in requests per second.
const FIRST_MIN: f64 = 10.0;
const RATE_MIN: f64 = 1.0;

/// During the search, every successful answer raises the rate by this many requests per second. So it doubles in 0.35 s.
const SEARCHING: f64 = 2.0;

/// After a throttle, the rate rises each second by the throttled rate multiplied by this factor. So it reaches the throttled rate again in
/// four seconds.
const CREEPING: f64 = 0.075;

/// If the rate reaches this multiple of the throttled rate, the server accepts more now, and the search begins again.
const PASSED: f64 = 1.25;

/// The limit is removed when it reaches this multiple of the rate before the first throttle.
const FREE: f64 = 2.0;

/// Answers are counted over windows of this length.
const WINDOW: Duration = Duration::from_millis(250);

/// If a window lasts this long, it contains a pause without answers.
const IDLE: Duration = WINDOW.saturating_mul(2);

/// While the rate grows, it can be this many times the answers per second of the last window. A rate above that means that fewer requests
/// were sent than the limit allows.
const LAGS: f64 = 1.5;

/// The limit on the rate of requests, in requests per second.
#[derive(Debug)]
pub(super) struct RequestRate {
    now: f64,
    /// The rate that was last throttled. `None` during the search.
    too_much: Option<f64>,
    cut_at: Instant,
    free_above: f64,
    window_began: Instant,
    answers: u32,
    /// The answers per second in the last full window. The value is `f64::MAX` if there was no full window, or after a pause.
    answered: f64,
}

impl RequestRate {
    /// Creates the limit after the first throttle. `sent` and `good` are the requests and the successful answers per second before it.
    pub(super) fn new(sent: f64, good: f64, now: Instant) -> Self {
        let rate = (good * FIRST).max(FIRST_MIN);
        Self {
            now: rate,
            too_much: None,
            cut_at: now,
            free_above: FREE * sent.max(rate),
            window_began: now,
            answers: 0,
            answered: f64::MAX,
        }
    }

    /// Returns the limit in requests per second.
    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// Records a throttle of a request that was admitted at `admitted`. Returns whether the rate is reduced. The rate stays as it is if the
    /// request was admitted before the last reduction. Such a throttle shows nothing about the new rate.
    pub(super) fn throttled(&mut self, admitted: Instant, now: Instant) -> bool {
        self.count(now);
        let is_new = admitted >= self.cut_at;
        if is_new {
            // If requests were sent at a lower rate than the limit allows, the server throttled that lower rate.
            let too_much = self.now.min(self.answered * LAGS);
            self.too_much = Some(too_much);
            self.now = (too_much * CUT).max(RATE_MIN);
            self.cut_at = now;
        }
        is_new
    }

    /// Records a successful answer. Returns whether the limit can be removed.
    pub(super) fn succeeded(&mut self, now: Instant) -> bool {
        self.count(now);
        self.too_much = self.too_much.filter(|too_much| self.now < too_much * PASSED);
        self.now += match self.too_much {
            // The number of answers per second is about the rate, so this adds `CREEPING` per second.
            Some(too_much) => too_much * CREEPING / self.now,
            None => SEARCHING,
        };
        self.now > self.free_above
    }

    fn count(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.window_began);
        if elapsed >= WINDOW {
            // A window with a pause doesn't show the rate at which requests are sent.
            let is_idle = elapsed >= IDLE;
            self.answered = if is_idle { f64::MAX } else { f64::from(self.answers) / elapsed.as_secs_f64() };
            (self.window_began, self.answers) = (now, 0);
        }
        self.answers += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_an_idle_time_a_throttle_only_cuts() {
        for idle in [Duration::from_secs(2), Duration::from_secs(60)] {
            let mut now = Instant::now();
            let mut rate = RequestRate::new(200.0, 200.0, now);
            for _ in 0..400 {
                now += Duration::from_millis(5);
                rate.succeeded(now);
            }
            let before = rate.now();
            now += idle;
            assert!(rate.throttled(now, now));
            assert_eq!(rate.now(), before * CUT, "{idle:?}");
        }
    }

    #[test]
    fn lanes_that_carry_less_than_the_rate_say_what_was_too_much() {
        let mut now = Instant::now();
        let mut rate = RequestRate::new(200.0, 200.0, now);
        for _ in 0..400 {
            now += Duration::from_millis(5);
            rate.succeeded(now);
        }
        assert!(rate.now() > 500.0);
        assert!(rate.throttled(now, now));
        assert!((150.0..=250.0).contains(&rate.now()), "{}", rate.now());
    }
}
