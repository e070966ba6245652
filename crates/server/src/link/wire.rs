//! The bottleneck that all connections share in one direction: a finite queue, and a wire that sends one byte after the
//! other. Bytes that arrive while the queue is full are dropped, and packets are lost at random.

use std::time::Duration;

use super::LinkPath;
use super::window::SEGMENT;

/// The queue may hold additional bytes, as many as the wire sends in this time. The reason is that timers may be a
/// millisecond late. Bytes then arrive together, although they would have reached a real queue one after the other.
const TIMER_LATE: Duration = Duration::from_millis(1);

/// The wire of one direction. Its times are measured from any fixed moment.
#[derive(Debug)]
pub(crate) struct Wire {
    path: LinkPath,
    free_at: Duration,
    /// The number of segments until the next random loss.
    until_lost: u64,
    random: u64,
    /// The number of segments that didn't reach the other side, because the queue was full or because of a random loss.
    /// Each of these segments is sent again.
    lost: u64,
}

/// The fate of consecutive bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transit {
    /// They are sent. The last of them leaves the wire at this time.
    Departs(Duration),
    /// They are lost. Their sender learns of it at this time, when the acknowledgement of bytes sent with them would
    /// arrive.
    Lost(Duration),
}

impl Wire {
    /// Returns a wire. `seed` determines the random losses.
    pub(crate) fn new(path: LinkPath, seed: u64) -> Wire {
        let mut wire = Wire { path, free_at: Duration::ZERO, until_lost: u64::MAX, random: seed, lost: 0 };
        wire.draw();
        wire
    }

    /// Sends `len` bytes at `now`. For each sequence of segments with the same fate, calls `run` with the number of
    /// bytes and the fate.
    pub(super) fn send(&mut self, now: Duration, len: usize, mut run: impl FnMut(usize, Transit)) {
        let mut left = len;
        while left > 0 {
            let room = self.room(now);
            let passes = (left.div_ceil(SEGMENT) as u64).min(room).min(self.until_lost);
            let (bytes, fate) = if passes > 0 {
                self.until_lost -= passes;
                let bytes = left.min(passes as usize * SEGMENT);
                (bytes, Transit::Departs(self.pass(now, bytes)))
            } else {
                let known = self.free_at.max(now) + 2 * self.path.delay;
                // If the queue is full, all the remaining bytes are dropped.
                let bytes = if room == 0 { left } else { left.min(SEGMENT) };
                self.lost += bytes.div_ceil(SEGMENT) as u64;
                if room > 0 {
                    self.draw();
                }
                (bytes, Transit::Lost(known))
            };
            run(bytes, fate);
            left -= bytes;
        }
    }

    /// Returns the number of segments lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Loses only the packet that follows this many others.
    #[cfg(test)]
    pub(super) fn lose_after(&mut self, segments: u64) {
        self.until_lost = segments;
    }

    /// Returns the time that bytes sent at `now` wait in the queue.
    #[cfg(test)]
    pub(super) fn wait(&self, now: Duration) -> Duration {
        self.free_at.saturating_sub(now)
    }

    fn pass(&mut self, now: Duration, bytes: usize) -> Duration {
        let Some(rate) = self.path.bandwidth else { return now };
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.free_at
    }

    /// Returns the number of segments for which the queue has room. If the wire is free, one segment always fits, even
    /// with a queue of length zero.
    fn room(&self, now: Duration) -> u64 {
        let Some(rate) = self.path.bandwidth else { return u64::MAX };
        let bytes = |time: Duration| (time.as_nanos() * u128::from(rate) / 1_000_000_000) as usize;
        let waits = self.free_at.saturating_sub(now);
        let room = (self.path.queue.saturating_add(bytes(TIMER_LATE))).saturating_sub(bytes(waits));
        ((room / SEGMENT) as u64).max(u64::from(waits.is_zero()))
    }

    /// Draws the number of segments until the next loss.
    fn draw(&mut self) {
        self.until_lost = u64::MAX;
        if self.path.loss <= 0.0 {
            return;
        }
        // The random numbers come from SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let uniform = ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        self.until_lost = (uniform.ln() / (1.0 - self.path.loss).ln()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PATH: LinkPath = LinkPath { delay: MS, bandwidth: Some(1_448_000), queue: 20 * SEGMENT, loss: 0.0 };

    fn fates(wire: &mut Wire, now: Duration, segments: usize) -> Vec<(usize, Transit)> {
        let mut fates = Vec::new();
        wire.send(now, segments * SEGMENT, |bytes, fate| fates.push((bytes / SEGMENT, fate)));
        fates
    }

    #[test]
    fn all_connections_are_served_in_turn_and_an_idle_wire_saves_nothing_up() {
        let mut wire = Wire::new(PATH, 1);
        assert_eq!(fates(&mut wire, Duration::ZERO, 10), [(10, Transit::Departs(10 * MS))]);
        // Another connection's bytes queue behind these.
        assert_eq!(fates(&mut wire, Duration::ZERO, 5), [(5, Transit::Departs(15 * MS))]);
        assert_eq!(fates(&mut wire, 100 * MS, 10), [(10, Transit::Departs(110 * MS))]);
        let mut unlimited = Wire::new(LinkPath { bandwidth: None, ..PATH }, 1);
        assert_eq!(fates(&mut unlimited, 5 * MS, 1000), [(1000, Transit::Departs(5 * MS))]);
    }

    #[test]
    fn what_finds_the_queue_full_is_dropped() {
        let mut wire = Wire::new(PATH, 1);
        let sent = fates(&mut wire, Duration::ZERO, 30);
        // Twenty segments wait, and one more because timers may be late. The sender learns that the others were dropped
        // when the last segment in the queue has been acknowledged.
        assert_eq!(sent, [(21, Transit::Departs(21 * MS)), (9, Transit::Lost(23 * MS))]);
        assert_eq!(fates(&mut wire, 11 * MS, 30)[0], (11, Transit::Departs(32 * MS)));
        let mut short = Wire::new(LinkPath { queue: 0, ..PATH }, 1);
        assert_eq!(fates(&mut short, Duration::ZERO, 2)[0], (1, Transit::Departs(MS)));
    }

    #[test]
    fn packets_are_lost_by_chance_as_often_as_is_said() {
        let mut wire = Wire::new(LinkPath { bandwidth: None, loss: 0.01, ..PATH }, 7);
        let (mut lost, mut all) = (0, 0);
        for _ in 0..1000 {
            for (segments, fate) in fates(&mut wire, Duration::ZERO, 100) {
                all += segments;
                lost += if matches!(fate, Transit::Lost(_)) { segments } else { 0 };
            }
        }
        assert_eq!(all, 100_000);
        assert!((800..1200).contains(&lost), "{lost}");
    }
}
