//! An attempt that may get a hedge.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};

use super::Lanes;
use crate::dispatch::AttemptId;
use crate::error::Error;
use crate::hedge::Tracker;
use crate::{Alike, Call, Hedge, Request, Response, Verdict};

type Outcome = Result<Response, Error>;

impl Lanes {
    /// Carries out one attempt, and hedges it if it becomes a straggler.
    pub(super) async fn attempt<C: Call>(
        &self,
        call: &C,
        request: Request,
        alike: Alike,
    ) -> (Outcome, Verdict) {
        let began = Instant::now();
        let (attempt, tracker) = (self.number(), Arc::new(Tracker::new(began, alike)));
        let mut first = pin!(self.exchange_as(attempt, request, Some(Arc::clone(&tracker)), None));
        let outcome = tokio::select! {
            biased;
            outcome = &mut first => outcome,
            // Boxed because it is rare, and every request's future would be larger by it.
            () = tracker.hedge_wanted() => return Box::pin(self.hedged(call, first, began, attempt, &tracker)).await,
        };
        judged(call, outcome)
    }

    /// Waits for the first whole answer to `first` or to its hedge; the other is cancelled. Where one
    /// of them fails the other decides, unless that fails for good and another attempt might have helped the one.
    async fn hedged<C: Call>(
        &self,
        call: &C,
        first: Pin<&mut (impl Future<Output = Outcome> + Send)>,
        began: Instant,
        attempt: AttemptId,
        tracker: &Tracker,
    ) -> (Outcome, Verdict) {
        let silent = tracker.snapshot().map_or(Duration::ZERO, |seen| seen.moved.elapsed());
        let hedge = pin!(async {
            let pass = self.admitted(call).await;
            let admitted = Instant::now();
            let Hedge::Send(mut request) = call.hedge().await else { return None };
            request.pass = Some(pass);
            request.outage = Some(self.outage(&request.origin));
            // A body that is collected twice takes its room twice.
            let _held = match request.expected.filter(|_| request.sink.is_none()) {
                Some(room) => Some(self.inner.memory.reserve(room as usize).await),
                None => None,
            };
            // No header and no query: they carry credentials.
            let (method, origin, path) = (&request.method, &request.origin, request.target.path());
            tracing::info!(?silent, "hedged: a hedge request beside a slow {method} {origin}{path}");
            let outcome = self.exchange_as(self.number(), *request, None, Some(attempt)).await;
            // Where the bucket's rate was cut meanwhile, the first is waited for.
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

    /// One of two has failed: what it has taught is kept, and the other goes on. Returns what is left to be done where the
    /// other is of no use either.
    fn gave_up<C: Call>(&self, call: &C, verdict: Verdict, admitted: Instant) -> Verdict {
        let Verdict::Throttled { after } = verdict else { return verdict };
        self.throttled(call, admitted, after);
        // It is slowed down already, and only once.
        Verdict::Retry
    }
}

/// Returns which of two decides, when the earlier has failed: the later, unless it fails for good where another attempt may help.
fn decisive(earlier: (Outcome, Verdict), later: (Outcome, Verdict)) -> (Outcome, Verdict) {
    let is_lost = later.0.is_err() && later.1 == Verdict::Done;
    if is_lost && earlier.1 != Verdict::Done { earlier } else { later }
}

/// Returns whether an answer ends the call whatever else may still come.
fn is_settled(outcome: &Outcome, verdict: Verdict) -> bool {
    outcome.is_ok() && verdict == Verdict::Done
}

fn judged<C: Call>(call: &C, outcome: Outcome) -> (Outcome, Verdict) {
    let verdict = call.judge(&outcome);
    (outcome, verdict)
}
