//! One direction of a connection: the bytes in flight, and the sender's knowledge about them.
//!
//! Real bytes go through it, so they can't really be lost. A lost packet delays its bytes, and all bytes after them,
//! until the simulated sender has noticed the loss and sent the packet again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::LinkPath;
use super::window::{SEGMENT, SendRecord, Window};
use super::wire::{Transit, Wire};

/// If the last packet was lost and was the only one in flight, the sender waits this much longer for its
/// acknowledgement. A receiver on Linux may delay acknowledgements for this long. If other packets were in flight too,
/// the sender waits only a round trip.
const ALONE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Flow {
    delay: Duration,
    /// The end of the simulated handshake. No byte is sent before this time. The real handshake takes no time on
    /// loopback.
    opens: Duration,
    /// The number of bytes that have been sent.
    pushed: u64,
    /// The chunks that haven't been delivered yet, by the position of their first byte.
    under_way: BTreeMap<u64, Chunk>,
    /// The number of transmissions so far, including repeated ones.
    sendings: u64,
    /// The lost chunks, by the time when the sender notices the loss.
    lost: BTreeSet<(Duration, u64)>,
    /// The chunks that the sender knows to be lost and can't send again yet, because the window is full.
    again: BTreeSet<u64>,
    acknowledgements: VecDeque<Acknowledgement>,
    /// The number of bytes that were sent, and are neither acknowledged nor known to be lost.
    in_flight: usize,
    window: Window,
    /// The number of sent bytes that, as far as the sender knows, the receiver hasn't read. `taken` has the times when
    /// the sender learns of reads.
    untaken: usize,
    taken: VecDeque<(Duration, usize)>,
}

/// An item in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FlowItem {
    Bytes(Bytes),
    /// The end of the stream, which travels like bytes.
    End,
}

#[derive(Debug)]
struct Chunk {
    item: FlowItem,
    /// The time of arrival. `None` if the chunk was lost and hasn't been sent again yet.
    arrives: Option<Duration>,
    sent: Duration,
    sending: u64,
    /// True if the sender has already waited once for later packets that would reveal the loss, and there were none.
    was_waited_for: bool,
}

#[derive(Debug)]
struct Acknowledgement {
    at: Duration,
    sent: SendRecord,
    len: usize,
}

impl Flow {
    pub(crate) fn new(path: &LinkPath, opens: Duration) -> Flow {
        Flow {
            delay: path.delay,
            opens,
            pushed: 0,
            under_way: BTreeMap::new(),
            sendings: 0,
            lost: BTreeSet::new(),
            again: BTreeSet::new(),
            acknowledgements: VecDeque::new(),
            in_flight: 0,
            window: Window::new(path),
            untaken: 0,
            taken: VecDeque::new(),
        }
    }

    /// Returns the number of bytes that may be sent at `now`, if the receiver may have at most `most` unread bytes. The
    /// result is zero or at least a segment, so that a nearly full window isn't filled with tiny packets.
    pub(crate) fn room(&mut self, now: Duration, most: usize, wire: &mut Wire) -> usize {
        self.advance(now, wire);
        if !self.again.is_empty() {
            return 0;
        }
        let room =
            self.window.room(now, self.in_flight).min(most.max(2 * SEGMENT).saturating_sub(self.untaken));
        if room < SEGMENT { 0 } else { room }
    }

    /// Sends bytes at `now`.
    pub(crate) fn send(&mut self, now: Duration, bytes: Bytes, wire: &mut Wire) {
        self.untaken += bytes.len();
        let place = self.pushed;
        self.pushed += bytes.len() as u64;
        self.transmit(now, place, bytes, wire);
    }

    /// Sends the end of the stream at `now`. Its packet is never lost.
    pub(crate) fn end(&mut self, now: Duration) {
        let arrives = Some(now.max(self.opens) + self.delay);
        let sending = self.sendings;
        let chunk = Chunk { item: FlowItem::End, arrives, sent: now, sending, was_waited_for: false };
        self.under_way.insert(self.pushed, chunk);
    }

    /// Records that the receiver has read `len` bytes at `now`. Until the sender learns of it, these bytes still count
    /// as unread.
    pub(crate) fn taken(&mut self, now: Duration, len: usize) {
        self.taken.push_back((now + self.delay, len));
    }

    /// Returns the time when there may be more room than at `now`.
    pub(crate) fn next_room(&self, now: Duration) -> Option<Duration> {
        let paced = Some(self.window.paced_until()).filter(|until| *until > now);
        let acknowledged = self.acknowledgements.front().map(|next| next.at);
        let taken = self.taken.front().map(|(at, _)| *at);
        let lost = self.lost.first().map(|(at, _)| *at);
        // If there is nothing else to wait for, lost chunks can be sent again at once.
        let again = (!self.again.is_empty()).then_some(now);
        [paced, acknowledged, taken, lost].into_iter().flatten().min().or(again)
    }

    /// Returns the time when the next item is delivered, or when a chunk that was lost before `now` must be sent again.
    pub(crate) fn next(&self, now: Duration) -> Option<Duration> {
        let arrives = self.under_way.first_key_value().and_then(|(_, chunk)| chunk.arrives);
        let lost = self.lost.first().map(|(at, _)| *at);
        let again = if self.again.is_empty() { None } else { self.next_room(now) };
        [arrives, lost, again].into_iter().flatten().min()
    }

    /// Returns the next item if it has arrived by `now`. Items are delivered in the order in which they were first
    /// sent.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<FlowItem> {
        let first = self.under_way.first_entry()?;
        if first.get().arrives? > now {
            return None;
        }
        Some(first.remove().item)
    }

    /// Simulates the sender up to `now`: it learns of arrivals and losses, and sends lost chunks again.
    pub(crate) fn advance(&mut self, now: Duration, wire: &mut Wire) {
        while self.taken.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, len)) = self.taken.pop_front()
        {
            self.untaken -= len;
        }
        while self.acknowledgements.front().is_some_and(|next| next.at <= now)
            && let Some(Acknowledgement { at, sent, len }) = self.acknowledgements.pop_front()
        {
            self.in_flight -= len;
            self.window.acknowledged(at, sent, len, self.in_flight);
        }
        while let Some((at, place)) = self.lost.first().copied().filter(|(at, _)| *at <= now) {
            self.lost.remove(&(at, place));
            self.finds_out(at, place);
        }
        loop {
            let room = self.window.room(now, self.in_flight);
            if room < SEGMENT {
                return;
            }
            let Some(place) = self.again.pop_first() else { return };
            let Some(Chunk { item: FlowItem::Bytes(mut bytes), .. }) = self.under_way.remove(&place) else {
                return;
            };
            if bytes.len() > room {
                let (rest, at) = (bytes.split_off(room), place + room as u64);
                let item = FlowItem::Bytes(rest);
                let chunk = Chunk { item, arrives: None, sent: now, sending: 0, was_waited_for: true };
                self.under_way.insert(at, chunk);
                self.again.insert(at);
            }
            self.transmit(now, place, bytes, wire);
        }
    }

    /// Handles the time at which acknowledgements of later packets reveal a loss to the sender. If no later packets
    /// were sent, the sender waits longer.
    fn finds_out(&mut self, at: Duration, place: u64) {
        let Some(chunk) = self.under_way.get_mut(&place) else { return };
        let FlowItem::Bytes(bytes) = &chunk.item else { return };
        let len = bytes.len();
        if chunk.sending == self.sendings && !chunk.was_waited_for {
            chunk.was_waited_for = true;
            let longer = if self.in_flight <= SEGMENT { ALONE } else { Duration::ZERO };
            let round_trip = at.saturating_sub(chunk.sent);
            self.lost.insert((at + round_trip + longer, place));
            return;
        }
        self.in_flight -= len;
        self.again.insert(place);
    }

    fn transmit(&mut self, now: Duration, mut place: u64, mut bytes: Bytes, wire: &mut Wire) {
        let sent = self.window.send(now, bytes.len(), self.in_flight);
        self.in_flight += bytes.len();
        let opens = self.opens;
        wire.send(now, bytes.len(), |len, fate| {
            self.sendings += 1;
            let arrives = match fate {
                Transit::Departs(at) => {
                    let arrives = at.max(opens) + self.delay;
                    let at = arrives + self.delay;
                    self.acknowledgements.push_back(Acknowledgement { at, sent, len });
                    Some(arrives)
                }
                Transit::Lost(known) => {
                    self.lost.insert((known, place));
                    None
                }
            };
            let item = FlowItem::Bytes(bytes.split_to(len));
            let chunk = Chunk { item, arrives, sent: now, sending: self.sendings, was_waited_for: false };
            self.under_way.insert(place, chunk);
            place += len as u64;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PATH: LinkPath =
        LinkPath { delay: Duration::from_millis(10), bandwidth: None, queue: 0, loss: 0.0 };

    fn start() -> (Flow, Wire) {
        (Flow::new(&PATH, Duration::ZERO), Wire::new(PATH, 1))
    }

    fn send(flow: &mut Flow, now: Duration, segments: usize, wire: &mut Wire) {
        flow.send(now, vec![0; segments * SEGMENT].into(), wire);
    }

    /// Returns the times at which segments come out, and their numbers.
    fn arrivals(flow: &mut Flow, wire: &mut Wire) -> Vec<(Duration, usize)> {
        let (mut now, mut arrivals) = (Duration::ZERO, Vec::new());
        while let Some(next) = flow.next(now) {
            now = next.max(now);
            flow.advance(now, wire);
            while let Some(FlowItem::Bytes(bytes)) = flow.pop(now) {
                arrivals.push((now, bytes.len() / SEGMENT));
            }
        }
        arrivals
    }

    #[test]
    fn a_flight_arrives_half_a_round_trip_later_and_whole() {
        let (mut flow, mut wire) = start();
        send(&mut flow, 5 * MS, 3, &mut wire);
        send(&mut flow, 5 * MS, 4, &mut wire);
        flow.end(5 * MS);
        assert_eq!(flow.next(5 * MS), Some(15 * MS));
        assert_eq!(flow.pop(14 * MS), None);
        let came: Vec<_> = std::iter::from_fn(|| flow.pop(15 * MS)).collect();
        assert!(matches!(&came[..], [FlowItem::Bytes(_), FlowItem::Bytes(_), FlowItem::End]), "{came:?}");
    }

    #[test]
    fn the_first_bytes_wait_for_the_simulated_handshake_and_keep_their_order() {
        let (mut flow, mut wire) = (Flow::new(&PATH, 20 * MS), Wire::new(PATH, 1));
        send(&mut flow, Duration::ZERO, 1, &mut wire);
        send(&mut flow, 5 * MS, 2, &mut wire);
        send(&mut flow, 25 * MS, 3, &mut wire);
        assert_eq!(arrivals(&mut flow, &mut wire), [(30 * MS, 1), (30 * MS, 2), (35 * MS, 3)]);
    }

    #[test]
    fn what_a_client_does_beside_the_imitated_handshake_costs_nothing_more() {
        for (begins, arrives) in [(15, 30), (20, 30), (40, 50)] {
            let (mut flow, mut wire) = (Flow::new(&PATH, 20 * MS), Wire::new(PATH, 1));
            send(&mut flow, begins * MS, 1, &mut wire);
            assert_eq!(arrivals(&mut flow, &mut wire), [(arrives * MS, 1)]);
        }
    }

    #[test]
    fn what_follows_a_lost_packet_waits_until_that_was_sent_again() {
        let (mut flow, mut wire) = start();
        wire.lose_after(2);
        send(&mut flow, Duration::ZERO, 6, &mut wire);
        assert_eq!(arrivals(&mut flow, &mut wire), [(10 * MS, 2), (30 * MS, 1), (30 * MS, 3)]);
    }

    #[test]
    fn a_lost_tail_is_resent_after_a_round_trip_and_a_lone_packet_by_timeout() {
        // Sending a segment takes a millisecond. Two segments fit into the queue, and a third is allowed because timers
        // may be late.
        let path = LinkPath { bandwidth: Some(1000 * SEGMENT as u64), queue: 2 * SEGMENT, ..PATH };
        let (mut flow, mut wire) = (Flow::new(&path, Duration::ZERO), Wire::new(path, 1));
        send(&mut flow, Duration::ZERO, 6, &mut wire);
        assert_eq!(arrivals(&mut flow, &mut wire), [(13 * MS, 3), (59 * MS, 3)]);
        let (mut flow, mut wire) = start();
        wire.lose_after(2);
        send(&mut flow, Duration::ZERO, 3, &mut wire);
        assert_eq!(arrivals(&mut flow, &mut wire), [(10 * MS, 2), (250 * MS, 1)]);
    }

    #[test]
    fn what_is_lost_again_is_sent_again_and_nothing_new_goes_before_it() {
        let (mut flow, mut wire) = start();
        wire.lose_after(0);
        send(&mut flow, Duration::ZERO, 4, &mut wire);
        wire.lose_after(0);
        flow.advance(20 * MS, &mut wire);
        assert_eq!(arrivals(&mut flow, &mut wire), [(270 * MS, 1), (270 * MS, 3)]);
        assert!(flow.room(300 * MS, usize::MAX, &mut wire) >= SEGMENT);
    }

    #[test]
    fn what_waits_for_nothing_but_to_be_sent_again_is_due_at_once() {
        let (mut flow, mut wire) = start();
        wire.lose_after(0);
        send(&mut flow, Duration::ZERO, 1, &mut wire);
        // Its loss is known, and the pacing delay has passed since.
        while let Some((at, place)) = flow.lost.pop_first() {
            flow.finds_out(at, place);
        }
        assert_eq!((flow.next(300 * MS), flow.next_room(300 * MS)), (Some(300 * MS), Some(300 * MS)));
        flow.advance(300 * MS, &mut wire);
        assert_eq!(arrivals(&mut flow, &mut wire), [(310 * MS, 1)]);
    }

    #[test]
    fn bytes_that_nobody_takes_close_the_window() {
        let (mut flow, mut wire) = start();
        let most = 5 * SEGMENT;
        assert_eq!(flow.room(Duration::ZERO, most, &mut wire), most);
        send(&mut flow, Duration::ZERO, 5, &mut wire);
        assert_eq!(flow.room(50 * MS, most, &mut wire), 0);
        assert_eq!(flow.next_room(50 * MS), None);
        flow.taken(50 * MS, most);
        assert_eq!(flow.next_room(50 * MS), Some(60 * MS));
        assert_eq!(flow.room(60 * MS, most, &mut wire), most);
        // Two segments may be sent even with a maximum of 0, because a window that is closed completely would never
        // open again.
        assert_eq!(flow.room(60 * MS, 0, &mut wire), 2 * SEGMENT);
    }
}
