//! Large buffers that a thread's connections take in turn.

use std::cell::RefCell;

/// Bytes that are read, or gathered, at a time: few enough to stay in a core's second-level cache until they are written. A GiB over TLS on
/// loopback into a memory-backed file took 1.23 s of CPU by records of 16 KiB and 1.14 s by 64 KiB. By 128 KiB it took 1.03 s, by 256 KiB
/// 0.98 s and by 1 MiB 1.05 s.
pub(super) const SIZE: usize = 256 * 1024;

/// Buffers that a thread keeps for the next connection: as many as one needs at a time.
const SPARE_MAX: usize = 2;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes on their way through a connection. The connection has their buffer only until they are consumed. Hundreds of idle lanes hold none,
/// and the busy ones of a thread share one that is still in its cache.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Empty while the connection has no buffer.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Held {
    /// Returns what has not been consumed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn is_full(&self) -> bool {
        self.end == SIZE
    }

    /// Where the next bytes go. [`filled`](Self::filled) has to be told afterwards, also when none came.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
            self.buffer = spare.unwrap_or_else(|| vec![0; SIZE].into());
        }
        &mut self.buffer[self.end..]
    }

    /// Takes note that the room's first `amount` bytes were filled.
    pub(super) fn filled(&mut self, amount: usize) {
        self.end += amount;
        self.consume(0);
    }

    pub(super) fn consume(&mut self, amount: usize) {
        self.start += amount;
        if self.is_empty() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        (self.start, self.end) = (0, 0);
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return;
        }
        // A thread that ends has no spare buffers any more.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(buffer);
            }
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Returns how many buffers this thread has to lend.
#[cfg(test)]
pub(super) fn spares() -> usize {
    SPARE.with(|spare| spare.borrow().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_lent_until_its_bytes_are_consumed() {
        let (mut one, mut other) = (Held::default(), Held::default());
        one.room()[..3].copy_from_slice(b"abc");
        one.filled(3);
        one.consume(2);
        assert_eq!((one.bytes(), spares()), (&b"c"[..], 0));
        one.consume(1);
        assert_eq!(spares(), 1);
        assert_eq!(other.room().len(), SIZE);
        assert_eq!(spares(), 0);
        other.filled(0);
        assert_eq!(spares(), 1);
    }

    #[test]
    fn a_connection_that_ends_gives_its_buffer_back_and_few_are_kept() {
        let mut held: Vec<Held> = (0..10).map(|_| Held::default()).collect();
        for one in &mut held {
            one.room()[0] = 1;
            one.filled(1);
        }
        drop(held);
        assert_eq!(spares(), SPARE_MAX);
    }

    #[test]
    fn more_goes_behind_what_is_there_until_it_is_full() {
        let mut held = Held::default();
        for byte in *b"ab" {
            held.room()[0] = byte;
            held.filled(1);
        }
        assert_eq!(held.bytes(), b"ab");
        let room = held.room().len();
        assert_eq!(room, SIZE - 2);
        held.filled(room);
        assert!(held.is_full() && held.room().is_empty());
    }
}
