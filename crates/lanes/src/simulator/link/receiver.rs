//! The receiving end of one direction of a connection: what it has, how much it takes and when it says so, as Linux does.

use std::collections::{BTreeMap, VecDeque};

use super::sender::{BLOCKS, UnackedBurst};
use crate::dispatch::AttemptId;
use crate::simulator::network::{MSS, Nanos};

/// Bytes that a receiver takes at first beyond what its program has read: half of `tcp_rmem`'s 128 KiB.
const WINDOW_FIRST: u64 = 64 << 10;

/// Bytes that it begins to measure with: the sender's first window.
const MEASURED_FIRST: u64 = 10 * MSS;

/// So many acknowledgements go at once before any waits for a second segment.
const QUICK: u32 = 16;

/// For how long it waits.
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
    /// Without a gap, beyond one, and read.
    received: u64,
    beyond: BTreeMap<u64, u64>,
    pub(super) read: u64,
    /// Where what came last begins.
    latest: u64,
    /// Bytes that it takes beyond what is read, and those seen in a round trip, since when and from where.
    window: u64,
    window_max: u64,
    measured: u64,
    began: Nanos,
    began_at: u64,
    /// Segments that nothing was said of, and acknowledgements that still go at once.
    unsaid: u64,
    quick: u32,
    said: u64,
}

impl Receiver {
    /// One that comes to take so many bytes beyond what its program has read, and no more.
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

    /// The sender's program has written of a body up to here.
    pub(super) fn is_to_come(&mut self, attempt: AttemptId, ends: u64) {
        match self.chunks.back_mut().filter(|last| last.attempt == attempt) {
            Some(last) => last.ends = ends,
            None => self.chunks.push_back(Chunk { attempt, ends }),
        }
    }

    /// Segments come. Says whether that is acknowledged at once.
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
        // Blocks that touch are one.
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

    /// Reads so many bytes: which attempts they belong to.
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

    /// Once in a round trip the window becomes what lets twice as much come in the next, and more where it has grown
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

    /// Up to where it takes bytes, if its program lets it take so many beyond what is read.
    pub(super) fn edge(&self, clamp: Option<u64>) -> u64 {
        self.read + self.window.min(clamp.unwrap_or(u64::MAX))
    }

    /// Returns what it says now: what has come without a gap, and beyond one: the block that came last and those furthest on.
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

    /// Returns how often it has said something, by which one that waits can see that it came to late, and whether anything is unsaid.
    pub(super) fn said(&self) -> u64 {
        self.said
    }

    pub(super) fn is_silent(&self) -> bool {
        self.unsaid > 0
    }
}
