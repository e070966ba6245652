//! Every chosen number of the dispatcher, with its unit, the reason for its value and the links it was measured on.
//!
//! Factors such as one half, two or a square are written where they are used. `scenarios::ablation` changes one field at a time and runs
//! the simulated jobs again. [docs/ablation.md](../../../../docs/ablation.md) has its table.
//!
//! A lane is a connection: exclusive if it carries one request at a time (HTTP/1.1), multiplexed if it carries many (HTTP/2). An attempt is
//! one try of a request. Express lanes carry small requests. Freight is bulk, and freight lanes carry it.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Declares the numbers. The values after `not` are the alternatives that the ablation tries. The first one (almost) switches the rule off.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $chosen:expr, not $($other:expr),+;)+) => {
        /// The numbers, one per field.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Rules {
            $($(#[$doc])* pub(crate) $name: $kind,)+
        }

        impl Rules {
            /// The values that Laneway uses.
            pub(crate) const CHOSEN: Self = Self { $($name: $chosen,)+ };

            /// Returns one set of rules for each alternative value, after the name of the changed number and its new value.
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
    /// Connections at once over all origins, unless the caller sets a lower cap. At a round trip of 50 ms, 256 lanes of one request each
    /// ask for 5000 objects a second. S3 documents 5500 reads and 3500 writes a second for a prefix. Freight never takes the last quarter.
    /// Beyond half of this number, an origin needs [`attempts_min`](Self::attempts_min) attempts for each lane. A thousand files of 4.7 KB
    /// took 1.07 s with 254 lanes, over 50 ms to a server on two cores, and 0.85 s with 128 lanes.
    connections_max: usize = 256, not 64;

    // Classes and order.

    /// Bodies above this many bytes are freight. 1 MiB occupies a link of 1 Gbit/s for 8 ms, about as long as a small request can wait
    /// behind it. One S3 stream of some 90 MB/s needs 11 ms for 1 MiB. That is less than the round trip that ranges would cost.
    freight_above: u64 = MIB, not 16 * MIB, 256 * KIB;

    /// Bytes that a request counts for beside its body: both heads, and a store's JSON or XML answer. Without them a metadata request would
    /// count for nothing, and all of them would go on one lane.
    overhead: u64 = KIB, not 0;

    /// Bytes assumed for an opener's body until its answer tells the size. (An opener is a request whose answer may have any size.) Most
    /// small objects are smaller.
    opener_assumed: u64 = 256 * KIB, not 64 * KIB;

    /// An opener is freight at once if the origin has at most this many openers, itself included, and no other requests. So a program that
    /// fetches one or two large objects of unknown size doesn't begin on an express lane. Beside other bulk, a small opener would wait in
    /// the freight queue: of small openers beside four large objects, one in fifty waited 1.5 s.
    lone_openers: usize = 2, not 0;

    /// Smaller attempts may overtake an attempt if they come within this time after it, for each MiB of its weight. At 4.7 KB that is 5 ms.
    overtaken_for: Duration = Duration::from_secs(1), not Duration::ZERO;

    // Lanes.

    /// Most requests at once on one multiplexed express lane. A server's announced limit can only lower it. GCS announces 100 streams.
    /// Beyond 100, the window of another connection helps more than another stream.
    streams_max: usize = 100, not 10;

    /// Requests at once on one multiplexed freight lane: enough to hide one request's round trip behind the other's body.
    freight_streams: usize = 2, not 1;

    /// Most multiplexed express lanes of one origin, and most freight lanes. At 90 MB/s a stream, 32 lanes carry 2.9 GB/s, which fills a
    /// link of 25 Gbit/s.
    lanes_max: usize = 32, not 16;

    /// CPU time that both ends together spend on opening a connection with a TLS 1.3 handshake.
    handshake_cost: Duration = Duration::from_micros(800), not Duration::from_micros(200), Duration::from_micros(3200);

    /// Factor by which heads, frames, TLS records and partly filled packets enlarge bodies. Without it, the last of 75 small files took a
    /// round trip more than the others.
    framing: f64 = 1.12, not 1.0;

    /// Segments of each small answer. A server sends head and body as separate segments, however short they are. With 8 lanes for 50
    /// uploads, five answers came a round trip after the others. With 16 lanes none did.
    answer_segments: f64 = 2.0, not 0.0;

    /// Round trip assumed before the first handshake: that of a laptop to a far region. Too high a value opens a few lanes too many, once.
    /// Too low a value costs a round trip in every cold start: with 2 ms, 50 cold files at 120 ms took a third longer.
    rtt_assumed: Duration = Duration::from_millis(50), not Duration::from_millis(2);

    /// Requests a second that a server surely bears. It limits exclusive lanes beyond half of all connections. S3 promises 3500 writes and
    /// 5500 reads a second under one prefix before it has spread them over more servers. GCS begins with 1000 writes and 5000 reads.
    requests_a_second: f64 = 3500.0, not 0.0;

    // Small requests at once.

    /// Small attempts that are never held back: as many as one connection of a browser or an SDK carries, too few to delay each other. It
    /// is also the number of lanes to a server of unknown protocol. Half of it is the least number of lanes that fill a path. Beside bulk
    /// on the test rig, h2 took 27 connections with 16 at 10 ms, and 42 with 32.
    attempts_min: usize = 16, not 1, 32;

    /// Bytes of small attempts at once over a path of unknown rate: about as much as thirty connections send in four round trips. In the
    /// simulated network with half of it, objects of 32 to 512 KiB came a tenth later over 20 to 120 ms. With twice as much they came later
    /// on slow links.
    first_burst: f64 = (8 * MIB) as f64, not (4 * MIB) as f64, (32 * MIB) as f64;

    /// Rate in bytes a second that limits the first burst, here 5 Gbit/s. A server nearby shows its rate at once.
    first_rate_max: f64 = 625e6, not f64::INFINITY;

    /// Small requests in flight, in bandwidth-delay products of the path. On average, half of a body in flight has already arrived. And a
    /// path that isn't full can show twice the rate in the next round trip. Send buffers beside small requests also hold this many
    /// products. The kernel asks for more only when a third of a buffer is free, so on average three quarters are filled. With 1.5, bulk
    /// sank to two thirds of a path of 200 Mbit/s and 20 ms. Bulk alone may have twice as much in flight, because a whole product waits
    /// behind a lost packet.
    gain: f64 = 2.0, not 1.0, 4.0;

    /// The least time that a server is assumed to take for an answer, beside the round trip. A path with a shorter round trip lies within
    /// one building. Limits on bulk in flight also allow for a thread that doesn't run for this long. With 128 KiB for that instead, an
    /// in-memory path of 10 Gbit/s lost a fifth. The limits on downloads are decided at most this often.
    service_min: Duration = Duration::from_millis(1), not Duration::ZERO, Duration::from_millis(4);

    /// Time for which an attempt counts as in flight. After it, an attempt on a silent lane no longer holds up others.
    counted_for: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // The path.

    /// Shortest time between two readings of the bytes moved. Shorter ones measure bursts instead of the path. With 20 ms, a path of 1
    /// Gbit/s was once taken for 4 Gbit/s, because a thread had no core meanwhile.
    reading_min: Duration = Duration::from_millis(100), not Duration::from_millis(20);

    /// Readings that are averaged to a rate. Bytes behind a lost packet arrive all at once, so one reading can show twice the path's rate.
    readings: usize = 4, not 1;

    /// Time for which Laneway believes a path's measured rate. The value is BBR's.
    remembered: Duration = Duration::from_secs(10), not Duration::from_secs(3600), Duration::from_secs(3);

    /// Growth of the rate that shows that a path isn't full yet, or that added lanes pay. The value is BBR's. Receive windows beside small
    /// requests, and the pace of uploads that run alone, leave room for this growth.
    growth: f64 = 1.25, not 1.1, 1.5;

    // Bulk beside small requests.

    /// Bulk doesn't yield to small requests that the path carries within this time. The kernel takes as much bulk ahead of sending. With 4
    /// MiB a lane, four lanes held bytes for 0.1 s of a path of 1 Gbit/s. With 256 KiB a lane, a GiB over loopback took a tenth more CPU.
    moment: Duration = Duration::from_millis(10), not Duration::from_micros(100), Duration::from_millis(40);

    /// Least rate of yielding bulk, in bytes a second. Servers give up slower connections as dead.
    yield_floor: f64 = (256 * KIB) as f64, not 1.0;

    /// After each such time, yielding bulk may move twice as fast. New bulk may begin after the first.
    yield_step: Duration = Duration::from_secs(1), not Duration::from_secs(3600), Duration::ZERO;

    /// Round trips that new bulk waits in addition. A sender that is held from the start takes the path for slow: it finds only a quarter
    /// more in eight round trips. Without this wait, the simulated paths of 50 ms and more carried a tenth less.
    yield_round_trips: u32 = 16, not 0;

    /// Time after the last small request during which more are expected.
    small_expected_for: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// Bulk that is slower while it is held is left to TCP after this time. When small requests end, bulk needs some tenths of a second to
    /// regain its rate, which must not count as slower.
    strangled_after: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // Bulk on its way.

    /// Least limit of bytes in flight for a lane. With fewer than about 20 segments, TCP notices a loss only by a timeout. The kernel takes
    /// at least twice as much ahead, since it wakes the writer when half is left.
    lane_bytes_min: u32 = 32 * KIB as u32, not 4 * KIB as u32;

    /// Limit in bytes above which a lane is left to TCP: the path is long, and the queue adds little to its round trip.
    lane_bytes_max: f64 = (8 * MIB) as f64, not f64::INFINITY, MIB as f64;

    /// Bytes of bulk that the kernel takes ahead for each lane until the path's rate is known.
    unsent_unknown: u32 = 256 * KIB as u32, not 4 * MIB as u32;

    /// A new limit replaces the last one only if it differs by more than an eighth (one part in this number). The part must be smaller than
    /// the growth that a held path can show, or that growth would never be found. Lanes are dialled by the same rule. With a thirteenth
    /// lane beside twelve, the last of 75 small files waited for that lane and came a round trip late.
    change_min: u32 = 8, not u32::MAX, 2;

    /// Pace in bytes a second below which a lane is left to TCP: bulk that has stood still would begin again at so slow a pace.
    pace_min: f64 = MIB as f64, not 0.0, f64::INFINITY;

    // Freight lanes.

    /// Least time over which goodput is measured, unless two round trips are longer. Slow start doubles the rate in one round trip.
    window_min: Duration = Duration::from_millis(20), not Duration::from_millis(300);

    /// Growth of goodput in a window that shows slow start. A window has two round trips, and slow start doubles goodput in each.
    slow_start: f64 = 1.5, not f64::INFINITY, 1.1;

    /// Windows without such growth after which a sender has found its rate. The number is that of BBR's round trips.
    calm: u32 = 3, not 1, 6;

    /// The same if packets were lost: a sender that has overrun a short queue needs this long to recover. With 3, a path of 1 Gbit/s and 20
    /// ms with a queue of 512 KiB got 16 lanes.
    calm_after_loss: u32 = 12, not 3;

    /// Time without growth after which goodput can count as fallen. BBR drains its queue for 200 ms every ten seconds.
    fallen_min: Duration = Duration::from_millis(300), not Duration::ZERO;

    /// If goodput is this many times below the path's rate, the path doesn't limit it: the senders take each loss for a full queue. Below
    /// twice, rate-based senders (BBR) that were held back may still be growing.
    fallen: f64 = 2.0, not f64::INFINITY, 1.5;

    /// Factor of the first step, from one lane, if nothing was lost. The server most likely limits each connection then. With a cap of 90
    /// MB/s each, as S3 has, one more step reaches 5 Gbit/s.
    first_step: usize = 4, not 2;

    /// A round trip shows a queue if it exceeds the shortest by a tenth (one part in this number), and by
    /// [`service_min`](Self::service_min).
    queue: u32 = 10, not 1, 100;

    /// A connection stands still if nothing has come for a quarter (one part in this number) of the round trip. Its server or its window
    /// limits it then, not the path. One such window in four is more than chance. nginx with `limit_rate` pauses like this.
    pause: u32 = 4, not 1;

    /// Least length of such a pause. A busy machine causes shorter ones.
    pause_min: Duration = Duration::from_millis(4), not Duration::ZERO, Duration::from_secs(3600);

    /// Round trip from which slow start costs more than a queue. Several lanes begin side by side then.
    far: Duration = Duration::from_millis(100), not Duration::from_secs(3600);

    /// Bytes in flight of each of those lanes, by which their number is chosen for a path of 1 Gbit/s. Linux's send buffers let a
    /// connection have as much. With half of it, 200 ms and 1 Gbit/s took 6.4 s over 16 lanes with 14 % sent again, instead of 5.4 s over 8
    /// with none.
    far_lane: f64 = 3e6, not 1.5e6;

    /// Rate assumed for a path until it is known, in bytes a second: 1 Gbit/s.
    rate_unknown: f64 = 125e6, not 12.5e6, 1250e6;

    /// Round trips between two requests on a lane, for downloads and uploads: one for the request, and others until the window has grown.
    /// After an upload, the store also writes the part to disk before it answers.
    round_trips_between: [f64; 2] = [4.0, 8.0], not [0.0; 2], [8.0, 16.0];

    /// Most lanes side by side before added lanes have shown that they pay.
    side_by_side_max: usize = 16, not 1, 32;

    // Dials.

    /// Time that other dials wait for an origin's first one. A server nearby answers within it and gets a few lanes instead of many. With 2
    /// ms, a server 2 ms away was dialled 32 times, but only 14 connections paid. If our own timer fires late, the wait begins again. With
    /// 200 files to read, two cores noticed its end 10 ms late, and the handshakes of 32 lanes took 0.1 s.
    probe: Duration = Duration::from_millis(4), not Duration::ZERO;

    /// Most times that this wait begins again.
    probes: u32 = 16, not 0;

    /// A TLS flight that takes more than this many TCP handshakes went further: the TCP connection ends at a proxy nearby.
    proxy_factor: u32 = 8, not 1000;

    /// Time before a failed dial is repeated. Bulk doesn't yield to requests whose lanes are all still dialling after it.
    dial_again: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// Time that freight waits for a lane at the ceiling of connections. An origin without a lane waits as long for another's only one.
    turn: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // Servers' limits. The simulated jobs have none.

    /// Silence after which a connection's first request counts as unserved while other requests are answered. The driver looks again a
    /// second later and then gives the connection up. No path to a store takes 3 s, and neither does a packet that is sent again once.
    silent_max: Duration = Duration::from_secs(2), not Duration::from_secs(3600);

    /// An answer within this time shows that the origin can be reached.
    quick: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// Unserved connections in a row that show a limit. If one request in ten is reset at random, three in a row happen once in a thousand.
    unserved_in_a_row: u32 = 3, not u32::MAX;

    /// Time for which no connection beyond the limit is tried. A limit seldom changes, and a server that was restarting is back by then.
    limit_for: Duration = Duration::from_secs(60), not Duration::ZERO;

    /// Least idle time of a connection that counts as closed for being idle. If closed sooner, the server restarts or counts requests.
    idle_min: Duration = Duration::from_millis(500), not Duration::from_secs(3600);

    /// Time for which Laneway believes an idle limit that it has seen once. A restart looks the same, and lanes closed early show nothing.
    idle_believed_for: Duration = Duration::from_secs(600), not Duration::ZERO;
}
