//! Caches a credential while it is valid, and fetches the next one before it expires.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::failure::CredentialFailure;
use crate::Error;

/// After a failed search for credentials, all requests fail with the same error for this long. Otherwise a thousand
/// waiting uploads would query the metadata server one after another.
const FAILURE_LASTS: Duration = Duration::from_secs(10);

/// The minimum time between two replacements of a credential. If a store refuses two credentials within this time, the
/// second refusal is final, because the store would refuse a third credential too. While a credential is valid, Laneway
/// waits at least this long before it asks the source again.
const APART: Duration = Duration::from_secs(5);

/// A credential is replaced when a quarter (1 / `MARGIN_SHARE`) of its lifetime is left, such as the last 15 minutes of
/// an hour. If a credential is valid for one minute, a slow source still has 15 s to issue the next one.
const MARGIN_SHARE: u32 = 4;

/// A credential is replaced at most this long before it expires. Metadata servers issue credentials for hours, and a
/// longer margin would waste them. botocore uses the same 15 minutes.
const MARGIN_MAX: Duration = Duration::from_secs(15 * 60);

/// A credential that may expire.
pub(super) trait Expiring {
    /// Returns the time of expiration, if there is one.
    fn ends(&self) -> Option<SystemTime>;
}

/// The source of credentials.
pub(super) trait CredentialSource: Send + Sync + 'static {
    type Credential: Expiring + Send + Sync + 'static;

    /// Fetches a credential.
    fn load(&self) -> impl Future<Output = Result<Self::Credential, CredentialFailure>> + Send;

    fn now(&self) -> ClockReading {
        ClockReading::read()
    }
}

/// The current time on two clocks: the system's clock, by which credentials expire, and a monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    date: SystemTime,
    clock: Instant,
}

impl ClockReading {
    pub(super) fn read() -> Self {
        Self { date: SystemTime::now(), clock: Instant::now() }
    }

    #[cfg(test)]
    pub(super) fn after(self, time: Duration) -> Self {
        Self { date: self.date + time, clock: self.clock + time }
    }
}

/// A credential with a number that identifies it in this process.
#[derive(Debug)]
pub(crate) struct IdentifiedCredential<C> {
    pub(crate) credential: Arc<C>,
    pub(crate) number: u64,
}

impl<C> Clone for IdentifiedCredential<C> {
    fn clone(&self) -> Self {
        Self { credential: Arc::clone(&self.credential), number: self.number }
    }
}

/// Returns a number that no other credential of this process has.
pub(crate) fn new_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The credential in use, and the source of the next one.
pub(super) struct Cache<S: CredentialSource> {
    pub(super) source: S,
    held: RwLock<CacheState<S::Credential>>,
    /// Locked by the task that is asking the source, so that no other task asks at the same time.
    refreshing: Arc<tokio::sync::Mutex<()>>,
}

/// The state of the cache.
struct CacheState<C> {
    found: Option<IdentifiedCredential<C>>,
    /// The time at which to fetch the next credential. `None` if the present one never expires.
    due: Option<SystemTime>,
    /// The time of the last request to the source.
    asked: Option<Instant>,
    /// The time and the cause of the source's failure, if the last request failed.
    failed: Option<(Instant, CredentialFailure)>,
    /// The time when a store last refused the credential in use.
    refused: Option<Instant>,
}

/// The state of the held credential, which decides if a request can use it.
enum CachedCredential<C> {
    /// The credential can sign requests.
    Good(IdentifiedCredential<C>),
    /// The credential can still sign requests, but the next one should be fetched now.
    Due(IdentifiedCredential<C>),
    /// No credential is held, or it has expired.
    None,
}

impl<C: Expiring> CacheState<C> {
    fn look(&self, now: ClockReading) -> CachedCredential<C> {
        let is_good =
            |found: &&IdentifiedCredential<C>| found.credential.ends().is_none_or(|ends| ends > now.date);
        let Some(found) = self.found.as_ref().filter(is_good).cloned() else { return CachedCredential::None };
        let pause = if self.failed.is_some() { FAILURE_LASTS } else { APART };
        let has_rested = self.asked.is_none_or(|at| now.clock.saturating_duration_since(at) >= pause);
        match self.due.is_some_and(|due| due <= now.date) && has_rested {
            true => CachedCredential::Due(found),
            false => CachedCredential::Good(found),
        }
    }

    fn recent_failure(&self, now: ClockReading) -> Option<CredentialFailure> {
        let (at, lacking) = self.failed.as_ref()?;
        (now.clock.saturating_duration_since(*at) < FAILURE_LASTS).then(|| lacking.clone())
    }
}

/// Returns the time at which to replace a credential that was issued at `now` and is valid until `ends`.
fn due(now: SystemTime, ends: SystemTime) -> SystemTime {
    let life = ends.duration_since(now).unwrap_or_default();
    now + life.saturating_sub((life / MARGIN_SHARE).min(MARGIN_MAX))
}

impl<S: CredentialSource> Cache<S> {
    pub(super) fn new(source: S) -> Arc<Self> {
        let held = CacheState { found: None, due: None, asked: None, failed: None, refused: None };
        Arc::new(Self { source, held: RwLock::new(held), refreshing: Arc::default() })
    }

    /// Returns the credential in use. If there is none, the call waits until the source issues one. A new credential is
    /// fetched in the background before the present one expires. If that fails, the present one is used until it
    /// expires.
    ///
    /// # Errors
    /// `Unauthenticated`, with the sources that were tried.
    pub(super) async fn obtain(self: &Arc<Self>) -> Result<IdentifiedCredential<S::Credential>, Error> {
        if let Some(found) = self.held() {
            return Ok(found);
        }
        let _alone = self.refreshing.lock().await;
        if let CachedCredential::Good(found) | CachedCredential::Due(found) = self.look() {
            return Ok(found);
        }
        let failed = self.change(|held| held.recent_failure(self.source.now()));
        match failed {
            Some(lacking) => Err(lacking.into_error()),
            None => self.refresh().await.map_err(CredentialFailure::into_error),
        }
    }

    /// Returns the held credential, if it is still valid.
    pub(super) fn held(self: &Arc<Self>) -> Option<IdentifiedCredential<S::Credential>> {
        match self.look() {
            CachedCredential::Good(found) => Some(found),
            CachedCredential::Due(found) => {
                self.refresh_behind();
                Some(found)
            }
            CachedCredential::None => None,
        }
    }

    fn look(&self) -> CachedCredential<S::Credential> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).look(self.source.now())
    }

    fn change<T>(&self, with: impl FnOnce(&mut CacheState<S::Credential>) -> T) -> T {
        with(&mut self.held.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fetches a credential from the source.
    async fn refresh(&self) -> Result<IdentifiedCredential<S::Credential>, CredentialFailure> {
        // This future is boxed. Otherwise the future of every request would contain the large futures of all sources.
        let loaded = Box::pin(self.source.load()).await;
        let now = self.source.now();
        self.change(|held| {
            held.asked = Some(now.clock);
            match loaded {
                Ok(credential) => {
                    held.failed = None;
                    held.due = credential.ends().map(|ends| due(now.date, ends));
                    Ok(held
                        .found
                        .insert(IdentifiedCredential {
                            credential: Arc::new(credential),
                            number: new_number(),
                        })
                        .clone())
                }
                Err(lacking) => {
                    held.failed = Some((now.clock, lacking.clone()));
                    Err(lacking)
                }
            }
        })
    }

    /// Asks the source for the next credential on a new thread, unless another thread is already asking. The caller's
    /// runtime isn't used: it may end before the source answers, or the provider may block it.
    fn refresh_behind(self: &Arc<Self>) {
        let Ok(alone) = Arc::clone(&self.refreshing).try_lock_owned() else { return };
        let cache = Arc::clone(self);
        let ask = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
            // Another thread may have replaced the credential before this thread got the lock.
            if matches!(cache.look(), CachedCredential::Due(_))
                && let Err(lacking) = runtime.block_on(cache.refresh())
            {
                tracing::debug!(cause = %lacking.into_error(), "Laneway can't get new credentials yet, and keeps the current ones");
            }
            drop(alone);
        };
        // If the thread can't start, the credential stays due, so the next request tries again.
        let _ = thread::Builder::new().spawn(ask);
    }

    /// Discards the credential of this number, because a store refused it. Returns true if the caller should repeat its
    /// request with a newer credential. Every request that the old credential signed gets this result. If the store
    /// also refuses the new credential within [`APART`], the refusal is final and the result is false.
    pub(super) fn replaces(&self, number: u64) -> bool {
        let now = self.source.now();
        self.change(|held| {
            if held.found.as_ref().is_none_or(|found| found.number != number) {
                return true;
            }
            if held.refused.is_some_and(|at| now.clock.saturating_duration_since(at) < APART) {
                return false;
            }
            held.refused = Some(now.clock);
            held.found = None;
            true
        })
    }

    /// Makes the last refusal older by this duration, so that a test needn't wait.
    #[cfg(test)]
    pub(super) fn age(&self, by: Duration) {
        self.change(|held| held.refused = held.refused.and_then(|at| at.checked_sub(by)));
    }
}

impl<S: CredentialSource> fmt::Debug for Cache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use tokio::sync::Semaphore;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[derive(Debug)]
    struct Token {
        name: &'static str,
        ends: Option<SystemTime>,
    }

    impl Expiring for Token {
        fn ends(&self) -> Option<SystemTime> {
            self.ends
        }
    }

    /// A source for tests. The test sets the answers, the moment of each answer, and the clock.
    struct Script {
        start: ClockReading,
        after: Mutex<Duration>,
        answers: Mutex<VecDeque<Result<Token, CredentialFailure>>>,
        allowed: Semaphore,
    }

    impl CredentialSource for Script {
        type Credential = Token;

        async fn load(&self) -> Result<Token, CredentialFailure> {
            self.allowed.acquire().await.expect("open").forget();
            self.answers.lock().expect("the answers").pop_front().expect("it isn't asked so often")
        }

        fn now(&self) -> ClockReading {
            self.start.after(*self.after.lock().expect("the time"))
        }
    }

    fn scripted() -> Arc<Cache<Script>> {
        Cache::new(Script {
            start: ClockReading::read(),
            after: Mutex::default(),
            answers: Mutex::default(),
            allowed: Semaphore::new(0),
        })
    }

    impl Cache<Script> {
        /// Makes the source issue a token that is valid for this long, counted from now.
        fn hands_out(&self, name: &'static str, lasts: impl Into<Option<Duration>>) {
            let ends = lasts.into().map(|lasts| self.source.now().date + lasts);
            self.answers(Ok(Token { name, ends }));
        }

        fn fails(&self) {
            self.answers(Err(CredentialFailure::Nothing(vec!["here".into(), "there".into()])));
        }

        fn answers(&self, answer: Result<Token, CredentialFailure>) {
            self.source.answers.lock().expect("the answers").push_back(answer);
            self.source.allowed.add_permits(1);
        }

        fn pass(&self, time: Duration) {
            *self.source.after.lock().expect("the time") += time;
        }

        async fn name(self: &Arc<Self>) -> &'static str {
            self.obtain().await.expect("a token").credential.name
        }

        /// Waits until no request to the source is under way.
        async fn settled(&self) {
            drop(self.refreshing.lock().await);
        }
    }

    #[tokio::test]
    async fn a_fresh_credential_is_loaded_once() {
        let cache = scripted();
        cache.hands_out("one", None);
        for _ in 0..3 {
            assert_eq!(cache.name().await, "one");
        }
    }

    #[tokio::test]
    async fn the_next_credential_is_fetched_while_this_one_lasts() {
        let cache = scripted();
        cache.hands_out("old", MINUTE);
        assert_eq!(cache.name().await, "old");
        cache.pass(Duration::from_secs(45));
        // The first of these calls asks the source, which doesn't answer yet. None of the calls waits.
        for _ in 0..600 {
            assert_eq!(cache.name().await, "old");
        }
        assert!(cache.refreshing.try_lock().is_err());
        cache.hands_out("new", MINUTE);
        cache.settled().await;
        assert_eq!(cache.name().await, "new");
    }

    #[tokio::test]
    async fn a_credential_that_ends_soon_is_replaced_and_used_when_it_cannot_be() {
        let cache = scripted();
        cache.hands_out("old", 60 * MINUTE);
        assert_eq!(cache.name().await, "old");
        cache.pass(45 * MINUTE);
        cache.fails();
        for _ in 0..600 {
            assert_eq!(cache.name().await, "old");
        }
        cache.settled().await;
        // After a failure, no request asks the source again for ten seconds.
        assert_eq!(cache.name().await, "old");
        cache.pass(15 * MINUTE);
        cache.fails();
        assert!(cache.obtain().await.expect_err("it has ended").is_unauthenticated());
    }

    #[tokio::test]
    async fn a_source_whose_credentials_end_soon_is_asked_every_few_seconds() {
        let cache = scripted();
        for name in ["one", "two"] {
            cache.hands_out(name, Duration::from_secs(6));
        }
        assert_eq!(cache.name().await, "one");
        cache.pass(APART - Duration::from_millis(1));
        assert!(matches!(cache.look(), CachedCredential::Good(_)));
        cache.pass(Duration::from_millis(1));
        assert!(matches!(cache.look(), CachedCredential::Due(_)));
    }

    #[test]
    fn a_credential_is_due_when_a_quarter_of_its_life_is_left() {
        let now = SystemTime::now();
        for (life_s, margin_s) in [(60, 15), (3600, 900), (12 * 3600, 900), (0, 0)] {
            let ends = now + Duration::from_secs(life_s);
            assert_eq!(due(now, ends) + Duration::from_secs(margin_s), ends, "{life_s}");
        }
    }

    #[tokio::test]
    async fn a_failure_lists_what_was_tried_and_is_not_repeated_for_everyone() {
        let cache = scripted();
        cache.fails();
        let error = cache.obtain().await.expect_err("nothing");
        assert!(error.is_unauthenticated());
        assert!(error.to_string().contains("here, there"), "{error}");
        assert!(error.to_string().contains("--anonymous"), "{error}");
        cache.pass(Duration::from_secs(9));
        assert_eq!(cache.obtain().await.expect_err("the same").to_string(), error.to_string());
        cache.pass(Duration::from_secs(1));
        cache.hands_out("one", None);
        assert_eq!(cache.name().await, "one");
    }

    #[tokio::test]
    async fn all_that_a_refused_credential_signed_can_be_signed_by_the_next() {
        let cache = scripted();
        cache.hands_out("old", None);
        let old = cache.obtain().await.expect("a token").number;
        // The second refusal comes while no credential is held, and the third after the new one arrived.
        assert!(cache.replaces(old) && cache.replaces(old));
        cache.hands_out("new", None);
        let new = cache.obtain().await.expect("another");
        assert_eq!(new.credential.name, "new");
        assert!(cache.replaces(old));
        // If the store also refuses the new credential, this refusal is final until `APART` has passed.
        assert!(!cache.replaces(new.number));
        assert_eq!(cache.name().await, "new");
        cache.pass(APART);
        assert!(cache.replaces(new.number));
        cache.hands_out("third", None);
        assert_eq!(cache.name().await, "third");
    }
}
