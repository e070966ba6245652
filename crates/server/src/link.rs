//! The imitated path: how long bytes travel and how fast they can.
//!
//! [`Wire`] is the bottleneck that all connections share in one direction, with the queue in front of it; [`DelayLine`] the
//! bytes of one connection under way in one direction, and [`window`] how many those may be. All are pure: they are
//! handed the time and say when each byte is let out. `pump` carries them out on sockets.
//!
//! The queue drops nothing. It is kept short by its senders' windows, which come to equal shares within a round trip. A
//! receiver that doesn't read closes its sender's window; one that announces a smaller window than it could isn't noticed.
//! For loopback acknowledges at once, and its kernel tunes windows for a round trip of microseconds: what it announces
//! would most hold back those clients that leave their windows to the kernel.

pub(crate) mod pump;
pub(crate) mod unsent;
mod window;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use window::{SEGMENT, Window};

/// What a line holds at most where the bandwidth is unlimited: at an RTT of 50 ms enough for 640 MB/s in each
/// direction of each connection. Beyond it the sender is made to wait, like one whose window is closed.
const LINE_BYTES_MAX_UNLIMITED: usize = 16 << 20;
/// The bottleneck's queue holds what it sends in a round trip, as routers' queues are sized, and at least this.
const QUEUE_TIME_MIN: Duration = Duration::from_millis(5);
const QUEUE_BYTES_MIN: usize = 64 << 10;
/// Nobody's share is smaller: senders that are this many make the queue longer.
const SHARE_BYTES_MIN: usize = 4 * SEGMENT;

/// One direction's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// Half an RTT.
    pub(crate) delay: Duration,
    /// Bytes per second.
    pub(crate) bandwidth: Option<u64>,
}

impl Path {
    /// What all senders together may have on their way: what the path holds in a round trip, and its queue.
    fn bytes_max(&self) -> usize {
        let Some(rate) = self.bandwidth else { return LINE_BYTES_MAX_UNLIMITED };
        let bytes = |time: Duration| (rate as f64 * time.as_secs_f64()) as usize;
        let round_trip = 2 * self.delay;
        bytes(round_trip) + bytes(round_trip.max(QUEUE_TIME_MIN)).max(QUEUE_BYTES_MIN)
    }
}

/// The shared bandwidth: a queue in front of a link that sends one byte after the other. Times count from any fixed
/// moment.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    free_at: Duration,
    /// Who has bytes on their way, and until when these are acknowledged if their receiver takes them.
    until: HashMap<u64, Duration>,
    by_end: BTreeSet<(Duration, u64)>,
}

impl Wire {
    /// When the last of `len` bytes that `sender` sends at `now` has left.
    pub(crate) fn send(&mut self, now: Duration, sender: u64, len: usize, path: &Path) -> Duration {
        let Some(rate) = path.bandwidth else { return now };
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(len as f64 / rate as f64);
        let end = self.free_at + 2 * path.delay;
        if let Some(before) = self.until.insert(sender, end) {
            self.by_end.remove(&(before, sender));
        }
        self.by_end.insert((end, sender));
        self.free_at
    }

    /// How many bytes `sender` may have on their way at `now`. A sender whose receiver takes nothing has no share for long.
    pub(crate) fn share(&mut self, now: Duration, sender: u64, path: &Path) -> usize {
        if path.bandwidth.is_none() {
            return path.bytes_max();
        }
        while let Some((end, other)) = self.by_end.first().copied().filter(|(end, _)| *end <= now) {
            self.by_end.remove(&(end, other));
            self.until.remove(&other);
        }
        let senders = self.until.len() + usize::from(!self.until.contains_key(&sender));
        (path.bytes_max() / senders).max(SHARE_BYTES_MIN)
    }
}

/// The bytes under way, first in, first out.
#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: Duration,
    /// Added to the first bytes only, in the place of a handshake that loopback makes in no time.
    first_extra: Duration,
    last_release: Duration,
    under_way: VecDeque<(Duration, Item)>,
    window: Window,
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
            last_release: Duration::ZERO,
            under_way: VecDeque::new(),
            window: Window::new(path),
        }
    }

    /// Takes what has left the wire at `departed`.
    pub(crate) fn push(&mut self, departed: Duration, item: Item) {
        if let Item::Bytes(bytes) = &item {
            self.window.sent(bytes.len());
        }
        let release = departed + self.delay + std::mem::take(&mut self.first_extra);
        // Nothing overtakes: what came during an imitated handshake waits for it too.
        self.last_release = self.last_release.max(release);
        self.under_way.push_back((self.last_release, item));
    }

    /// How many bytes may be pushed at `now` by one whose share of the path is `share`.
    pub(crate) fn room(&mut self, now: Duration, share: usize) -> usize {
        self.window.room(now, share)
    }

    /// Takes note that `len` bytes that came out have been taken by their receiver at `now`. Says whether it is the only
    /// acknowledgement on its way.
    pub(crate) fn taken(&mut self, now: Duration, len: usize) -> bool {
        let first = self.next_acknowledgement().is_none();
        self.window.taken(now, len);
        first
    }

    /// When there may be more room than now.
    pub(crate) fn next_acknowledgement(&self) -> Option<Duration> {
        self.window.next_acknowledgement()
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
        self.under_way.pop_front().map(|(_, item)| item)
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
        let path = Path { delay: MS, bandwidth: Some(1_000_000) };
        assert_eq!(wire.send(Duration::ZERO, 1, 10_000, &path), 10 * MS);
        // Another connection's bytes queue behind these.
        assert_eq!(wire.send(Duration::ZERO, 2, 10_000, &path), 20 * MS);
        // An idle wire saves nothing up.
        assert_eq!(wire.send(100 * MS, 1, 10_000, &path), 110 * MS);
        assert_eq!(wire.send(5 * MS, 1, 1 << 30, &Path { bandwidth: None, ..path }), 5 * MS);
    }

    #[test]
    fn whoever_has_bytes_on_their_way_shares_the_path() {
        let (mut wire, path) = (Wire::default(), Path { delay: 10 * MS, bandwidth: Some(100_000_000) });
        assert_eq!(wire.share(Duration::ZERO, 1, &path), path.bytes_max());
        // Its own bytes take nothing away from its share.
        wire.send(Duration::ZERO, 1, 100_000, &path);
        assert_eq!(wire.share(Duration::ZERO, 1, &path), path.bytes_max());
        assert_eq!(wire.share(Duration::ZERO, 2, &path), path.bytes_max() / 2);
        wire.send(MS, 2, 100_000, &path);
        assert_eq!(wire.share(20 * MS, 1, &path), path.bytes_max() / 2);
        assert_eq!(wire.share(21 * MS, 2, &path), path.bytes_max(), "the first one's have been acknowledged");
        for other in 0..1000 {
            wire.send(30 * MS, other, 1, &path);
        }
        assert_eq!(wire.share(30 * MS, 1, &path), SHARE_BYTES_MIN);
    }

    #[test]
    fn a_path_holds_a_round_trip_and_its_queue_another() {
        let bytes_max = |delay, bandwidth| Path { delay, bandwidth }.bytes_max();
        assert_eq!(bytes_max(10 * MS, Some(125_000_000)), 5_000_000);
        assert_eq!(bytes_max(MS, Some(125_000_000)), 250_000 + 625_000);
        assert_eq!(bytes_max(Duration::ZERO, Some(1000)), QUEUE_BYTES_MIN);
        assert_eq!(bytes_max(MS, None), LINE_BYTES_MAX_UNLIMITED);
    }

    const WRITE_BYTES: usize = 16 << 10;

    /// Lets senders with so much each to send use a path for so long: how many bytes of each have arrived, and the longest
    /// that a byte waited in front of the wire once all windows had settled.
    fn fill(path: &Path, supply: &[usize], end: Duration) -> (Vec<usize>, Duration) {
        let settled = 50 * path.delay;
        let (mut wire, mut arrived) = (Wire::default(), vec![0; supply.len()]);
        let mut left = supply.to_vec();
        let mut lines: Vec<_> = supply.iter().map(|_| DelayLine::new(path, Duration::ZERO)).collect();
        let (mut now, mut waited_max) = (Duration::ZERO, Duration::ZERO);
        while now < end {
            for (n, line) in lines.iter_mut().enumerate() {
                while let Some(Item::Bytes(bytes)) = line.pop(now) {
                    line.taken(now, bytes.len());
                    arrived[n] += bytes.len();
                }
                loop {
                    let share = wire.share(now, n as u64, path);
                    let len = line.room(now, share).min(left[n]).min(WRITE_BYTES);
                    if len == 0 {
                        break;
                    }
                    let departed = wire.send(now, n as u64, len, path);
                    line.push(departed, bytes(len));
                    left[n] -= len;
                    if now > settled {
                        waited_max = waited_max.max(departed - now);
                    }
                }
            }
            let events = lines.iter().flat_map(|line| [line.next_release(), line.next_acknowledgement()]);
            let Some(next) = events.flatten().min() else { break };
            now = next;
        }
        (arrived, waited_max)
    }

    #[test]
    fn senders_share_a_full_wire_alike_and_wait_no_longer_than_its_queue() {
        let path = Path { delay: 10 * MS, bandwidth: Some(100_000_000) };
        for senders in [1, 3, 30] {
            let (arrived, waited) = fill(&path, &vec![usize::MAX / 2; senders], Duration::from_secs(2));
            let sum = arrived.iter().sum::<usize>() as f64 / 2.0;
            assert!((90e6..=100e6).contains(&sum), "{senders} senders: {sum}");
            let (least, most) = (arrived.iter().min().unwrap(), arrived.iter().max().unwrap());
            assert!(most - least <= most / 10, "{senders} senders: {least} to {most}");
            assert!(waited <= 25 * MS, "{senders} senders: {waited:?}");
        }
    }

    #[test]
    fn one_that_sends_little_waits_only_in_the_queue() {
        let path = Path { delay: 10 * MS, bandwidth: Some(100_000_000) };
        let mut supply = vec![usize::MAX / 2; 10];
        supply.push(100_000);
        let (arrived, _) = fill(&path, &supply, 200 * MS);
        assert_eq!(arrived[10], 100_000);
    }
}
