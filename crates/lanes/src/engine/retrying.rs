//! Waits between two attempts, logs outages, and sends the hedge of a running attempt.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};

use super::{Lanes, RETRY};
use crate::dispatch::AttemptId;
use crate::error::{Error, Kind};
use crate::hedge::Tracker;
use crate::outage::{ORIGIN, Outage};
use crate::retry::{AttemptFailure, Backoff, Breaks, RetryLimits, RetryTurn};
use crate::tally::Metric;
use crate::{Alike, Call, Hedge, Origin, Request, Response, Verdict};

/// An attempt that has ended.
pub(super) struct FinishedAttempt<'a> {
    pub(super) outcome: &'a Result<Response, Error>,
    /// The times when this attempt and the call's first attempt began.
    pub(super) began: Instant,
    pub(super) started: Instant,
    /// The number of the attempt. The first is 1.
    pub(super) number: u32,
    pub(super) origin: &'a Origin,
    pub(super) outage: &'a Outage,
    /// The no-progress timeout of the attempt.
    pub(super) timeout: Duration,
}

impl FinishedAttempt<'_> {
    /// Describes the failure as transient: another attempt may succeed.
    pub(super) fn transient(&self, now: Instant) -> AttemptFailure {
        let is_silence = self.outcome.as_ref().is_err_and(|e| e.kind() == Kind::Timeout);
        let took = now.saturating_duration_since(self.began);
        AttemptFailure::Transient { silent: if is_silence { took.min(self.timeout) } else { Duration::ZERO } }
    }
}

impl Lanes {
    /// Waits until the time for the next attempt. Returns false if there must be no further attempt.
    pub(super) async fn waits(
        &self,
        backoff: &mut Backoff,
        failure: AttemptFailure,
        tried: &FinishedAttempt<'_>,
    ) -> bool {
        let pause =
            backoff.next(failure, tried.began, Instant::now(), self.bounds(tried.outage), rand::random());
        self.makes_pause(pause, matches!(failure, AttemptFailure::Throttled(_)), tried).await
    }

    /// Waits before the caller requests the rest of a body that broke off after `came` bytes. Returns false if the caller must not request
    /// the rest.
    pub(super) async fn waits_to_go_on(
        &self,
        breaks: &Breaks,
        came: u64,
        tried: &FinishedAttempt<'_>,
    ) -> bool {
        let now = Instant::now();
        let failure = tried.transient(now);
        let pause =
            breaks.after(came).next(failure, tried.began, now, self.bounds(tried.outage), rand::random());
        self.makes_pause(pause, false, tried).await
    }

    async fn makes_pause(
        &self,
        pause: Option<Duration>,
        throttled: bool,
        tried: &FinishedAttempt<'_>,
    ) -> bool {
        let failed = Instant::now();
        let (cause, origin) = (RetryReason(tried.outcome), tried.origin);
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
                RetryTurn::Go => break,
                RetryTurn::Wait(pause) => self.pause(pause).await,
                RetryTurn::End => return false,
            }
        }
        self.count(Metric::Retry);
        true
    }

    /// Returns the outage record of an origin.
    pub(super) fn outage(&self, origin: &Origin) -> Arc<Outage> {
        let mut outages = self.inner.outages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = outages.get(origin) {
            return Arc::clone(known);
        }
        let outage = Arc::new(Outage::new(Instant::now()));
        outages.insert(origin.clone(), Arc::clone(&outage));
        outage
    }

    pub(super) fn bounds<'a>(&self, outage: &'a Outage) -> RetryLimits<'a> {
        RetryLimits { outage, retry_for: outage.is_tried_for(self.retry_for, self.retry_unanswered_for) }
    }
}

/// The reason for another attempt, as a text.
struct RetryReason<'a>(&'a Result<Response, Error>);

impl fmt::Display for RetryReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(response) => write!(f, "the server answered {}", response.head.status),
            Err(error) => error.fmt(f),
        }
    }
}

type AttemptOutcome = Result<Response, Error>;

impl Lanes {
    /// Carries out one attempt, and hedges it if it becomes a straggler.
    pub(super) async fn attempt<C: Call>(
        &self,
        call: &C,
        request: Request,
        alike: Alike,
    ) -> (AttemptOutcome, Verdict) {
        let began = Instant::now();
        let (attempt, tracker) = (self.number(), Arc::new(Tracker::new(began, alike)));
        let mut first = pin!(self.exchange_as(attempt, request, Some(Arc::clone(&tracker)), None));
        let outcome = tokio::select! {
            biased;
            outcome = &mut first => outcome,
            // This future is boxed, because it is rarely needed and would make the future of every request larger.
            () = tracker.hedge_wanted() => return Box::pin(self.hedged(call, first, began, attempt, &tracker)).await,
        };
        judged(call, outcome)
    }

    /// Waits for the first complete answer to `first` or to its hedge, and cancels the other request. If one of the two fails, the outcome
    /// of the other is returned. There is one exception: if the later failure can't be retried but the earlier one can, the earlier outcome
    /// is returned.
    async fn hedged<C: Call>(
        &self,
        call: &C,
        first: Pin<&mut (impl Future<Output = AttemptOutcome> + Send)>,
        began: Instant,
        attempt: AttemptId,
        tracker: &Tracker,
    ) -> (AttemptOutcome, Verdict) {
        let silent = tracker.snapshot().map_or(Duration::ZERO, |seen| seen.moved.elapsed());
        let hedge = pin!(async {
            let pass = self.admitted(call).await;
            let admitted = Instant::now();
            let Hedge::Send(mut request) = call.hedge().await else { return None };
            request.pass = Some(pass);
            request.outage = Some(self.outage(&request.origin));
            // Without a sink, both requests may collect the body in memory, so the hedge also reserves memory.
            let _held = match request.expected.filter(|_| request.sink.is_none()) {
                Some(room) => Some(self.inner.memory.reserve(room as usize).await),
                None => None,
            };
            // Headers and query are left out, because they may contain credentials.
            let (method, origin, path) = (&request.method, &request.origin, request.target.path());
            tracing::info!(?silent, "hedged: a hedge request beside a slow {method} {origin}{path}");
            let outcome = self.exchange_as(self.number(), *request, None, Some(attempt)).await;
            // If a throttle has stopped the hedge, only wait for the first request.
            (!outcome.as_ref().is_err_and(Error::is_held)).then_some((admitted, outcome))
        });
        match select(first, hedge).await {
            Either::Left((outcome, hedge)) => {
                let verdict = call.judge(&outcome);
                if is_settled(&outcome, verdict) {
                    return (outcome, verdict);
                }
                let Some((_, other)) = hedge.await else { return (outcome, verdict) };
                let left = self.gave_up(call, verdict, began);
                decisive((outcome, left), judged(call, other))
            }
            Either::Right((None, first)) => judged(call, first.await),
            Either::Right((Some((admitted, outcome)), first)) => {
                let verdict = call.judge(&outcome);
                if is_settled(&outcome, verdict) {
                    return (outcome, verdict);
                }
                let left = self.gave_up(call, verdict, admitted);
                decisive((outcome, left), judged(call, first.await))
            }
        }
    }

    /// Handles the failure of one of the two requests, while the other continues. Records a throttle. Returns the verdict to use if the
    /// other request also fails.
    fn gave_up<C: Call>(&self, call: &C, verdict: Verdict, admitted: Instant) -> Verdict {
        let Verdict::Throttled { after } = verdict else { return verdict };
        self.throttled(call, admitted, after);
        // The throttle is already recorded, and must count only once.
        Verdict::Retry
    }
}

/// Chooses between two outcomes, of which the earlier one is a failure. Usually returns the later outcome. Returns the earlier one only if
/// the later one is a failure that can't be retried, and the earlier one can.
fn decisive(
    earlier: (AttemptOutcome, Verdict),
    later: (AttemptOutcome, Verdict),
) -> (AttemptOutcome, Verdict) {
    let is_lost = later.0.is_err() && later.1 == Verdict::Done;
    if is_lost && earlier.1 != Verdict::Done { earlier } else { later }
}

/// Returns whether the outcome is an answer that ends the call, so that the other request needn't be awaited.
fn is_settled(outcome: &AttemptOutcome, verdict: Verdict) -> bool {
    outcome.is_ok() && verdict == Verdict::Done
}

fn judged<C: Call>(call: &C, outcome: AttemptOutcome) -> (AttemptOutcome, Verdict) {
    let verdict = call.judge(&outcome);
    (outcome, verdict)
}
