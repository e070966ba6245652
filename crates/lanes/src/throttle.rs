//! Limits the rate of requests to a server that has asked us to send fewer of them.
//!
//! A key (usually a part of a bucket) has no limit until its first throttle. After that its requests are sent in order, at a rate that
//! [`RequestRate`] decides. The limit is removed when the server accepts more requests than the callers make.
//!
//! A request may also name its object and direction. A throttle then limits only that object in that direction, unless [`SEVERAL`] objects
//! of the key are throttled at about the same time.

mod rate;
#[cfg(test)]
mod scenario;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::retry::RETRY_AFTER_MAX;
use rate::RequestRate;

/// Requests and answers of a key without a limit are counted over windows of this length.
const WINDOW: Duration = Duration::from_secs(1);

/// Two 503 answers for one object within this time, both without a reason, count as a throttle. A single such answer is a transient
/// failure, which is normal with S3.
const TOGETHER: Duration = Duration::from_secs(1);

/// If this many objects of a key are throttled within [`TOGETHER`], the whole key is limited. A store that limits single objects (GCS
/// allows one write per second) throttles one of them, or two by chance. A store that limits a folder throttles any of its objects.
const SEVERAL: usize = 3;

/// A limit that wasn't used for this time is forgotten, since the server may accept more by then.
const LIMIT_LASTS: Duration = Duration::from_secs(120);

/// Keys are forgotten only if there are more than this many.
const KEYS_KEPT: usize = 64;

/// If a request's expected wait is longer than `WAIT_SURE`, the request asks again after half of the wait, because the rate may have risen
/// meanwhile. It asks again after `WAIT_MAX` at the latest. The rate can't double in less time.
const WAIT_SURE: Duration = Duration::from_millis(40);
const WAIT_MAX: Duration = Duration::from_millis(250);

/// The resolution of timers.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// If a timer is late by at most this time, the requests that the rate permitted meanwhile are still sent. So such a timer doesn't lower
/// the rate.
const LATENESS: Duration = Duration::from_millis(20);

/// After the rate is reduced, requests pause for as long as this many requests take at the new rate. The server's token bucket is empty
/// at that moment, so an early request would be refused again.
const PAUSED: f64 = 4.0;

/// The limits of all keys. It keeps only throttled keys, and the counts of keys that were used recently.
#[derive(Debug, Default)]
pub(crate) struct Throttles {
    keys: HashMap<String, ThrottleKey>,
    /// At this number of keys, unused ones are removed. This number is twice the number of keys that remained
    /// after the last removal.
    full_at: usize,
}

#[derive(Debug)]
struct ThrottleKey {
    limit: Option<RateLimit>,
    seen: UnlimitedTraffic,
    gate: Arc<Gate>,
    /// The different objects that were last throttled, the newest at the end. The list has fewer than
    /// [`SEVERAL`] objects.
    refused_last: Vec<ObjectHash>,
}

/// A hash of an object and a direction. If two hashes collide, the objects only slow each other down.
type ObjectHash = u64;

/// Counts the requests of a key without a limit.
#[derive(Debug)]
struct UnlimitedTraffic {
    window_began: Instant,
    sent: u32,
    good: u32,
    /// The sent requests and the successful answers, per second, of the last full window.
    before: (f64, f64),
}

#[derive(Debug)]
struct RateLimit {
    rate: RequestRate,
    line: Arc<Mutex<AdmissionQueue>>,
    /// The number of requests that may be sent now. It can have a fraction.
    credit: f64,
    /// The time up to which `credit` was computed. It is in the future during a pause.
    reckoned: Instant,
}

/// The waiting requests, numbered in the order of their arrival.
#[derive(Debug, Default)]
struct AdmissionQueue {
    waiting: BTreeSet<u64>,
    numbers: u64,
}

/// The gate of a key, which can stop requests that were admitted but not yet sent. Hundreds of admitted requests can wait for lanes.
/// Without the gate, they would be sent at the old rate after a throttle.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_shut: AtomicBool,
    /// The throttles of the last [`TOGETHER`], with their times.
    refusals: Mutex<Vec<(Option<ObjectHash>, Instant)>>,
    /// The times when the limits of single objects were last reduced. `has_cuts` is true if the map has entries.
    cuts: Mutex<HashMap<ObjectHash, Instant>>,
    has_cuts: AtomicBool,
}

/// The permission to send a request: the gate of its key, its object, and the time of its admission.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionPass {
    gate: Arc<Gate>,
    object: Option<ObjectHash>,
    admitted: Instant,
}

/// The state of a request that asks for admission. While the request waits, it has a place in the queue. Dropping this value gives up the
/// place.
#[derive(Debug, Default)]
pub(crate) struct AdmissionRequest(Option<QueueTicket>);

#[derive(Debug)]
struct QueueTicket {
    number: u64,
    line: Arc<Mutex<AdmissionQueue>>,
}

/// The decision about the admission of a request.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Send the request, unless the gate is shut when a lane is free for it.
    Go(Arc<Gate>),
    /// Ask again after this time.
    Wait(Duration),
}

impl Throttles {
    /// Returns how long a request for this object has to wait before it asks again. `None` means that the object's limit permits it now.
    pub(crate) fn wait_alone(
        &mut self,
        object: &str,
        place: &mut AdmissionRequest,
        now: Instant,
    ) -> Option<Duration> {
        self.keys.get_mut(object)?.limit.as_mut()?.wait(place, now)
    }

    /// Admits a request at `now`, or returns how long to wait before it asks again.
    pub(crate) fn admit(&mut self, key: &str, place: &mut AdmissionRequest, now: Instant) -> Admission {
        let key = self.key(key, now);
        if key.gate.is_shut() {
            // Throttled answers have arrived, but their calls haven't judged them yet.
            key.cut(now, now);
        }
        let Some(limit) = &mut key.limit else {
            place.0 = None;
            key.seen.count(now, 1, 0);
            return Admission::Go(Arc::clone(&key.gate));
        };
        match limit.wait(place, now) {
            None => Admission::Go(Arc::clone(&key.gate)),
            Some(wait) => Admission::Wait(wait),
        }
    }

    /// Records a throttle. `admitted` is the time when its request was admitted, and `after` the pause that the server asks for. If
    /// fewer than [`SEVERAL`] objects of the key are throttled at about the same time, only the named object is limited. Otherwise the key
    /// is limited.
    pub(crate) fn throttled(
        &mut self,
        key: &str,
        object: Option<&str>,
        admitted: Instant,
        now: Instant,
        after: Option<Duration>,
    ) {
        let is_limited = |object| self.keys.get(object).is_some_and(|own| own.limit.is_some());
        let has_limit = object.is_some_and(is_limited);
        let whole = self.key(key, now);
        let gate = Arc::clone(&whole.gate);
        let limited = object.filter(|object| whole.bears_with(id(object), has_limit, now));
        let (limit, is_cut) = self.key(limited.unwrap_or(key), now).cut(admitted, now);
        if let Some(object) = limited.filter(|_| is_cut) {
            gate.cut(id(object), now);
        }
        if let Some(after) = after.filter(|after| *after <= RETRY_AFTER_MAX) {
            limit.pause(now, after);
        }
    }

    /// Records a successful answer.
    pub(crate) fn succeeded(&mut self, key: &str, object: Option<&str>, now: Instant) {
        for key in [Some(key), object].into_iter().flatten() {
            if let Some(key) = self.keys.get_mut(key) {
                key.succeeded(now);
            }
        }
    }

    /// Returns the state of a key, which is created if needed. Sometimes it also removes unused keys, because each folder of a bucket is a
    /// key, and a bucket can have many folders.
    fn key(&mut self, key: &str, now: Instant) -> &mut ThrottleKey {
        if self.keys.len() >= self.full_at.max(KEYS_KEPT) && !self.keys.contains_key(key) {
            self.keys.retain(|_, key| key.tells_something(now));
            self.full_at = self.keys.len() * 2;
        }
        let fresh = || ThrottleKey {
            limit: None,
            seen: UnlimitedTraffic::new(now),
            gate: Arc::default(),
            refused_last: Vec::new(),
        };
        self.keys.entry(key.to_owned()).or_insert_with(fresh)
    }
}

impl ThrottleKey {
    fn tells_something(&self, now: Instant) -> bool {
        match &self.limit {
            Some(limit) => now < limit.reckoned + LIMIT_LASTS || !limit.line().waiting.is_empty(),
            // A key is kept while it has requests, so that their 503 answers are counted together.
            None => now < self.seen.window_began + WINDOW || Arc::strong_count(&self.gate) > 1,
        }
    }

    fn succeeded(&mut self, now: Instant) {
        let Some(limit) = &mut self.limit else { return self.seen.count(now, 0, 1) };
        limit.reckon(now);
        if limit.rate.succeeded(now) && limit.line().waiting.is_empty() {
            self.limit = None;
        }
    }

    /// Records the throttle of an object. Returns whether it concerns only that object.
    fn bears_with(&mut self, object: ObjectHash, has_limit: bool, now: Instant) -> bool {
        let count = self.refused_last.len();
        self.refused_last.retain(|last| *last != object);
        let was_among_last = self.refused_last.len() < count;
        self.refused_last.push(object);
        if self.refused_last.len() >= SEVERAL {
            self.refused_last.remove(0);
        }
        if self.limit.is_some() {
            // The key already has a limit. If one or two objects are still throttled repeatedly, the store limits these objects.
            return was_among_last || has_limit;
        }
        self.gate.refused(Some(object), false, now);
        !self.gate.is_shut()
    }

    /// Records a throttle of a request that was admitted at `admitted`. Returns the limit, and true if the throttle has reduced it.
    fn cut(&mut self, admitted: Instant, now: Instant) -> (&mut RateLimit, bool) {
        let (sent, good) = self.seen.rates(now);
        let is_cut = match &mut self.limit {
            Some(limit) => {
                limit.reckon(now);
                limit.rate.throttled(admitted, now)
            }
            None => true,
        };
        let limit = self.limit.get_or_insert_with(|| RateLimit::new(RequestRate::new(sent, good, now), now));
        if is_cut {
            limit.pause_a_little(now);
            self.gate.shut();
            self.gate = Arc::default();
        }
        (limit, is_cut)
    }
}

impl RateLimit {
    fn new(rate: RequestRate, now: Instant) -> Self {
        Self { rate, line: Arc::default(), credit: 0.0, reckoned: now }
    }

    /// Returns how long to wait before asking again. `None` means that the request may be sent.
    fn wait(&mut self, place: &mut AdmissionRequest, now: Instant) -> Option<Duration> {
        self.reckon(now);
        // A place in the queue of an earlier limit isn't valid.
        let number = match &place.0 {
            Some(waiting) if Arc::ptr_eq(&waiting.line, &self.line) => waiting.number,
            _ => {
                let number = self.line().join();
                place.0 = Some(QueueTicket { number, line: Arc::clone(&self.line) });
                number
            }
        };
        let may_go = self.line().waiting.iter().take(self.credit as usize).any(|first| *first == number);
        if may_go {
            self.credit -= 1.0;
            place.0 = None;
            return None;
        }
        let first = self.line().waiting.first().copied().unwrap_or(number);
        // This overestimates the wait if requests in between have left the queue, because their numbers still count. But if the wait is
        // long, the request asks again before the wait is over.
        let ahead = (number - first) as f64 + 1.0 - self.credit;
        let turns = Duration::try_from_secs_f64(ahead.max(0.0) / self.rate.now()).unwrap_or(WAIT_MAX);
        let wait = (turns + self.reckoned.saturating_duration_since(now)).max(WAIT_MIN);
        Some(if wait > WAIT_SURE { (wait / 2).clamp(WAIT_SURE, WAIT_MAX) } else { wait })
    }

    /// Adds the requests that the rate permits up to `now`. Keeps only a few unused permits, for requests whose timers are late.
    fn reckon(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.reckoned).as_secs_f64();
        let most = 1.0 + self.rate.now() * LATENESS.as_secs_f64();
        self.credit = (self.credit + passed * self.rate.now()).min(most);
        self.reckoned = self.reckoned.max(now);
    }

    fn pause_a_little(&mut self, now: Instant) {
        self.pause(now, Duration::from_secs_f64(PAUSED / self.rate.now()));
    }

    fn pause(&mut self, now: Instant, pause: Duration) {
        self.credit = 0.0;
        self.reckoned = self.reckoned.max(now + pause);
    }

    fn line(&self) -> MutexGuard<'_, AdmissionQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionQueue {
    fn join(&mut self) -> u64 {
        self.numbers += 1;
        self.waiting.insert(self.numbers);
        self.numbers
    }
}

impl Drop for QueueTicket {
    /// Leaves the queue, because the request was admitted or dropped.
    fn drop(&mut self) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&self.number);
    }
}

impl Gate {
    /// Stops all requests that were admitted but not sent.
    fn shut(&self) {
        self.is_shut.store(true, Relaxed);
    }

    /// Stops the requests for this object that were admitted before now but not sent.
    fn cut(&self, object: ObjectHash, now: Instant) {
        let mut cuts = self.cuts();
        if cuts.len() >= KEYS_KEPT {
            cuts.retain(|_, at| now.saturating_duration_since(*at) < LIMIT_LASTS);
        }
        cuts.insert(object, now);
        self.has_cuts.store(true, Relaxed);
    }

    /// Returns whether the limit of an object was reduced after `admitted`.
    fn is_cut_since(&self, object: ObjectHash, admitted: Instant) -> bool {
        self.has_cuts.load(Relaxed) && self.cuts().get(&object).is_some_and(|cut| *cut >= admitted)
    }

    /// Records a throttle. `bare` means that the answer is a 503 without a reason. A single 503 of this kind isn't a throttle.
    fn refused(&self, object: Option<ObjectHash>, bare: bool, now: Instant) {
        if self.is_shut() {
            return;
        }
        let mut refusals = self.refusals();
        refusals.retain(|(_, at)| now.saturating_duration_since(*at) < TOGETHER);
        refusals.push((object, now));
        let of_it = refusals.iter().filter(|(refused, _)| *refused == object).count();
        let objects: BTreeSet<_> = refusals.iter().filter_map(|(object, _)| *object).collect();
        if objects.len() >= SEVERAL || object.is_none() && (!bare || of_it > 1) {
            self.shut();
        }
    }

    fn cuts(&self) -> MutexGuard<'_, HashMap<ObjectHash, Instant>> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, Vec<(Option<ObjectHash>, Instant)>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether admitted requests that weren't sent must ask again.
    fn is_shut(&self) -> bool {
        self.is_shut.load(Relaxed)
    }
}

impl AdmissionPass {
    pub(crate) fn new(gate: Arc<Gate>, object: Option<&str>, admitted: Instant) -> Self {
        Self { gate, object: object.map(id), admitted }
    }

    /// Records an answer with status 429.
    pub(crate) fn refused(&self, now: Instant) {
        self.gate.refused(self.object, false, now);
    }

    /// Records an answer with status 503.
    pub(crate) fn unavailable(&self, now: Instant) {
        self.gate.refused(self.object, true, now);
    }

    /// Returns whether the request must ask for admission again.
    pub(crate) fn is_shut(&self) -> bool {
        let is_cut = |object| self.gate.is_cut_since(object, self.admitted);
        self.gate.is_shut() || self.object.is_some_and(is_cut)
    }

    /// Returns whether a 503 without a reason counts as a throttle, because there were other throttles at about the same time.
    pub(crate) fn is_throttled(&self) -> bool {
        let of_it = |(object, _): &&(Option<ObjectHash>, Instant)| *object == self.object;
        self.is_shut() || self.gate.refusals().iter().filter(of_it).count() > 1
    }
}

fn id(object: &str) -> ObjectHash {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}

impl UnlimitedTraffic {
    fn new(now: Instant) -> Self {
        Self { window_began: now, sent: 0, good: 0, before: (0.0, 0.0) }
    }

    fn count(&mut self, now: Instant, sent: u32, good: u32) {
        let elapsed = now.saturating_duration_since(self.window_began);
        if elapsed >= WINDOW {
            let a_second = |count: u32| f64::from(count) / elapsed.as_secs_f64();
            self.before = (a_second(self.sent), a_second(self.good));
            (self.window_began, self.sent, self.good) = (now, 0, 0);
        }
        self.sent += sent;
        self.good += good;
    }

    /// Returns the sent requests and the successful answers per second. Each result is the larger of two values: that of the last full
    /// window and that of the present window.
    fn rates(&mut self, now: Instant) -> (f64, f64) {
        self.count(now, 0, 0);
        (self.before.0.max(f64::from(self.sent)), self.before.1.max(f64::from(self.good)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes(throttles: &mut Throttles, key: &str, now: Instant) -> bool {
        matches!(throttles.admit(key, &mut AdmissionRequest::default(), now), Admission::Go(_))
    }

    #[test]
    fn an_unthrottled_key_never_waits() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        assert!((0..10_000).all(|_| goes(&mut throttles, "b", now)));
    }

    #[test]
    fn a_throttle_makes_a_line_and_leaves_other_keys_alone() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        assert!(goes(&mut throttles, "b", now));
        throttles.throttled("b", None, now, now, None);
        let (mut first, mut second) = (AdmissionRequest::default(), AdmissionRequest::default());
        let mut ask = |place: &mut AdmissionRequest, ms| match throttles.admit(
            "b",
            place,
            now + Duration::from_millis(ms),
        ) {
            Admission::Go(_) => None,
            Admission::Wait(wait) => Some(wait),
        };
        assert!(ask(&mut first, 0) <= ask(&mut second, 0));
        // Asking more often doesn't let the second request overtake the first.
        assert!(ask(&mut second, 520).is_some());
        assert_eq!(ask(&mut first, 520), None);
        assert_eq!(ask(&mut second, 720), None);
        assert!(goes(&mut throttles, "c", now));
    }

    #[test]
    fn a_place_that_is_given_up_keeps_nobody_waiting() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.throttled("b", None, now, now, None);
        let mut places: Vec<AdmissionRequest> = (0..1000).map(|_| AdmissionRequest::default()).collect();
        places.iter_mut().for_each(|place| drop(throttles.admit("b", place, now)));
        let mut last = places.pop().unwrap();
        drop(places);
        let after = now + Duration::from_secs(1);
        assert!(matches!(throttles.admit("b", &mut last, after), Admission::Go(_)));
    }

    #[test]
    fn what_was_admitted_before_the_first_throttle_and_not_sent_comes_again() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        let Admission::Go(gate) = throttles.admit("b", &mut AdmissionRequest::default(), now) else {
            panic!()
        };
        assert!(!gate.is_shut());
        throttles.throttled("b", None, now, now, None);
        assert!(gate.is_shut());
    }

    #[test]
    fn a_lone_503_slows_nothing_down_and_two_within_a_second_do() {
        for (apart_ms, is_throttle) in [(0, true), (999, true), (1000, false), (60_000, false)] {
            let (mut throttles, now) = (Throttles::default(), Instant::now());
            let Admission::Go(gate) = throttles.admit("b", &mut AdmissionRequest::default(), now) else {
                panic!()
            };
            gate.refused(None, true, now);
            assert!(!gate.is_shut() && goes(&mut throttles, "b", now));
            let then = now + Duration::from_millis(apart_ms);
            gate.refused(None, true, then);
            assert_eq!(gate.is_shut(), is_throttle, "{apart_ms} ms");
            assert_eq!(goes(&mut throttles, "b", then), !is_throttle, "{apart_ms} ms");
            assert!(goes(&mut throttles, "c", then), "another key");
        }
    }

    #[test]
    fn a_refused_object_waits_alone_in_its_direction() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.throttled("b", Some("b/hot write"), now, now, Some(Duration::from_secs(2)));
        let mut wait = |object| throttles.wait_alone(object, &mut AdmissionRequest::default(), now);
        assert!(wait("b/hot write").is_some());
        assert_eq!((wait("b/hot read"), wait("b/cold write")), (None, None));
        assert!(goes(&mut throttles, "b", now));
    }

    #[test]
    fn three_objects_refused_within_a_second_slow_their_folder() {
        for (objects, apart_ms, is_folder) in [
            (["x", "x", "x"], 0, false),
            (["x", "y", "x"], 0, false),
            (["x", "y", "z"], 0, true),
            (["x", "y", "z"], 600, false),
        ] {
            let (mut throttles, start) = (Throttles::default(), Instant::now());
            let mut now = start;
            for object in objects {
                throttles.throttled("b", Some(object), now, now, None);
                now += Duration::from_millis(apart_ms);
            }
            assert_eq!(goes(&mut throttles, "b", now), !is_folder, "{objects:?}, {apart_ms} ms");
        }
    }

    #[test]
    fn lanes_shut_the_gate_at_the_third_refused_object() {
        let gate = Arc::new(Gate::default());
        let now = Instant::now();
        let pass = |object| AdmissionPass::new(Arc::clone(&gate), Some(object), now);
        (0..10).for_each(|_| pass("x").refused(now));
        pass("y").unavailable(now);
        assert!(!pass("y").is_throttled() && pass("x").is_throttled() && !pass("z").is_shut());
        pass("y").unavailable(now);
        assert!(pass("y").is_throttled() && !pass("z").is_shut());
        pass("z").unavailable(now);
        assert!(pass("x").is_shut());
    }

    #[test]
    fn what_waits_for_a_lane_asks_again_when_its_object_is_refused() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        let later = |ms| now + Duration::from_millis(ms);
        let passed = |throttles: &mut Throttles, object, at| {
            assert_eq!(throttles.wait_alone(object, &mut AdmissionRequest::default(), at), None);
            let Admission::Go(gate) = throttles.admit("b", &mut AdmissionRequest::default(), at) else {
                panic!()
            };
            AdmissionPass::new(gate, Some(object), at)
        };
        let [write, read, other] =
            ["hot write", "hot read", "cold write"].map(|object| passed(&mut throttles, object, now));
        throttles.throttled("b", Some("hot write"), now, later(10), None);
        assert!(write.is_shut() && !read.is_shut() && !other.is_shut());
        // Answers to requests that were sent before the reduction change nothing.
        let next = passed(&mut throttles, "hot write", later(2000));
        throttles.throttled("b", Some("hot write"), now, later(2001), None);
        assert!(!next.is_shut());
        throttles.throttled("b", Some("hot write"), later(2000), later(2010), None);
        assert!(next.is_shut());
    }

    #[test]
    fn two_objects_that_are_refused_in_turn_leave_their_folders_limit_alone() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.throttled("b", None, now, now, None);
        let mut rate = |object, ms| {
            let later = now + Duration::from_millis(ms);
            throttles.throttled("b", Some(object), later, later, None);
            throttles.keys["b"].limit.as_ref().unwrap().rate.now()
        };
        let [_, before] = [rate("x", 1), rate("y", 2)];
        assert_eq!(
            (3..9).map(|ms| rate(["x", "y"][ms as usize % 2], ms * 1000)).find(|now| *now < before),
            None
        );
        assert!(rate("z", 10_000) < before);
    }

    #[test]
    fn an_object_that_is_refused_again_leaves_its_folders_limit_alone() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.throttled("b", None, now, now, None);
        let mut rate = |object| {
            let later = now + Duration::from_millis(1);
            throttles.throttled("b", Some(object), later, later, None);
            throttles.keys["b"].limit.as_ref().unwrap().rate.now()
        };
        let first = rate("hot");
        assert_eq!((rate("hot"), rate("hot")), (first, first));
    }

    #[test]
    fn any_number_of_keys_leaves_only_those_that_tell_something() {
        let (mut throttles, start) = (Throttles::default(), Instant::now());
        for n in 0..10_000_u32 {
            let now = start + Duration::from_millis(u64::from(n) * 20);
            let key = n.to_string();
            assert!(goes(&mut throttles, &key, now));
            if n % 100 == 0 {
                throttles.throttled(&key, None, now, now, None);
            }
        }
        // There are 50 new keys per second, and one in a hundred stays limited for two minutes.
        assert!(throttles.keys.len() <= 2 * (50 + 60) + KEYS_KEPT, "{}", throttles.keys.len());
    }

    #[test]
    fn a_throttle_that_a_lane_has_seen_counts_once() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        let Admission::Go(gate) = throttles.admit("b", &mut AdmissionRequest::default(), now) else {
            panic!()
        };
        gate.shut();
        let later = now + Duration::from_millis(1);
        assert!(!goes(&mut throttles, "b", later));
        let rate = throttles.keys["b"].limit.as_ref().unwrap().rate.now();
        throttles.throttled("b", None, now, later, None);
        assert_eq!(throttles.keys["b"].limit.as_ref().unwrap().rate.now(), rate);
        assert!(!throttles.keys["b"].gate.is_shut());
    }

    #[test]
    fn retry_after_holds_everybody_back_unless_it_is_absurd() {
        let (mut throttles, now) = (Throttles::default(), Instant::now());
        throttles.throttled("b", None, now, now, Some(Duration::from_secs(2)));
        throttles.throttled("c", None, now, now, Some(Duration::from_secs(u64::MAX)));
        let (mut b, mut c) = (AdmissionRequest::default(), AdmissionRequest::default());
        for (key, place) in [("b", &mut b), ("c", &mut c)] {
            assert!(matches!(throttles.admit(key, place, now), Admission::Wait(_)));
        }
        let later = now + Duration::from_millis(1900);
        assert!(matches!(throttles.admit("b", &mut b, later), Admission::Wait(_)));
        assert!(matches!(throttles.admit("c", &mut c, later), Admission::Go(_)));
    }
}
