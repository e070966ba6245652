//! The simulated link: its delay, its bandwidth, and the loss of packets.
//!
//! In each direction all connections share a bottleneck with a finite queue ([`wire`]). The bytes of one connection in
//! one direction are a [`flow`], and its congestion [`window`] limits the bytes under way. These three modules have no
//! side effects: they get the time as an argument, and compute the time when each byte is delivered. [`pump`] applies
//! the result to sockets, and asks the kernel if the client's socket buffers are small ([`clamps`]).
//!
//! Real bytes pass through real sockets, which acknowledge at once. This has three consequences. Bytes that the
//! simulation loses are only delayed, by the time that a sender needs to notice the loss and send them again. A
//! client's kernel gets the acknowledgement of a byte at once, and not a round trip later. And TCP's handshake takes no
//! time, so the first bytes after it wait for the handshake's round trip. A client that measures the handshake would
//! take a distant server for a near one, so our benchmarks tell Laneway the simulated round-trip time.
//!
//! The simulation leaves out lost and late acknowledgements, reordering, losses in the handshake, the bytes of headers,
//! pacing, and the shrinking of an idle connection's window.

pub(crate) mod clamps;
pub(crate) mod flow;
pub(crate) mod pump;
mod window;
pub(crate) mod wire;

use std::time::Duration;

/// The maximum number of unread bytes that a receiver buffers. At a round trip of 50 ms it permits 320 MB/s in each
/// direction of each connection.
const RECEIVE_BYTES_MAX: usize = 16 << 20;
/// By default the queue holds the bytes that the bottleneck sends in a round trip, as in routers. It is never shorter
/// than these minimums.
const QUEUE_TIME_MIN: Duration = Duration::from_millis(5);
const QUEUE_BYTES_MIN: usize = 64 << 10;

/// The path in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkPath {
    /// The delay in this direction: half a round trip.
    delay: Duration,
    /// The rate of the bottleneck in bytes per second.
    bandwidth: Option<u64>,
    /// The number of bytes that may wait before the bottleneck.
    queue: usize,
    /// The share of packets that are lost at random, from 0 to 1.
    loss: f64,
}

impl LinkPath {
    pub(crate) fn new(rtt: Duration, bandwidth: Option<u64>, queue: Option<u64>, loss: f64) -> LinkPath {
        let bytes = |time: Duration| (bandwidth.unwrap_or(0) as f64 * time.as_secs_f64()) as usize;
        let usual = bytes(rtt.max(QUEUE_TIME_MIN)).max(QUEUE_BYTES_MIN);
        let queue = queue.map_or(usual, |queue| usize::try_from(queue).unwrap_or(usize::MAX));
        LinkPath { delay: rtt / 2, bandwidth, queue, loss: loss.clamp(0.0, laneway_quantity::LOSS_MAX) }
    }

    /// Returns true if the path has neither delay nor limit nor loss, so that nothing needs to be simulated.
    pub(crate) fn is_nothing(&self) -> bool {
        self.delay.is_zero() && self.bandwidth.is_none() && self.loss == 0.0
    }
}

#[cfg(test)]
mod tests {
    //! Senders and receivers in a closed loop, in virtual time.

    use bytes::Bytes;

    use super::flow::{Flow, FlowItem};
    use super::wire::Wire;
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);
    /// 25 MB/s, a round trip of 20 ms, and a queue of one round trip.
    const PATH: LinkPath =
        LinkPath { delay: Duration::from_millis(10), bandwidth: Some(25_000_000), queue: 500_000, loss: 0.0 };
    /// The bytes that a server writes at a time: a TLS record.
    const WRITE: &[u8] = &[0; 16 << 10];

    /// A connection's sender: its start, the bytes to send, and the maximum number of bytes that the receiver hasn't
    /// taken yet.
    #[derive(Clone, Copy)]
    struct Sender {
        begins: Duration,
        bytes: usize,
        most: usize,
    }

    const BULK: Sender = Sender { begins: Duration::ZERO, bytes: usize::MAX, most: RECEIVE_BYTES_MAX };

    #[derive(Clone, Debug, Default)]
    struct Came {
        bytes: usize,
        /// The arrival of the last byte.
        last: Duration,
    }

    /// Runs senders on a path until `end`. Returns the bytes that arrived from each, and the wait at the bottleneck at
    /// the end.
    fn run(path: LinkPath, senders: &[Sender], end: Duration) -> (Vec<Came>, Duration) {
        let mut wire = Wire::new(path, 1);
        let mut flows: Vec<_> = senders.iter().map(|_| Flow::new(&path, Duration::ZERO)).collect();
        let (mut left, mut came): (Vec<_>, Vec<_>) =
            senders.iter().map(|sender| (sender.bytes, Came::default())).unzip();
        let mut now = Duration::ZERO;
        while now < end {
            for (n, flow) in flows.iter_mut().enumerate() {
                flow.advance(now, &mut wire);
                while let Some(FlowItem::Bytes(bytes)) = flow.pop(now) {
                    flow.taken(now, bytes.len());
                    came[n].bytes += bytes.len();
                    came[n].last = now;
                }
                loop {
                    if now < senders[n].begins {
                        break;
                    }
                    let len = flow.room(now, senders[n].most, &mut wire).min(left[n]).min(WRITE.len());
                    if len == 0 {
                        break;
                    }
                    flow.send(now, Bytes::from_static(&WRITE[..len]), &mut wire);
                    left[n] -= len;
                }
            }
            let begins = senders.iter().map(|sender| sender.begins).filter(|begins| *begins > now);
            let events = flows.iter().flat_map(|flow| [flow.next(now), flow.next_room(now)]);
            let Some(next) = events.flatten().chain(begins).min() else { break };
            now = next.max(now + Duration::from_micros(1));
        }
        (came, wire.wait(now))
    }

    fn share(came: &[Came], path: LinkPath, seconds: u32) -> f64 {
        let all = came.iter().map(|came| came.bytes).sum::<usize>() as f64;
        all / path.bandwidth.unwrap() as f64 / f64::from(seconds)
    }

    #[test]
    fn senders_fill_the_path_and_its_queue_whatever_their_number() {
        for queue in [64 << 10, PATH.queue] {
            for senders in [1, 4, 20] {
                let path = LinkPath { queue, ..PATH };
                let (came, wait) = run(path, &vec![BULK; senders], 3 * S);
                let share = share(&came, path, 3);
                assert!((0.9..=1.0).contains(&share), "{senders} senders, a queue of {queue}: {share}");
                let longest = Duration::from_secs_f64(queue as f64 / 25e6) + 2 * MS;
                assert!(wait <= longest, "{senders} senders, a queue of {queue}: {wait:?}");
                // A single sender has at most two bandwidth-delay products of bytes under way, of which half wait in
                // the queue.
                assert!(
                    senders == 1 || wait > longest / 2,
                    "{senders} senders, a queue of {queue}: {wait:?}"
                );
            }
        }
    }

    #[test]
    fn loss_by_chance_makes_nobody_much_slower() {
        for senders in [1, 20] {
            let path = LinkPath { loss: 0.005, ..PATH };
            let (came, _) = run(path, &vec![BULK; senders], 3 * S);
            let share = share(&came, path, 3);
            assert!(share > 0.85, "{senders} senders: {share}");
        }
    }

    #[test]
    fn small_objects_queue_behind_bulk_unless_its_windows_are_small() {
        let small = Sender { begins: 2 * S, bytes: 100_000, most: RECEIVE_BYTES_MAX };
        let took = |bulk: &[Sender]| {
            let senders: Vec<_> = bulk.iter().copied().chain([small]).collect();
            let (came, _) = run(PATH, &senders, 4 * S);
            let came = came.last().unwrap();
            assert_eq!(came.bytes, small.bytes);
            came.last - small.begins
        };
        // Three flights: ten segments, twenty, and the rest.
        let alone = took(&[]);
        assert!((50 * MS..75 * MS).contains(&alone), "{alone:?}");
        let behind = took(&[BULK; 8]);
        assert!(behind > alone + 20 * MS, "{behind:?}, alone {alone:?}");
        // Together they have the bytes of one round trip.
        let clamped = took(&[Sender { most: 62_500, ..BULK }; 8]);
        assert!(clamped < alone + 10 * MS, "{clamped:?}, alone {alone:?}");
    }

    #[test]
    fn a_queue_holds_a_round_trip_unless_it_is_said_otherwise() {
        let queue = |rtt, bandwidth, queue| LinkPath::new(rtt, bandwidth, queue, 0.0).queue;
        assert_eq!(queue(20 * MS, Some(125_000_000), None), 2_500_000);
        assert_eq!(queue(2 * MS, Some(125_000_000), None), 625_000);
        assert_eq!(queue(Duration::ZERO, Some(1000), None), QUEUE_BYTES_MIN);
        assert_eq!(queue(20 * MS, Some(125_000_000), Some(1000)), 1000);
    }
}
