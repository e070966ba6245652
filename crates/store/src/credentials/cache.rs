//! Keeps a credential while it lasts; one refresh at a time, and a failure isn't repeated for every waiting request.

use std::future::Future;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use reqsign_core::time::Timestamp;

use super::lacking::Lacking;
use crate::Error;

/// How long a failed search stands for those that ask after it: a thousand waiting uploads shall not knock at the
/// metadata server one after another.
const FAILURE_LASTS: Duration = Duration::from_secs(10);

/// A credential younger than this isn't given up when a store refuses it: another request has just replaced it.
const YOUNG: Duration = Duration::from_secs(5);

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

#[derive(Debug)]
struct Held<C> {
    credential: Arc<C>,
    since: Instant,
}

/// The credential in use.
#[derive(Debug)]
pub(super) struct Cache<C> {
    held: RwLock<Option<Held<C>>>,
    failed: Mutex<Option<(Instant, Lacking)>>,
    refreshing: tokio::sync::Mutex<()>,
}

impl<C: Ends> Cache<C> {
    pub(super) fn new() -> Self {
        Self { held: RwLock::new(None), failed: Mutex::new(None), refreshing: tokio::sync::Mutex::new(()) }
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
    ) -> Result<Arc<C>, Error>
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
                let credential = Arc::new(credential);
                let held = Held { credential: Arc::clone(&credential), since: clock().clock };
                *self.held.write().unwrap_or_else(|e| e.into_inner()) = Some(held);
                *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = None;
                Ok(credential)
            }
            Err(lacking) => {
                let now = clock();
                let failed = (now.clock, lacking.clone());
                *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(failed);
                self.good_for(now, Duration::ZERO).ok_or_else(|| lacking.into_error())
            }
        }
    }

    /// Gives up a credential that a store refused. Whether asking again can go better: not when there was none.
    pub(super) fn forget(&self, now: Now) -> bool {
        let mut held = self.held.write().unwrap_or_else(|e| e.into_inner());
        match &*held {
            None => false,
            Some(young) if now.clock.saturating_duration_since(young.since) < YOUNG => true,
            Some(_) => {
                *held = None;
                true
            }
        }
    }

    /// As if the credential had been loaded so much earlier.
    #[cfg(test)]
    pub(super) fn age(&self, by: Duration) {
        let mut held = self.held.write().unwrap_or_else(|e| e.into_inner());
        let held = held.as_mut().expect("a credential");
        held.since = held.since.checked_sub(by).expect("a machine that runs for longer");
    }

    /// The credential, if it doesn't end within the time.
    fn good_for(&self, now: Now, time: Duration) -> Option<Arc<C>> {
        let held = self.held.read().unwrap_or_else(|e| e.into_inner());
        let credential = &held.as_ref()?.credential;
        let is_good = credential.ends().is_none_or(|ends| ends > now.date + time);
        is_good.then(|| Arc::clone(credential))
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
            assert_eq!(cache.obtain(Now::read, load).await.expect("a token").number, 0);
        }
    }

    #[tokio::test]
    async fn a_credential_that_ends_soon_is_replaced_and_used_when_it_cannot_be() {
        let (cache, start) = (Cache::new(), Now::read());
        let old = Token { number: 1, ends: Some(start.date + 60 * MINUTE) };
        assert!(cache.obtain(|| start, || async { Ok(old) }).await.is_ok());
        let failing = |after| cache.obtain(move || start.after(after), || async { Err(lacking()) });
        assert_eq!(failing(59 * MINUTE).await.expect("the old one").number, 1);
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
        assert_eq!(cache.obtain(later, || async { Ok(endless(1)) }).await.expect("a token").number, 1);
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
    async fn a_credential_that_was_just_loaded_is_not_given_up() {
        let (cache, start) = (Cache::new(), Now::read());
        assert!(!cache.forget(start));
        assert!(cache.obtain(|| start, || async { Ok(endless(1)) }).await.is_ok());
        assert!(cache.forget(start));
        let same = cache.obtain(|| start, || async { Err(lacking()) }).await;
        assert_eq!(same.expect("still there").number, 1);
        assert!(cache.forget(start.after(YOUNG)));
        let other = cache.obtain(|| start, || async { Ok(endless(2)) }).await;
        assert_eq!(other.expect("another").number, 2);
    }
}
