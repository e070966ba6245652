//! Decides how many bytes a [`Reader`](super::Reader) fetches before the program asks for them. After a jump
//! to another offset, the reader fetches few bytes. With each further read in order, it fetches more.

use std::ops::Range;

/// The minimum size in bytes of the first read, and of a read after a jump.
const FIRST: u64 = 128 << 10;

/// The minimum size in bytes of the first read if the program announced reads in order. One request then
/// fetches most small objects completely.
pub(super) const FIRST_IN_ORDER: u64 = 512 << 10;

/// Each read in order is this many times as large as the one before. After a read of 512 KiB, the next read
/// has 2 MiB. A read of this size uses a freight lane, so small requests of other calls go first.
const GROWTH: u64 = 4;

/// The maximum size in bytes of a read: two slices of 8 MiB.
const MOST: u64 = 16 << 20;

/// Behind a read in order into the program's own buffer, Laneway fetches at least a quarter (1/`BEHIND`) of
/// its bytes in advance, but at most [`MOST`].
const BEHIND: u64 = 4;

/// If reads have at least this many bytes, Laneway fetches the following bytes before the program asks for
/// them.
const EAGER: u64 = 2 << 20;

/// The maximum number of bytes that Laneway fetches in advance at the same time, for all readers together.
/// Another 64 MiB may have arrived and wait for the program. If more than four readers share this limit, each
/// fetches fewer bytes in advance, but at least [`EAGER`].
const TOGETHER: u64 = 64 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReadAhead {
    /// True if the program announced reads in order.
    in_order: bool,
    /// The size in bytes of the next read.
    window: u64,
    /// The offset at which the last read ended. If the next read begins there, it is a read in order.
    next: u64,
}

impl ReadAhead {
    /// Returns the state for an object whose first `here` bytes have already arrived.
    pub(super) fn new(in_order: bool, here: u64) -> Self {
        let window = if in_order { FIRST_IN_ORDER } else { FIRST };
        Self { in_order, window, next: here }
    }

    /// Returns the range to fetch when the program wants `len` bytes at `position` and none of them have
    /// arrived. `position` is before the object's end. `readers` is the number of readers that share
    /// [`TOGETHER`].
    pub(super) fn wanted(&mut self, position: u64, len: u64, size: u64, readers: usize) -> Range<u64> {
        match position == self.next && position > 0 {
            true => self.grow(readers),
            false => *self = Self::new(self.in_order, 0),
        }
        self.range(position, self.window.max(len), size)
    }

    /// Returns the range to fetch in advance when the program is at `position` and the bytes up to `end` have
    /// arrived. Returns `None` if it is too early for a fetch.
    pub(super) fn next(
        &mut self,
        position: u64,
        end: u64,
        size: u64,
        readers: impl FnOnce() -> usize,
    ) -> Option<Range<u64>> {
        let is_near = position <= end && end - position <= self.window / 2;
        let is_worth_it = self.next == end && end < size && (self.in_order || self.reads_on()) && is_near;
        is_worth_it.then(|| {
            self.grow(readers());
            self.range(end, self.window, size)
        })
    }

    /// Returns the range to fetch in advance behind `direct`, which the program reads into a buffer of its
    /// own. Returns `None` if this isn't a read in order, or the range is too short.
    pub(super) fn behind(&mut self, direct: &Range<u64>, size: u64, readers: usize) -> Option<Range<u64>> {
        let is_in_order = self.in_order || (direct.start == self.next && direct.start > 0);
        if !is_in_order {
            *self = Self::new(self.in_order, direct.end);
            return None;
        }
        let own = (direct.end - direct.start) / BEHIND;
        self.window = self.window.max(own / GROWTH);
        self.grow(readers);
        self.next = direct.end;
        (self.reads_on() && direct.end < size).then(|| self.range(direct.end, self.window, size))
    }

    /// Returns whether this reader's reads are so large that it shares [`TOGETHER`] with other readers.
    pub(super) fn reads_on(&self) -> bool {
        self.window >= EAGER
    }

    fn grow(&mut self, readers: usize) {
        let share = TOGETHER / readers.max(1) as u64;
        self.window = (self.window * GROWTH).min(share.clamp(EAGER, MOST));
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

    /// Returns the sizes in KiB of a reader's next six reads, if `readers` readers share the limit.
    fn windows(mut ahead: ReadAhead, mut at: u64, readers: usize) -> [u64; 6] {
        std::array::from_fn(|_| {
            let range = ahead.wanted(at, 4096, SIZE, readers);
            assert_eq!(range.start, at);
            at = range.end;
            (range.end - range.start) >> 10
        })
    }

    #[test]
    fn who_reads_on_is_given_four_times_as_much_each_time_up_to_a_bound() {
        let unknown = ReadAhead::new(false, 0);
        assert_eq!(windows(unknown, 0, 1), [128, 512, 2048, 8192, 16384, 16384]);
        let in_order = ReadAhead::new(true, 0);
        assert_eq!(windows(in_order, 0, 1), [512, 2048, 8192, 16384, 16384, 16384]);
        let opened = ReadAhead::new(true, FIRST_IN_ORDER);
        assert_eq!(windows(opened, FIRST_IN_ORDER, 1)[..3], [2048, 8192, 16384]);
    }

    #[test]
    fn many_readers_share_what_four_have() {
        for (readers, most) in [(0, 16384), (4, 16384), (5, 13107), (16, 4096), (32, 2048), (1000, 2048)] {
            assert_eq!(windows(ReadAhead::new(true, 0), 0, readers)[5], most, "{readers} readers");
        }
    }

    #[test]
    fn who_jumps_is_given_little_again_and_never_less_than_was_asked_for() {
        let mut ahead = ReadAhead::new(false, 0);
        let first = ahead.wanted(0, 10, SIZE, 1);
        assert!(ahead.wanted(first.end, 10, SIZE, 1).end > first.end + FIRST);
        assert_eq!(ahead.wanted(700 << 20, 10, SIZE, 1), (700 << 20)..(700 << 20) + FIRST);
        assert!(!ahead.reads_on());
        assert_eq!(ahead.wanted(5, 3 << 20, SIZE, 1), 5..5 + (3 << 20));
        assert_eq!(ahead.wanted(SIZE - 7, 4096, SIZE, 1), SIZE - 7..SIZE);
    }

    #[test]
    fn a_long_read_in_order_fetches_the_next_bytes_after_half() {
        let mut ahead = ReadAhead::new(false, 0);
        let mut at = 0;
        for _ in 0..2 {
            let range = ahead.wanted(at, 10, SIZE, 1);
            assert_eq!(ahead.next(range.end - 1, range.end, SIZE, || 1), None, "too little to fetch");
            at = range.end;
        }
        let range = ahead.wanted(at, 10, SIZE, 1);
        assert_eq!(range.end - range.start, EAGER);
        assert!(ahead.reads_on());
        assert_eq!(ahead.next(range.start, range.end, SIZE, || 1), None, "half of the last read is left");
        let ended = range.end + GROWTH * EAGER;
        assert_eq!(ahead.next(range.end - EAGER / 2, range.end, SIZE, || 1), Some(range.end..ended));
        assert_eq!(ahead.next(range.end, range.end, SIZE, || 1), None, "the next read is on its way");
        assert_eq!(ahead.next(SIZE - 1, SIZE, SIZE, || 1), None);
        assert_eq!(ahead.next(ended + 5, ended, SIZE, || 1), None, "its bytes had arrived before");
    }

    #[test]
    fn a_quarter_of_a_direct_read_in_order_is_fetched_behind_it() {
        let mut ahead = ReadAhead::new(false, 0);
        let header = ahead.wanted(7, 30, SIZE, 1);
        let data = header.end..header.end + (32 << 20);
        assert_eq!(ahead.behind(&data, SIZE, 1), Some(data.end..data.end + (8 << 20)));
        let next = data.end + (8 << 20)..data.end + (256 << 20);
        assert_eq!(ahead.behind(&next, SIZE, 1), Some(next.end..next.end + MOST), "there is a bound");
        assert_eq!(ahead.behind(&(5..5 + (64 << 20)), SIZE, 1), None, "a jump");
        let short = 5 + (64 << 20)..5 + (66 << 20);
        assert_eq!(ahead.behind(&short, SIZE, 1), None, "half a MiB is too little");
        let end = short.end..SIZE;
        assert_eq!(ahead.behind(&end, SIZE, 1), None, "nothing is left");
        let small = &mut ReadAhead::new(true, 0);
        assert_eq!(small.behind(&(0..2 << 20), SIZE, 1), Some(2 << 20..4 << 20), "announced");
    }

    #[test]
    fn an_announced_read_in_order_fetches_ahead_from_the_start() {
        let mut ahead = ReadAhead::new(true, FIRST_IN_ORDER);
        assert_eq!(ahead.next(10, FIRST_IN_ORDER, SIZE, || 1), None, "half of the last read is left");
        let next = ahead.next(FIRST_IN_ORDER / 2, FIRST_IN_ORDER, SIZE, || 1);
        assert_eq!(next, Some(FIRST_IN_ORDER..5 * FIRST_IN_ORDER));
        let small = &mut ReadAhead::new(true, 1000);
        assert_eq!(small.next(600, 1000, 1000, || 1), None);
    }
}
