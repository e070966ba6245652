//! Stragglers among running requests, and their hedges: sent a second time, on another connection.
//!
//! A straggler is slow compared to comparable requests, not to an idle link: those of the same origin and kind that were
//! under way while it was. When everything is slow nothing is hedged, since a hedge would only add to it. What
//! waits for a lane is not watched; time counts from when the request went out, and from when anything of its answer
//! came last.

mod tracker;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::dispatch::{AttemptId, OriginId, Role};
pub(crate) use tracker::{Tracker, TrackerReading};

/// The share of requests that may be hedged, as one of so many, and how many always may. Dean and Barroso ("The Tail at
/// Scale", 2013) cut the 99.9th percentile to a twentieth with 2 % more requests.
const ONE_OF: u64 = 50;
const ALWAYS: u64 = 2;

/// Multiple of the usual silence that makes a straggler. Slow answers are common up to about twice the 95th percentile.
const TIMES_USUAL: u32 = 3;

/// No small request is a straggler before: nearby, a busy server, a collector's pause or a turn of the scheduler explains so
/// much. On a longer path [`TIMES_USUAL`] is the bound, three round trips, which is what a new connection for the hedge takes.
/// TCP itself mends a lost tail after 200 ms and more, and a handshake's loss after a second.
const SMALL_SILENT_MIN: Duration = Duration::from_millis(60);

/// No bulk either: its segments queue, a lost one stalls its stream for some round trips, and writing its bytes may block
/// a thread that other bodies share.
const BULK_SILENT_MIN: Duration = Duration::from_secs(1);

/// The shortest silence that makes a straggler where nothing comparable runs, so that it is compared with what was usual
/// before.
const ALONE_MIN: Duration = Duration::from_millis(500);

/// The same where other requests are silent too, or where bulk stopped and nothing tells its usual pace. Most likely it is the path then,
/// and a new connection probes it.
const ALL_SILENT_MIN: Duration = Duration::from_secs(5);

/// A body that moves is a straggler when the rest of it would take this many times what a hedge would.
const TIMES_SLOWER: f64 = 3.0;

/// The shortest time between two looks at everything that runs.
const LOOK_MIN: Duration = Duration::from_millis(50);

/// A look that comes later than this finds a process that stood still: its silences are its own.
const LATE: Duration = Duration::from_millis(30);

/// Among which requests of its origin one can be found slow: those with the same number. Whoever makes the requests knows
/// which take equally long: a listing thinks longer than a read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Alike(pub u8);

/// Requests that are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ComparisonGroup {
    origin: OriginId,
    alike: Alike,
    role: Role,
}

/// Returns how many more requests may be hedged by a process that has sent so many.
pub(crate) fn budget_left(requests: u64, hedges: u64) -> u64 {
    (requests / ONE_OF).max(ALWAYS).saturating_sub(hedges)
}

/// Watches what runs and may be hedged.
#[derive(Debug)]
pub(crate) struct HedgeWatch {
    /// True if bodies come as fast as they can, so that a slow one says something.
    judges_bodies: bool,
    running: FxHashMap<AttemptId, WatchedAttempt>,
    groups: FxHashMap<ComparisonGroup, Baseline>,
    next_look: Option<Instant>,
    /// Silences from before are not counted.
    stood_still: Option<Instant>,
    /// True if bulk is held back, and until when it was.
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
    /// After so long a silence.
    Straggler(Duration),
    LookAgain(Instant),
}

impl HedgeWatch {
    /// A watch. Where the caller caps the rate, bodies are as slow as that wants it.
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

    /// An attempt was given to a lane. `expected` are the bytes of its body, if they are known.
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

    /// An attempt has ended.
    pub(crate) fn end(&mut self, now: Instant, attempt: AttemptId) {
        let Some(ended) = self.running.remove(&attempt) else { return };
        if let Some(seen) = ended.tracker.snapshot().filter(|seen| seen.is_whole) {
            self.groups.entry(ended.group).or_default().note(now, &seen);
        }
        if self.running.is_empty() {
            self.next_look = None;
        }
    }

    /// An attempt turned out to be bulk.
    pub(crate) fn turned_freight(&mut self, attempt: AttemptId) {
        if let Some(running) = self.running.get_mut(&attempt) {
            running.group.role = Role::Freight;
        }
    }

    /// Bulk is held back from now on, or isn't any more.
    pub(crate) fn hold_bulk(&mut self, now: Instant, is_held: bool) {
        (self.is_held, self.held_until) = (is_held, Some(now));
    }

    /// When to look again.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    /// Finds the stragglers, the longest silent first, at most `most` of them. `is_all` says that nothing but what is
    /// watched is under way.
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
            // A request that hasn't gone out yet isn't silent.
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
            // There may be more to spend by then.
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

    /// Since when an attempt is silent through no fault of ours.
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
            // A few long streams show little of what is usual.
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
        // The activity beside it may change before.
        Judgement::LookAgain(soon.min(now + limit - silence))
    }

    /// Returns whether the rest of a body that moves would come much sooner by another request.
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
        // A rate that was held back, or of a process that stood still, is nobody's fault.
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

/// Bytes that others got at most so long ago show that the path is alive; beside a longer silence, in half of that.
const RECENTLY: Duration = Duration::from_millis(30);

/// Answered requests since an attempt went out, for each silent one, when nothing moves any more. At the end of a run only stragglers are
/// left.
const ANSWERED_TO_SILENT: usize = 4;

/// Activity beside an attempt, in its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConcurrentActivity {
    /// Others get something, or have got all that they wanted.
    Moving,
    /// There are no others.
    None,
    /// Others get nothing either.
    Silent,
}

/// Everything that is watched, at one moment.
#[derive(Debug, Default)]
struct Activity {
    /// Each origin's last two moves, so that one can be left out.
    moves: FxHashMap<OriginId, [Option<Move>; 2]>,
    silent: FxHashMap<ComparisonGroup, usize>,
}

/// When, and by which attempt; that of an attempt that has ended is nobody's any more.
type Move = (Instant, Option<AttemptId>);

impl Activity {
    /// An attempt is running.
    fn running(&mut self, attempt: AttemptId, group: ComparisonGroup, moved: Instant, is_silent: bool) {
        self.note(group.origin, (moved, Some(attempt)));
        *self.silent.entry(group).or_default() += usize::from(is_silent);
    }

    /// An attempt has been answered.
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

    /// Returns what goes on beside an attempt that is silent since then, while so many of its kind were answered.
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

/// The number of times that are remembered, and for how long: enough for a high quantile, and no older than what the path is now.
const REMEMBERED: usize = 64;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Fewer say nothing of what is usual.
const FEWEST: usize = 3;

/// Whose longest silence is taken for usual. Of 64 three may be stragglers themselves.
const USUAL: f64 = 0.95;

/// Smaller bodies come in one read and say nothing of a rate.
const BODY_MIN: u64 = 64 * 1024;

/// One answer that came whole.
#[derive(Clone, Copy, Debug)]
struct ResponseSample {
    ended: Instant,
    /// The longest time in which nothing of it came, that before its head included.
    silence: Duration,
    /// Bytes a second of its body.
    rate: Option<f64>,
}

/// Comparable requests of one origin.
#[derive(Debug, Default)]
struct Baseline {
    answers: VecDeque<ResponseSample>,
}

impl Baseline {
    /// Takes note of an answer that has come whole.
    fn note(&mut self, now: Instant, seen: &TrackerReading) {
        let took = seen.head.map(|head| seen.moved.saturating_duration_since(head).as_secs_f64());
        let rate = took.filter(|took| seen.bytes >= BODY_MIN && *took > 0.0);
        let rate = rate.map(|took| seen.bytes as f64 / took);
        if self.answers.len() >= REMEMBERED {
            self.answers.pop_front();
        }
        self.answers.push_back(ResponseSample { ended: now, silence: seen.silence, rate });
    }

    /// Forgets what is too old.
    fn forget_before(&mut self, now: Instant) {
        let is_old = |a: &ResponseSample| now.saturating_duration_since(a.ended) > REMEMBERED_FOR;
        while self.answers.front().is_some_and(is_old) {
            self.answers.pop_front();
        }
    }

    /// When the last answer came.
    fn last(&self) -> Option<Instant> {
        self.answers.back().map(|answer| answer.ended)
    }

    /// Returns how many ended after `since`.
    fn count_since(&self, since: Instant) -> usize {
        self.since(Some(since)).count()
    }

    /// Returns how long a silence is usual among those that ended after `since`, or among all.
    fn usual_silence(&self, since: Option<Instant>) -> Option<Duration> {
        let mut silences: Vec<_> = self.since(since).map(|answer| answer.silence).collect();
        silences.sort_unstable();
        let enough = silences.len() >= FEWEST;
        enough.then(|| silences[(silences.len() as f64 * USUAL).ceil() as usize - 1])
    }

    /// The median rate of bodies, bytes a second, among those that ended after `since`, or among all.
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
