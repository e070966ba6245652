//! The sending end of one direction of a connection. It records which bytes were sent and lost, and decides which may be sent.

use std::collections::VecDeque;

use super::congestion::{AckSample, CongestionControl, CongestionState};
use super::receiver::Receiver;
use super::{CHUNK, ConnectionSite};
use crate::dispatch::{AttemptId, LaneId, Role};
use crate::simulator::network::{MSS, Nanos};

/// The minimum retransmission timeout. It is also added to the timeout if only one packet is in flight, since that packet's acknowledgement
/// may be delayed.
const TIMEOUT_MIN: Nanos = 200_000_000;

/// The timeout before a round trip is known.
const TIMEOUT_FIRST: Nanos = 1_000_000_000;

/// The minimum and maximum number of segments in a burst. Within these bounds, a burst has as many segments as the sender sends in one
/// millisecond.
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
    /// Counts of bytes: those written to the connection, those sent at least once, and those acknowledged without a gap. `delivered` also
    /// includes bytes that were acknowledged after a gap.
    pub(super) written: u64,
    sent: u64,
    pub(super) acknowledged: u64,
    pub(super) delivered: u64,
    delivered_at: Nanos,
    /// The end of the receiver's window, as far as acknowledgements have reported it.
    edge: u64,
    /// The unacknowledged bursts in the order in which they were sent. `again` is the number of retransmissions among them.
    outstanding: VecDeque<UnackedBurst>,
    again: usize,
    in_flight: u64,
    /// Lost bursts that must be sent again, in the order of their positions.
    lost: VecDeque<UnackedBurst>,
    congestion: CongestionState,
    round_trip: Option<(f64, f64)>,
    shortest: Nanos,
    timeouts: u32,
    pub(super) deadline: Option<Nanos>,
    /// The time of the next check of the deadline.
    pub(super) watched: Option<Nanos>,
    /// True if the next segment is sent even though the window or the pace doesn't permit it.
    is_probing: bool,
    paced_until: Nanos,
    pub(super) is_paced: bool,
    app_limited_until: u64,
}

/// The reason why nothing is sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendBlocker {
    /// There is nothing to send, or the window is full.
    Waits,
    /// The pace permits the next burst at this time.
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

    /// Returns the number of bytes that wait in the sender's kernel.
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Returns the smoothed round trip, once known.
    pub(super) fn round_trip(&self) -> Option<Nanos> {
        self.round_trip.map(|(smooth, _)| smooth as Nanos)
    }

    /// Returns the next burst, or the reason why nothing may be sent now. Lost bytes are sent first. `pace` is a limit on the rate in
    /// addition to that of congestion control.
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
                // The acknowledgement that opens the window again may be lost. So ask the receiver for its window after a timeout.
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
        // As in Nagle's algorithm, less than a full segment waits while other bytes are in flight.
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

    /// Records that a burst, or its first part, was sent.
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

    /// Processes an acknowledgement. Returns how many bytes the acknowledgement covers for the first time, with or without a gap before
    /// them.
    pub(super) fn acked(&mut self, now: Nanos, ack: &Ack) -> u64 {
        let new = ack.received.saturating_sub(self.acknowledged);
        self.acknowledged += new;
        // The end of the window never moves back.
        if ack.edge > self.edge {
            self.edge = ack.edge;
            if self.outstanding.is_empty() {
                (self.deadline, self.timeouts) = (None, 0);
            }
        }
        // Packets that counted as lost may have arrived late.
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
                    // The rest of the last burst is still in flight.
                    self.in_flight += missing.bytes;
                    self.again += usize::from(missing.is_again);
                    self.outstanding.push_front(missing);
                } else {
                    // Packets keep their order, so if later bytes have arrived, the missing ones are lost.
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
        // If an acknowledgement comes earlier than in the shortest round trip, it belongs to the first transmission, not to the
        // retransmission.
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

    /// Returns the index of the last burst that has arrived at least in part.
    fn furthest(&self, ack: &Ack) -> Option<usize> {
        let (highest, mut place) = (ack.highest(), None);
        for (i, sent) in self.outstanding.iter().enumerate() {
            if sent.from >= highest {
                // Without retransmissions, positions only grow, so no later burst can have arrived.
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
            // The first timeout is short. When it ends, the sender only sends a probe, whose acknowledgement shows which bytes are missing.
            (1, 0) => Some(now + (2.0 * smooth) as Nanos + TIMEOUT_MIN),
            (_, 0) => Some(now + (2.0 * smooth) as Nanos + 2_000_000),
            (_, timeouts) => Some(now + (self.timeout() << (timeouts - 1).min(6))),
        };
    }

    /// Handles a timeout. Returns whether to ask the receiver for its window.
    pub(super) fn timed_out(&mut self, now: Nanos) -> bool {
        let is_probe = self.timeouts == 0 && self.round_trip.is_some();
        self.timeouts += 1;
        if self.outstanding.is_empty() && self.lost.is_empty() {
            self.deadline = Some(now + (self.timeout() << self.timeouts.min(6)));
            return true;
        }
        self.paced_until = 0;
        if is_probe {
            // Send new bytes if there are any, or else the last segment again (RFC 8985).
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

    /// Creates a packet without data, which makes the receiver report its window.
    pub(super) fn question(now: Nanos, from: u64) -> Self {
        let (delivered, is_app_limited, is_again) = (0, true, false);
        Self { from, bytes: 0, at: now, delivered, delivered_at: now, is_app_limited, is_again }
    }

    /// Returns the first bytes of the burst.
    pub(super) fn first(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the part of the burst between two positions.
    pub(super) fn between(self, from: u64, to: u64) -> Self {
        Self { from, bytes: to - from, ..self }
    }

    pub(super) fn segments(&self) -> u64 {
        self.bytes.div_ceil(MSS)
    }
}

/// The maximum number of selective acknowledgements in a packet with timestamps (RFC 2018).
pub(super) const BLOCKS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(super) lane: LaneId,
    pub(super) path: usize,
    /// All bytes before this have arrived.
    pub(super) received: u64,
    /// Blocks that have arrived after a gap, in order. Unused entries are empty.
    pub(super) blocks: [(u64, u64); BLOCKS],
    /// The end of the receiver's window.
    pub(super) edge: u64,
}

impl Ack {
    /// Returns the end of the furthest bytes that are acknowledged.
    pub(super) fn highest(&self) -> u64 {
        self.blocks.iter().map(|(_, to)| *to).fold(self.received, u64::max)
    }

    /// Returns the parts of a burst that this doesn't acknowledge, in order.
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
    /// The bodies with bytes that weren't written yet. They take turns.
    bodies: VecDeque<(AttemptId, u64)>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// The time when bytes last arrived.
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

    /// Returns how many bytes of a body weren't written yet.
    pub(super) fn unwritten(&self, attempt: AttemptId) -> u64 {
        self.bodies.iter().find(|(other, _)| *other == attempt).map_or(0, |(_, left)| *left)
    }

    /// Shortens a body by `bytes` if its unwritten rest is longer than that. Returns whether it has shortened the body.
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

    /// Writes at most `most` bytes to the connection, a chunk of each body in turn. Returns the number of written bytes.
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
