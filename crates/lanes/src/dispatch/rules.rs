//! Every number that the dispatcher's rules were given, with its unit, the reason for its value and the links it was measured on.
//!
//! Half a number, twice a number and a number's square are written where they are used. `scenarios::ablation` changes one field after the
//! other and runs the simulated jobs again; [docs/ablation.md](../../../../docs/ablation.md) has its table.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Declares the numbers. Behind `not` stand the values that the ablation tries instead: the first one switches the rule off or all but so.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $chosen:expr, not $($other:expr),+;)+) => {
        /// The numbers, one a field.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Rules {
            $($(#[$doc])* pub(crate) $name: $kind,)+
        }

        impl Rules {
            /// The values that Laneway uses.
            pub(crate) const CHOSEN: Self = Self { $($name: $chosen,)+ };

            /// Returns the rules with one number changed, for each number and each of its other values, and what was changed.
            #[cfg(test)]
            pub(crate) fn ablated() -> Vec<(&'static str, &'static str, Self)> {
                vec![$($((stringify!($name), stringify!($other), Self { $name: $other, ..Self::CHOSEN }),)+)+]
            }
        }
    };
}

impl Default for &'static Rules {
    fn default() -> Self {
        &Rules::CHOSEN
    }
}

rules! {
    /// Connections at once over all origins, unless the caller caps them lower. At 50 ms of round trip, 256 lanes of one request each ask
    /// for 5000 objects a second. S3 documents 5500 reads and 3500 writes for a prefix. A quarter is never freight's.
    /// Beyond half of them each lane of an origin needs [`attempts_min`](Self::attempts_min) attempts. With 254 lanes a thousand files of
    /// 4.7 KB took 1.07 s over 50 ms to a server on two cores, and with 128 they took 0.85 s.
    connections_max: usize = 256, not 64;

    // Classes and order.

    /// Bodies above this many bytes are freight. 1 MiB keeps a link of 1 Gbit/s for 8 ms, about what a small request can bear behind it.
    /// One S3 stream of some 90 MB/s needs 11 ms for it, less than the round trip that ranges would cost.
    freight_above: u64 = MIB, not 16 * MIB, 256 * KIB;

    /// Bytes that a request weighs beside its body: both heads, and a store's JSON or XML answer. Without it metadata weighs nothing and
    /// goes on one lane.
    overhead: u64 = KIB, not 0;

    /// Bytes that an opener's body is taken for until its answer tells. Most small objects stay below it.
    opener_assumed: u64 = 256 * KIB, not 64 * KIB;

    /// An opener is freight at once while at most this many are alive and nothing else is. A program that fetches one or two objects of
    /// unknown size then saves bulk the detour over an express lane. Beside other bulk, a small opener would stand in its queue: one
    /// in fifty that came while four large objects did waited 1.5 s.
    lone_openers: usize = 2, not 0;

    /// An attempt may be overtaken by smaller ones that come up to so much later for each MiB that it weighs: 5 ms for 4.7 KB.
    overtaken_for: Duration = Duration::from_secs(1), not Duration::ZERO;

    // Lanes.

    /// Requests at once on one multiplexed express lane, until the server announces its limit and at most. GCS announces 100 streams.
    /// Beyond them another connection's window is worth more than another stream.
    streams_max: usize = 100, not 10;

    /// Requests at once on one multiplexed freight lane: enough to hide one request's round trip behind the other's body.
    freight_streams: usize = 2, not 1;

    /// Multiplexed express lanes of one origin, and freight lanes, at most. At 90 MB/s a stream, 32 of them are 2.9 GB/s, a link of 25
    /// Gbit/s.
    lanes_max: usize = 32, not 16;

    /// CPU time of both ends for opening one more connection: a handshake of TLS 1.3.
    handshake_cost: Duration = Duration::from_micros(800), not Duration::from_micros(200), Duration::from_micros(3200);

    /// Share by which heads, frames, TLS records and packets that are not full add to bodies. Reckoned without it, the last of 75 small
    /// files took a round trip more than the others.
    framing: f64 = 1.12, not 1.0;

    /// Segments of each small answer. A server sends head and body as segments of their own, however short they are. With 8 lanes for 50
    /// uploads, five answers came a round trip after the others; with 16 lanes none did.
    answer_segments: f64 = 2.0, not 0.0;

    /// Round trip assumed until a handshake has shown one: a laptop to a far region. Too much opens a few lanes too many once. Too little
    /// costs a round trip in every cold start: with 2 ms, 50 cold files at 120 ms took a third longer.
    rtt_assumed: Duration = Duration::from_millis(50), not Duration::from_millis(2);

    /// Attempts that each multiplexed lane carries beyond the sixteenth. A few dozen files need no more lanes to be polite and fast at
    /// once.
    attempts_per_lane: usize = 32, not 1;

    /// Requests a second that a server surely bears, which limits exclusive lanes beyond half of all connections. S3 promises so many
    /// writes under one prefix before it has spread them over more servers, and 5500 reads. GCS begins with 1000 writes and 5000 reads.
    requests_a_second: f64 = 3500.0, not 0.0;

    // Small requests at once.

    /// Small attempts that are never held back: as many as one lane of a browser or an SDK carries. They are too few to be in each other's
    /// way. It is also the number of lanes to a server of unknown protocol. Beside bulk on the rig, h2 took 27 connections with it at 10
    /// ms, and 42 with twice as many. Half of it is the least number of lanes that fill a path.
    attempts_min: usize = 16, not 1, 32;

    /// Bytes of small attempts at once over a path that has shown nothing yet: about what thirty connections send in four round trips. In
    /// the simulated network, objects of 32 to 512 KiB came a tenth later with half of it over 20 to 120 ms. With twice as much they came
    /// later on slow links.
    first_burst: f64 = (8 * MIB) as f64, not (4 * MIB) as f64, (32 * MIB) as f64;

    /// Bytes a second up to which the first burst counts. A server nearby shows at once what it carries, so 5 Gbit/s are enough.
    first_rate_max: f64 = 625e6, not f64::INFINITY;

    /// Bandwidth-delay products that go at once. Half of a body on its way has come already, and a path that isn't full shows twice as much
    /// in the next round trip. Send buffers beside small requests hold as much: the kernel asks for more only when a third of a buffer is
    /// free, so that on average three quarters are filled. With 1.5 bulk sank to two thirds of a path of 200 Mbit/s and 20 ms. Bulk alone
    /// may have twice as much on its way, because as much as the path holds waits behind a lost packet.
    gain: f64 = 2.0, not 1.0, 4.0;

    /// Time that a server takes to answer at least, beside the round trip. Paths shorter than it lie within a house. A thread may also not
    /// run for so long: with 128 KiB for that instead, a memory's path of 10 Gbit/s lost a fifth. Limits are decided no more often.
    service_min: Duration = Duration::from_millis(1), not Duration::ZERO, Duration::from_millis(4);

    /// An attempt counts as on its way for so long. A silent lane then holds up no others.
    counted_for: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // The path.

    /// Time between readings of what has moved. Closer readings say more of bursts than of the path. Read over 20 ms, a path of 1 Gbit/s
    /// was once taken for one of 4: a thread had no core meanwhile.
    reading_min: Duration = Duration::from_millis(100), not Duration::from_millis(20);

    /// Readings that together are a rate. Bytes behind a lost packet come all at once, and one reading then shows up to twice the path.
    readings: usize = 4, not 1;

    /// Time for which Laneway believes what a path has shown. It is BBR's.
    remembered: Duration = Duration::from_secs(10), not Duration::from_secs(3600), Duration::from_secs(3);

    /// Growth by which a path isn't full yet, or a step of lanes pays. It is BBR's. Receive windows beside small requests and the pace of
    /// uploads alone leave room for it.
    growth: f64 = 1.25, not 1.1, 1.5;

    // Bulk beside small requests.

    /// Small requests that the path carries in this time don't make bulk yield. The kernel takes as much of bulk ahead.
    /// Four lanes with 4 MiB each had 0.1 s of a path of 1 Gbit/s ahead. With 256 KiB a lane, a GiB over loopback took a tenth more CPU.
    moment: Duration = Duration::from_millis(10), not Duration::from_micros(100), Duration::from_millis(40);

    /// Bytes a second that bulk keeps at least. Servers give up connections below it as dead.
    yield_floor: f64 = (256 * KIB) as f64, not 1.0;

    /// Time after which bulk that yields may have twice as much, and new bulk may begin.
    yield_step: Duration = Duration::from_secs(1), not Duration::from_secs(3600), Duration::ZERO;

    /// Round trips that new bulk waits besides. A sender whose connection is held when it is new takes the path for slow, and finds a
    /// quarter more in eight round trips. Without them the simulated paths of 50 ms and more carried a tenth less.
    yield_round_trips: u32 = 16, not 0;

    /// Time after small requests in which more of them are expected.
    small_expected_for: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// Time for which bulk has to be slower while it is held, until TCP decides alone. When small requests end, bulk needs some tenths of a
    /// second to find its pace.
    strangled_after: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // Bulk on its way.

    /// Bytes that a lane may have on its way at least. Below a score of segments TCP notices a loss only by a timeout. What the kernel
    /// takes ahead is at least twice as much, since its writer is woken when half of it is left.
    lane_bytes_min: u32 = 32 * KIB as u32, not 4 * KIB as u32;

    /// Bytes above which a lane is left to TCP: the path is long, and its queue a small part of it.
    lane_bytes_max: f64 = (8 * MIB) as f64, not f64::INFINITY, MIB as f64;

    /// Bytes of bulk that the kernel takes ahead for each lane until the path is known.
    unsent_unknown: u32 = 256 * KIB as u32, not 4 * MIB as u32;

    /// A limit that differs by less than one in so many stays. The part must be less than a path may turn out to hold more, or that would
    /// never be found. Lanes that add less stay undialled: with a thirteenth beside twelve, the last of 75 small files waited for it and
    /// came a round trip late.
    change_min: u32 = 8, not u32::MAX, 2;

    /// Bytes a second below which a pace is left to TCP: bulk that has stood still would begin again by it.
    pace_min: f64 = MIB as f64, not 0.0, f64::INFINITY;

    // Freight lanes.

    /// Time over which goodput is measured at least, beside two round trips. In one round trip senders double what they send.
    window_min: Duration = Duration::from_millis(20), not Duration::from_millis(300);

    /// Growth of goodput in a window that is a slow start's, which doubles in each of its two round trips.
    slow_start: f64 = 1.5, not f64::INFINITY, 1.1;

    /// Windows without such growth after which a sender has found its rate. BBR takes as many round trips.
    calm: u32 = 3, not 1, 6;

    /// The same where packets were lost: a sender that has overrun a short queue takes so long to mend it. With 3, a path of 1 Gbit/s and
    /// 20 ms with a queue of 512 KiB got 16 lanes.
    calm_after_loss: u32 = 12, not 3;

    /// Calm after which goodput counts as fallen. BBR drains its queue for 200 ms each ten seconds.
    fallen_min: Duration = Duration::from_millis(300), not Duration::ZERO;

    /// Goodput so many times below the path's isn't held by the path, but by senders that take each loss for a full queue. Below twice,
    /// senders that go by rate and were held back are still growing.
    fallen: f64 = 2.0, not f64::INFINITY, 1.5;

    /// Lanes of the first step where nothing was lost. Then most likely the server holds its connections: with a cap of 90 MB/s each, as S3
    /// has, one more step reaches 5 Gbit/s.
    first_step: usize = 4, not 2;

    /// A round trip longer than the shortest by one in so many, and by [`service_min`](Self::service_min), shows a queue.
    queue: u32 = 10, not 1, 100;

    /// A connection stands still while nothing has come for one in so many parts of the round trip. Its server or its window holds it then,
    /// and not the path. One such window in as many is more than chance. nginx with `limit_rate` pauses so.
    pause: u32 = 4, not 1;

    /// Time that such a pause takes at least: a busy machine pauses for less.
    pause_min: Duration = Duration::from_millis(4), not Duration::ZERO, Duration::from_secs(3600);

    /// Round trip from which slow starts cost more than a queue, so that lanes begin side by side.
    far: Duration = Duration::from_millis(100), not Duration::from_secs(3600);

    /// Bytes that each of those lanes fills of a path of 1 Gbit/s: Linux's send buffers let a connection have them on its way. With half of
    /// it, 200 ms and 1 Gbit/s took 6.4 s over 16 lanes with 14 % sent again, instead of 5.4 s over 8 with none.
    far_lane: f64 = 3e6, not 1.5e6;

    /// Bytes a second that a path is taken for until it is known: 1 Gbit/s.
    rate_unknown: f64 = 125e6, not 12.5e6, 1250e6;

    /// Round trips that a lane takes from one request to the next, down and up: one for the request, and others until its window has grown.
    /// The store also writes a part of an upload down before it answers.
    round_trips_between: [f64; 2] = [4.0, 8.0], not [0.0; 2], [8.0, 16.0];

    /// Lanes side by side at most before any has shown that it pays.
    side_by_side_max: usize = 16, not 1, 32;

    // Dials.

    /// Time that an origin's first dial is waited for before others begin. A server nearby answers within it and gets a few lanes instead
    /// of many. With 2 ms, a server 2 ms away was dialled 32 times where 14 connections were worth having. Where our own timers come late
    /// it begins again: with 200 files to read, two cores noticed it 10 ms late, and the handshakes of 32 lanes took 0.1 s.
    probe: Duration = Duration::from_millis(4), not Duration::ZERO;

    /// Times that it begins again at most.
    probes: u32 = 16, not 0;

    /// A TLS flight that takes so many times the TCP handshake went further: a proxy nearby took the TCP connection.
    proxy_factor: u32 = 8, not 1000;

    /// Time after which a failed dial is repeated. A lane dialled for longer carries nothing soon, so that bulk doesn't yield for it.
    dial_again: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// Time that freight waits at the ceiling for a lane, and an origin without a lane for another's only one.
    turn: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // Servers' limits. The simulated jobs have none.

    /// Silence after which a first request counts as not served, while others are answered. The driver looks again a second later, and
    /// gives the connection up by then. No path to a store takes 3 s, and neither does a packet that is sent again once.
    silent_max: Duration = Duration::from_secs(2), not Duration::from_secs(3600);

    /// An answer within this time shows that the origin isn't away.
    quick: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// Connections in a row that remain unserved and show a limit. With one request of ten reset at random, three do once in a thousand.
    unserved_in_a_row: u32 = 3, not u32::MAX;

    /// Time for which no further connection is tried. A server's limit seldom changes, and a server that was restarting is back by then.
    limit_for: Duration = Duration::from_secs(60), not Duration::ZERO;

    /// Rest after which a closed connection was closed for being idle. Sooner, a server was restarted or counts requests.
    idle_min: Duration = Duration::from_millis(500), not Duration::from_secs(3600);

    /// Time for which an idle limit is believed that was seen once. A restart looks the same, and lanes that are given up show nothing new.
    idle_believed_for: Duration = Duration::from_secs(600), not Duration::ZERO;
}
