//! The measured path: its rate, whether it is full, and how long its server takes to answer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Direction;
use super::rules::Rules;

/// The rate of one direction of a path.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    rules: &'static Rules,
    last: Option<(Instant, u64)>,
    /// The time when the first request got under way, until the first reading.
    began: Option<Instant>,
    /// The last readings. Their mean is the rate.
    readings: VecDeque<f64>,
    /// Rates that no later rate has reached, in falling order.
    rates: VecDeque<(Instant, f64)>,
    /// Readings since the rate last grew, of traffic that can fill the path. `settled_by_bulk` counts those with bulk.
    settled: u32,
    settled_by_bulk: u32,
    /// The last rate while bulk moved as fast as it could.
    bulk: Option<(Instant, f64)>,
    /// True if bulk was held back at the last reading.
    was_held: bool,
    cannot_be_read: bool,
}

/// The traffic while a reading is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathLoad {
    /// True if bulk moves freely, or if small requests wait for those in flight. Only such traffic can fill the path.
    pub(super) fills: bool,
    /// True if bulk moves as fast as it can.
    pub(super) has_bulk: bool,
    /// True if bulk is held back.
    pub(super) is_held: bool,
}

impl PathLoad {
    /// The traffic if small requests wait for those in flight (or don't), and if there is bulk, held back or not.
    pub(super) fn of(small_wait: bool, has_bulk: bool, is_held: bool) -> Self {
        let has_bulk_that_moves = has_bulk && !is_held;
        Self {
            fills: small_wait || has_bulk_that_moves,
            has_bulk: has_bulk_that_moves,
            is_held: has_bulk && is_held,
        }
    }
}

impl Throughput {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Takes a reading of the bytes moved so far. Returns whether it counts. One that comes too soon or too late doesn't.
    ///
    /// While bulk is held back, the path carries more than the reading shows. So the best rate doesn't expire meanwhile. Otherwise the
    /// reduced rate would be taken for the path's, and bulk would be held to a fraction of the reduced rate. The first reading after bulk
    /// is let go doesn't count either, because bytes that have gathered meanwhile come at once.
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
        // If the last reading is longer ago than a rate needs, nothing was under way meanwhile.
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
        if rate > best * self.rules.growth {
            (self.settled, self.settled_by_bulk) = (0, 0);
        } else if load.fills && best > 0.0 {
            self.settled = self.settled.saturating_add(1);
            self.settled_by_bulk = self.settled_by_bulk.saturating_add(u32::from(load.has_bulk));
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

    /// The mean rate of the last readings, in bytes a second.
    pub(super) fn latest(&self) -> f64 {
        self.readings.iter().sum::<f64>() / self.readings.len().max(1) as f64
    }

    /// Takes note that this system doesn't tell how many bytes move. The rate then stays unknown, and nothing waits for a reading.
    pub(super) fn cannot_be_read(&mut self) {
        (self.cannot_be_read, self.began) = (true, None);
    }

    /// Returns whether the path's rate may become known.
    pub(super) fn can_be_read(&self) -> bool {
        !self.cannot_be_read
    }

    /// Takes note that a request is under way.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.can_be_read() {
            self.began.get_or_insert(now);
        }
    }

    /// Returns when the next reading can count, once a request is [under way](Self::begin).
    pub(super) fn next_reading(&self) -> Option<Instant> {
        self.last.map(|(at, _)| at + self.rules.reading_min).or(self.began)
    }

    /// The last rate while bulk moved as fast as it could, and the time of its reading.
    pub(super) fn bulk_reading(&self) -> Option<(Instant, f64)> {
        self.bulk
    }

    /// Takes note that bulk has a queue on the path, which shows that the path is full.
    pub(super) fn filled(&mut self) {
        if self.cannot_be_read {
            return;
        }
        let enough = self.rules.readings as u32;
        (self.settled, self.settled_by_bulk) = (self.settled.max(enough), self.settled_by_bulk.max(enough));
    }

    /// Returns whether bulk has filled the path, or small requests that waited for those in flight.
    pub(super) fn is_full(&self) -> bool {
        self.settled >= self.rules.readings as u32
    }

    /// Returns whether bulk has filled the path, so that the rate is the path's. Small requests may only have waited for a slow server.
    pub(super) fn is_full_of_bulk(&self) -> bool {
        self.settled_by_bulk >= self.rules.readings as u32
    }

    /// The best rate lately, in bytes a second, once bytes have moved.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rates.front().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0)
    }
}

/// The path to one origin. It alone reads the bytes that have moved.
#[derive(Debug)]
pub(super) struct PathModel {
    rules: &'static Rules,
    throughput: [Throughput; 2],
    /// Bytes moved so far in each direction; `None` where the system can't tell.
    moved: [Option<u64>; 2],
    /// The shortest round trips that a TLS flight and a TCP handshake showed.
    tls: Option<Duration>,
    tcp: Option<Duration>,
    service: ServiceTime,
}

impl PathModel {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let throughput = [Throughput::by(rules), Throughput::by(rules)];
        Self { rules, throughput, moved: [None; 2], tls: None, tcp: None, service: ServiceTime::by(rules) }
    }

    /// Takes note of a TLS flight. The shortest counts: a busy machine can only stretch a handshake.
    pub(super) fn handshake(&mut self, rtt: Duration) {
        self.tls = Some(self.tls.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Takes note of a TCP handshake, which may have reached only a middlebox.
    pub(super) fn reached(&mut self, rtt: Duration) {
        self.tcp = Some(self.tcp.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Returns the round trip, if known. A TCP handshake may end at a proxy nearby, while a TLS flight reaches the server. But a TLS flight
    /// includes the work of both ends, many milliseconds in a burst of handshakes. So Laneway believes the shorter of the two, unless TCP's
    /// is far shorter.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        match (self.tls, self.tcp) {
            (Some(tls), Some(tcp)) if tls <= tcp * self.rules.proxy_factor => Some(tcp.min(tls)),
            (tls, tcp) => tls.or(tcp),
        }
    }

    pub(super) fn rtt(&self) -> Duration {
        self.round_trip().unwrap_or_default()
    }

    /// Takes note that an attempt was answered in one flight, `took` after it was sent.
    pub(super) fn answered(&mut self, took: Duration) {
        self.service.answered(took.saturating_sub(self.rtt()));
    }

    /// Takes note that no request is in flight or waits.
    pub(super) fn rests(&mut self) {
        self.service.begin_anew();
    }

    /// Returns how long the server takes to answer beside the round trip.
    pub(super) fn service(&self) -> Duration {
        self.service.get()
    }

    /// Takes a reading of the bytes moved so far in a direction; `None` where the system doesn't tell.
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

    /// Returns how many bytes of small attempts keep the direction full.
    pub(super) fn at_once(&self, direction: Direction) -> f64 {
        self.shown(direction).at_once(self.rules, self.rtt() + self.service())
    }
}

/// The measured rate of the path in bytes a second, and whether the path is full at this rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathRate {
    pub(super) rate: f64,
    pub(super) is_full: bool,
}

impl PathRate {
    /// Returns how many bytes of small attempts may be in flight if a round trip and the answer take `turn`. The path's capacity is unknown
    /// at first. The senders then limit the bytes in flight: each begins with ten segments and doubles them in each round trip. So we send
    /// a first burst. Later we send twice what the path has shown, which grows as fast as the senders do.
    pub(super) fn at_once(self, rules: &Rules, turn: Duration) -> f64 {
        let (turn, first) = (turn.as_secs_f64(), if self.is_full { 0.0 } else { rules.first_burst });
        (turn * self.rate * rules.gain).max(first.min(turn * rules.first_rate_max))
    }
}

/// The time that a server takes to answer, beside the round trip: the shortest time of several answers.
#[derive(Debug, Default)]
pub(super) struct ServiceTime {
    rules: &'static Rules,
    least: Option<Duration>,
    /// The number of answers since `least` was set, and the shortest of their times.
    answers: (usize, Duration),
    /// True if `least` was set since nothing was in flight. After that our own queues make answers slower, so it only falls.
    is_found: bool,
}

impl ServiceTime {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Takes note that an answer took this long beside the round trip. Quick refusals count too, and lead to fewer lanes. The first answers
    /// of a burst wait for its handshakes. So the shortest time counts only after several answers.
    pub(super) fn answered(&mut self, took: Duration) {
        self.least = self.least.map(|least| least.min(took));
        let (count, least) = self.answers;
        self.answers = (count + 1, if count == 0 { took } else { least.min(took) });
        if !self.is_found && self.answers.0 >= self.rules.attempts_min {
            self.least = Some(self.answers.1);
            (self.answers, self.is_found) = ((0, Duration::ZERO), true);
        }
    }

    /// Takes note that no request is in flight or waits. The next answers may be of another kind.
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

    const BULK: PathLoad = PathLoad { fills: true, has_bulk: true, is_held: false };
    const SMALL: PathLoad = PathLoad { fills: false, has_bulk: false, is_held: false };
    const HELD: PathLoad = PathLoad { fills: false, has_bulk: false, is_held: true };

    /// A path that is read, and the bytes moved over it.
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

        /// Moves bytes at this rate until the next reading.
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
    fn a_slow_server_that_small_requests_wait_for_says_nothing_of_bulk() {
        let waits = PathLoad { fills: true, has_bulk: false, is_held: true };
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

    /// The number of attempts of this size that go at once.
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
        assert_eq!(at_once(unknown, 256 << 10, 200), 32, "however far");
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

    /// Reports `count` answers, each `ms` after its request, beside the round trip.
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
