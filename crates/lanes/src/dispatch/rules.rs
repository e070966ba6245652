//! All tuned constants of the dispatcher. Each has its unit, the reason for its value, and the links on which it was measured.
//!
//! Factors such as one half, two or a square are written where they are used. `scenarios::ablation` changes one field at a time and runs
//! the simulated jobs again. [docs/ablation.md](../../../../docs/ablation.md) shows the results.
//!
//! A lane is a connection. It is exclusive if it carries one request at a time (HTTP/1.1), and multiplexed if it carries many (HTTP/2). An
//! attempt is one try of a request. Express lanes carry small requests. Freight lanes carry requests with large bodies, called freight or
//! bulk.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Declares the constants. The values after `not` are alternatives that the ablation tries. The first alternative switches the rule off, or
/// almost off.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $chosen:expr, not $($other:expr),+;)+) => {
        /// The constants of the dispatcher, one per field.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Rules {
            $($(#[$doc])* pub(crate) $name: $kind,)+
        }

        impl Rules {
            /// The values that Laneway uses.
            pub(crate) const CHOSEN: Self = Self { $($name: $chosen,)+ };

            /// Returns one set of rules for each alternative value, with the name of the changed constant and its new value.
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
    /// The maximum number of connections to all origins together, unless the caller sets a lower one. At a round trip of 50 ms, 256 lanes
    /// with one request each fetch about 5000 objects per second. S3 documents 5500 reads and 3500 writes per second for a prefix. An
    /// origin gets more than half of the connections only if it has [`attempts_min`](Self::attempts_min) attempts for each lane. A thousand
    /// files of 4.7 KB took 1.07 s with 254 lanes and 0.85 s with 128, over 50 ms to a server on two cores.
    connections_max: usize = 256, not 64;

    /// Freight may use all connections but a quarter (1 divided by this number), or all but one of two or three. Express attempts that come
    /// later can then still open lanes.
    express_part: usize = 4, not usize::MAX;

    // The classes of requests, and the order in which they are sent.

    /// Requests with larger bodies than this many bytes are freight. 1 MiB occupies a link of 1 Gbit/s for 8 ms. Small requests that queue
    /// behind it wait for up to that time. One S3 stream of some 90 MB/s needs 11 ms for 1 MiB. A split into ranges would take longer,
    /// because it costs a round trip.
    freight_above: u64 = MIB, not 16 * MIB, 256 * KIB;

    /// Bytes that are added to a request's body when the load of a lane is counted. They stand for the heads of request and answer, and for
    /// the JSON or XML of the answer. Without these bytes, metadata requests would add no load, and all of them would be sent on one lane.
    overhead: u64 = KIB, not 0;

    /// The assumed size of an opener's body, until its answer shows the real size. (An opener is a request whose answer may have any size.)
    /// A typical small object is smaller.
    opener_assumed: u64 = 256 * KIB, not 64 * KIB;

    /// Openers are freight from the start if the origin has at most this many openers and no other requests. So a program that fetches one
    /// or two large objects of unknown size begins on freight lanes. If there is other bulk, openers are express, because small objects
    /// would wait in the freight queue. With four large objects, one small opener in fifty waited 1.5 s.
    lone_openers: usize = 2, not 0;

    /// A smaller attempt can overtake a larger one in the queue if it is submitted soon after the larger one. If the larger attempt has a
    /// weight of 1 MiB, soon means within this time. For other weights, the time is proportional to the weight: for 4.7 KB it is 4.5 ms.
    overtaken_for: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// The average sizes of answers are moving averages. Each answer moves them by an eighth (1 divided by this number) of the difference,
    /// as TCP does for its round trip (RFC 6298).
    smoothing: u32 = 8, not 1;

    // Lanes.

    /// The number of an origin's express lanes is chosen again if a measurement changes, or if the number of attempts changes by more than a
    /// sixteenth. (A sixteenth is 1 divided by this number.) Otherwise Laneway would choose after every event while attempts wait.
    demand_change_min: usize = 16, not usize::MAX;

    /// The maximum number of concurrent requests on one multiplexed express lane. The limit that a server announces can only lower it. GCS
    /// announces 100 streams. For more requests, the window of another connection helps more than another stream.
    streams_max: usize = 100, not 10;

    /// The maximum number of concurrent requests on one multiplexed freight lane. With two, one body arrives while the other request waits
    /// for its answer.
    freight_streams: usize = 2, not 1;

    /// The maximum number of multiplexed express lanes of one origin, and also of its freight lanes. At 90 MB/s per stream, 32 lanes carry
    /// 2.9 GB/s, which nearly fills a link of 25 Gbit/s.
    lanes_max: usize = 32, not 16;

    /// The CPU time that both ends together need to open a connection with a TLS 1.3 handshake.
    handshake_cost: Duration = Duration::from_micros(800), not Duration::from_micros(200), Duration::from_micros(3200);

    /// Heads, frames, TLS records and partly filled packets make a transfer larger than its bodies by this factor. Without this
    /// factor, the last of 75 small files took one round trip more than the others.
    framing: f64 = 1.12, not 1.0;

    /// The number of TCP segments in each small answer. A server sends head and body in separate segments, even if they are short. These
    /// segments use up the server's initial window: with 8 lanes for 50 uploads, five answers came one round trip later than the others.
    /// With 16 lanes none did.
    answer_segments: f64 = 2.0, not 0.0;

    /// Up to this many bytes (four initial windows), a connection sends a request or an answer in one round trip, if it has carried at
    /// least as many bytes before. The transfer itself is then short, so the end of the answer shows how long the server takes. For
    /// more bytes, the beginning of the answer shows it. Without this rule, the answer time of 20 ms was never learned from bodies of
    /// 20 KB. Then 500 puts by 32 threads went over 7 connections and took 1.7 s instead of 0.5 s on loopback.
    grown_window: f64 = 57_920.0, not 0.0;

    /// The round trip that is assumed before the first handshake. The value is typical between a laptop and a far region. If it is too
    /// high, we open a few lanes too many, once. If it is too low, every new process loses a round trip: with 2 ms, the first 50 files at
    /// 120 ms took a third longer.
    rtt_assumed: Duration = Duration::from_millis(50), not Duration::from_millis(2);

    /// The number of requests per second that every store is assumed to accept. It limits an origin's exclusive lanes if they are more than
    /// half of all connections. S3 promises 3500 writes and 5500 reads a second under one prefix, even before it has spread the prefix over
    /// several servers. GCS begins with 1000 writes and 5000 reads.
    requests_a_second: f64 = 3500.0, not 0.0;

    // Small requests in flight.

    /// Up to this many small attempts of an origin are always allowed in flight. A browser's or SDK's connection carries as many requests,
    /// and so few requests don't delay each other. A server of unknown protocol gets at most this many lanes. If the path is full, an
    /// origin can still get half this many lanes. On the test rig, with bulk and a round trip of 10 ms, HTTP/2 used 27 connections with the
    /// value 16, and 42 with the value 32.
    attempts_min: usize = 16, not 1, 32;

    /// The maximum number of bytes of small attempts in flight while the path's rate is unknown. Thirty new connections can send about this
    /// many bytes in four round trips. In the simulated network with half of this value, objects of 32 to 512 KiB took a tenth longer at
    /// round trips of 20 to 120 ms. With twice the value, they took longer on slow links.
    first_burst: f64 = (8 * MIB) as f64, not (4 * MIB) as f64, (32 * MIB) as f64;

    /// The first burst is also limited to the bytes that a path of this rate (5 Gbit/s) carries in a round trip. A nearby server needs no
    /// large burst, because its rate is measured soon.
    first_rate_max: f64 = 625e6, not f64::INFINITY;

    /// The maximum number of bytes of small requests in flight, in bandwidth-delay products of the path. On average, half of a body in
    /// flight has already arrived. Also, the rate of a path that isn't full can double in the next round trip. While there are small
    /// requests, send buffers are also limited to this many products. The kernel asks for more bytes only when a third of a buffer is free,
    /// so buffers are three quarters full on average. With 1.5, bulk used only two thirds of a path of 200 Mbit/s and 20 ms. Bulk alone may
    /// have twice as much in flight, because a whole bandwidth-delay product waits behind each lost packet.
    gain: f64 = 2.0, not 1.0, 4.0;

    /// The minimum time that a server is assumed to take for an answer, in addition to the round trip. A path with a shorter round trip is
    /// taken to lie within one building. Limits on bulk in flight include the bytes that the path carries in this time, because a thread
    /// may not run for that long. With a fixed 128 KiB instead of these bytes, an in-memory path of 10 Gbit/s lost a fifth of its rate. At
    /// least this time also passes between two decisions on the limits of downloads.
    service_min: Duration = Duration::from_millis(1), not Duration::ZERO, Duration::from_millis(4);

    /// An attempt is counted as in flight for at most this time. After that, an attempt on a lane without any progress no longer holds back
    /// other attempts.
    counted_for: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // The path.

    /// The minimum time between two readings of the bytes moved. A shorter time measures bursts instead of the path. With 20 ms, a path of
    /// 1 Gbit/s was once taken for 4 Gbit/s, because a thread had waited for a core and then read everything at once.
    reading_min: Duration = Duration::from_millis(100), not Duration::from_millis(20);

    /// A rate is the average of this many readings. Bytes that waited for a lost packet arrive all at once, so a single reading can show
    /// twice the path's rate.
    readings: usize = 4, not 1;

    /// The path is steady if its rate hasn't grown for this many round trips. Unlike on a full path, the rate may begin to grow again. After
    /// one round trip, slow start can still be under way: with 1, one object over 200 ms took 5.7 s instead of 5.2 s.
    steady_after: u32 = 2, not 1;

    /// A measured rate of a path is used for this time. BBR uses the same value.
    remembered: Duration = Duration::from_secs(10), not Duration::from_secs(3600), Duration::from_secs(3);

    /// If the rate has grown by this factor, the path wasn't full before, and lanes that were added are worth keeping. BBR uses the same
    /// value. Limits on bulk leave room for this growth: the receive windows while there are small requests, and the pace of uploads that
    /// run alone.
    growth: f64 = 1.25, not 1.1, 1.5;

    // Bulk while there are small requests.

    /// Bulk doesn't yield to small requests that the path carries within this time. The kernel also holds at most as much unsent bulk as
    /// the path carries in this time. With 4 MiB per lane instead, a path of 1 Gbit/s needed 0.1 s to carry the unsent bytes of four lanes.
    /// With 256 KiB per lane, a GiB over loopback needed a tenth more CPU time.
    moment: Duration = Duration::from_millis(10), not Duration::from_micros(100), Duration::from_millis(40);

    /// The minimum rate of yielding bulk, in bytes per second. Servers close connections that are slower.
    yield_floor: f64 = (256 * KIB) as f64, not 1.0;

    /// The rate of yielding bulk doubles whenever this time has passed. New bulk waits for the first doubling, and for
    /// [`yield_round_trips`](Self::yield_round_trips).
    yield_step: Duration = Duration::from_secs(1), not Duration::from_secs(3600), Duration::ZERO;

    /// A new rate of yielding bulk replaces the last one only if it differs by more than a quarter (1 divided by this number). A rate that
    /// rises with time doubles at once, so smaller changes come only from new measurements.
    yield_change_min: u64 = 4, not u64::MAX;

    /// The number of round trips that new bulk waits in addition to [`yield_step`](Self::yield_step). A sender whose rate is limited from
    /// its start assumes that the path is slow, and then raises its rate by only a quarter in eight round trips. Without this wait, the
    /// simulated paths of 50 ms and more carried a tenth less.
    yield_round_trips: u32 = 16, not 0;

    /// On a [far](Self::far) path that isn't full, downloaded bulk doesn't yield for this many round trips after it comes. Its senders need
    /// about as many round trips to reach their rate. At 200 ms and 1 Gbit/s, bulk whose windows were limited meanwhile needed six seconds.
    /// The time ends early if the rate stops growing and the small requests need more time.
    ramp: u32 = 12, not 0, 1000;

    /// For this time after the last small request, more small requests are expected.
    small_expected_for: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// If bulk has become slower under a limit for this time, the limit is removed. After small requests end, bulk needs some tenths of a
    /// second to regain its rate, so a shorter time would remove the limit by mistake.
    strangled_after: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // Bulk in flight.

    /// The minimum limit of bytes in flight for a lane. With fewer than about 20 segments in flight, TCP may notice a loss only by a
    /// timeout. The kernel may hold at least twice as many unsent bytes, since it wakes the writer when half of them are left.
    lane_bytes_min: u32 = 32 * KIB as u32, not 4 * KIB as u32;

    /// If a lane's limit would be above this many bytes, the lane gets no limit. Its path is then so long that a queue adds little to the
    /// round trip.
    lane_bytes_max: f64 = (8 * MIB) as f64, not f64::INFINITY, MIB as f64;

    /// The maximum number of unsent bytes of bulk that the kernel holds for each lane, until the path's rate is known.
    unsent_unknown: u32 = 256 * KIB as u32, not 4 * MIB as u32;

    /// A new limit replaces the last one only if it differs by more than an eighth (1 divided by this number). This part must be smaller
    /// than the part by which [`growth`](Self::growth) lets a rate grow. Otherwise the limit would never follow a path that has become
    /// faster. Lanes are added only if more than an eighth of the existing number is missing. Without this rule, a thirteenth lane was
    /// dialled, and the last of 75 small files waited for it and came a round trip late.
    change_min: u32 = 8, not u32::MAX, 2;

    /// If the pace of a lane would be below this many bytes per second, the lane gets no pace. Otherwise bulk that has paused would start
    /// again at a very low pace.
    pace_min: f64 = MIB as f64, not 0.0, f64::INFINITY;

    // Freight lanes.

    /// The time over which goodput is measured, or two round trips if that is longer. Slow start doubles the rate in each round trip.
    window_min: Duration = Duration::from_millis(20), not Duration::from_millis(300);

    /// If goodput grows by this factor from one measuring window to the next, senders are still in slow start. A window lasts two round
    /// trips, and slow start doubles goodput in each.
    slow_start: f64 = 1.5, not f64::INFINITY, 1.1;

    /// After this many windows without growth by the factor [`slow_start`](Self::slow_start), the senders have found their rate. BBR waits
    /// for the same number of round trips.
    calm: u32 = 3, not 1, 6;

    /// If packets were lost, this number of windows replaces [`calm`](Self::calm). A sender that has overrun a short queue needs this long
    /// to recover. With 3, a path of 1 Gbit/s and 20 ms with a queue of 512 KiB got 16 lanes, which it doesn't need.
    calm_after_loss: u32 = 12, not 3;

    /// Goodput counts as fallen only after this time without growth. BBR slows down for 200 ms every ten seconds to drain its queue.
    /// Without this minimum, such a pause would count as a fall.
    fallen_min: Duration = Duration::from_millis(300), not Duration::ZERO;

    /// If goodput is this many times lower than the path's rate, the path doesn't limit it. The cause is then that senders slow down after
    /// each lost packet, as if a queue were full. With a smaller factor, this would also apply to rate-based senders (BBR) that were held
    /// back and still grow.
    fallen: f64 = 2.0, not f64::INFINITY, 1.5;

    /// The first step multiplies a single lane by this factor if no packet was lost, because the server then most likely limits each
    /// connection. If each connection is limited to 90 MB/s, as with S3, one more step reaches 5 Gbit/s.
    first_step: usize = 4, not 2;

    /// A round trip shows a queue on the path if it exceeds the shortest one by a tenth (1 divided by this number), and by at least
    /// [`service_min`](Self::service_min).
    queue: u32 = 10, not 1, 100;

    /// A connection pauses if no packet has come for a quarter of the round trip (the round trip divided by this number). The server or the
    /// receive window then limits the connection, not the path. If a quarter of the measuring windows have a pause, the pauses aren't
    /// accidental. nginx with `limit_rate` makes such pauses.
    pause: u32 = 4, not 1;

    /// The minimum length of such a pause. A busy machine causes shorter ones.
    pause_min: Duration = Duration::from_millis(4), not Duration::ZERO, Duration::from_secs(3600);

    /// If the round trip is at least this long, bulk begins on several lanes at once. Slow start would cost more time than the queue that
    /// these lanes can cause.
    far: Duration = Duration::from_millis(100), not Duration::from_secs(3600);

    /// The assumed bytes in flight of each lane on a [`far`](Self::far) path. The number of lanes is chosen so that they fill a path of 1
    /// Gbit/s. Linux's send buffers allow a connection this many bytes in flight. With this value, a transfer over 200 ms and 1 Gbit/s took
    /// 5.4 s over 8 lanes, with nothing retransmitted. With half of it, 16 lanes took 6.4 s and retransmitted 14 %.
    far_lane: f64 = 3e6, not 1.5e6;

    /// The rate that is assumed for a path until it is known, in bytes per second: 1 Gbit/s.
    rate_unknown: f64 = 125e6, not 12.5e6, 1250e6;

    /// The number of round trips that a lane loses between two requests, for downloads and for uploads. One round trip passes between the
    /// request and the answer. The other round trips pass until the window has grown again. After an upload, the store also writes the part
    /// to disk before it answers.
    round_trips_between: [f64; 2] = [4.0, 8.0], not [0.0; 2], [8.0, 16.0];

    /// The maximum number of lanes to use before trials have shown that more lanes raise goodput.
    side_by_side_max: usize = 16, not 1, 32;

    // Dials.

    /// The time for which an origin's other dials wait for the round trip of its first one. A nearby server answers within this time, and
    /// then gets few lanes instead of many. With 2 ms, a server 2 ms away got 32 connections, although 14 were enough. If our own timer
    /// fires late, the wait begins again. On a machine with two cores and 200 files to read, the timer fired 10 ms late, and the handshakes
    /// of 32 lanes took 0.1 s.
    probe: Duration = Duration::from_millis(4), not Duration::ZERO;

    /// The maximum number of times that the wait for [`probe`](Self::probe) begins again.
    probes: u32 = 16, not 0;

    /// If a TLS handshake's round trip is more than this many times longer than the TCP handshake's, the TCP connection ends at a nearby
    /// proxy. In this case, only the TLS handshake shows the round trip to the server.
    proxy_factor: u32 = 8, not 1000;

    /// The pause before a failed dial is repeated. After this time, bulk no longer yields to small requests whose lanes are all still being
    /// dialled.
    dial_again: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// While all connections are in use, queued freight waits. After this time, freight gets the next free lane before express does. An
    /// origin without a lane waits for the same time before another origin gives up its only lane.
    turn: Duration = Duration::from_secs(1), not Duration::from_secs(3600);

    // Limits of servers. The servers of the simulated jobs have no limits, so the ablation shows no effect.

    /// If a connection's first request has no answer after this time, while other requests are answered, the server isn't serving the
    /// connection. The driver checks again a second later, and then closes it. On every path to a store, an answer takes less than 3 s,
    /// even if one packet is retransmitted.
    silent_max: Duration = Duration::from_secs(2), not Duration::from_secs(3600);

    /// An answer within this time shows that the origin can be reached.
    quick: Duration = Duration::from_secs(1), not Duration::ZERO;

    /// This many unserved connections in a row show that the server limits connections. If a server resets one request in ten at random,
    /// three resets in a row happen once in a thousand times.
    unserved_in_a_row: u32 = 3, not u32::MAX;

    /// After a server's limit was found, no connection beyond the limit is opened for this time. A limit seldom changes, and a restarted
    /// server works again by then.
    limit_for: Duration = Duration::from_secs(60), not Duration::ZERO;

    /// If the server closes a connection that was idle for less than this time, the reason isn't its idle timeout. The server may be
    /// restarting, or may limit the number of requests on each connection.
    idle_min: Duration = Duration::from_millis(500), not Duration::from_secs(3600);

    /// An idle lane is closed before the server's idle timeout: earlier by a round trip, and by a tenth of the timeout (1 divided by this
    /// number). Timers are coarse.
    idle_margin: u32 = 10, not u32::MAX;

    /// An idle timeout that was concluded from a closed connection is used for this time. The true reason may have been a restart. We can't
    /// notice such an error, because we close idle lanes before the supposed timeout.
    idle_believed_for: Duration = Duration::from_secs(600), not Duration::ZERO;
}
