//! The times that comparable requests took lately.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::tracker::Snapshot;

/// The number of times that are remembered, and for how long: enough for a high quantile, and no older than what the path is now.
const REMEMBERED: usize = 64;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Fewer say nothing of what is usual.
pub(super) const FEWEST: usize = 3;

/// Whose longest silence is taken for usual. Of 64 three may be stragglers themselves.
const USUAL: f64 = 0.95;

/// Smaller bodies come in one read and say nothing of a rate.
const BODY_MIN: u64 = 64 * 1024;

/// One answer that came whole.
#[derive(Clone, Copy, Debug)]
struct Answer {
    ended: Instant,
    /// The longest time in which nothing of it came, that before its head included.
    silence: Duration,
    /// Bytes a second of its body.
    rate: Option<f64>,
}

/// Comparable requests of one origin.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    answers: VecDeque<Answer>,
}

impl Baseline {
    /// Takes note of an answer that has come whole.
    pub(super) fn note(&mut self, now: Instant, seen: &Snapshot) {
        let took = seen.head.map(|head| seen.moved.saturating_duration_since(head).as_secs_f64());
        let rate = took.filter(|took| seen.bytes >= BODY_MIN && *took > 0.0);
        let rate = rate.map(|took| seen.bytes as f64 / took);
        if self.answers.len() >= REMEMBERED {
            self.answers.pop_front();
        }
        self.answers.push_back(Answer { ended: now, silence: seen.silence, rate });
    }

    /// Forgets what is too old.
    pub(super) fn forget_before(&mut self, now: Instant) {
        let is_old = |a: &Answer| now.saturating_duration_since(a.ended) > REMEMBERED_FOR;
        while self.answers.front().is_some_and(is_old) {
            self.answers.pop_front();
        }
    }

    /// When the last answer came.
    pub(super) fn last(&self) -> Option<Instant> {
        self.answers.back().map(|answer| answer.ended)
    }

    /// Returns how many ended after `since`.
    pub(super) fn count_since(&self, since: Instant) -> usize {
        self.since(Some(since)).count()
    }

    /// Returns how long a silence is usual among those that ended after `since`, or among all.
    pub(super) fn usual_silence(&self, since: Option<Instant>) -> Option<Duration> {
        let mut silences: Vec<_> = self.since(since).map(|answer| answer.silence).collect();
        silences.sort_unstable();
        let enough = silences.len() >= FEWEST;
        enough.then(|| silences[(silences.len() as f64 * USUAL).ceil() as usize - 1])
    }

    /// The median rate of bodies, bytes a second, among those that ended after `since`, or among all.
    pub(super) fn usual_rate(&self, since: Option<Instant>) -> Option<f64> {
        let mut rates: Vec<_> = self.since(since).filter_map(|answer| answer.rate).collect();
        rates.sort_unstable_by(f64::total_cmp);
        (rates.len() >= FEWEST).then(|| rates[rates.len() / 2])
    }

    fn since(&self, since: Option<Instant>) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(move |answer| since.is_none_or(|since| answer.ended > since))
    }
}
