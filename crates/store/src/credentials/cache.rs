//! Keeps a credential while it lasts; one refresh at a time, and a failure isn't repeated for every waiting request.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use reqsign_core::time::Timestamp;

use super::lacking::Lacking;
use crate::Error;

/// How long a failed search stands for those that ask after it: a thousand waiting uploads shall not knock at the
/// metadata server one after another.
const FAILURE_LASTS: Duration = Duration::from_secs(10);

/// A store that refuses two credentials within this time refuses the third as well.
const REFUSALS_APART: Duration = Duration::from_secs(5);

/// A credential is replaced so long before its end: a request shall arrive while it is good.
const MARGIN: Duration = Duration::from_secs(120);

/// What may end.
pub(super) trait Ends {
    /// When, if it does.
    fn ends(&self) -> Option<Timestamp>;
}

/// What time it is: by the calendar, which says when a credential ends, and by a clock that nobody sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    date: Timestamp,
    clock: Instant,
}

impl Now {
    pub(super) fn read() -> Self {
        Self { date: Timestamp::now(), clock: Instant::now() }
    }

    #[cfg(test)]
    pub(super) fn after(self, time: Duration) -> Self {
        Self { date: self.date + time, clock: self.clock + time }
    }
}

/// A credential with its number.
#[derive(Debug)]
pub(crate) struct Found<C> {
    pub(crate) credential: Arc<C>,
    pub(crate) number: u64,
}

impl<C> Clone for Found<C> {
    fn clone(&self) -> Self {
        Self { credential: Arc::clone(&self.credential), number: self.number }
    }
}

/// A number that no other credential of this process has.
pub(crate) fn new_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The credential in use.
#[derive(Debug)]
pub(super) struct Cache<C> {
    held: RwLock<Option<Found<C>>>,
    /// When a store has last refused the credential in use.
    refused: Mutex<Option<Instant>>,
    failed: Mutex<Option<(Instant, Lacking)>>,
    refreshing: tokio::sync::Mutex<()>,
}

impl<C: Ends> Cache<C> {
    pub(super) fn new() -> Self {
        Self {
            held: RwLock::new(None),
            refused: Mutex::new(None),
            failed: Mutex::new(None),
            refreshing: tokio::sync::Mutex::new(()),
        }
    }

    /// The credential, loaded when there is none or when it ends soon. One that can't be refreshed is used to its
    /// very end.
    ///
    /// # Errors
    /// `Unauthenticated` with what was tried.
    pub(super) async fn obtain<F>(
        &self,
        clock: impl Fn() -> Now,
        load: impl FnOnce() -> F,
    ) -> Result<Found<C>, Error>
    where
        F: Future<Output = Result<C, Lacking>>,
    {
        if let Some(fresh) = self.good_for(clock(), MARGIN) {
            return Ok(fresh);
        }
        let _alone = self.refreshing.lock().await;
        let now = clock();
        if let Some(fresh) = self.good_for(now, MARGIN) {
            return Ok(fresh);
        }
        if let Some(lacking) = self.recent_failure(now) {
            return self.good_for(now, Duration::ZERO).ok_or_else(|| lacking.into_error());
        }
        // Boxed: the futures of all sources would be part of every request's else.
        match Box::pin(load()).await {
            Ok(credential) => {
                let found = Found { credential: Arc::new(credential), number: new_number() };
                *self.held.write().unwrap_or_else(|e| e.into_inner()) = Some(found.clone());
                *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = None;
                Ok(found)
            }
            Err(lacking) => {
                let now = clock();
                let failed = (now.clock, lacking.clone());
                *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(failed);
                self.good_for(now, Duration::ZERO).ok_or_else(|| lacking.into_error())
            }
        }
    }

    /// Gives up the credential of this number, which a store refused. Returns whether a request can be signed by another: all
    /// that were signed by the old one can, and the store has the last word when it refuses the new one a moment later.
    pub(super) fn replaces(&self, number: u64, now: Now) -> bool {
        let mut held = self.held.write().unwrap_or_else(|e| e.into_inner());
        if held.as_ref().is_none_or(|found| found.number != number) {
            return true;
        }
        let mut refused = self.refused.lock().unwrap_or_else(|e| e.into_inner());
        if refused.is_some_and(|at| now.clock.saturating_duration_since(at) < REFUSALS_APART) {
            return false;
        }
        *refused = Some(now.clock);
        *held = None;
        true
    }

    /// As if the last refusal had come so much earlier.
    #[cfg(test)]
    pub(super) fn age(&self, by: Duration) {
        let mut refused = self.refused.lock().unwrap_or_else(|e| e.into_inner());
        *refused = refused.and_then(|at| at.checked_sub(by));
    }

    /// The credential, if it doesn't end within the time.
    fn good_for(&self, now: Now, time: Duration) -> Option<Found<C>> {
        let held = self.held.read().unwrap_or_else(|e| e.into_inner());
        held.clone().filter(|found| found.credential.ends().is_none_or(|ends| ends > now.date + time))
    }

    fn recent_failure(&self, now: Now) -> Option<Lacking> {
        let failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
        let (at, lacking) = failed.as_ref()?;
        (now.clock.saturating_duration_since(*at) < FAILURE_LASTS).then(|| lacking.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Clone, Debug)]
    struct Token {
        number: u32,
        ends: Option<Timestamp>,
    }

    impl Ends for Token {
        fn ends(&self) -> Option<Timestamp> {
            self.ends
        }
    }

    const MINUTE: Duration = Duration::from_secs(60);

    fn lacking() -> Lacking {
        Lacking::Nothing(vec!["here".into(), "there".into()])
    }

    fn endless(number: u32) -> Token {
        Token { number, ends: None }
    }

    #[tokio::test]
    async fn a_fresh_credential_is_loaded_once() {
        let (cache, loads) = (Cache::new(), AtomicU32::new(0));
        let load = || async { Ok(endless(loads.fetch_add(1, Ordering::Relaxed))) };
        for _ in 0..3 {
            assert_eq!(cache.obtain(Now::read, load).await.expect("a token").credential.number, 0);
        }
    }

    #[tokio::test]
    async fn a_credential_that_ends_soon_is_replaced_and_used_when_it_cannot_be() {
        let (cache, start) = (Cache::new(), Now::read());
        let old = Token { number: 1, ends: Some(start.date + 60 * MINUTE) };
        assert!(cache.obtain(|| start, || async { Ok(old) }).await.is_ok());
        let failing = |after| cache.obtain(move || start.after(after), || async { Err(lacking()) });
        assert_eq!(failing(59 * MINUTE).await.expect("the old one").credential.number, 1);
        assert!(failing(60 * MINUTE).await.expect_err("it has ended").is_unauthenticated());
    }

    #[tokio::test]
    async fn a_failure_lists_what_was_tried_and_is_not_repeated_for_everyone() {
        let (cache, start) = (Cache::<Token>::new(), Now::read());
        let error = cache.obtain(|| start, || async { Err(lacking()) }).await.expect_err("nothing");
        assert!(error.is_unauthenticated());
        assert!(error.to_string().contains("here, there"), "{error}");
        assert!(error.to_string().contains("--anonymous"), "{error}");
        let soon = || start.after(Duration::from_secs(9));
        let again = cache.obtain(soon, || async { panic!("it was tried a moment ago") }).await;
        assert_eq!(again.expect_err("the same").to_string(), error.to_string());
        let later = || start.after(FAILURE_LASTS);
        assert_eq!(
            cache.obtain(later, || async { Ok(endless(1)) }).await.expect("a token").credential.number,
            1
        );
    }

    /// Nobody is told of a failure that a success has followed, wherever the clocks stand.
    #[tokio::test]
    async fn a_success_ends_a_failure() {
        let (cache, start) = (Cache::new(), Now::read());
        assert!(cache.obtain(|| start, || async { Err(lacking()) }).await.is_err());
        let later = || start.after(FAILURE_LASTS);
        assert!(cache.obtain(later, || async { Ok(endless(1)) }).await.is_ok());
        assert!(cache.recent_failure(start).is_none());
    }

    #[tokio::test]
    async fn all_that_a_refused_credential_signed_can_be_signed_by_the_next() {
        let (cache, start) = (Cache::new(), Now::read());
        let at = |after, number| {
            cache.obtain(move || start.after(after), move || async move { Ok(endless(number)) })
        };
        let old = at(Duration::ZERO, 1).await.expect("a token").number;
        // The second refusal comes while nothing is held, and the third when the new one is.
        assert!(cache.replaces(old, start) && cache.replaces(old, start));
        let new = at(Duration::ZERO, 2).await.expect("another");
        assert_eq!(new.credential.number, 2);
        assert!(cache.replaces(old, start));
        assert_eq!(at(Duration::ZERO, 3).await.expect("the same").number, new.number);
        // A store that refuses the new one as well has the last word, until some time has passed.
        assert!(!cache.replaces(new.number, start));
        assert_eq!(at(Duration::ZERO, 3).await.expect("the same").number, new.number);
        assert!(cache.replaces(new.number, start.after(REFUSALS_APART)));
        assert_eq!(at(REFUSALS_APART, 3).await.expect("the third").credential.number, 3);
    }
}
