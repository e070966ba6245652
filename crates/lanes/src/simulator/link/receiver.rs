//! The receiving end of one direction of a connection: its bytes, its window and its acknowledgements, as in Linux.

use std::collections::{BTreeMap, VecDeque};

use super::sender::{BLOCKS, UnackedBurst};
use crate::dispatch::AttemptId;
use crate::simulator::network::{MSS, Nanos};

/// Bytes that a receiver accepts at first beyond those that its program has read: half of the 128 KiB of `tcp_rmem`.
const WINDOW_FIRST: u64 = 64 << 10;

/// The first value of the measured bytes per round trip: the sender's first window.
const MEASURED_FIRST: u64 = 10 * MSS;

/// This many acknowledgements go at once. Later ones wait for a second segment.
const QUICK: u32 = 16;

/// The longest wait for it.
pub(super) const DELAYED: Nanos = 40_000_000;

/// Bytes of a body in the order in which the connection carries them.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    attempt: AttemptId,
    ends: u64,
}

#[derive(Debug)]
pub(super) struct Receiver {
    chunks: VecDeque<Chunk>,
    /// Bytes received without a gap, blocks beyond a gap, and bytes read.
    received: u64,
    beyond: BTreeMap<u64, u64>,
    pub(super) read: u64,
    /// The start of the latest bytes.
    latest: u64,
    /// Bytes that it accepts beyond those read, its limit, and the bytes measured in a round trip, with their begin.
    window: u64,
    window_max: u64,
    measured: u64,
    began: Nanos,
    began_at: u64,
    /// Segments not acknowledged yet, and the acknowledgements that still go at once.
    unsaid: u64,
    quick: u32,
    said: u64,
}

impl Receiver {
    /// A receiver that in time accepts at most `window_max` bytes beyond those that its program has read.
    pub(super) fn new(window_max: u64) -> Self {
        Self {
            chunks: VecDeque::new(),
            received: 0,
            beyond: BTreeMap::new(),
            read: 0,
            latest: 0,
            window: WINDOW_FIRST,
            window_max,
            measured: MEASURED_FIRST,
            began: 0,
            began_at: 0,
            unsaid: 0,
            quick: QUICK,
            said: 0,
        }
    }

    /// Takes note that the sender's program has written a body up to here.
    pub(super) fn is_to_come(&mut self, attempt: AttemptId, ends: u64) {
        match self.chunks.back_mut().filter(|last| last.attempt == attempt) {
            Some(last) => last.ends = ends,
            None => self.chunks.push_back(Chunk { attempt, ends }),
        }
    }

    /// Takes segments. Returns whether they are acknowledged at once.
    pub(super) fn arrives(&mut self, burst: UnackedBurst) -> bool {
        let (from, to) = (burst.from, burst.from + burst.bytes);
        self.unsaid += burst.segments();
        self.latest = from;
        if to <= self.received {
            return true;
        }
        let is_in_order = from <= self.received && self.beyond.is_empty();
        if is_in_order {
            self.received = to;
        } else {
            self.fills(from, to);
        }
        let is_quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        !is_in_order || is_quick || self.unsaid >= 2
    }

    fn fills(&mut self, mut from: u64, mut to: u64) {
        // Merges blocks that touch.
        while let Some((begins, ends)) = self.beyond.range(..=to).next_back().map(|(from, to)| (*from, *to))
            && ends >= from
        {
            self.beyond.remove(&begins);
            (from, to) = (from.min(begins), to.max(ends));
        }
        if from <= self.received {
            self.received = self.received.max(to);
        } else {
            self.beyond.insert(from, to);
        }
    }

    pub(super) fn unread(&self) -> u64 {
        self.received - self.read
    }

    /// Reads bytes, and calls `each` with their attempts.
    pub(super) fn read(&mut self, bytes: u64, mut each: impl FnMut(AttemptId, u64)) {
        let until = self.read + bytes;
        while self.read < until {
            let chunk = *self.chunks.front().expect("what was received was written");
            let end = chunk.ends.min(until);
            each(chunk.attempt, end - self.read);
            self.read = end;
            if end == chunk.ends {
                self.chunks.pop_front();
            }
        }
    }

    /// Once in a round trip, sets the window so that twice as many bytes may come in the next, and more if it has grown
    /// (`tcp_rcv_space_adjust`).
    pub(super) fn adjust(&mut self, now: Nanos, round_trip: Nanos) {
        if now < self.began + round_trip {
            return;
        }
        let copied = self.read - self.began_at;
        (self.began, self.began_at) = (now, self.read);
        if copied > self.measured {
            let twice = 2 * copied + 16 * MSS;
            let grown = twice as f64 * (copied - self.measured) as f64 / self.measured as f64;
            self.window = self.window.max((twice as f64 + 2.0 * grown) as u64).min(self.window_max);
            self.measured = copied;
        }
    }

    /// Returns the end of the accepted bytes, if its program limits the window to `clamp`.
    pub(super) fn edge(&self, clamp: Option<u64>) -> u64 {
        self.read + self.window.min(clamp.unwrap_or(u64::MAX))
    }

    /// Returns its acknowledgement: the bytes received without a gap, the latest block beyond a gap, and the furthest blocks.
    pub(super) fn says(&mut self) -> (u64, [(u64, u64); BLOCKS]) {
        (self.unsaid, self.said) = (0, self.said + 1);
        let mut blocks = [(0, 0); BLOCKS];
        if self.beyond.is_empty() {
            return (self.received, blocks);
        }
        let block = |(from, to): (&u64, &u64)| (*from, *to);
        let latest =
            self.beyond.range(..=self.latest).next_back().map(block).filter(|(_, to)| *to > self.latest);
        let furthest = self.beyond.iter().rev().map(block).filter(|block| Some(*block) != latest);
        for (place, block) in blocks.iter_mut().zip(latest.into_iter().chain(furthest)) {
            *place = block;
        }
        blocks.sort_unstable();
        (self.received, blocks)
    }

    /// Returns the number of acknowledgements so far. A delayed one compares it to see whether it is too late.
    pub(super) fn said(&self) -> u64 {
        self.said
    }

    pub(super) fn is_silent(&self) -> bool {
        self.unsaid > 0
    }
}
