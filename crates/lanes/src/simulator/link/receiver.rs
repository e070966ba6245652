//! The receiving end of one direction of a connection. Its window and its acknowledgements work as in Linux.

use std::collections::{BTreeMap, VecDeque};

use super::sender::{BLOCKS, UnackedBurst};
use crate::dispatch::AttemptId;
use crate::simulator::network::{MSS, Nanos};

/// The first receive window: half of the 128 KiB of `tcp_rmem`.
const WINDOW_FIRST: u64 = 64 << 10;

/// The assumed bytes of the first round trip: the sender's initial window.
const MEASURED_FIRST: u64 = 10 * MSS;

/// The first acknowledgements, up to this number, are sent without delay. Later ones wait for a second segment.
const QUICK: u32 = 16;

/// The maximum delay of an acknowledgement.
pub(super) const DELAYED: Nanos = 40_000_000;

/// Bytes of a body. The connection carries chunks in order, each up to the position `ends`.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    attempt: AttemptId,
    ends: u64,
}

#[derive(Debug)]
pub(super) struct Receiver {
    chunks: VecDeque<Chunk>,
    /// `received` is the end of the bytes received without a gap. `beyond` has the blocks received after a gap. `read` is the end of the
    /// bytes that the program has read.
    received: u64,
    beyond: BTreeMap<u64, u64>,
    pub(super) read: u64,
    /// The start of the bytes that arrived last.
    latest: u64,
    /// The receive window and its maximum. `measured` is the largest number of bytes that were read in a round trip. The present round trip
    /// began at the time `began` and the position `began_at`.
    window: u64,
    window_max: u64,
    measured: u64,
    began: Nanos,
    began_at: u64,
    /// `unsaid` is the number of segments that weren't acknowledged yet. `quick` is the number of acknowledgements that will still be sent
    /// without delay. `said` is the number of acknowledgements sent so far.
    unsaid: u64,
    quick: u32,
    said: u64,
}

impl Receiver {
    /// Creates a receiver whose window grows to at most `window_max` bytes.
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

    /// Records that the sender's program has written bytes of a body, up to the position `ends`.
    pub(super) fn is_to_come(&mut self, attempt: AttemptId, ends: u64) {
        match self.chunks.back_mut().filter(|last| last.attempt == attempt) {
            Some(last) => last.ends = ends,
            None => self.chunks.push_back(Chunk { attempt, ends }),
        }
    }

    /// Receives segments. Returns whether to acknowledge them without delay.
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
        // Merge blocks that overlap or touch.
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

    /// Reads this many bytes, and calls `each` with the attempts to which they belong.
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

    /// Adjusts the window once per round trip, like `tcp_rcv_space_adjust` in Linux. If more bytes were read than in any earlier round
    /// trip, the window becomes more than twice as large as these bytes.
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

    /// Returns the end of the window, which the program may limit to `clamp` bytes.
    pub(super) fn edge(&self, clamp: Option<u64>) -> u64 {
        self.read + self.window.min(clamp.unwrap_or(u64::MAX))
    }

    /// Creates an acknowledgement: the end of the bytes received without a gap, the block that was received last, and the furthest other
    /// blocks.
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

    /// Returns the number of acknowledgements so far. A delayed acknowledgement is only sent if this number hasn't changed.
    pub(super) fn said(&self) -> u64 {
        self.said
    }

    pub(super) fn is_silent(&self) -> bool {
        self.unsaid > 0
    }
}
