//! How much is read ahead of a reader: nothing of one that jumps about, more and more of one that reads on and on.

use std::ops::Range;

/// What is read at first, and after a jump, where less is asked for.
const FIRST: u64 = 128 << 10;

/// The most that is read at a time: two slices of bulk.
const MOST: u64 = 16 << 20;

/// From this size on the next bytes are fetched before they are asked for.
const EAGER: u64 = 1 << 20;

/// The state of one reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReadAhead {
    /// How much is read at a time.
    window: u64,
    /// Where a reader that reads on goes on.
    next: u64,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { window: FIRST, next: 0 }
    }
}

impl ReadAhead {
    /// What to read for a reader that wants `len` bytes at `position`, before the end, and finds none of them here.
    pub(super) fn wanted(&mut self, position: u64, len: u64, size: u64) -> Range<u64> {
        self.window = match position == self.next && position > 0 {
            true => (self.window * 2).min(MOST),
            false => FIRST,
        };
        self.range(position, self.window.max(len), size)
    }

    /// What to begin to fetch for a reader that is at `position` and has everything up to `end`.
    pub(super) fn next(&mut self, position: u64, end: u64, size: u64) -> Option<Range<u64>> {
        let is_near = position <= end && end - position <= self.window / 2;
        let is_worth_it = self.next == end && end < size && self.window >= EAGER && is_near;
        is_worth_it.then(|| {
            self.window = (self.window * 2).min(MOST);
            self.range(end, self.window, size)
        })
    }

    fn range(&mut self, start: u64, len: u64, size: u64) -> Range<u64> {
        self.next = start.saturating_add(len).min(size);
        start..self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;

    #[test]
    fn who_reads_on_is_given_twice_as_much_each_time_up_to_a_bound() {
        let (mut ahead, mut at, mut lens) = (ReadAhead::default(), 0, Vec::new());
        for _ in 0..10 {
            let range = ahead.wanted(at, 4096, SIZE);
            assert_eq!(range.start, at);
            lens.push((range.end - range.start) >> 10);
            at = range.end;
        }
        assert_eq!(lens, [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 16384, 16384]);
    }

    #[test]
    fn who_jumps_is_given_little_again_and_never_less_than_was_asked_for() {
        let mut ahead = ReadAhead::default();
        let first = ahead.wanted(0, 10, SIZE);
        assert!(ahead.wanted(first.end, 10, SIZE).end > first.end + FIRST);
        assert_eq!(ahead.wanted(700 << 20, 10, SIZE), (700 << 20)..(700 << 20) + FIRST);
        assert_eq!(ahead.wanted(5, 3 << 20, SIZE), 5..5 + (3 << 20));
        assert_eq!(ahead.wanted(SIZE - 7, 4096, SIZE), SIZE - 7..SIZE);
    }

    #[test]
    fn the_next_bytes_are_fetched_once_half_is_read_by_who_has_read_on_for_long() {
        let mut ahead = ReadAhead::default();
        let mut at = 0;
        for _ in 0..3 {
            let range = ahead.wanted(at, 10, SIZE);
            assert_eq!(ahead.next(range.end - 1, range.end, SIZE), None, "too little to pay");
            at = range.end;
        }
        let range = ahead.wanted(at, 10, SIZE);
        assert_eq!(range.end - range.start, EAGER);
        assert_eq!(ahead.next(range.start, range.end, SIZE), None, "half of it is not read yet");
        assert_eq!(
            ahead.next(range.end - EAGER / 2, range.end, SIZE),
            Some(range.end..range.end + 2 * EAGER)
        );
        assert_eq!(ahead.next(range.end, range.end, SIZE), None, "it is on its way");
        assert_eq!(ahead.next(SIZE - 1, SIZE, SIZE), None);
        let ended = range.end + 2 * EAGER;
        assert_eq!(ahead.next(ended + 5, ended, SIZE), None, "what it reads was here before");
    }
}
