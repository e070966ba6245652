//! The path as it has shown itself: its rate, whether something has filled it, and how long its server takes to answer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Direction;
use super::rules::Rules;

/// The rate of one direction of a path.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    rules: &'static Rules,
    last: Option<(Instant, u64)>,
    /// The time when something got under way, before anything has been read.
    began: Option<Instant>,
    /// The last readings, which are a rate together.
    readings: VecDeque<f64>,
    /// Rates that no later one has reached, the highest first.
    rates: VecDeque<(Instant, f64)>,
    /// Readings since the rate grew in which as much was on its way as could be, and those of them in which that was bulk.
    settled: u32,
    settled_by_bulk: u32,
    /// The last rate while bulk moved as fast as it could.
    bulk: Option<(Instant, f64)>,
    /// True if bulk was held back at the last reading.
    was_held: bool,
    cannot_be_read: bool,
}

/// The traffic while the path is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PathLoad {
    /// Bulk, or more small requests than go at once: what needn't leave room on the path.
    pub(super) fills: bool,
    /// Bulk that moves as fast as it can.
    pub(super) has_bulk: bool,
    /// Bulk that is held back.
    pub(super) is_held: bool,
}

impl PathLoad {
    /// Where small requests wait for those on their way or not, with bulk or without, which is held back or not.
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

    /// Takes a reading of the bytes moved so far. Returns whether it counts: a reading that comes too soon or too late doesn't.
    ///
    /// While bulk is held back, less moves than the path carries. If the best rate were forgotten then, bulk would be held to a part of a
    /// part of it. Bytes that have gathered meanwhile come at once when bulk is let go.
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
        // Between readings that lie further apart than a rate takes there was nothing under way.
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

    /// The rate of the last readings together, in bytes a second.
    pub(super) fn latest(&self) -> f64 {
        self.readings.iter().sum::<f64>() / self.readings.len().max(1) as f64
    }

    /// Takes note that what moves can't be read on this system: nothing is ever known of the path then, and nothing waits for
    /// a reading.
    pub(super) fn cannot_be_read(&mut self) {
        (self.cannot_be_read, self.began) = (true, None);
    }

    /// Returns whether the path may become known.
    pub(super) fn can_be_read(&self) -> bool {
        !self.cannot_be_read
    }

    /// Takes note that something is under way.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.can_be_read() {
            self.began.get_or_insert(now);
        }
    }

    /// Returns when a reading says something again, once anything has [begun](Self::begin).
    pub(super) fn next_reading(&self) -> Option<Instant> {
        self.last.map(|(at, _)| at + self.rules.reading_min).or(self.began)
    }

    /// The last rate while bulk moved as fast as it could, and when.
    pub(super) fn bulk_reading(&self) -> Option<(Instant, f64)> {
        self.bulk
    }

    /// Takes note that bulk has a queue on the path, which is full then.
    pub(super) fn filled(&mut self) {
        if self.cannot_be_read {
            return;
        }
        let enough = self.rules.readings as u32;
        (self.settled, self.settled_by_bulk) = (self.settled.max(enough), self.settled_by_bulk.max(enough));
    }

    /// Returns whether the path was filled, by bulk or by small requests that waited for those on their way.
    pub(super) fn is_full(&self) -> bool {
        self.settled >= self.rules.readings as u32
    }

    /// Returns whether bulk has filled the path, so that the rate is the path's. Small requests may have waited for a slow server.
    pub(super) fn is_full_of_bulk(&self) -> bool {
        self.settled_by_bulk >= self.rules.readings as u32
    }

    /// Bytes a second, once anything has moved: the best rate lately.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rates.front().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0)
    }
}

/// The path to one origin. It alone reads the bytes that have moved.
#[derive(Debug)]
pub(super) struct PathModel {
    rules: &'static Rules,
    throughput: [Throughput; 2],
    /// Bytes moved so far in each direction; nothing where that isn't known.
    moved: [Option<u64>; 2],
    /// The shortest round trip that a TLS flight showed, and that a TCP handshake did.
    tls: Option<Duration>,
    tcp: Option<Duration>,
    service: ServiceTime,
}

impl PathModel {
    pub(super) fn by(rules: &'static Rules) -> Self {
        let throughput = [Throughput::by(rules), Throughput::by(rules)];
        Self { rules, throughput, moved: [None; 2], tls: None, tcp: None, service: ServiceTime::by(rules) }
    }

    /// Takes note of a TLS flight. The smallest counts: a busy machine stretches a handshake, nothing shortens it.
    pub(super) fn handshake(&mut self, rtt: Duration) {
        self.tls = Some(self.tls.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Takes note of a TCP handshake, which may have reached only a middlebox.
    pub(super) fn reached(&mut self, rtt: Duration) {
        self.tcp = Some(self.tcp.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    /// Returns the round trip, as far as it is known. A TCP handshake may end at a proxy nearby, where a TLS flight shows the server. But a
    /// TLS flight holds the work of both ends too, many milliseconds in a burst of handshakes. So the shorter of the two is believed,
    /// unless it is shorter by far.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        match (self.tls, self.tcp) {
            (Some(tls), Some(tcp)) if tls <= tcp * self.rules.proxy_factor => Some(tcp.min(tls)),
            (tls, tcp) => tls.or(tcp),
        }
    }

    pub(super) fn rtt(&self) -> Duration {
        self.round_trip().unwrap_or_default()
    }

    /// Takes note that an attempt was answered in one flight, so long after it was sent.
    pub(super) fn answered(&mut self, took: Duration) {
        self.service.answered(took.saturating_sub(self.rtt()));
    }

    /// Takes note that nothing is on its way or waits.
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

    /// Returns the rate that the direction has shown.
    pub(super) fn shown(&self, direction: Direction) -> PathRate {
        let throughput = self.throughput(direction);
        PathRate { rate: throughput.rate().unwrap_or_default(), is_full: throughput.is_full() }
    }

    /// Returns how many bytes of small attempts keep the direction full.
    pub(super) fn at_once(&self, direction: Direction) -> f64 {
        self.shown(direction).at_once(self.rules, self.rtt() + self.service())
    }
}

/// The rate that the path has shown, in bytes a second, and whether that is all that it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathRate {
    pub(super) rate: f64,
    pub(super) is_full: bool,
}

impl PathRate {
    /// Returns the bytes of small attempts that go at once where a round trip and the answer take `turn`. The bytes that fill the path are
    /// unknown at first. The senders hold the bytes on their way then, since they begin with ten segments and double them with each round
    /// trip. So a first burst goes, and later twice what the path has shown, which grows as fast as they do.
    pub(super) fn at_once(self, rules: &Rules, turn: Duration) -> f64 {
        let (turn, first) = (turn.as_secs_f64(), if self.is_full { 0.0 } else { rules.first_burst });
        (turn * self.rate * rules.gain).max(first.min(turn * rules.first_rate_max))
    }
}

/// The time that a server takes to answer, beside the round trip: the least that some answers took.
#[derive(Debug, Default)]
pub(super) struct ServiceTime {
    rules: &'static Rules,
    least: Option<Duration>,
    /// The number of answers since that was found, and the least that one of them took.
    answers: (usize, Duration),
    /// True if it was found since nothing was on its way. Until then our own queues make it longer, and it becomes no longer.
    is_found: bool,
}

impl ServiceTime {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Takes note that an answer took so long beside the round trip. Quick refusals count too, and make for fewer lanes. The first answers
    /// of a burst wait for its handshakes, so that some must have come before the least of them counts.
    pub(super) fn answered(&mut self, took: Duration) {
        self.least = self.least.map(|least| least.min(took));
        let (count, least) = self.answers;
        self.answers = (count + 1, if count == 0 { took } else { least.min(took) });
        if !self.is_found && self.answers.0 >= self.rules.attempts_min {
            self.least = Some(self.answers.1);
            (self.answers, self.is_found) = ((0, Duration::ZERO), true);
        }
    }

    /// Takes note that nothing is on its way or waits: the next answers may be another kind's.
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

    /// A path that is read, and what has moved over it.
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

        /// Moves so many bytes a second until the next reading.
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
        assert!(!read.path.is_full(), "what it was taken for is not so any more");
        assert!(read.path.rates.len() <= 2, "what can't become the best again is forgotten");
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
        assert_eq!(read.path.rate(), Some(8_000_000.0), "nor what has gathered meanwhile");
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

    /// How many attempts of so many bytes go at once.
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

    /// So many answers, each after so long beside the round trip.
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
        assert_eq!(service.get().as_millis(), 30, "but they count together with those of the next burst");
        answers(&mut service, 1, 20);
        assert_eq!(service.get().as_millis(), 20);
        answers(&mut service, 100, 50);
        assert_eq!(service.get().as_millis(), 20, "it may be ourselves who keep it busy");
        service.begin_anew();
        answers(&mut service, enough, 50);
        assert_eq!(service.get().as_millis(), 50);
    }
}
