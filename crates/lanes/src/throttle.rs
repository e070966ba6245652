//! How fast requests are admitted to what has asked to slow down.
//!
//! A key (a bucket, usually) has no limit until its first throttle. Then its rate is cut below what it had been sent,
//! grows additively while answers are good, and the limit is dropped when it no longer binds.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::retry::RETRY_AFTER_MAX;

/// A throttle cuts the rate to this part.
const CUT: f64 = 0.7;

/// Further throttles within this time belong to the cut already made: they were sent before it.
const SAME_EVENT: Duration = Duration::from_millis(500);

/// Every good answer raises the rate by this many requests a second, divided by the rate itself: about this much a
/// second in all.
const GROWTH_PER_SECOND: f64 = 4.0;

/// No rate falls below this many requests a second.
const RATE_MIN: f64 = 1.0;

/// Sent requests are counted over windows of this length.
const WINDOW: Duration = Duration::from_secs(1);

/// The limits of all keys. Only throttled keys and the last window's counts are kept.
#[derive(Debug, Default)]
pub(crate) struct Throttles {
    keys: HashMap<String, Key>,
}

#[derive(Debug)]
struct Key {
    limit: Option<Limit>,
    window_began: Instant,
    sent: u32,
    /// Requests a second in the last full window.
    rate: f64,
}

#[derive(Debug)]
struct Limit {
    rate: f64,
    /// Above this the limit is dropped.
    dropped_above: f64,
    /// The next request's place in the schedule.
    next: Instant,
    cut_at: Instant,
}

impl Throttles {
    /// Admits a request at `now`: how long it has to wait for its place.
    pub(crate) fn admit(&mut self, key: &str, now: Instant) -> Duration {
        let key = self.key(key, now);
        key.count(now);
        let Some(limit) = &mut key.limit else { return Duration::ZERO };
        let place = limit.next.max(now);
        limit.next = place + Duration::from_secs_f64(1.0 / limit.rate);
        place - now
    }

    /// Takes note of a throttle, and of how long the server wants to be left alone.
    pub(crate) fn throttled(&mut self, key: &str, now: Instant, after: Option<Duration>) {
        let key = self.key(key, now);
        let seen = key.current_rate(now);
        let limit = match &mut key.limit {
            Some(limit) => {
                if now >= limit.cut_at + SAME_EVENT {
                    limit.cut_at = now;
                    limit.rate = (limit.rate * CUT).max(RATE_MIN);
                }
                limit
            }
            None => key.limit.insert(Limit {
                rate: (seen * CUT).max(RATE_MIN),
                dropped_above: (seen * 2.0).max(10.0 * RATE_MIN),
                next: now,
                cut_at: now,
            }),
        };
        if let Some(after) = after.filter(|after| *after <= RETRY_AFTER_MAX) {
            limit.next = limit.next.max(now + after);
        }
    }

    /// The key's state. Keys that are not limited and were not used lately are forgotten when a new one comes.
    fn key(&mut self, key: &str, now: Instant) -> &mut Key {
        if !self.keys.contains_key(key) {
            self.keys.retain(|_, k| k.limit.is_some() || now < k.window_began + WINDOW);
        }
        let fresh = || Key { limit: None, window_began: now, sent: 0, rate: 0.0 };
        self.keys.entry(key.to_owned()).or_insert_with(fresh)
    }

    /// Takes note of a good answer.
    pub(crate) fn succeeded(&mut self, key: &str) {
        let Some(key) = self.keys.get_mut(key) else { return };
        let Some(limit) = &mut key.limit else { return };
        limit.rate += GROWTH_PER_SECOND / limit.rate;
        if limit.rate > limit.dropped_above {
            key.limit = None;
        }
    }
}

impl Key {
    fn count(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.window_began);
        if elapsed >= WINDOW {
            self.rate = f64::from(self.sent) / elapsed.as_secs_f64();
            (self.window_began, self.sent) = (now, 0);
        }
        self.sent += 1;
    }

    /// The larger of the last window's rate and what this one shows already.
    fn current_rate(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.window_began).max(Duration::from_millis(100));
        self.rate.max(f64::from(self.sent) / elapsed.as_secs_f64().max(WINDOW.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unthrottled_key_never_waits() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        assert!((0..10_000).all(|_| throttles.admit("b", now) == Duration::ZERO));
    }

    #[test]
    fn a_throttle_spaces_requests_out_and_leaves_other_keys_alone() {
        let (mut throttles, mut now) = (Throttles::default(), Instant::now());
        for _ in 0..200 {
            throttles.admit("b", now);
            throttles.admit("c", now);
            now += Duration::from_millis(5);
        }
        throttles.throttled("b", now, None);
        let waits: Vec<_> = (0..10).map(|_| throttles.admit("b", now)).collect();
        assert!(waits.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(throttles.admit("c", now), Duration::ZERO);
    }

    #[test]
    fn retry_after_holds_everybody_back() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.admit("b", now);
        throttles.throttled("b", now, Some(Duration::from_secs(2)));
        assert!(throttles.admit("b", now) >= Duration::from_secs(2));
    }

    #[test]
    fn an_absurd_retry_after_holds_nobody_back() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.admit("b", now);
        throttles.throttled("b", now, Some(Duration::from_secs(u64::MAX)));
        assert!(throttles.admit("b", now) < Duration::from_secs(2));
    }

    #[test]
    fn the_rate_settles_below_a_servers_limit_and_the_limit_goes_when_it_is_not_needed() {
        let (mut throttles, start) = (Throttles::default(), Instant::now());
        let (mut now, mut refused, mut bucket) = (start, 0, 20.0_f64);
        let mut last = start;
        for _ in 0..5000 {
            now += throttles.admit("b", now);
            bucket = (bucket + (now - last).as_secs_f64() * 200.0).min(20.0);
            last = now;
            if bucket >= 1.0 {
                bucket -= 1.0;
                throttles.succeeded("b");
            } else {
                refused += 1;
                throttles.throttled("b", now, None);
            }
        }
        assert!(refused < 500, "{refused} of 5000 were refused");
        for _ in 0..2_000_000 {
            throttles.succeeded("b");
        }
        assert_eq!(throttles.admit("b", now), Duration::ZERO);
    }
}
