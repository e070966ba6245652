//! Stragglers among running requests, and their hedges. A hedge is the same request sent a second time, on another connection.
//!
//! A straggler is slow compared to similar requests: those of the same origin and kind that ran at the same time. An idle link isn't the
//! measure. If all requests are slow, none is hedged, since hedges would only add load. Requests that wait for a lane aren't watched. Time
//! counts from when the request was sent, and from when bytes of its answer last came.

mod tracker;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::dispatch::{AttemptId, OriginId, Role};
pub(crate) use tracker::{Tracker, TrackerReading};

/// One request in `ONE_OF` may be hedged, and `ALWAYS` requests in any case. Dean and Barroso ("The Tail at Scale", 2013) cut the 99.9th
/// percentile to a twentieth with 2 % more requests.
const ONE_OF: u64 = 50;
const ALWAYS: u64 = 2;

/// A silence of this many times the usual one makes a straggler. Answers within about twice the 95th percentile are common.
const TIMES_USUAL: u32 = 3;

/// The least silence that makes a small request a straggler. Nearby, a busy server, a garbage collection or a scheduler's delay explains
/// shorter ones. On a longer path, [`TIMES_USUAL`] is the bound: three round trips, as long as a new connection for the hedge takes. TCP
/// repairs a lost last packet only after 200 ms or more, and a lost handshake packet after a second.
const SMALL_SILENT_MIN: Duration = Duration::from_millis(60);

/// The same for bulk. Its segments queue, and a lost one stalls its stream for some round trips. Writing its bytes may also block a thread
/// that other bodies share.
const BULK_SILENT_MIN: Duration = Duration::from_secs(1);

/// The least silence that makes a straggler if no comparable request runs. It is then compared with earlier requests.
const ALONE_MIN: Duration = Duration::from_millis(500);

/// The same if other requests are silent too, or if bulk stopped and its usual pace is unknown. The path is then the likely cause, and a
/// hedge's new connection probes it.
const ALL_SILENT_MIN: Duration = Duration::from_secs(5);

/// A body that moves is a straggler if its rest would take this many times as long as a hedge would.
const TIMES_SLOWER: f64 = 3.0;

/// The shortest time between two looks at all running requests.
const LOOK_MIN: Duration = Duration::from_millis(50);

/// A look that comes later than this shows that the process stood still, so the silences may be its own fault.
const LATE: Duration = Duration::from_millis(30);

/// A number for requests of an origin that usually take equally long. The caller knows which do: a server needs longer for a listing than
/// for a read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Alike(pub u8);

/// Requests that are compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ComparisonGroup {
    origin: OriginId,
    alike: Alike,
    role: Role,
}

/// Returns how many more requests may be hedged, after this many requests and hedges of the process.
pub(crate) fn budget_left(requests: u64, hedges: u64) -> u64 {
    (requests / ONE_OF).max(ALWAYS).saturating_sub(hedges)
}

/// Watches running requests that may be hedged.
#[derive(Debug)]
pub(crate) struct HedgeWatch {
    /// True if bodies come as fast as they can, so that a slow one is a sign.
    judges_bodies: bool,
    running: FxHashMap<AttemptId, WatchedAttempt>,
    groups: FxHashMap<ComparisonGroup, Baseline>,
    next_look: Option<Instant>,
    /// Silences from before this time don't count.
    stood_still: Option<Instant>,
    /// True while bulk is held back. `held_until` is the time of the last change.
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
    /// A straggler, after this silence.
    Straggler(Duration),
    LookAgain(Instant),
}

impl HedgeWatch {
    /// Makes a watch. It shouldn't judge bodies if the caller caps the rate, since they are slow on purpose.
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

    /// Takes note that an attempt was given to a lane. `expected` is the size of its body in bytes, if known.
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

    /// Takes note that an attempt has ended.
    pub(crate) fn end(&mut self, now: Instant, attempt: AttemptId) {
        let Some(ended) = self.running.remove(&attempt) else { return };
        if let Some(seen) = ended.tracker.snapshot().filter(|seen| seen.is_whole) {
            self.groups.entry(ended.group).or_default().note(now, &seen);
        }
        if self.running.is_empty() {
            self.next_look = None;
        }
    }

    /// Takes note that an attempt turned out to be bulk.
    pub(crate) fn turned_freight(&mut self, attempt: AttemptId) {
        if let Some(running) = self.running.get_mut(&attempt) {
            running.group.role = Role::Freight;
        }
    }

    /// Takes note that bulk is held back from now on, or no longer.
    pub(crate) fn hold_bulk(&mut self, now: Instant, is_held: bool) {
        (self.is_held, self.held_until) = (is_held, Some(now));
    }

    /// Returns when to look again.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    /// Returns at most `most` stragglers, the longest silent first. `is_all` tells that all requests under way are watched.
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
            // More hedges may be allowed by then.
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

    /// Returns since when an attempt is silent through no fault of Laneway's.
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
            // A few long streams show little about usual silences.
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
        // Other requests' activity may change before the limit is reached.
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
        // If bulk was held back, or the process stood still, the server isn't to blame for the rate.
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

/// If another request received bytes this recently, the path is alive. Beside a longer silence, half of that silence counts as recent.
const RECENTLY: Duration = Duration::from_millis(30);

/// If nothing moves any more, others still count as moving if this many requests, for each silent attempt, were answered since it was sent.
/// At the end of a run, only stragglers are left.
const ANSWERED_TO_SILENT: usize = 4;

/// The activity of other requests to the same origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConcurrentActivity {
    /// Others receive bytes, or have received all of theirs.
    Moving,
    /// No others are running.
    None,
    /// Others receive nothing either.
    Silent,
}

/// A snapshot of all requests that hedging watches: for each origin when bytes last came, and for each group how many requests are silent.
#[derive(Debug, Default)]
struct Activity {
    /// Each origin's last two moves, so that one attempt's can be left out.
    moves: FxHashMap<OriginId, [Option<Move>; 2]>,
    silent: FxHashMap<ComparisonGroup, usize>,
}

/// When bytes came, and to which attempt; `None` for one that has ended.
type Move = (Instant, Option<AttemptId>);

impl Activity {
    /// Takes note of a running attempt.
    fn running(&mut self, attempt: AttemptId, group: ComparisonGroup, moved: Instant, is_silent: bool) {
        self.note(group.origin, (moved, Some(attempt)));
        *self.silent.entry(group).or_default() += usize::from(is_silent);
    }

    /// Takes note of an answered attempt.
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

    /// Returns the activity beside an attempt that is silent since `since`, while `answered` requests of its group were answered.
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

/// Most remembered answers, and for how long: enough for a high quantile, and recent enough to describe the present path.
const REMEMBERED: usize = 64;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// The fewest answers that show the usual values.
const FEWEST: usize = 3;

/// The quantile of the longest silences that counts as usual. Of 64 answers, three may be stragglers themselves.
const USUAL: f64 = 0.95;

/// The least size of a body that shows a rate. Smaller ones come in one read.
const BODY_MIN: u64 = 64 * 1024;

/// One answer that came whole.
#[derive(Clone, Copy, Debug)]
struct ResponseSample {
    ended: Instant,
    /// The longest time in which no byte of it came, the wait for its head included.
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
    /// Takes note of a complete answer.
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

    /// Returns when the last answer ended.
    fn last(&self) -> Option<Instant> {
        self.answers.back().map(|answer| answer.ended)
    }

    /// Returns how many answers ended after `since`.
    fn count_since(&self, since: Instant) -> usize {
        self.since(Some(since)).count()
    }

    /// Returns the usual silence of answers that ended after `since`, or of all.
    fn usual_silence(&self, since: Option<Instant>) -> Option<Duration> {
        let mut silences: Vec<_> = self.since(since).map(|answer| answer.silence).collect();
        silences.sort_unstable();
        let enough = silences.len() >= FEWEST;
        enough.then(|| silences[(silences.len() as f64 * USUAL).ceil() as usize - 1])
    }

    /// Returns the median rate of bodies that ended after `since`, or of all, in bytes a second.
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
