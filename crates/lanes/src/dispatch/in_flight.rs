//! How many small attempts are on their way at once.
//!
//! A multiplexed lane takes a hundred attempts, but those that are on their way together share the path and all end late. What
//! keeps the path full is enough; the others wait, and the smallest go first. Attempts of unknown size count for what
//! others brought whose answers said theirs.
//!
//! What fills a path isn't known at first. But what is on its way is held by the senders then, who begin with ten segments
//! and double them with each round trip. So as much goes as they may send until something was seen, and twice what the path has shown, which
//! grows as fast as they do.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::express_lanes::INITIAL_WINDOW;
use super::rules::Rules;
use super::{AttemptId, Direction};

/// An attempt on its way: since when, its bytes, and those of them that go up.
#[derive(Clone, Copy, Debug)]
struct Counted {
    since: Instant,
    bytes: u64,
    up: u64,
    /// Whether its answer has begun, which said what the server takes.
    is_answered: bool,
}

/// What the path has shown, in bytes a second, and whether that is all that it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) rate: f64,
    pub(super) is_full: bool,
}

impl Shown {
    /// How many bytes of small attempts go at once where a round trip and the answer take `turn`.
    pub(super) fn at_once(self, rules: &Rules, turn: Duration) -> f64 {
        let (turn, first) = (turn.as_secs_f64(), if self.is_full { 0.0 } else { rules.first_burst });
        (turn * self.rate * rules.gain).max(first.min(turn * rules.first_rate_max))
    }
}

/// The express attempts that one origin has on its lanes.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    rules: &'static Rules,
    counted: FxHashMap<AttemptId, Counted>,
    bytes: u64,
    up: u64,
    /// What the server takes to answer, as far as it is known.
    service: Option<Duration>,
    /// How many answers have come since that was said, and the least that one of them took.
    answers: (usize, Duration),
    /// Whether that was said since nothing was on its way: until then queues of our own make it longer, and it becomes no longer.
    is_said: bool,
    /// When they were sent, the first first; with some that have ended.
    sent: VecDeque<(Instant, AttemptId)>,
}

impl InFlight {
    pub(super) fn by(rules: &'static Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    pub(super) fn add(&mut self, now: Instant, attempt: AttemptId, bytes: u64, up: u64) {
        self.counted.insert(attempt, Counted { since: now, bytes, up, is_answered: false });
        self.bytes += bytes;
        self.up += up;
        self.sent.push_back((now, attempt));
    }

    /// An attempt's answer has begun, and tells its size.
    pub(super) fn answered(&mut self, now: Instant, attempt: AttemptId, bytes: u64, rtt: Duration) {
        let Some(counted) = self.counted.get_mut(&attempt) else { return };
        let bytes = bytes + counted.up;
        self.bytes = self.bytes - counted.bytes + bytes;
        (counted.bytes, counted.is_answered) = (bytes, true);
        let took = now.saturating_duration_since(counted.since).saturating_sub(rtt);
        self.served(took);
    }

    /// An attempt has ended, and its lane is as good as before. What goes in one flight each way took no longer than the server did. Quick
    /// refusals count too, and make for fewer lanes.
    pub(super) fn ended(&mut self, now: Instant, attempt: AttemptId, rtt: Duration) {
        let Some(counted) = self.counted.get(&attempt) else { return };
        let took = now.saturating_duration_since(counted.since).saturating_sub(rtt);
        if !counted.is_answered && counted.bytes as f64 <= INITIAL_WINDOW {
            self.served(took);
        }
    }

    /// The first answers of a burst wait for its handshakes, so that some must have come before the least of them says something.
    fn served(&mut self, took: Duration) {
        self.service = self.service.map(|known| known.min(took));
        let (count, least) = self.answers;
        self.answers = (count + 1, if count == 0 { took } else { least.min(took) });
        if !self.is_said && self.answers.0 >= self.rules.attempts_min {
            self.service = Some(self.answers.1);
            (self.answers, self.is_said) = ((0, Duration::ZERO), true);
        }
    }

    pub(super) fn remove(&mut self, attempt: AttemptId) {
        if let Some(counted) = self.counted.remove(&attempt) {
            self.bytes -= counted.bytes;
            self.up -= counted.up;
        }
        while self.sent.front().is_some_and(|(_, attempt)| !self.counted.contains_key(attempt)) {
            self.sent.pop_front();
        }
    }

    /// Nothing is on its way or waits: the next answers may be another kind's.
    pub(super) fn begin_anew(&mut self) {
        if std::mem::take(&mut self.is_said) {
            self.answers = (0, Duration::ZERO);
        }
    }

    /// Takes note that `now` has come.
    pub(super) fn tick(&mut self, now: Instant) {
        while let Some((_, attempt)) =
            self.sent.front().copied().filter(|(at, _)| *at + self.rules.counted_for <= now)
        {
            self.sent.pop_front();
            self.remove(attempt);
        }
    }

    /// When there is room at the latest.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.sent.front().map(|(at, _)| *at + self.rules.counted_for)
    }

    /// What the server takes to answer beside the round trip.
    pub(super) fn service(&self) -> Duration {
        self.service.unwrap_or_default().max(self.rules.service_min)
    }

    /// What an attempt takes on an idle lane.
    pub(super) fn turn(&self, rtt: Duration) -> Duration {
        rtt + self.service()
    }

    /// Whether another attempt keeps the path fuller in the direction that it goes in, of which so much was seen.
    pub(super) fn has_room(&self, direction: Direction, shown: Shown, rtt: Duration) -> bool {
        let bytes = match direction {
            Direction::Down => self.bytes - self.up,
            Direction::Up => self.up,
        };
        self.counted.len() < self.rules.attempts_min
            || (bytes as f64) < shown.at_once(self.rules, self.turn(rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts of so many bytes go at once.
    fn at_once(shown: Shown, (bytes, up): (u64, u64), rtt_ms: u64) -> usize {
        let (mut flight, now) = (InFlight::default(), Instant::now());
        let direction = if up == bytes { Direction::Up } else { Direction::Down };
        let attempts = (0..).map(AttemptId).take_while(|_| {
            let has_room = flight.has_room(direction, shown, Duration::from_millis(rtt_ms));
            flight.add(now, AttemptId(flight.counted.len() as u64), bytes, up);
            has_room
        });
        attempts.count()
    }

    fn shown(rate: f64, is_full: bool) -> Shown {
        Shown { rate, is_full }
    }

    /// Whether another download may be sent over a path that has shown nothing.
    fn has_room(flight: &InFlight, rtt: Duration) -> bool {
        flight.has_room(Direction::Down, Shown::default(), rtt)
    }

    #[test]
    fn at_first_what_the_senders_may_send_goes_at_once_and_no_more() {
        let down = (256 << 10, 0);
        assert_eq!(at_once(Shown::default(), down, 2), Rules::CHOSEN.attempts_min);
        assert_eq!(at_once(Shown::default(), down, 20), 32);
        assert_eq!(at_once(Shown::default(), down, 200), 32, "however far");
        assert!(at_once(Shown::default(), (6 << 10, 0), 50) > 600);
        assert!(at_once(Shown::default(), (2 << 10, 0), 0) > 250);
    }

    #[test]
    fn more_goes_where_the_path_has_shown_that_it_carries_more() {
        for sizes in [(256 << 10, 0), (256 << 10, 256 << 10)] {
            assert_eq!(at_once(shown(125e6, true), sizes, 49), 48);
            assert_eq!(at_once(shown(125e6, false), sizes, 49), 48);
            assert_eq!(at_once(shown(1e6, false), sizes, 49), 32, "as at first");
            assert_eq!(
                at_once(shown(1e6, true), sizes, 49),
                Rules::CHOSEN.attempts_min,
                "a server may take longer"
            );
        }
    }

    #[test]
    fn what_has_ended_makes_room() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 1 << 20, 0));
        assert!(!has_room(&flight, near));
        flight.remove(AttemptId(3));
        assert!(has_room(&flight, near));
        (0..16).for_each(|attempt| flight.remove(AttemptId(attempt)));
        assert_eq!((flight.bytes, flight.next_tick()), (0, None));
    }

    #[test]
    fn a_work_counts_for_what_it_turns_out_to_be() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 256 << 10, 0));
        assert!(!has_room(&flight, near));
        (0..16).for_each(|attempt| flight.answered(now + near, AttemptId(attempt), 4 << 10, near));
        assert!(has_room(&flight, near));
        (0..16).for_each(|attempt| flight.remove(AttemptId(attempt)));
        flight.answered(now, AttemptId(3), 1 << 20, near);
        assert_eq!(flight.bytes, 0, "one that has ended counts for nothing");
    }

    /// So many answers of so many bytes come, each after so long beside the round trip.
    fn answers(flight: &mut InFlight, count: usize, bytes: u64, ms: u64) {
        let (now, near) = (Instant::now(), Duration::from_millis(1));
        for _ in 0..count {
            flight.add(now, AttemptId(u64::MAX), bytes, 0);
            flight.ended(now + near + Duration::from_millis(ms), AttemptId(u64::MAX), near);
            flight.remove(AttemptId(u64::MAX));
        }
    }

    #[test]
    fn what_a_server_takes_is_the_least_of_some_answers_that_come_in_one_flight_and_anew_after_a_pause() {
        let mut flight = InFlight::default();
        answers(&mut flight, Rules::CHOSEN.attempts_min - 1, 4 << 10, 30);
        flight.begin_anew();
        assert_eq!(flight.service(), Rules::CHOSEN.service_min, "too few");
        answers(&mut flight, 1, 4 << 10, 40);
        assert_eq!(flight.service().as_millis(), 30, "but they count together with those of the next burst");
        answers(&mut flight, 1, 256 << 10, 10);
        assert_eq!(
            flight.service().as_millis(),
            30,
            "what took longer than a flight may have waited for the path"
        );
        answers(&mut flight, 1, 4 << 10, 20);
        assert_eq!(flight.service().as_millis(), 20);
        answers(&mut flight, 100, 4 << 10, 50);
        assert_eq!(flight.service().as_millis(), 20, "it may be ourselves who keep it busy");
        flight.begin_anew();
        answers(&mut flight, Rules::CHOSEN.attempts_min, 4 << 10, 50);
        assert_eq!(flight.service().as_millis(), 50);
    }

    #[test]
    fn a_server_that_thinks_longer_is_asked_more_at_once() {
        let near = Duration::from_millis(1);
        let (mut flight, gigabit) = (InFlight::default(), shown(125e6, false));
        let has_room = |flight: &InFlight, rtt| flight.has_room(Direction::Down, gigabit, rtt);
        answers(&mut flight, Rules::CHOSEN.attempts_min, 4 << 10, 50);
        (0..40).for_each(|attempt| flight.add(Instant::now(), AttemptId(attempt), 256 << 10, 0));
        assert!(has_room(&flight, near));
        answers(&mut flight, 1, 4 << 10, 0);
        assert!(!has_room(&flight, near), "one that came at once shows that it doesn't");
    }

    #[test]
    fn attempts_on_a_silent_lane_do_not_hold_up_the_others_for_long() {
        let (mut flight, now, near) = (InFlight::default(), Instant::now(), Duration::from_millis(1));
        (0..16).for_each(|attempt| flight.add(now, AttemptId(attempt), 1 << 20, 0));
        let at = flight.next_tick().expect("a tick");
        flight.tick(at - Duration::from_millis(1));
        assert!(!has_room(&flight, near));
        flight.tick(at);
        assert!(has_room(&flight, near));
        flight.remove(AttemptId(0));
        assert_eq!(flight.bytes, 0);
    }
}
