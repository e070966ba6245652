//! Keeps a credential while it lasts; one refresh at a time, and a failure isn't repeated for every waiting request.

use std::future::Future;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use reqsign_core::SigningCredential;
use reqsign_core::time::Timestamp;

use super::lacking::Lacking;
use crate::Error;

/// How long a failed search stands for those that ask after it: a thousand waiting uploads shall not knock at the
/// metadata server one after another.
const FAILURE_LASTS: Duration = Duration::from_secs(10);

/// A credential younger than this isn't given up when a store refuses it: another request has just replaced it.
const YOUNG: Duration = Duration::from_secs(5);

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

impl<C: SigningCredential> Cache<C> {
    pub(super) fn new() -> Self {
        Self { held: RwLock::new(None), failed: Mutex::new(None), refreshing: tokio::sync::Mutex::new(()) }
    }

    /// The credential, loaded when there is none or when it ends soon. One that can't be refreshed is used to its
    /// very end.
    ///
    /// # Errors
    /// `Unauthenticated` with what was tried.
    pub(super) async fn obtain<F>(&self, load: impl FnOnce() -> F) -> Result<Arc<C>, Error>
    where
        F: Future<Output = Result<C, Lacking>>,
    {
        if let Some(fresh) = self.held(C::is_valid) {
            return Ok(fresh);
        }
        let _alone = self.refreshing.lock().await;
        if let Some(fresh) = self.held(C::is_valid) {
            return Ok(fresh);
        }
        if let Some(lacking) = self.recent_failure() {
            return self.usable().ok_or_else(|| lacking.into_error());
        }
        // Boxed: all the ways to a credential would be part of every request's future else.
        match Box::pin(load()).await {
            Ok(credential) => {
                let credential = Arc::new(credential);
                let held = Held { credential: Arc::clone(&credential), since: Instant::now() };
                *self.held.write().unwrap_or_else(|e| e.into_inner()) = Some(held);
                Ok(credential)
            }
            Err(lacking) => {
                let failed = (Instant::now(), lacking.clone());
                *self.failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(failed);
                self.usable().ok_or_else(|| lacking.into_error())
            }
        }
    }

    /// Gives up a credential that a store refused. Whether asking again can go better: not when there was none.
    pub(super) fn forget(&self) -> bool {
        let mut held = self.held.write().unwrap_or_else(|e| e.into_inner());
        match &*held {
            None => false,
            Some(young) if young.since.elapsed() < YOUNG => true,
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

    fn held(&self, good: impl Fn(&C) -> bool) -> Option<Arc<C>> {
        let held = self.held.read().unwrap_or_else(|e| e.into_inner());
        held.as_ref().filter(|held| good(&held.credential)).map(|held| Arc::clone(&held.credential))
    }

    fn usable(&self) -> Option<Arc<C>> {
        self.held(|credential| credential.is_valid_at(Timestamp::now()))
    }

    fn recent_failure(&self) -> Option<Lacking> {
        let failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
        failed.as_ref().filter(|(at, _)| at.elapsed() < FAILURE_LASTS).map(|(_, lacking)| lacking.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Clone, Debug)]
    struct Token {
        number: u32,
        fresh: bool,
        usable: bool,
    }

    impl SigningCredential for Token {
        fn is_valid(&self) -> bool {
            self.fresh
        }

        fn is_valid_at(&self, _: Timestamp) -> bool {
            self.usable
        }
    }

    fn lacking() -> Lacking {
        Lacking::Nothing(vec!["here".into(), "there".into()])
    }

    #[tokio::test]
    async fn a_fresh_credential_is_loaded_once() {
        let (cache, loads) = (Cache::new(), AtomicU32::new(0));
        let load = || async {
            Ok(Token { number: loads.fetch_add(1, Ordering::Relaxed), fresh: true, usable: true })
        };
        for _ in 0..3 {
            assert_eq!(cache.obtain(load).await.expect("a token").number, 0);
        }
    }

    #[tokio::test]
    async fn a_credential_that_ends_soon_is_replaced_and_used_when_it_cannot_be() {
        let cache = Cache::new();
        let old = Token { number: 1, fresh: false, usable: true };
        assert!(cache.obtain(|| async { Ok(old) }).await.is_ok());
        assert_eq!(cache.obtain(|| async { Err(lacking()) }).await.expect("the old one").number, 1);
    }

    #[tokio::test]
    async fn a_failure_lists_what_was_tried_and_is_not_repeated_for_everyone() {
        let cache = Cache::<Token>::new();
        let error = cache.obtain(|| async { Err(lacking()) }).await.expect_err("nothing");
        assert!(error.is_unauthenticated());
        assert!(error.to_string().contains("here, there"), "{error}");
        assert!(error.to_string().contains("--anonymous"), "{error}");
        let again = cache.obtain(|| async { panic!("it was tried a moment ago") }).await;
        assert!(again.is_err());
    }

    #[tokio::test]
    async fn a_credential_that_was_just_loaded_is_not_given_up() {
        let cache = Cache::new();
        assert!(!cache.forget());
        let token = Token { number: 1, fresh: true, usable: true };
        assert!(cache.obtain(|| async { Ok(token) }).await.is_ok());
        assert!(cache.forget());
        assert_eq!(cache.obtain(|| async { Err(lacking()) }).await.expect("still there").number, 1);
        cache.age(YOUNG);
        assert!(cache.forget());
        let other = Token { number: 2, fresh: true, usable: true };
        assert_eq!(cache.obtain(|| async { Ok(other) }).await.expect("another").number, 2);
    }
}
