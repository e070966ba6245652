//! One direction of a connection: what its sender has sent and may send, and what its receiver has.

use std::collections::{BTreeMap, VecDeque};

use super::congestion::{Acked, Congestion, Control};
use super::{CHUNK, MSS};
use crate::dispatch::{AttemptId, Role};
use crate::simulator::network::Nanos;

/// The kernel's timeout is never shorter, and this is what it adds where a single packet is on its way, whose acknowledgement
/// may be delayed.
const TIMEOUT_MIN: Nanos = 200_000_000;

/// Before a round trip was seen.
const TIMEOUT_FIRST: Nanos = 1_000_000_000;

/// Segments that leave at once: what is sent in a millisecond, within these bounds.
const BURST_MIN: u64 = 2;
const BURST_MAX: u64 = 44;

/// A burst that was sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) from: u64,
    pub(crate) bytes: u64,
    at: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    is_app_limited: bool,
    is_again: bool,
}

/// Bytes of a body in the order in which the connection carries them.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    attempt: AttemptId,
    ends: u64,
}

#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) origin: usize,
    pub(crate) role: Role,
    /// Bodies that still have bytes to be written, in turns.
    bodies: VecDeque<(AttemptId, u64)>,
    chunks: VecDeque<Chunk>,
    /// Bytes written into the connection, sent for the first time, acknowledged without a gap, and in all.
    pub(crate) written: u64,
    sent: u64,
    pub(crate) acknowledged: u64,
    delivered: u64,
    delivered_at: Nanos,
    /// What the receiver has said it takes.
    edge: u64,
    outstanding: VecDeque<Sent>,
    in_flight: u64,
    lost: VecDeque<Sent>,
    congestion: Congestion,
    round_trip: Option<(f64, f64)>,
    timeouts: u32,
    pub(crate) deadline: Option<Nanos>,
    /// When that is looked at next.
    pub(crate) watched: Option<Nanos>,
    pub(crate) paced_until: Nanos,
    pub(crate) is_paced: bool,
    app_limited_until: u64,
    /// The receiver's: without a gap, beyond one, and read.
    received: u64,
    beyond: BTreeMap<u64, u64>,
    pub(crate) read: u64,
}

/// Why nothing is sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// There is nothing to send, or no window for it.
    Waits,
    /// The pace says when.
    Until(Nanos),
}

impl Flow {
    pub(crate) fn new(origin: usize, role: Role, control: Control, edge: u64) -> Self {
        Self {
            origin,
            role,
            bodies: VecDeque::new(),
            chunks: VecDeque::new(),
            written: 0,
            sent: 0,
            acknowledged: 0,
            delivered: 0,
            delivered_at: 0,
            edge,
            outstanding: VecDeque::new(),
            in_flight: 0,
            lost: VecDeque::new(),
            congestion: Congestion::new(control),
            round_trip: None,
            timeouts: 0,
            deadline: None,
            watched: None,
            paced_until: 0,
            is_paced: false,
            app_limited_until: 0,
            received: 0,
            beyond: BTreeMap::new(),
            read: 0,
        }
    }

    pub(crate) fn begin(&mut self, attempt: AttemptId, bytes: u64) {
        self.bodies.push_back((attempt, bytes));
    }

    pub(crate) fn stop(&mut self, attempt: AttemptId) {
        self.bodies.retain(|(other, _)| *other != attempt);
    }

    pub(crate) fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Bytes that wait in the sender's kernel.
    pub(crate) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Writes so many bytes at most into the connection, a chunk of each body in turn.
    pub(crate) fn write(&mut self, mut most: u64) -> u64 {
        let before = self.written;
        while most > 0
            && let Some((attempt, left)) = self.bodies.pop_front()
        {
            let bytes = left.min(CHUNK).min(most);
            most -= bytes;
            self.written += bytes;
            match self.chunks.back_mut().filter(|last| last.attempt == attempt) {
                Some(last) => last.ends = self.written,
                None => self.chunks.push_back(Chunk { attempt, ends: self.written }),
            }
            if left > bytes {
                self.bodies.push_back((attempt, left - bytes));
            }
        }
        self.written - before
    }

    /// What leaves now, if anything may: a burst that was lost first. `pace` bounds the rate from without.
    pub(crate) fn next_burst(&mut self, now: Nanos, pace: f64) -> Result<Sent, Held> {
        let room = self.congestion.window().saturating_sub(self.in_flight);
        let (from, available, is_again) = match self.lost.front() {
            Some(lost) => (lost.from, lost.bytes, true),
            None => (self.sent, self.written.min(self.edge).saturating_sub(self.sent), false),
        };
        if available == 0 {
            if self.sent == self.written {
                self.app_limited_until = self.delivered + self.in_flight.max(1);
            }
            return Err(Held::Waits);
        }
        if room < MSS.min(available) && self.in_flight > 0 {
            return Err(Held::Waits);
        }
        if now < self.paced_until {
            return Err(Held::Until(self.paced_until));
        }
        let pace = pace.min(self.congestion.pace());
        let rate = if pace.is_finite() { pace } else { self.window_rate() };
        let burst = ((rate * 1e-3) as u64 / MSS).clamp(BURST_MIN, BURST_MAX) * MSS;
        let bytes = available.min(burst).min(room.max(MSS));
        // A small rest waits for what is on its way, as Nagle's neighbours in the kernel do.
        if !is_again && bytes < MSS && bytes < self.written - self.sent && self.in_flight > 0 {
            return Err(Held::Waits);
        }
        if pace.is_finite() {
            self.paced_until = now + (bytes as f64 / pace * 1e9) as Nanos;
        }
        if self.in_flight == 0 {
            self.delivered_at = now;
        }
        let (delivered, delivered_at) = (self.delivered, self.delivered_at);
        let is_app_limited = self.delivered < self.app_limited_until;
        Ok(Sent { from, bytes, at: now, delivered, delivered_at, is_app_limited, is_again })
    }

    fn window_rate(&self) -> f64 {
        let (smooth, _) = self.round_trip.unwrap_or((TIMEOUT_FIRST as f64, 0.0));
        self.congestion.window() as f64 / (smooth * 1e-9)
    }

    /// Takes note that the burst, or the first bytes of it, have left.
    pub(crate) fn left(&mut self, burst: Sent) {
        if burst.is_again {
            let lost = self.lost.front_mut().expect("it was the first one");
            lost.from += burst.bytes;
            lost.bytes -= burst.bytes;
            if lost.bytes == 0 {
                self.lost.pop_front();
            }
        } else {
            self.sent += burst.bytes;
        }
        self.in_flight += burst.bytes;
        self.outstanding.push_back(burst);
        self.arm(burst.at);
    }

    /// Bytes of a burst reach the receiver. What they complete is read unless `may_read` is false.
    pub(crate) fn arrives(&mut self, burst: Sent) {
        let (from, to) = (burst.from, burst.from + burst.bytes);
        if to <= self.received {
            return;
        }
        let until = self.beyond.entry(from).or_default();
        *until = to.max(*until);
        while let Some((from, to)) = self.beyond.first_key_value().map(|(from, to)| (*from, *to))
            && from <= self.received
        {
            self.received = self.received.max(to);
            self.beyond.pop_first();
        }
    }

    pub(crate) fn unread(&self) -> u64 {
        self.received - self.read
    }

    /// Reads so many bytes: which attempts they belong to.
    pub(crate) fn read(&mut self, bytes: u64, mut each: impl FnMut(AttemptId, u64)) {
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

    /// The receiver takes bytes up to here. It never takes that back.
    pub(crate) fn opens(&mut self, edge: u64) {
        self.edge = self.edge.max(edge);
    }

    /// An acknowledgement of a burst arrives: how many bytes are new without a gap.
    pub(crate) fn acked(&mut self, now: Nanos, burst: Sent, received: u64) -> u64 {
        let new = received.saturating_sub(self.acknowledged);
        self.acknowledged = self.acknowledged.max(received);
        let is_this = |sent: &Sent| sent.from == burst.from && sent.at == burst.at;
        let Some(place) = self.outstanding.iter().position(is_this) else { return new };
        // A path keeps the order: what was sent before and isn't acknowledged is lost.
        for sent in self.outstanding.drain(..=place).take(place) {
            self.in_flight -= sent.bytes;
            self.congestion.lost(now, sent.at);
            self.lost.push_back(sent);
        }
        self.lost.make_contiguous().sort_by_key(|lost| lost.from);
        self.in_flight -= burst.bytes;
        self.delivered += burst.bytes;
        self.delivered_at = now;
        self.timeouts = 0;
        let rtt = now - burst.at;
        self.saw(rtt as f64);
        let took = (now - burst.delivered_at).max(rtt).max(1) as f64 * 1e-9;
        self.congestion.acked(Acked {
            now,
            bytes: burst.bytes,
            rtt,
            delivered: self.delivered,
            delivered_when_sent: burst.delivered,
            rate: (self.delivered - burst.delivered) as f64 / took,
            is_app_limited: burst.is_app_limited,
            in_flight: self.in_flight,
        });
        self.arm(now);
        new
    }

    fn saw(&mut self, rtt: f64) {
        let (smooth, spread) = self.round_trip.unwrap_or((rtt, rtt / 2.0));
        self.round_trip = Some((0.875 * smooth + 0.125 * rtt, 0.75 * spread + 0.25 * (smooth - rtt).abs()));
    }

    fn arm(&mut self, now: Nanos) {
        let Some((smooth, spread)) = self.round_trip else {
            self.deadline = Some(now + (TIMEOUT_FIRST << self.timeouts.min(6)));
            return;
        };
        let timeout = (smooth + 4.0 * spread).max(smooth + TIMEOUT_MIN as f64) as Nanos;
        let segments: u64 = self.outstanding.iter().map(Sent::segments).take(2).sum();
        self.deadline = match (segments, self.timeouts) {
            (0, _) => None,
            // The first time the last packet is sent once more, to learn what else is missing.
            (1, 0) => Some(now + (2.0 * smooth) as Nanos + TIMEOUT_MIN),
            (_, 0) => Some(now + (2.0 * smooth) as Nanos + 2_000_000),
            (_, timeouts) => Some(now + (timeout << (timeouts - 1).min(6))),
        };
    }

    /// Nothing was acknowledged in time.
    pub(crate) fn timed_out(&mut self) {
        let is_probe = self.timeouts == 0 && self.round_trip.is_some();
        self.timeouts += 1;
        if is_probe && let Some(last) = self.outstanding.pop_back() {
            self.in_flight -= last.bytes;
            self.lost.push_front(last);
            // The probe goes whatever the window says.
            self.paced_until = 0;
            return;
        }
        for sent in self.outstanding.drain(..) {
            self.lost.push_back(sent);
        }
        self.lost.make_contiguous().sort_by_key(|lost| lost.from);
        self.in_flight = 0;
        self.paced_until = 0;
        self.congestion.timed_out();
    }
}

impl Sent {
    /// The first bytes of it.
    pub(crate) fn first(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    pub(crate) fn segments(&self) -> u64 {
        self.bytes.div_ceil(MSS)
    }
}
