//! The sending end of one direction of a connection: the bytes sent and lost, and those that may be sent.

use std::collections::VecDeque;

use super::congestion::{AckSample, CongestionControl, CongestionState};
use super::receiver::Receiver;
use super::{CHUNK, ConnectionSite};
use crate::dispatch::{AttemptId, LaneId, Role};
use crate::simulator::network::{MSS, Nanos};

/// The kernel's shortest timeout. It also adds this if a single packet is in flight, since that packet's acknowledgement may be delayed.
const TIMEOUT_MIN: Nanos = 200_000_000;

/// The timeout before a round trip is known.
const TIMEOUT_FIRST: Nanos = 1_000_000_000;

/// Segments that leave at once: as many as are sent in a millisecond, within these bounds.
const BURST_MIN: u64 = 2;
const BURST_MAX: u64 = 44;

/// A burst that was sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnackedBurst {
    pub(super) from: u64,
    pub(super) bytes: u64,
    at: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    is_app_limited: bool,
    is_again: bool,
}

#[derive(Debug)]
pub(super) struct Sender {
    /// Bytes written into the connection, sent for the first time, and acknowledged without a gap; then all bytes acknowledged.
    pub(super) written: u64,
    sent: u64,
    pub(super) acknowledged: u64,
    pub(super) delivered: u64,
    delivered_at: Nanos,
    /// The end of the bytes that the receiver accepts, as it last said.
    edge: u64,
    /// Unacknowledged bursts in the order in which they were sent, and how many of them are retransmissions.
    outstanding: VecDeque<UnackedBurst>,
    again: usize,
    in_flight: u64,
    /// In the order of their bytes.
    lost: VecDeque<UnackedBurst>,
    congestion: CongestionState,
    round_trip: Option<(f64, f64)>,
    shortest: Nanos,
    timeouts: u32,
    pub(super) deadline: Option<Nanos>,
    /// The time of the next check of the deadline.
    pub(super) watched: Option<Nanos>,
    /// True if the next segment goes whatever the window and the pace say.
    is_probing: bool,
    paced_until: Nanos,
    pub(super) is_paced: bool,
    app_limited_until: u64,
}

/// Why nothing is sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendBlocker {
    /// There is nothing to send, or no window for it.
    Waits,
    /// The pace allows it at this time.
    Until(Nanos),
}

impl Sender {
    pub(super) fn new(control: CongestionControl, edge: u64) -> Self {
        Self {
            written: 0,
            sent: 0,
            acknowledged: 0,
            delivered: 0,
            delivered_at: 0,
            edge,
            outstanding: VecDeque::new(),
            again: 0,
            in_flight: 0,
            lost: VecDeque::new(),
            congestion: CongestionState::new(control),
            round_trip: None,
            shortest: Nanos::MAX,
            timeouts: 0,
            deadline: None,
            watched: None,
            is_probing: false,
            paced_until: 0,
            is_paced: false,
            app_limited_until: 0,
        }
    }

    /// Returns the bytes that wait in the sender's kernel.
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Returns the smoothed round trip, once known.
    pub(super) fn round_trip(&self) -> Option<Nanos> {
        self.round_trip.map(|(smooth, _)| smooth as Nanos)
    }

    /// Returns the burst that leaves now, if one may. Lost ones go first. `pace` is an outside limit on the rate.
    pub(super) fn next_burst(&mut self, now: Nanos, pace: f64) -> Result<UnackedBurst, SendBlocker> {
        let room = self.congestion.window().saturating_sub(self.in_flight);
        let (from, available, is_again) = match self.lost.front() {
            Some(lost) => (lost.from, lost.bytes, true),
            None => (self.sent, self.written.min(self.edge).saturating_sub(self.sent), false),
        };
        if available == 0 {
            if self.sent == self.written {
                self.app_limited_until = self.delivered + self.in_flight.max(1);
            } else if self.outstanding.is_empty() && self.deadline.is_none() {
                // If this were lost, no packet would tell that the window has opened.
                self.deadline = Some(now + (self.timeout() << self.timeouts.min(6)));
            }
            return Err(SendBlocker::Waits);
        }
        if !self.is_probing {
            if room < MSS.min(available) && self.in_flight > 0 {
                return Err(SendBlocker::Waits);
            }
            if now < self.paced_until {
                return Err(SendBlocker::Until(self.paced_until));
            }
        }
        let pace = pace.min(self.congestion.pace());
        let rate = if pace.is_finite() { pace } else { self.window_rate() };
        let burst = ((rate * 1e-3) as u64 / MSS).clamp(BURST_MIN, BURST_MAX) * MSS;
        let bytes = match self.is_probing {
            true => available.min(MSS),
            false => available.min(burst).min(room.max(MSS)),
        };
        // A small rest waits for the bytes in flight, like Nagle's algorithm.
        let is_rest = bytes < MSS && bytes < self.written - self.sent && self.in_flight > 0;
        if is_rest && !is_again && !self.is_probing {
            return Err(SendBlocker::Waits);
        }
        if pace.is_finite() {
            self.paced_until = now + (bytes as f64 / pace * 1e9) as Nanos;
        }
        if self.in_flight == 0 {
            self.delivered_at = now;
        }
        let (delivered, delivered_at) = (self.delivered, self.delivered_at);
        let is_app_limited = self.delivered < self.app_limited_until;
        Ok(UnackedBurst { from, bytes, at: now, delivered, delivered_at, is_app_limited, is_again })
    }

    fn window_rate(&self) -> f64 {
        let (smooth, _) = self.round_trip.unwrap_or((TIMEOUT_FIRST as f64, 0.0));
        self.congestion.window() as f64 / (smooth * 1e-9)
    }

    /// Takes note that the burst, or its first bytes, have left.
    pub(super) fn left(&mut self, burst: UnackedBurst) {
        self.is_probing = false;
        if burst.is_again {
            let lost = self.lost.front_mut().expect("it was the first one");
            lost.from += burst.bytes;
            lost.bytes -= burst.bytes;
            if lost.bytes == 0 {
                self.lost.pop_front();
            }
            self.again += 1;
        } else {
            self.sent += burst.bytes;
        }
        self.in_flight += burst.bytes;
        self.outstanding.push_back(burst);
        self.arm(burst.at);
    }

    /// Takes an acknowledgement. Returns how many bytes it reports for the first time, in whatever order they came.
    pub(super) fn acked(&mut self, now: Nanos, ack: &Ack) -> u64 {
        let new = ack.received.saturating_sub(self.acknowledged);
        self.acknowledged += new;
        // The receiver accepts bytes up to here, and never takes that back.
        if ack.edge > self.edge {
            self.edge = ack.edge;
            if self.outstanding.is_empty() {
                (self.deadline, self.timeouts) = (None, 0);
            }
        }
        // Packets that counted as lost may only have been late.
        let lost = |sender: &Self| sender.lost.iter().map(|lost| lost.bytes).sum::<u64>();
        let before = lost(self);
        self.lost = self.lost.iter().flat_map(|lost| ack.missing(*lost)).collect();
        let late = before - lost(self);
        let Some(place) = self.furthest(ack) else { return late };
        let latest = self.outstanding[place];
        let mut delivered = 0;
        for (i, sent) in self.outstanding.drain(..=place).collect::<Vec<_>>().into_iter().enumerate() {
            self.again -= usize::from(sent.is_again);
            self.in_flight -= sent.bytes;
            delivered += sent.bytes;
            for missing in ack.missing(sent) {
                delivered -= missing.bytes;
                let is_beyond = missing.from + missing.bytes == sent.from + sent.bytes;
                if i == place && is_beyond {
                    // The rest of the last burst is still to come.
                    self.in_flight += missing.bytes;
                    self.again += usize::from(missing.is_again);
                    self.outstanding.push_front(missing);
                } else {
                    // A path keeps the order, so bytes sent before others that have come are lost.
                    self.congestion.lost(now, missing.at);
                    self.lost.push_back(missing);
                }
            }
        }
        self.lost.make_contiguous().sort_by_key(|lost| lost.from);
        self.delivered += delivered;
        self.delivered_at = now;
        self.timeouts = 0;
        let rtt = now - latest.at;
        // An acknowledgement sooner than any round trip belongs to an earlier packet.
        let is_early = latest.is_again && rtt < self.shortest;
        let rtt = if is_early { self.round_trip().unwrap_or(rtt) } else { rtt };
        if !is_early {
            self.saw(rtt);
        }
        let took = (now - latest.delivered_at).max(rtt).max(1) as f64 * 1e-9;
        self.congestion.acked(AckSample {
            now,
            bytes: delivered,
            rtt,
            delivered: self.delivered,
            delivered_when_sent: latest.delivered,
            rate: (self.delivered - latest.delivered) as f64 / took,
            is_app_limited: latest.is_app_limited,
            in_flight: self.in_flight,
        });
        self.arm(now);
        late + delivered
    }

    /// Returns the last sent of the bursts of which bytes have arrived.
    fn furthest(&self, ack: &Ack) -> Option<usize> {
        let (highest, mut place) = (ack.highest(), None);
        for (i, sent) in self.outstanding.iter().enumerate() {
            if sent.from >= highest {
                // New bytes are sent in order.
                if self.again == 0 {
                    break;
                }
            } else if ack.missing(*sent).map(|missing| missing.bytes).sum::<u64>() < sent.bytes {
                place = Some(i);
            }
        }
        place
    }

    fn saw(&mut self, rtt: Nanos) {
        self.shortest = self.shortest.min(rtt);
        let rtt = rtt as f64;
        let (smooth, spread) = self.round_trip.unwrap_or((rtt, rtt / 2.0));
        self.round_trip = Some((0.875 * smooth + 0.125 * rtt, 0.75 * spread + 0.25 * (smooth - rtt).abs()));
    }

    fn timeout(&self) -> Nanos {
        let Some((smooth, spread)) = self.round_trip else { return TIMEOUT_FIRST };
        (smooth + 4.0 * spread).max(smooth + TIMEOUT_MIN as f64) as Nanos
    }

    fn arm(&mut self, now: Nanos) {
        let Some((smooth, _)) = self.round_trip else {
            self.deadline = Some(now + (TIMEOUT_FIRST << self.timeouts.min(6)));
            return;
        };
        let segments: u64 = self.outstanding.iter().map(UnackedBurst::segments).take(2).sum();
        self.deadline = match (segments, self.timeouts) {
            (0, _) => None,
            // At first the last packet is sent again, to learn what else is missing.
            (1, 0) => Some(now + (2.0 * smooth) as Nanos + TIMEOUT_MIN),
            (_, 0) => Some(now + (2.0 * smooth) as Nanos + 2_000_000),
            (_, timeouts) => Some(now + (self.timeout() << (timeouts - 1).min(6))),
        };
    }

    /// Handles a timeout. Returns whether to ask how much the receiver accepts.
    pub(super) fn timed_out(&mut self, now: Nanos) -> bool {
        let is_probe = self.timeouts == 0 && self.round_trip.is_some();
        self.timeouts += 1;
        if self.outstanding.is_empty() && self.lost.is_empty() {
            self.deadline = Some(now + (self.timeout() << self.timeouts.min(6)));
            return true;
        }
        self.paced_until = 0;
        if is_probe {
            // New bytes if there are any, otherwise the last segment again (RFC 8985).
            self.is_probing = true;
            if self.lost.is_empty() && self.sent >= self.written.min(self.edge) {
                self.takes_back_the_last();
            }
            return false;
        }
        self.lost.extend(self.outstanding.drain(..));
        self.lost.make_contiguous().sort_by_key(|lost| lost.from);
        (self.in_flight, self.again) = (0, 0);
        self.congestion.timed_out();
        false
    }

    fn takes_back_the_last(&mut self) {
        let Some(last) = self.outstanding.pop_back() else { return };
        self.again -= usize::from(last.is_again);
        let before = last.bytes.saturating_sub(MSS);
        self.in_flight -= last.bytes - before;
        self.lost.push_front(last.between(last.from + before, last.from + last.bytes));
        if before > 0 {
            self.again += usize::from(last.is_again);
            self.outstanding.push_back(last.first(before));
        }
    }
}

impl UnackedBurst {
    pub(super) fn new(from: u64, bytes: u64) -> Self {
        Self { from, bytes, at: 0, delivered: 0, delivered_at: 0, is_app_limited: false, is_again: false }
    }

    /// A packet without bytes that asks how much the receiver accepts.
    pub(super) fn question(now: Nanos, from: u64) -> Self {
        let (delivered, is_app_limited, is_again) = (0, true, false);
        Self { from, bytes: 0, at: now, delivered, delivered_at: now, is_app_limited, is_again }
    }

    /// Returns its first bytes.
    pub(super) fn first(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Returns a part of it.
    pub(super) fn between(self, from: u64, to: u64) -> Self {
        Self { from, bytes: to - from, ..self }
    }

    pub(super) fn segments(&self) -> u64 {
        self.bytes.div_ceil(MSS)
    }
}

/// Blocks beyond a gap that fit beside the timestamps (RFC 2018).
pub(super) const BLOCKS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(super) lane: LaneId,
    pub(super) path: usize,
    /// All bytes before this have arrived.
    pub(super) received: u64,
    /// Blocks that have arrived beyond a gap, in order. Unused ones are empty.
    pub(super) blocks: [(u64, u64); BLOCKS],
    /// The end of the bytes that the receiver accepts.
    pub(super) edge: u64,
}

impl Ack {
    /// Returns the end of the bytes that it reports.
    pub(super) fn highest(&self) -> u64 {
        self.blocks.iter().map(|(_, to)| *to).fold(self.received, u64::max)
    }

    /// Returns the parts of a burst that are still missing, as far as this tells, in order.
    pub(super) fn missing(&self, sent: UnackedBurst) -> impl Iterator<Item = UnackedBurst> {
        let (mut from, end) = (sent.from.max(self.received), sent.from + sent.bytes);
        let gaps = self.blocks.into_iter().chain([(u64::MAX, u64::MAX)]).map(move |(begins, ends)| {
            if ends <= from {
                return (from, from);
            }
            let gap = (from, begins.min(end).max(from));
            from = ends.max(from);
            gap
        });
        gaps.filter(|(from, to)| from < to).map(move |(from, to)| sent.between(from, to))
    }
}

#[derive(Debug)]
pub(super) struct TcpFlow {
    pub(super) place: ConnectionSite,
    /// Bodies that still have bytes to be written, in turn.
    bodies: VecDeque<(AttemptId, u64)>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// When bytes last arrived.
    pub(super) arrived_at: Nanos,
}

impl TcpFlow {
    pub(super) fn new(place: ConnectionSite, sender: Sender, receiver: Receiver) -> Self {
        Self { place, bodies: VecDeque::new(), sender, receiver, arrived_at: 0 }
    }

    pub(super) fn is_bulk(&self) -> bool {
        self.place.role == Role::Freight
    }

    pub(super) fn begin(&mut self, attempt: AttemptId, bytes: u64) {
        self.bodies.push_back((attempt, bytes));
    }

    pub(super) fn stop(&mut self, attempt: AttemptId) {
        self.bodies.retain(|(other, _)| *other != attempt);
    }

    /// Returns how many bytes of a body are still to be written.
    pub(super) fn unwritten(&self, attempt: AttemptId) -> u64 {
        self.bodies.iter().find(|(other, _)| *other == attempt).map_or(0, |(_, left)| *left)
    }

    /// Shortens a body by `bytes`, if more than those are still to be written.
    pub(super) fn cut(&mut self, attempt: AttemptId, bytes: u64) -> bool {
        let body = self.bodies.iter_mut().find(|(other, left)| *other == attempt && *left > bytes);
        if let Some((_, left)) = body {
            *left -= bytes;
            return true;
        }
        false
    }

    pub(super) fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Writes at most `most` bytes into the connection, a chunk of each body in turn.
    pub(super) fn write(&mut self, mut most: u64) -> u64 {
        let before = self.sender.written;
        while most > 0
            && let Some((attempt, left)) = self.bodies.pop_front()
        {
            let bytes = left.min(CHUNK).min(most);
            most -= bytes;
            self.sender.written += bytes;
            self.receiver.is_to_come(attempt, self.sender.written);
            if left > bytes {
                self.bodies.push_back((attempt, left - bytes));
            }
        }
        self.sender.written - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_blocks_is_missing() {
        let ack = |received, blocks| Ack { lane: LaneId(0), path: 0, received, blocks, edge: 0 };
        let missing = |ack: Ack, from, bytes| {
            ack.missing(UnackedBurst::new(from, bytes))
                .map(|sent| (sent.from, sent.bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(missing(ack(100, [(0, 0); 3]), 50, 50), []);
        assert_eq!(missing(ack(100, [(0, 0); 3]), 50, 100), [(100, 50)]);
        assert_eq!(
            missing(ack(100, [(120, 130), (140, 150), (0, 0)]), 90, 100),
            [(100, 20), (130, 10), (150, 40)]
        );
        assert_eq!(missing(ack(100, [(120, 130), (140, 150), (0, 0)]), 122, 5), []);
        assert_eq!(missing(ack(100, [(120, 130), (140, 150), (0, 0)]), 145, 10), [(150, 5)]);
    }
}
