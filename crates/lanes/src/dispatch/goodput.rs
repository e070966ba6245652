//! What the path has been seen to carry.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Readings closer together than this say more of bursts than of the path.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// How long a rate is remembered: paths change.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The best rate of one direction lately.
#[derive(Debug, Default)]
pub(super) struct Goodput {
    last: Option<(Instant, u64)>,
    /// Rates that no later one has reached, the highest first.
    rates: VecDeque<(Instant, f64)>,
}

impl Goodput {
    /// Takes a reading of the bytes moved so far. While bulk is `held` back, what moves isn't what the path carries:
    /// forgetting the best rate then, bulk would be held to a part of a part of it.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, held: bool) {
        let Some((at, before)) = self.last else {
            self.last = Some((now, bytes));
            return;
        };
        let passed = now.saturating_duration_since(at);
        if passed < INTERVAL_MIN {
            return;
        }
        self.last = Some((now, bytes));
        let rate = bytes.saturating_sub(before) as f64 / passed.as_secs_f64();
        while self.rates.back().is_some_and(|(_, lower)| *lower <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((now, rate));
        let is_old = |(at, _): &(Instant, f64)| now.saturating_duration_since(*at) > REMEMBERED;
        while !held && self.rates.front().is_some_and(is_old) {
            self.rates.pop_front();
        }
    }

    /// Bytes a second, once anything has moved.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rates.front().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rate_lately_is_remembered_for_a_while() {
        let (mut goodput, mut now, mut bytes) = (Goodput::default(), Instant::now(), 0);
        let mut pass = |goodput: &mut Goodput, ms: u64, rate: u64| {
            now += Duration::from_millis(ms);
            bytes += rate * ms / 1000;
            goodput.read(now, bytes, false);
        };
        pass(&mut goodput, 0, 0);
        assert_eq!(goodput.rate(), None);
        pass(&mut goodput, 100, 1_000_000);
        pass(&mut goodput, 100, 8_000_000);
        pass(&mut goodput, 100, 2_000_000);
        assert_eq!(goodput.rate(), Some(8_000_000.0));
        for _ in 0..101 {
            pass(&mut goodput, 100, 2_000_000);
        }
        assert_eq!(goodput.rate(), Some(2_000_000.0));
        assert!(goodput.rates.len() <= 2, "what can't become the best again is forgotten");
    }

    #[test]
    fn what_a_held_path_moves_is_not_taken_for_what_it_carries() {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        for second in 0..=60 {
            let bytes = if second == 0 { 0 } else { 8_000_000 + 1_000_000 * (second - 1) };
            goodput.read(now + Duration::from_secs(second), bytes, second > 1);
        }
        assert_eq!(goodput.rate(), Some(8_000_000.0));
        goodput.read(now + Duration::from_secs(61), 68_000_000, false);
        assert_eq!(goodput.rate(), Some(1_000_000.0));
    }

    #[test]
    fn bursts_between_close_readings_are_no_rate() {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        goodput.read(now, 0, false);
        goodput.read(now + Duration::from_millis(1), 1 << 20, false);
        assert_eq!(goodput.rate(), None);
    }
}
