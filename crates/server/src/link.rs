//! The imitated path: how long bytes travel and how fast they can.
//!
//! [`Wire`] is the bandwidth that all connections share in one direction, [`DelayLine`] the bytes of one connection
//! under way in one direction. Both are pure: they are handed the time and say when each byte is let out.
//! `pump` carries them out on sockets.

pub(crate) mod pump;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

/// What a line holds at most where the bandwidth is unlimited: at an RTT of 50 ms enough for 640 MB/s in each
/// direction of each connection. Beyond it the sender is made to wait, like one whose window is closed.
const LINE_BYTES_MAX_UNLIMITED: usize = 16 << 20;
/// The least that a line holds, so that a slow or short path still takes whole writes.
const LINE_BYTES_MIN: usize = 256 << 10;

/// One direction's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// Half an RTT.
    pub(crate) delay: Duration,
    /// Bytes per second.
    pub(crate) bandwidth: Option<u64>,
}

impl Path {
    /// What one line may hold: twice the bandwidth-delay product of the round trip, so that the path stays full
    /// while acknowledgements travel.
    pub(crate) fn line_bytes_max(&self) -> usize {
        match self.bandwidth {
            Some(rate) => {
                let product = rate as f64 * self.delay.as_secs_f64() * 2.0;
                ((2.0 * product) as usize).clamp(LINE_BYTES_MIN, 64 << 20)
            }
            None => LINE_BYTES_MAX_UNLIMITED,
        }
    }
}

/// The shared bandwidth: a queue in front of a link that sends one byte after the other. Times count from any fixed
/// moment.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    free_at: Duration,
}

impl Wire {
    /// When the last of `len` bytes that arrive at `now` has left.
    pub(crate) fn send(&mut self, now: Duration, len: usize, bandwidth: Option<u64>) -> Duration {
        let Some(rate) = bandwidth else { return now };
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(len as f64 / rate as f64);
        self.free_at
    }
}

/// The bytes under way, first in, first out.
#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: Duration,
    /// Added to the first bytes only, in the place of a handshake that loopback makes in no time.
    first_extra: Duration,
    bytes_max: usize,
    bytes: usize,
    last_release: Duration,
    under_way: VecDeque<(Duration, Item)>,
}

/// What travels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Bytes(Bytes),
    /// The end of the stream, which travels like bytes do.
    End,
}

impl DelayLine {
    pub(crate) fn new(path: &Path, first_extra: Duration) -> DelayLine {
        DelayLine {
            delay: path.delay,
            first_extra,
            bytes_max: path.line_bytes_max(),
            bytes: 0,
            last_release: Duration::ZERO,
            under_way: VecDeque::new(),
        }
    }

    /// How many bytes may be pushed now.
    pub(crate) fn room(&self) -> usize {
        self.bytes_max.saturating_sub(self.bytes)
    }

    /// Takes what has left the wire at `departed`.
    pub(crate) fn push(&mut self, departed: Duration, item: Item) {
        if let Item::Bytes(bytes) = &item {
            self.bytes += bytes.len();
        }
        let release = departed + self.delay + std::mem::take(&mut self.first_extra);
        // Nothing overtakes: what came during an imitated handshake waits for it too.
        self.last_release = self.last_release.max(release);
        self.under_way.push_back((self.last_release, item));
    }

    /// When the next item comes out.
    pub(crate) fn next_release(&self) -> Option<Duration> {
        self.under_way.front().map(|(release, _)| *release)
    }

    /// The next item that has arrived by `now`.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<Item> {
        if self.next_release()? > now {
            return None;
        }
        let (_, item) = self.under_way.pop_front()?;
        if let Item::Bytes(bytes) = &item {
            self.bytes -= bytes.len();
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn bytes(len: usize) -> Item {
        Item::Bytes(vec![0; len].into())
    }

    #[test]
    fn a_flight_arrives_half_a_round_trip_later_and_whole() {
        let path = Path { delay: 25 * MS, bandwidth: None };
        let mut line = DelayLine::new(&path, Duration::ZERO);
        for _ in 0..3 {
            line.push(10 * MS, bytes(100));
        }
        assert_eq!(line.next_release(), Some(35 * MS));
        assert_eq!(line.pop(34 * MS), None);
        // Throughput is not reduced: everything sent at once arrives at once.
        assert_eq!((0..4).filter(|_| line.pop(35 * MS).is_some()).count(), 3);
    }

    #[test]
    fn the_first_bytes_wait_for_the_imitated_handshake_and_nothing_overtakes_them() {
        let path = Path { delay: 25 * MS, bandwidth: None };
        let mut line = DelayLine::new(&path, 50 * MS);
        line.push(Duration::ZERO, bytes(1));
        line.push(10 * MS, bytes(2));
        line.push(60 * MS, bytes(3));
        let releases: Vec<_> = line.under_way.iter().map(|(release, _)| *release).collect();
        assert_eq!(releases, [75 * MS, 75 * MS, 85 * MS]);
    }

    #[test]
    fn a_shared_wire_serves_all_connections_in_turn() {
        let mut wire = Wire::default();
        let rate = Some(1_000_000);
        assert_eq!(wire.send(Duration::ZERO, 10_000, rate), 10 * MS);
        // Another connection's bytes queue behind these.
        assert_eq!(wire.send(Duration::ZERO, 10_000, rate), 20 * MS);
        // An idle wire saves nothing up.
        assert_eq!(wire.send(100 * MS, 10_000, rate), 110 * MS);
        assert_eq!(wire.send(5 * MS, 1 << 30, None), 5 * MS);
    }

    #[test]
    fn a_full_line_has_no_room_until_bytes_come_out() {
        let path = Path { delay: MS, bandwidth: Some(1000) };
        let mut line = DelayLine::new(&path, Duration::ZERO);
        let all = line.room();
        assert_eq!(all, LINE_BYTES_MIN);
        line.push(Duration::ZERO, bytes(all));
        assert_eq!(line.room(), 0);
        line.push(Duration::ZERO, Item::End);
        assert!(line.pop(MS).is_some());
        assert_eq!(line.room(), all);
        assert_eq!(line.pop(MS), Some(Item::End));
    }

    #[test]
    fn a_line_holds_twice_the_bandwidth_delay_product() {
        let path = Path { delay: 25 * MS, bandwidth: Some(125_000_000) };
        assert_eq!(path.line_bytes_max(), 12_500_000);
    }

    #[test]
    fn a_gigabyte_through_the_line_takes_its_time_on_the_wire_and_one_delay() {
        let path = Path { delay: 25 * MS, bandwidth: Some(100_000_000) };
        let (mut wire, mut line) = (Wire::default(), DelayLine::new(&path, Duration::ZERO));
        let (mut now, mut sent, mut arrived) = (Duration::ZERO, 0, 0);
        while arrived < 1_000_000_000 {
            while line.room() >= 64_000 && sent < 1_000_000_000 {
                let departed = wire.send(now, 64_000, path.bandwidth);
                line.push(departed, bytes(64_000));
                sent += 64_000;
            }
            now = line.next_release().unwrap();
            while let Some(Item::Bytes(bytes)) = line.pop(now) {
                arrived += bytes.len();
            }
        }
        let seconds = now.as_secs_f64();
        assert!((10.0..10.05).contains(&seconds), "{seconds}");
    }
}
