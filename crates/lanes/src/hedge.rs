//! Finds stragglers among the running requests, and asks for their hedges. A hedge is the same request sent a second time, on another
//! connection.
//!
//! A straggler is slow compared to similar requests: those of the same origin and kind that ran at the same time. Requests aren't compared
//! with the speed of an idle link. So if all requests are slow, none of them is hedged, because hedges would only add load. The time during
//! which a request waits for a lane isn't included. A request's silence begins when the request is sent, and begins again whenever bytes of
//! its answer come.

mod tracker;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::dispatch::{AttemptId, OriginId, Role};
pub(crate) use tracker::{Tracker, TrackerReading};

/// At most one request in `ONE_OF` is hedged, but `ALWAYS` hedges are allowed in any case. Dean and Barroso ("The Tail at Scale", 2013)
/// reduced the 99.9th percentile to a twentieth with 2 % more requests.
const ONE_OF: u64 = 50;
const ALWAYS: u64 = 2;

/// A request is a straggler if its silence is this many times as long as the usual one, which is the 95th percentile. Silences of up to
/// twice the 95th percentile are common.
const TIMES_USUAL: u32 = 3;

/// A small request is a straggler only after a silence of at least this length. With a nearby server, load, a garbage collection or the
/// scheduler can cause shorter silences. On a longer path, [`TIMES_USUAL`] sets the limit to about three round trips. A hedge on a new
/// connection also takes about three round trips. For comparison, TCP retransmits a lost last packet only after 200 ms or more, and a lost
/// handshake packet after a second.
const SMALL_SILENT_MIN: Duration = Duration::from_millis(60);

/// Bulk (a body above 1 MiB) is a straggler only after a silence of at least this length. Its segments wait in queues, and a lost segment
/// stops the stream for some round trips. A write to a file can also block the thread, which several bodies share.
const BULK_SILENT_MIN: Duration = Duration::from_secs(1);

/// If no similar request is running, a request is compared with earlier requests. It is then a straggler only after a silence of at least
/// this length.
const ALONE_MIN: Duration = Duration::from_millis(500);

/// The minimum silence of a straggler if other requests are silent, too, so that the path is the likely cause. It is also the minimum for
/// bulk that has stopped while no usual silence is known. The new connection of a hedge tests if the path still works.
const ALL_SILENT_MIN: Duration = Duration::from_secs(5);

/// A request whose body still moves is a straggler if it is much slower than a hedge would be. The rest of the body must take at least this
/// many times as long as with a hedge.
const TIMES_SLOWER: f64 = 3.0;

/// The minimum time between two checks of all running requests.
const LOOK_MIN: Duration = Duration::from_millis(50);

/// If a check is late by more than this, the process didn't run for a while. The process itself may then be the cause of the silences.
const LATE: Duration = Duration::from_millis(30);

/// A number for a kind of requests that usually take equally long. The caller chooses the number. For example, listings and reads need
/// different numbers, because a server needs longer for a listing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Alike(pub u8);

/// The key of a group of requests that are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ComparisonGroup {
    origin: OriginId,
    alike: Alike,
    role: Role,
}

/// Returns how many more hedges are allowed. `requests` and `hedges` are the engine's totals so far.
pub(crate) fn budget_left(requests: u64, hedges: u64) -> u64 {
    (requests / ONE_OF).max(ALWAYS).saturating_sub(hedges)
}

/// Watches running requests that may be hedged.
#[derive(Debug)]
pub(crate) struct HedgeWatch {
    /// True if no bandwidth limit slows bodies down, so that a slow body can be a straggler.
    judges_bodies: bool,
    running: FxHashMap<AttemptId, WatchedAttempt>,
    groups: FxHashMap<ComparisonGroup, Baseline>,
    next_look: Option<Instant>,
    /// The time of the last check that was late because the process didn't run. Silence before this time isn't counted.
    stood_still: Option<Instant>,
    /// True while bulk yields to small requests. `held_until` is the time of the last change.
    is_held: bool,
    held_until: Option<Instant>,
}

#[derive(Debug)]
struct WatchedAttempt {
    group: ComparisonGroup,
    expected: Option<u64>,
    tracker: Arc<Tracker>,
    is_hedged: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judgement {
    /// The request is a straggler, and has been silent for this time.
    Straggler(Duration),
    LookAgain(Instant),
}

impl HedgeWatch {
    /// Creates a watch. `judges_bodies` must be false if the caller limits the bandwidth, since bodies are then slow on purpose.
    pub(crate) fn new(judges_bodies: bool) -> Self {
        Self {
            judges_bodies,
            running: FxHashMap::default(),
            groups: FxHashMap::default(),
            next_look: None,
            stood_still: None,
            is_held: false,
            held_until: None,
        }
    }

    /// Starts watching an attempt that was put on a lane. `expected` is the size of the answer's body in bytes, if known.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        attempt: AttemptId,
        (origin, role): (OriginId, Role),
        expected: Option<u64>,
        tracker: Arc<Tracker>,
    ) {
        let group = ComparisonGroup { origin, alike: tracker.alike, role };
        self.running.insert(attempt, WatchedAttempt { group, expected, tracker, is_hedged: false });
        self.look_at(now + silent_min(role));
    }

    /// Stops watching an attempt that has ended. If its answer is complete, later checks compare other requests with this attempt.
    pub(crate) fn end(&mut self, now: Instant, attempt: AttemptId) {
        let Some(ended) = self.running.remove(&attempt) else { return };
        if let Some(seen) = ended.tracker.snapshot().filter(|seen| seen.is_whole) {
            self.groups.entry(ended.group).or_default().note(now, &seen);
        }
        if self.running.is_empty() {
            self.next_look = None;
        }
    }

    /// Records that an attempt turned out to be bulk.
    pub(crate) fn turned_freight(&mut self, attempt: AttemptId) {
        if let Some(running) = self.running.get_mut(&attempt) {
            running.group.role = Role::Freight;
        }
    }

    /// Records that bulk yields to small requests from now on, or no longer yields.
    pub(crate) fn hold_bulk(&mut self, now: Instant, is_held: bool) {
        (self.is_held, self.held_until) = (is_held, Some(now));
    }

    /// Returns the time of the next check.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    /// Checks all running requests. Returns at most `most` stragglers, starting with the longest silence. `is_all` is true if every running
    /// request is watched.
    pub(crate) fn look(&mut self, now: Instant, most: u64, is_all: bool) -> Vec<AttemptId> {
        let planned = self.next_look.take();
        if planned.is_some_and(|at| now > at + LATE) {
            self.stood_still = Some(now);
        }
        self.groups.values_mut().for_each(|group| group.forget_before(now));
        let around = self.activity(now);
        let mut stragglers = Vec::new();
        let mut next: Option<Instant> = None;
        for (attempt, running) in self.running.iter().filter(|(_, running)| !running.is_hedged) {
            // A request that wasn't sent yet isn't silent.
            let seen = running.tracker.snapshot();
            let judged = seen.map(|seen| self.judge(now, *attempt, running, &seen, &around, is_all));
            let at = match judged {
                Some(Judgement::Straggler(silence)) => {
                    stragglers.push((Reverse(silence), *attempt));
                    continue;
                }
                Some(Judgement::LookAgain(at)) => at,
                None => now + silent_min(running.group.role),
            };
            next = Some(next.map_or(at, |next| next.min(at)));
        }
        if let Some(at) = next {
            self.look_at(at.max(now + LOOK_MIN));
        }
        stragglers.sort_unstable_by_key(|(silence, attempt)| (*silence, *attempt));
        if stragglers.len() as u64 > most {
            // The other stragglers may be hedged later, when more hedges are allowed.
            self.look_at(now + BULK_SILENT_MIN);
            stragglers.truncate(most as usize);
        }
        for (_, attempt) in &stragglers {
            if let Some(running) = self.running.get_mut(attempt) {
                running.is_hedged = true;
                running.tracker.want_hedge();
            }
        }
        stragglers.into_iter().map(|(_, attempt)| attempt).collect()
    }

    fn look_at(&mut self, at: Instant) {
        self.next_look = Some(self.next_look.map_or(at, |next| next.min(at)));
    }

    /// Returns the time when an attempt's silence began. If Laneway itself caused a part of the silence, only the time after that part
    /// counts.
    fn silent_since(&self, now: Instant, role: Role, seen: &TrackerReading) -> Instant {
        let is_bulk = role == Role::Freight;
        if seen.is_sinking || is_bulk && self.is_held {
            return now;
        }
        let held = self.held_until.filter(|_| is_bulk);
        let still = self.stood_still.into_iter().chain(held);
        still.fold(seen.moved, Instant::max)
    }

    fn activity(&self, now: Instant) -> Activity {
        let mut around = Activity::default();
        for (attempt, running) in &self.running {
            if let Some(seen) = running.tracker.snapshot() {
                let silence =
                    now.saturating_duration_since(self.silent_since(now, running.group.role, &seen));
                let is_silent = silence >= silent_min(running.group.role);
                around.running(*attempt, running.group, seen.moved, is_silent);
            }
        }
        for (group, baseline) in &self.groups {
            baseline.last().inspect(|at| around.answered(group.origin, *at));
        }
        around
    }

    fn judge(
        &self,
        now: Instant,
        attempt: AttemptId,
        running: &WatchedAttempt,
        seen: &TrackerReading,
        around: &Activity,
        is_all: bool,
    ) -> Judgement {
        let least = silent_min(running.group.role);
        let soon = now + least;
        if seen.head.is_some() && !self.judges_bodies {
            return Judgement::LookAgain(soon);
        }
        let since = self.silent_since(now, running.group.role, seen);
        let silence = now.saturating_duration_since(since);
        let peers = self.groups.get(&running.group);
        let concurrent = peers.and_then(|peers| peers.usual_silence(Some(seen.sent)));
        let usual = concurrent.or_else(|| peers?.usual_silence(None));
        let Some((peers, usual)) = peers.zip(usual) else {
            // No usual silence is known, because no similar answer is complete yet. If there are only a few long transfers, their
            // first answer takes long. So bulk that has stopped is a straggler after a fixed time.
            let is_stuck = running.group.role == Role::Freight && seen.head.is_some();
            return match is_stuck && silence >= ALL_SILENT_MIN {
                true => Judgement::Straggler(silence),
                false => Judgement::LookAgain(soon),
            };
        };
        let answered = peers.count_since(seen.sent);
        let others = match is_all && self.running.len() == 1 {
            true => ConcurrentActivity::None,
            false => around.others(now, attempt, running.group, since, answered),
        };
        let least = match (others, concurrent) {
            (ConcurrentActivity::Moving, Some(_)) => least,
            (ConcurrentActivity::Moving | ConcurrentActivity::None, _) => least.max(ALONE_MIN),
            (ConcurrentActivity::Silent, _) => ALL_SILENT_MIN,
        };
        let limit = least.max(usual * TIMES_USUAL);
        if silence >= limit || self.is_slow(now, running, seen, usual, others) {
            return Judgement::Straggler(silence);
        }
        // Look again before the limit is reached, because the activity of other requests can change, and the limit can then be lower.
        Judgement::LookAgain(soon.min(now + limit - silence))
    }

    /// Returns whether a body moves so slowly that a second request would bring the rest of the body much sooner.
    fn is_slow(
        &self,
        now: Instant,
        running: &WatchedAttempt,
        seen: &TrackerReading,
        usual: Duration,
        others: ConcurrentActivity,
    ) -> bool {
        let (Some(head), Some(expected)) = (seen.head, running.expected) else { return false };
        let took = now.saturating_duration_since(head);
        let least = silent_min(running.group.role);
        // If bulk yielded, or if the process didn't run, the server isn't the cause of the low rate.
        let is_disturbed =
            self.stood_still.into_iter().chain(self.held_until).any(|at| at > head) || self.is_held;
        if took < least || seen.bytes == 0 || is_disturbed || others == ConcurrentActivity::Silent {
            return false;
        }
        let peers = &self.groups[&running.group];
        let Some(rate) = peers.usual_rate(Some(seen.sent)).or_else(|| peers.usual_rate(None)) else {
            return false;
        };
        let left = expected.saturating_sub(seen.bytes) as f64;
        let takes = left * took.as_secs_f64() / seen.bytes as f64;
        takes > TIMES_SLOWER * (left / rate + usual.as_secs_f64()) + least.as_secs_f64()
    }
}

fn silent_min(role: Role) -> Duration {
    match role {
        Role::Express => SMALL_SILENT_MIN,
        Role::Freight => BULK_SILENT_MIN,
    }
}

/// The path works if another request has received bytes within this time, or within half of the attempt's silence if that is longer.
const RECENTLY: Duration = Duration::from_millis(30);

/// At the end of a job, it can happen that only stragglers are left and no byte moves. The path still counts as working if enough requests
/// were answered since the attempt was sent: this many for each silent attempt.
const ANSWERED_TO_SILENT: usize = 4;

/// The activity of other requests to the same origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConcurrentActivity {
    /// Other requests have received bytes recently, or enough of them were answered.
    Moving,
    /// No other requests are running.
    None,
    /// Other requests don't receive any bytes either.
    Silent,
}

/// A summary of all watched requests. `moves` has the times when bytes last came from each origin. `silent` has the number of silent
/// requests of each group.
#[derive(Debug, Default)]
struct Activity {
    /// The last two times for each origin. The second-to-last time is needed if the last one belongs to the attempt that is judged.
    moves: FxHashMap<OriginId, [Option<Move>; 2]>,
    silent: FxHashMap<ComparisonGroup, usize>,
}

/// The time when bytes came, and the attempt that received them. `None` stands for an attempt that has ended.
type Move = (Instant, Option<AttemptId>);

impl Activity {
    /// Adds a running attempt.
    fn running(&mut self, attempt: AttemptId, group: ComparisonGroup, moved: Instant, is_silent: bool) {
        self.note(group.origin, (moved, Some(attempt)));
        *self.silent.entry(group).or_default() += usize::from(is_silent);
    }

    /// Adds an attempt that has been answered.
    fn answered(&mut self, origin: OriginId, at: Instant) {
        self.note(origin, (at, None));
    }

    fn note(&mut self, origin: OriginId, came: Move) {
        let [last, before] = self.moves.entry(origin).or_default();
        let is_later = |than: &Option<Move>| than.is_none_or(|(then, _)| came.0 > then);
        if is_later(last) {
            *before = last.replace(came);
        } else if is_later(before) {
            *before = Some(came);
        }
    }

    /// Returns the activity of other requests, for an attempt that has been silent since `since`. `answered` is the number of requests of
    /// its group that were answered since it was sent.
    fn others(
        &self,
        now: Instant,
        attempt: AttemptId,
        group: ComparisonGroup,
        since: Instant,
        answered: usize,
    ) -> ConcurrentActivity {
        let half = now.saturating_duration_since(since) / 2;
        let lately = now.checked_sub(half.max(RECENTLY)).unwrap_or(now);
        let mut moves = self.moves.get(&group.origin).into_iter().flatten().flatten();
        let moved = moves.any(|(at, by)| *by != Some(attempt) && *at > lately);
        let silent = self.silent.get(&group).copied().unwrap_or_default();
        if moved || answered >= ANSWERED_TO_SILENT * silent.max(1) {
            ConcurrentActivity::Moving
        } else {
            ConcurrentActivity::Silent
        }
    }
}

/// The maximum number of answers that a group keeps, and their maximum age. This number of answers is enough for a high quantile, and
/// answers of this age still describe the present path.
const REMEMBERED: usize = 64;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Usual values are computed only from at least this many answers.
const FEWEST: usize = 3;

/// The usual silence is this quantile of the answers' longest silences. Even if three of 64 answers were stragglers themselves, they don't
/// raise the usual silence.
const USUAL: f64 = 0.95;

/// The minimum size of a body whose rate is measured. Smaller bodies come in one read.
const BODY_MIN: u64 = 64 * 1024;

/// A complete answer.
#[derive(Clone, Copy, Debug)]
struct ResponseSample {
    ended: Instant,
    /// The longest time in which no byte came, including the wait for the answer's head.
    silence: Duration,
    /// The rate of its body in bytes per second.
    rate: Option<f64>,
}

/// The recent answers of one group. Requests are compared with them.
#[derive(Debug, Default)]
struct Baseline {
    answers: VecDeque<ResponseSample>,
}

impl Baseline {
    /// Adds a complete answer.
    fn note(&mut self, now: Instant, seen: &TrackerReading) {
        let took = seen.head.map(|head| seen.moved.saturating_duration_since(head).as_secs_f64());
        let rate = took.filter(|took| seen.bytes >= BODY_MIN && *took > 0.0);
        let rate = rate.map(|took| seen.bytes as f64 / took);
        if self.answers.len() >= REMEMBERED {
            self.answers.pop_front();
        }
        self.answers.push_back(ResponseSample { ended: now, silence: seen.silence, rate });
    }

    /// Forgets answers that are too old.
    fn forget_before(&mut self, now: Instant) {
        let is_old = |a: &ResponseSample| now.saturating_duration_since(a.ended) > REMEMBERED_FOR;
        while self.answers.front().is_some_and(is_old) {
            self.answers.pop_front();
        }
    }

    /// Returns the time when the last answer ended.
    fn last(&self) -> Option<Instant> {
        self.answers.back().map(|answer| answer.ended)
    }

    /// Returns how many answers ended after `since`.
    fn count_since(&self, since: Instant) -> usize {
        self.since(Some(since)).count()
    }

    /// Returns the usual silence of the answers that ended after `since`, or of all answers if it is `None`.
    fn usual_silence(&self, since: Option<Instant>) -> Option<Duration> {
        let mut silences: Vec<_> = self.since(since).map(|answer| answer.silence).collect();
        silences.sort_unstable();
        let enough = silences.len() >= FEWEST;
        enough.then(|| silences[(silences.len() as f64 * USUAL).ceil() as usize - 1])
    }

    /// Returns the median rate, in bytes per second, of the answers that ended after `since`, or of all answers if it is `None`.
    fn usual_rate(&self, since: Option<Instant>) -> Option<f64> {
        let mut rates: Vec<_> = self.since(since).filter_map(|answer| answer.rate).collect();
        rates.sort_unstable_by(f64::total_cmp);
        (rates.len() >= FEWEST).then(|| rates[rates.len() / 2])
    }

    fn since(&self, since: Option<Instant>) -> impl Iterator<Item = &ResponseSample> {
        self.answers.iter().filter(move |answer| since.is_none_or(|since| answer.ended > since))
    }
}

#[cfg(test)]
mod tests;
