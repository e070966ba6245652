//! The time between two attempts: the pause, the turn, and what is logged of an origin that is away.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Lanes, RETRY};
use crate::error::{Error, Kind};
use crate::outage::{ORIGIN, Outage};
use crate::retry::{Backoff, Bounds, Breaks, Failure, Turn};
use crate::tally::Count;
use crate::{Origin, Response};

/// One attempt that has ended.
pub(super) struct Tried<'a> {
    pub(super) outcome: &'a Result<Response, Error>,
    /// When it began, and when the first one did.
    pub(super) began: Instant,
    pub(super) started: Instant,
    /// Its number, counted from 1.
    pub(super) number: u32,
    pub(super) origin: &'a Origin,
    pub(super) outage: &'a Outage,
    /// For how long a server may say nothing.
    pub(super) timeout: Duration,
}

impl Tried<'_> {
    /// The failure that another attempt may mend.
    pub(super) fn transient(&self, now: Instant) -> Failure {
        let is_silence = self.outcome.as_ref().is_err_and(|e| e.kind() == Kind::Timeout);
        let took = now.saturating_duration_since(self.began);
        Failure::Transient { silent: if is_silence { took.min(self.timeout) } else { Duration::ZERO } }
    }
}

impl Lanes {
    /// Waits until the next attempt is due. False when there shall be none.
    pub(super) async fn waits(&self, backoff: &mut Backoff, failure: Failure, tried: &Tried<'_>) -> bool {
        let pause =
            backoff.next(failure, tried.began, Instant::now(), self.bounds(tried.outage), rand::random());
        self.makes_pause(pause, matches!(failure, Failure::Throttled(_)), tried).await
    }

    /// Waits before the rest of a body is asked for that broke off after `came` bytes. False when that shall not be.
    pub(super) async fn waits_to_go_on(&self, breaks: &Breaks, came: u64, tried: &Tried<'_>) -> bool {
        let now = Instant::now();
        let failure = tried.transient(now);
        let pause =
            breaks.after(came).next(failure, tried.began, now, self.bounds(tried.outage), rand::random());
        self.makes_pause(pause, false, tried).await
    }

    async fn makes_pause(&self, pause: Option<Duration>, throttled: bool, tried: &Tried<'_>) -> bool {
        let failed = Instant::now();
        let (cause, origin) = (Cause(tried.outcome), tried.origin);
        if tried.outage.is_to_be_reported(failed) {
            let retry_for_ms = self.bounds(tried.outage).retry_for.as_millis() as u64;
            tracing::warn!(target: ORIGIN, %origin, is_away = true, retry_for_ms, cause = %cause, "away");
        }
        let Some(pause) = pause else { return false };
        let (attempt, after_ms) = (tried.number + 1, tried.started.elapsed().as_millis() as u64);
        tracing::info!(target: RETRY, attempt, after_ms, throttled, ?pause, cause = %cause, "trying again");
        self.pause(pause).await;
        loop {
            let bounds = self.bounds(tried.outage);
            match self.budget(|budget| budget.turn(failed, Instant::now(), bounds, rand::random())) {
                Turn::Go => break,
                Turn::Wait(pause) => self.pause(pause).await,
                Turn::End => return false,
            }
        }
        self.count(Count::Retry);
        true
    }

    /// Returns what is known of an origin.
    pub(super) fn outage(&self, origin: &Origin) -> Arc<Outage> {
        let mut outages = self.inner.outages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = outages.get(origin) {
            return Arc::clone(known);
        }
        let outage = Arc::new(Outage::new(Instant::now()));
        outages.insert(origin.clone(), Arc::clone(&outage));
        outage
    }

    pub(super) fn bounds<'a>(&self, outage: &'a Outage) -> Bounds<'a> {
        Bounds { outage, retry_for: outage.is_tried_for(self.retry_for, self.retry_unanswered_for) }
    }
}

/// Why an attempt is not the last.
struct Cause<'a>(&'a Result<Response, Error>);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(response) => write!(f, "the server answered {}", response.head.status),
            Err(error) => error.fmt(f),
        }
    }
}
