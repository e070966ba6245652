//! Measures a path: its rate, whether traffic has filled it, and how long its server takes to answer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Direction;
use super::rules::Rules;

/// The measured rate of one direction of a path.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    rules: &'static Rules,
    last: Option<(Instant, u64)>,
    /// The time when the first request began. It is used only until the first reading.
    began: Option<Instant>,
    /// The last readings. Their mean is the rate.
    readings: VecDeque<f64>,
    /// Recent rates that no later rate has reached, in falling order. The first one is the best.
    rates: VecDeque<(Instant, f64)>,
    /// The number of readings since the rate last grew, during traffic that can fill the path. `settled_by_bulk` counts only the readings
    /// during bulk. At most one reading counts in each round trip, because a sender in slow start raises its rate only once in this time.
    settled: u32,
    settled_by_bulk: u32,
    /// The time of the last growth or of the last counted reading.
    settled_at: Option<Instant>,
    /// The last rate that was measured while bulk moved without a limit, and the time of its reading.
    bulk: Option<(Instant, f64)>,
    /// True if bulk was limited at the last reading.
    was_held: bool,
    cannot_be_read: bool,
}

/// The kind of traffic on the path during a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathLoad {
    /// True if bulk moves without a limit, or if small requests wait for other requests to end. Only such traffic can fill the path.
    pub(super) fills: bool,
    /// True if bulk moves without a limit.
    pub(super) has_bulk: bool,
    /// True if bulk is limited.
    pub(super) is_held: bool,
    /// True if small requests wait for other requests to end.
    pub(super) small_wait: bool,
    /// The round trip, or zero if it is unknown.
    pub(super) rtt: Duration,
}

impl PathLoad {
    /// Describes the traffic. `small_wait` is true if small requests wait for other requests to end. `is_held` is true if bulk is limited.
    pub(super) fn of(small_wait: bool, has_bulk: bool, is_held: bool, rtt: Duration) -> Self {
        let has_bulk_that_moves = has_bulk && !is_held;
        Self {
            fills: small_wait || has_bulk_that_moves,
            has_bulk: has_bulk_that_moves,
            is_held: has_bulk && is_held,
            small_wait,
            rtt,
        }
    }
}

impl Throughput {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Processes a reading of the bytes moved so far. Returns whether the reading is used. A reading isn't used if it comes too soon or
    /// too late after the last one.
    ///
    /// While bulk is limited, the path could carry more than the reading shows. So the best rate doesn't expire meanwhile. Otherwise
    /// Laneway would take the limited rate for the path's rate, and would limit bulk to a fraction of that. The first reading after the
    /// limit ends isn't used either, because it includes bytes that have accumulated.
    pub(super) fn read(&mut self, now: Instant, bytes: u64, load: PathLoad) -> bool {
        let Some((at, before)) = self.last else {
            self.last = Some((now, bytes));
            return false;
        };
        let passed = now.saturating_duration_since(at);
        if passed < self.rules.reading_min {
            return false;
        }
        self.last = Some((now, bytes));
        let is_let_go = std::mem::replace(&mut self.was_held, load.is_held) && !load.is_held;
        // If the last reading is this long ago, there were no requests meanwhile.
        let is_late = passed > self.rules.reading_min * self.rules.readings as u32;
        if is_late {
            self.readings.clear();
        }
        if is_late || is_let_go {
            return false;
        }
        if self.readings.len() == self.rules.readings {
            self.readings.pop_front();
        }
        self.readings.push_back(bytes.saturating_sub(before) as f64 / passed.as_secs_f64());
        let rate = self.latest();
        let best = self.rate().unwrap_or_default();
        let counts = self.settled_at.is_none_or(|at| now.saturating_duration_since(at) >= load.rtt);
        // On a far path, bulk takes many round trips to find its rate. If many small requests have a steady rate meanwhile, the total rate
        // seems steady too. So such a reading doesn't count for bulk.
        let by_bulk = load.has_bulk && !(load.small_wait && load.rtt >= self.rules.far);
        if rate > best * self.rules.growth {
            (self.settled, self.settled_by_bulk, self.settled_at) = (0, 0, Some(now));
        } else if load.fills && best > 0.0 && counts {
            self.settled_at = Some(now);
            self.settled = self.settled.saturating_add(1);
            self.settled_by_bulk = self.settled_by_bulk.saturating_add(u32::from(by_bulk));
        }
        if load.has_bulk {
            self.bulk = Some((now, rate));
        }
        while self.rates.back().is_some_and(|(_, lower)| *lower <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((now, rate));
        let is_old = |(at, _): &(Instant, f64)| now.saturating_duration_since(*at) > self.rules.remembered;
        while !load.is_held && self.rates.front().is_some_and(is_old) {
            self.rates.pop_front();
        }
        if self.rate().unwrap_or_default() * self.rules.growth < best {
            (self.settled, self.settled_by_bulk) = (0, 0);
        }
        true
    }

    /// Returns the mean rate of the last readings, in bytes per second.
    pub(super) fn latest(&self) -> f64 {
        self.readings.iter().sum::<f64>() / self.readings.len().max(1) as f64
    }

    /// Records that this operating system doesn't report how many bytes move. The rate then stays unknown, and no tick is needed for a
    /// reading.
    pub(super) fn cannot_be_read(&mut self) {
        (self.cannot_be_read, self.began) = (true, None);
    }

    /// Returns whether the path's rate can be measured.
    pub(super) fn can_be_read(&self) -> bool {
        !self.cannot_be_read
    }

    /// Records that there is a request, so that readings are needed.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.can_be_read() {
            self.began.get_or_insert(now);
        }
    }

    /// Returns the earliest time when the next reading counts, once a request has [begun](Self::begin).
    pub(super) fn next_reading(&self) -> Option<Instant> {
        self.last.map(|(at, _)| at + self.rules.reading_min).or(self.began)
    }

    /// Returns the last rate that was measured while bulk moved without a limit, and the time of its reading.
    pub(super) fn bulk_reading(&self) -> Option<(Instant, f64)> {
        self.bulk
    }

    /// Records that bulk has caused a queue on the path. Such a queue shows that the path is full.
    pub(super) fn filled(&mut self) {
        if self.cannot_be_read {
            return;
        }
        let enough = self.rules.readings as u32;
        (self.settled, self.settled_by_bulk) = (self.settled.max(enough), self.settled_by_bulk.max(enough));
    }

    /// Returns whether bulk or small requests have filled the path. A reading while only small requests move counts only if further
    /// requests were waiting.
    pub(super) fn is_full(&self) -> bool {
        self.settled >= self.rules.readings as u32
    }

    /// Returns whether bulk has filled the path, so that the measured rate is the path's capacity. Small requests are ignored here, because
    /// a slow server may have limited their rate.
    pub(super) fn is_full_of_bulk(&self) -> bool {
        self.settled_by_bulk >= self.rules.readings as u32
    }

    /// Returns whether the rate, of bulk and of small requests together, hasn't grown for some round trips.
    pub(super) fn is_steady(&self) -> bool {
        self.settled >= self.rules.steady_after
    }

    /// Returns the best recent rate in bytes per second. Returns `None` if no bytes have moved.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rates.front().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0)
    }
}

/// The measurements of the path to one origin.
#[derive(Debug, Default)]
pub(super) struct PathModel {
    rules: &'static Rules,
    throughput: [Throughput; 2],
    /// The bytes moved so far in each direction. `None` on systems that don't report them.
    moved: [Option<u64>; 2],
    /// The shortest round trips that TLS handshakes and TCP handshakes have shown.
    tls: Option<Duration>,
    tcp: Option<Duration>,
    service: ServiceTime,
}

impl PathModel {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let throughput = [Throughput::by(rules), Throughput::by(rules)];
        Self { rules, throughput, service: ServiceTime::by(rules), ..Self::default() }
    }

    /// Records the round trip of a TLS handshake. Only the shortest one is kept, because a busy machine makes handshakes longer.
    pub(super) fn handshake(&mut self, rtt: Duration) {
        self.tls = Some(self.tls.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Records the round trip of a TCP handshake, which a middlebox may have answered.
    pub(super) fn reached(&mut self, rtt: Duration) {
        self.tcp = Some(self.tcp.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Returns the round trip, if known. A TCP handshake may end at a nearby proxy, while a TLS handshake reaches the server. But a TLS
    /// handshake includes CPU time of both ends, which is many milliseconds in a burst of handshakes. So the shorter round trip is used,
    /// unless TCP's is much shorter.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        match (self.tls, self.tcp) {
            (Some(tls), Some(tcp)) if tls <= tcp * self.rules.proxy_factor => Some(tcp.min(tls)),
            (tls, tcp) => tls.or(tcp),
        }
    }

    pub(super) fn rtt(&self) -> Duration {
        self.round_trip().unwrap_or_default()
    }

    /// Records that an attempt with few bytes was answered, `took` after it was sent.
    pub(super) fn answered(&mut self, took: Duration) {
        self.service.answered(took.saturating_sub(self.rtt()));
    }

    /// Records that there are no more requests, in flight or queued.
    pub(super) fn rests(&mut self) {
        self.service.begin_anew();
    }

    /// Returns how long the server takes to answer, in addition to the round trip.
    pub(super) fn service(&self) -> Duration {
        self.service.get()
    }

    /// Processes a reading of the bytes moved so far in a direction. `bytes` is `None` on systems that don't report them.
    pub(super) fn read(&mut self, now: Instant, direction: Direction, bytes: Option<u64>, load: PathLoad) {
        self.moved[direction as usize] = bytes;
        let throughput = self.throughput_mut(direction);
        match bytes {
            Some(bytes) => {
                throughput.read(now, bytes, load);
            }
            None => throughput.cannot_be_read(),
        }
    }

    pub(super) fn moved(&self, direction: Direction) -> Option<u64> {
        self.moved[direction as usize]
    }

    pub(super) fn throughput(&self, direction: Direction) -> &Throughput {
        &self.throughput[direction as usize]
    }

    pub(super) fn throughput_mut(&mut self, direction: Direction) -> &mut Throughput {
        &mut self.throughput[direction as usize]
    }

    /// Returns the measured rate of the direction.
    pub(super) fn shown(&self, direction: Direction) -> PathRate {
        let throughput = self.throughput(direction);
        PathRate { rate: throughput.rate().unwrap_or_default(), is_full: throughput.is_full() }
    }

    /// Returns how many bytes of small attempts may be in flight in this direction.
    pub(super) fn at_once(&self, direction: Direction) -> f64 {
        self.shown(direction).at_once(self.rules, self.rtt() + self.service())
    }
}

/// The measured rate of the path in bytes per second. `is_full` is true if this rate is its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathRate {
    pub(super) rate: f64,
    pub(super) is_full: bool,
}

impl PathRate {
    /// Returns how many bytes of small attempts may be in flight. `turn` is the round trip plus the time of the server. At first the path's
    /// capacity is unknown, so a burst of a fixed size is allowed. On a far path, the burst is half of the bytes that 1 Gbit/s carries in a
    /// turn. The senders themselves limit how much of the burst is in flight: each begins with ten segments and doubles this number in each
    /// round trip. Later, twice as many bytes are allowed as the path has carried in a turn. So the limit grows as fast as the senders'
    /// windows.
    pub(super) fn at_once(self, rules: &Rules, turn: Duration) -> f64 {
        let turn = turn.as_secs_f64();
        let first = rules.first_burst.max(rules.rate_unknown * turn / rules.gain);
        let first = if self.is_full { 0.0 } else { first };
        (turn * self.rate * rules.gain).max(first.min(turn * rules.first_rate_max))
    }
}

/// The time that a server takes to answer, in addition to the round trip. It is the shortest time of several answers.
#[derive(Debug, Default)]
pub(super) struct ServiceTime {
    rules: &'static Rules,
    least: Option<Duration>,
    /// The number of answers since the measurement began, and the shortest of their times.
    answers: (usize, Duration),
    /// True if `least` was set since the last time without requests. `least` can then only fall, because later answers also wait in queues
    /// that our own requests cause.
    is_found: bool,
}

impl ServiceTime {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Records that an answer took this long, in addition to the round trip. Quick error answers count too, and so lead to fewer lanes. The
    /// first answers of a burst are slow because of its handshakes. So the shortest time is used only after several answers.
    pub(super) fn answered(&mut self, took: Duration) {
        self.least = self.least.map(|least| least.min(took));
        let (count, least) = self.answers;
        self.answers = (count + 1, if count == 0 { took } else { least.min(took) });
        if !self.is_found && self.answers.0 >= self.rules.attempts_min {
            self.least = Some(self.answers.1);
            (self.answers, self.is_found) = ((0, Duration::ZERO), true);
        }
    }

    /// Begins a new measurement, because there are no more requests. The next answers may be of another kind.
    pub(super) fn begin_anew(&mut self) {
        if std::mem::take(&mut self.is_found) {
            self.answers = (0, Duration::ZERO);
        }
    }

    pub(super) fn get(&self) -> Duration {
        self.least.unwrap_or_default().max(self.rules.service_min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: PathLoad =
        PathLoad { fills: false, has_bulk: false, is_held: false, small_wait: false, rtt: Duration::ZERO };
    const BULK: PathLoad = PathLoad { fills: true, has_bulk: true, ..SMALL };
    const HELD: PathLoad = PathLoad { is_held: true, ..SMALL };

    /// A measured path, with the number of bytes that have moved.
    #[derive(Debug)]
    struct Read {
        path: Throughput,
        now: Instant,
        bytes: u64,
    }

    impl Read {
        fn new() -> Self {
            let mut read = Self { path: Throughput::default(), now: Instant::now(), bytes: 0 };
            read.path.read(read.now, 0, SMALL);
            read
        }

        /// Simulates bytes at this rate until the next reading.
        fn pass(&mut self, rate: u64, load: PathLoad) {
            self.now += Rules::CHOSEN.reading_min;
            self.bytes += rate / 10;
            self.path.read(self.now, self.bytes, load);
        }
    }

    #[test]
    fn the_best_rate_lately_is_remembered_for_a_while() {
        let mut read = Read::new();
        assert_eq!(read.path.rate(), None);
        (0..4).for_each(|_| read.pass(8_000_000, BULK));
        (0..4).for_each(|_| read.pass(2_000_000, BULK));
        assert_eq!(read.path.rate(), Some(8_000_000.0));
        (0..101).for_each(|_| read.pass(2_000_000, BULK));
        assert_eq!(read.path.rate(), Some(2_000_000.0));
        assert!(!read.path.is_full(), "the path no longer carries the rate that filled it");
        assert!(read.path.rates.len() <= 2, "rates that can't become the best again are forgotten");
    }

    #[test]
    fn bytes_that_waited_behind_a_lost_packet_are_not_the_paths_rate() {
        let mut read = Read::new();
        (0..20).for_each(|i| read.pass([6_000_000, 1_000_000, 21_000_000, 12_000_000][i % 4], BULK));
        let rate = read.path.rate().unwrap();
        assert!((10e6..12e6).contains(&rate), "{rate}");
    }

    #[test]
    fn what_a_held_path_moves_is_not_taken_for_what_it_carries() {
        let mut read = Read::new();
        (0..4).for_each(|_| read.pass(8_000_000, BULK));
        (0..600).for_each(|_| read.pass(1_000_000, HELD));
        assert_eq!(read.path.rate(), Some(8_000_000.0));
        read.pass(90_000_000, BULK);
        assert_eq!(read.path.rate(), Some(8_000_000.0), "nor are bytes that gathered meanwhile");
        (0..4).for_each(|_| read.pass(1_000_000, BULK));
        assert_eq!(read.path.rate(), Some(1_000_000.0));
    }

    #[test]
    fn a_path_is_full_once_bulk_finds_no_more_and_not_by_small_requests() {
        let mut read = Read::new();
        (0..20).for_each(|_| read.pass(1_000_000, SMALL));
        assert!(!read.path.is_full());
        for doublings in 1..9 {
            read.pass(1_000_000 << doublings, BULK);
            assert!(!read.path.is_full());
        }
        (0..8).for_each(|_| read.pass(256_000_000, BULK));
        assert!(read.path.is_full() && read.path.is_full_of_bulk());
        assert_eq!(read.path.rate(), Some(256e6));
    }

    #[test]
    fn slow_start_over_a_long_path_is_given_time_to_grow() {
        let far = PathLoad { rtt: Duration::from_millis(300), ..BULK };
        let mut read = Read::new();
        // Small requests have reached 30 MB/s before. Bulk doubles its rate in each round trip, and needs three round trips to exceed 30
        // MB/s.
        (0..8).for_each(|_| read.pass(30_000_000, SMALL));
        (0..9).for_each(|reading| read.pass(5_000_000 << (reading / 3), far));
        assert!(!read.path.is_full());
        let beside = PathLoad { small_wait: true, ..far };
        (0..30).for_each(|_| read.pass(20_000_000, beside));
        assert!(read.path.is_full() && !read.path.is_full_of_bulk(), "small requests may have this rate");
        (0..30).for_each(|_| read.pass(20_000_000, far));
        assert!(read.path.is_full_of_bulk());
    }

    #[test]
    fn a_slow_server_that_small_requests_wait_for_says_nothing_of_bulk() {
        let waits = PathLoad { fills: true, small_wait: true, ..HELD };
        let mut read = Read::new();
        (0..9).for_each(|_| read.pass(5_000_000, waits));
        assert!(read.path.is_full() && !read.path.is_full_of_bulk());
    }

    #[test]
    fn what_has_moved_nothing_yet_is_not_full() {
        let mut read = Read::new();
        (0..9).for_each(|_| read.pass(0, BULK));
        assert!(!read.path.is_full());
    }

    #[test]
    fn idle_times_and_bursts_are_no_rates() {
        let (mut path, now) = (Throughput::default(), Instant::now());
        path.read(now, 0, BULK);
        path.read(now + Duration::from_millis(20), 10 << 20, BULK);
        assert_eq!(path.rate(), None);
        path.read(now + Duration::from_secs(60), 11 << 20, BULK);
        assert_eq!(path.rate(), None);
    }

    #[test]
    fn readings_are_asked_for_from_the_beginning_on() {
        let (mut path, now) = (Throughput::default(), Instant::now());
        assert_eq!(path.next_reading(), None);
        path.begin(now);
        assert_eq!(path.next_reading(), Some(now));
        path.read(now, 0, SMALL);
        assert_eq!(path.next_reading(), Some(now + Rules::CHOSEN.reading_min));
    }

    /// Returns the number of attempts of this size that may be in flight.
    fn at_once(path: PathRate, bytes: u64, rtt_ms: u64) -> u64 {
        let turn = Duration::from_millis(rtt_ms) + ServiceTime::default().get();
        ((path.at_once(&Rules::CHOSEN, turn) / bytes as f64).ceil() as u64)
            .max(Rules::CHOSEN.attempts_min as u64)
    }

    #[test]
    fn at_first_a_burst_goes_that_senders_may_send_and_no_more() {
        let unknown = PathRate::default();
        assert_eq!(at_once(unknown, 256 << 10, 2), Rules::CHOSEN.attempts_min as u64);
        assert_eq!(at_once(unknown, 256 << 10, 20), 32);
        assert_eq!(at_once(unknown, 256 << 10, 100), 32);
        assert_eq!(at_once(unknown, 256 << 10, 200), 48, "half of what 1 Gbit/s carries meanwhile");
        assert!(at_once(unknown, 6 << 10, 50) > 600);
        assert!(at_once(unknown, 2 << 10, 0) > 250);
    }

    #[test]
    fn more_goes_where_the_path_has_shown_that_it_carries_more() {
        let at_once = |rate, is_full| at_once(PathRate { rate, is_full }, 256 << 10, 49);
        assert_eq!([at_once(125e6, true), at_once(125e6, false)], [48, 48]);
        assert_eq!(at_once(1e6, false), 32, "as at first");
        assert_eq!(at_once(1e6, true), Rules::CHOSEN.attempts_min as u64, "a server may take longer");
    }

    /// Reports `count` answers. Each took `ms` milliseconds in addition to the round trip.
    fn answers(service: &mut ServiceTime, count: usize, ms: u64) {
        (0..count).for_each(|_| service.answered(Duration::from_millis(ms)));
    }

    #[test]
    fn a_server_takes_the_least_of_some_answers_and_anew_after_a_pause() {
        let (mut service, enough) = (ServiceTime::default(), Rules::CHOSEN.attempts_min);
        answers(&mut service, enough - 1, 30);
        service.begin_anew();
        assert_eq!(service.get(), Rules::CHOSEN.service_min, "too few");
        answers(&mut service, 1, 40);
        assert_eq!(service.get().as_millis(), 30, "they count together with the answers of the next burst");
        answers(&mut service, 1, 20);
        assert_eq!(service.get().as_millis(), 20);
        answers(&mut service, 100, 50);
        assert_eq!(service.get().as_millis(), 20, "our own requests may keep the server busy");
        service.begin_anew();
        answers(&mut service, enough, 50);
        assert_eq!(service.get().as_millis(), 50);
    }
}
