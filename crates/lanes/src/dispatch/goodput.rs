//! What the path has been seen to carry.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Readings closer together than this say more of bursts than of the path: a thread that had no core for 20 ms reads
/// what came meanwhile in one go. Read over 20 ms, a path of 1 Gbit/s was once taken for one of 4.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Readings that lie further apart have a time between them in which nothing was under way.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// How long a rate is remembered: paths change.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Bulk that has found more of the path by less than this in so many readings has filled it, as BBR has it.
const GROWS: f64 = 1.25;
const FULL_AFTER: u32 = 3;

/// The best rate of one direction lately.
#[derive(Debug, Default)]
pub(super) struct Goodput {
    last: Option<(Instant, u64)>,
    /// When something got under way, before anything has been read.
    began: Option<Instant>,
    /// Rates that no later one has reached, the highest first.
    rates: VecDeque<(Instant, f64)>,
    /// Readings beside bulk since the rate grew.
    settled: u32,
    /// The last reading beside bulk.
    bulk: Option<(Instant, f64)>,
    cannot_be_read: bool,
}

/// What is under way while the path is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    /// Small requests only, which needn't fill the path.
    Small,
    /// Bulk, as fast as it goes.
    Bulk,
    /// Bulk that is held back.
    Held,
}

impl Goodput {
    /// Takes a reading of the bytes moved so far. While bulk is held back, what moves isn't what the path carries:
    /// forgetting the best rate then, bulk would be held to a part of a part of it.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, load: Load) {
        let Some((at, before)) = self.last else {
            self.last = Some((now, bytes));
            return;
        };
        let passed = now.saturating_duration_since(at);
        if passed < INTERVAL_MIN {
            return;
        }
        self.last = Some((now, bytes));
        if passed > INTERVAL_MAX {
            return;
        }
        let best = self.rate().unwrap_or_default();
        let rate = bytes.saturating_sub(before) as f64 / passed.as_secs_f64();
        if rate > best * GROWS {
            self.settled = 0;
        } else if load == Load::Bulk {
            self.settled = self.settled.saturating_add(1);
        }
        if load == Load::Bulk {
            self.bulk = Some((now, rate));
        }
        while self.rates.back().is_some_and(|(_, lower)| *lower <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((now, rate));
        let is_old = |(at, _): &(Instant, f64)| now.saturating_duration_since(*at) > REMEMBERED;
        while load != Load::Held && self.rates.front().is_some_and(is_old) {
            self.rates.pop_front();
        }
        if self.rate().unwrap_or_default() * GROWS < best {
            self.settled = 0;
        }
    }

    /// Takes note that what moves can't be read on this system: nothing is ever known of the path then, and nothing waits for
    /// a reading.
    pub(super) fn cannot_be_read(&mut self) {
        (self.cannot_be_read, self.began) = (true, None);
    }

    /// Whether the path may become known.
    pub(super) fn can_be_read(&self) -> bool {
        !self.cannot_be_read
    }

    /// Takes note that something is under way.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.can_be_read() {
            self.began.get_or_insert(now);
        }
    }

    /// When a reading says something again, once anything has [begun](Self::begin).
    pub(super) fn next_reading(&self) -> Option<Instant> {
        self.last.map(|(at, _)| at + INTERVAL_MIN).or(self.began)
    }

    /// The last rate that was read while bulk moved as fast as it could, and when.
    pub(super) fn bulk_reading(&self) -> Option<(Instant, f64)> {
        self.bulk
    }

    /// Whether bulk has filled the path, so that the rate is the path's.
    pub(super) fn is_full(&self) -> bool {
        self.settled >= FULL_AFTER
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
            goodput.read(now, bytes, Load::Bulk);
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
        assert!(!goodput.is_full(), "what it was taken for is not so any more");
        assert!(goodput.rates.len() <= 2, "what can't become the best again is forgotten");
    }

    #[test]
    fn what_a_held_path_moves_is_not_taken_for_what_it_carries() {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        for second in 0..=60 {
            let bytes = if second == 0 { 0 } else { 8_000_000 + 1_000_000 * (second - 1) };
            goodput.read(
                now + Duration::from_secs(second),
                bytes,
                if second > 1 { Load::Held } else { Load::Bulk },
            );
        }
        assert_eq!(goodput.rate(), Some(8_000_000.0));
        goodput.read(now + Duration::from_secs(61), 68_000_000, Load::Bulk);
        assert_eq!(goodput.rate(), Some(1_000_000.0));
    }

    #[test]
    fn a_path_is_full_when_bulk_finds_no_more_of_it_and_not_while_small_work_finds_none() {
        let (mut goodput, start) = (Goodput::default(), Instant::now());
        let (mut now, mut bytes) = (start, 0.0);
        let mut pass = |goodput: &mut Goodput, rate: f64, load| {
            goodput.read(now, bytes as u64, load);
            now += INTERVAL_MIN;
            bytes += rate * INTERVAL_MIN.as_secs_f64();
            goodput.is_full()
        };
        assert!(!(0..20).any(|_| pass(&mut goodput, 1e6, Load::Small)));
        let doubling = (0..8).map(|i| 2e6 * f64::from(1 << i));
        assert!(!doubling.into_iter().any(|rate| pass(&mut goodput, rate, Load::Bulk)));
        let full = (0..5).map(|_| pass(&mut goodput, 256e6, Load::Bulk)).collect::<Vec<_>>();
        assert_eq!(full, [false, false, false, true, true]);
    }

    #[test]
    fn idle_times_and_bursts_are_no_rates() {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        goodput.read(now, 0, Load::Bulk);
        goodput.read(now + Duration::from_millis(20), 10 << 20, Load::Bulk);
        assert_eq!(goodput.rate(), None);
        goodput.read(now + Duration::from_secs(60), 11 << 20, Load::Bulk);
        assert_eq!(goodput.rate(), None);
    }

    #[test]
    fn readings_are_asked_for_from_the_beginning_on() {
        let (mut goodput, now) = (Goodput::default(), Instant::now());
        assert_eq!(goodput.next_reading(), None);
        goodput.begin(now);
        assert_eq!(goodput.next_reading(), Some(now));
        goodput.read(now, 0, Load::Small);
        assert_eq!(goodput.next_reading(), Some(now + INTERVAL_MIN));
    }
}
