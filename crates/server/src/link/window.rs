//! What one sender may have on its way.
//!
//! Like TCP's congestion window it begins with ten segments and doubles with each round trip, and like that it is not used up
//! by senders that have little to send. It ends at a fair share of what the path and its queue hold, where real ones
//! meet by losing packets or by measuring.

use std::collections::VecDeque;
use std::time::Duration;

use super::Path;

/// What one packet carries, in bytes: Ethernet's 1500 without headers and timestamps.
pub(super) const SEGMENT: usize = 1448;
/// RFC 6928.
const INITIAL: usize = 10 * SEGMENT;

#[derive(Debug)]
pub(super) struct Window {
    bytes: usize,
    bytes_max: usize,
    /// Sent, and not known to have arrived.
    in_flight: usize,
    /// How long an acknowledgement travels.
    delay: Duration,
    acknowledgements: VecDeque<(Duration, usize)>,
}

impl Window {
    pub(super) fn new(path: &Path) -> Window {
        let limited = path.bandwidth.is_some();
        Window {
            // Without a bottleneck there is nothing to find out, and only the line's length holds a sender back.
            bytes: if limited { INITIAL } else { usize::MAX },
            bytes_max: path.bytes_max(),
            in_flight: 0,
            delay: if limited { path.delay } else { Duration::ZERO },
            acknowledgements: VecDeque::new(),
        }
    }

    /// How many bytes may be sent at `now` by one whose share of the path is `share`: none or at least a segment, so that
    /// a full window is not filled up with crumbs.
    pub(super) fn room(&mut self, now: Duration, share: usize) -> usize {
        while let Some((_, len)) = self.acknowledgements.front().copied().filter(|(at, _)| *at <= now) {
            self.acknowledgements.pop_front();
            // One that is not used says nothing about the path.
            if self.bytes < 2 * self.in_flight {
                self.bytes = (self.bytes + len).min(self.bytes_max);
            }
            self.in_flight -= len;
        }
        let room = self.bytes.min(share).saturating_sub(self.in_flight);
        if room < SEGMENT { 0 } else { room }
    }

    pub(super) fn sent(&mut self, len: usize) {
        self.in_flight += len;
    }

    /// The receiver has taken `len` bytes at `now`. Until then they keep the window closed, like one whose buffer is full.
    pub(super) fn taken(&mut self, now: Duration, len: usize) {
        self.acknowledgements.push_back((now + self.delay, len));
    }

    /// When the next acknowledgement comes.
    pub(super) fn next_acknowledgement(&self) -> Option<Duration> {
        self.acknowledgements.front().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PATH: Path = Path { delay: Duration::from_millis(10), bandwidth: Some(125_000_000) };

    /// What it sends in each of so many round trips, everything at their beginnings.
    fn flights(window: &mut Window, share: usize, rounds: u32) -> Vec<usize> {
        let round = |n| {
            let len = window.room(n * 20 * MS, share);
            window.sent(len);
            window.taken(n * 20 * MS + PATH.delay, len);
            len
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn it_doubles_with_each_round_trip_up_to_the_share() {
        let share = 50 * SEGMENT;
        let sent = flights(&mut Window::new(&PATH), share, 5);
        assert_eq!(sent, [INITIAL, 2 * INITIAL, 4 * INITIAL, share, share]);
    }

    #[test]
    fn a_share_that_shrinks_is_waited_for() {
        let mut window = Window::new(&PATH);
        flights(&mut window, 100 * SEGMENT, 6);
        let len = window.room(120 * MS, 100 * SEGMENT);
        window.sent(len);
        assert_eq!(window.room(121 * MS, 50 * SEGMENT), 0);
        window.taken(130 * MS, len);
        assert_eq!(window.next_acknowledgement(), Some(140 * MS));
        assert_eq!(window.room(139 * MS, 50 * SEGMENT), 0);
        assert_eq!(window.room(140 * MS, 50 * SEGMENT), 50 * SEGMENT);
    }

    #[test]
    fn a_receiver_that_takes_nothing_closes_it() {
        let mut window = Window::new(&PATH);
        window.sent(INITIAL);
        assert_eq!(window.room(Duration::from_secs(60), usize::MAX), 0);
        assert_eq!(window.next_acknowledgement(), None);
        window.taken(Duration::from_secs(60), INITIAL);
        assert!(window.room(Duration::from_secs(61), usize::MAX) > INITIAL);
    }

    #[test]
    fn one_that_is_not_used_does_not_grow() {
        let mut window = Window::new(&PATH);
        for n in 0..100 {
            assert_eq!(window.room(n * 20 * MS, usize::MAX), INITIAL);
            window.sent(100);
            window.taken(n * 20 * MS + PATH.delay, 100);
        }
    }

    #[test]
    fn without_a_bandwidth_the_line_alone_is_the_limit() {
        let path = Path { bandwidth: None, ..PATH };
        let mut window = Window::new(&path);
        let all = path.bytes_max();
        assert_eq!(window.room(Duration::ZERO, all), all);
        window.sent(all);
        assert_eq!(window.room(Duration::ZERO, all), 0);
        window.taken(MS, all);
        assert_eq!(window.room(MS, all), all);
    }
}
