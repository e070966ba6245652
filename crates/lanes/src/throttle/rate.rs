//! The rate of requests to a throttling server.
//!
//! Laneway searches for the rate that the server bears. The rate doubles every third of a second until the next throttle. Then it is cut,
//! and creeps back towards the throttled rate. So the server's token bucket is seldom overdrawn, and by little: at 200 requests a second
//! with 20 tokens, the rate stays between 160 and 230. A quarter above the old limit, the search begins anew.

use std::time::{Duration, Instant};

/// A throttle cuts the rate to this part of it.
const CUT: f64 = 0.7;

/// The first limit, as a part of the good answers per second before the first throttle.
const FIRST: f64 = 0.9;

/// No search begins below the first number, and no rate falls below the second, in requests a second.
const FIRST_MIN: f64 = 10.0;
const RATE_MIN: f64 = 1.0;

/// During the search, every good answer raises the rate by this many requests a second. It doubles in 0.35 s.
const SEARCHING: f64 = 2.0;

/// In a second, the rate creeps up by this part of the throttled rate. That recovers a cut in four seconds.
const CREEPING: f64 = 0.075;

/// If the rate reaches this multiple of the throttled rate, the server bears more now.
const PASSED: f64 = 1.25;

/// At this multiple of the rate before the first throttle, the limit no longer binds.
const FREE: f64 = 2.0;

/// Answers are counted over windows of this length.
const WINDOW: Duration = Duration::from_millis(250);

/// A window that took this long had a pause without answers in it.
const IDLE: Duration = WINDOW.saturating_mul(2);

/// While the rate grows, the last window's answers are fewer than the rate allows now, by at most this factor.
const LAGS: f64 = 1.5;

/// A rate, in requests a second.
#[derive(Debug)]
pub(super) struct RequestRate {
    now: f64,
    /// The rate that was throttled last. `None` during a search.
    too_much: Option<f64>,
    cut_at: Instant,
    free_above: f64,
    window_began: Instant,
    answers: u32,
    /// Answers a second in the last full window. Infinite if there was none, or after a pause.
    answered: f64,
}

impl RequestRate {
    /// The rate after the first throttle. `sent` and `good` are the requests sent and good answers per second before it.
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

    /// Requests a second.
    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// Takes note of a throttle of a request admitted at `admitted`. Returns whether the rate is cut. Requests admitted before the last cut
    /// say nothing about the rate since.
    pub(super) fn throttled(&mut self, admitted: Instant, now: Instant) -> bool {
        self.count(now);
        let is_new = admitted >= self.cut_at;
        if is_new {
            // If the lanes carried less than the rate allows, the smaller rate was throttled.
            let too_much = self.now.min(self.answered * LAGS);
            self.too_much = Some(too_much);
            self.now = (too_much * CUT).max(RATE_MIN);
            self.cut_at = now;
        }
        is_new
    }

    /// Takes note of a good answer. Returns whether the rate no longer limits anything.
    pub(super) fn succeeded(&mut self, now: Instant) -> bool {
        self.count(now);
        self.too_much = self.too_much.filter(|too_much| self.now < too_much * PASSED);
        self.now += match self.too_much {
            // In a second, there are as many good answers as the rate says.
            Some(too_much) => too_much * CREEPING / self.now,
            None => SEARCHING,
        };
        self.now > self.free_above
    }

    fn count(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.window_began);
        if elapsed >= WINDOW {
            // A pause without requests says nothing about the lanes' rate.
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
