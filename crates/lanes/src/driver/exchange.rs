//! One request on one connection, from its first byte to its outcome.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Command, Reusable};
use crate::dispatch::{AttemptId, FREIGHT_ABOVE, LaneId};
use crate::error::{Error, Kind};
use crate::h1::H1;
use crate::h2::H2;
use crate::incoming::Incoming;
use crate::shared::Shared;
use crate::submission::Submission;
use crate::trace::What;
use crate::{Protocol, Request, Response, Route};

/// An HTTP/2 connection on which nothing has moved for so long had nobody on it.
const RESTED: Duration = Duration::from_millis(500);

/// A request's ride on a lane.
pub(super) struct Exchange {
    pub(super) lane: LaneId,
    /// Whether it runs on a freight thread already.
    pub(super) freight: bool,
    /// The origin's count of freight bytes.
    pub(super) moved: Arc<AtomicU64>,
    pub(super) shared: Arc<Shared>,
}

/// Where the outcome goes. Dropped without one, because the sink panicked or the engine ends, it frees the lane, which
/// nobody may use again, and tells whoever waits.
struct Waiter {
    attempt: AttemptId,
    lane: LaneId,
    reply: Option<oneshot::Sender<Result<Response, Error>>>,
    shared: Arc<Shared>,
    /// Only where it is logged.
    asked: Option<Box<Asked>>,
}

/// What a log says of a request. No header and no query: they carry credentials.
struct Asked {
    line: String,
    at: Instant,
}

impl Asked {
    fn of(request: &Request) -> Option<Box<Self>> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| {
            let line = format!("{} {}{}", request.method, request.origin, request.target.path());
            Box::new(Self { line, at: Instant::now() })
        })
    }

    fn log(&self, lane: LaneId, outcome: &Result<Response, Error>) {
        let micros = |time: Duration| Duration::from_micros(time.as_micros() as u64);
        let (lane, took) = (lane.0, micros(self.at.elapsed()));
        match outcome {
            Ok(response) => {
                let (status, protocol) = (response.head.status.as_u16(), response.protocol.name());
                let (first_byte, queued) = (micros(response.first_byte), micros(response.queued));
                tracing::debug!(lane, %protocol, status, ?took, ?first_byte, ?queued, "{}", self.line);
            }
            Err(error) => tracing::debug!(lane, ?took, %error, "{}", self.line),
        }
    }
}

impl Waiter {
    /// Resolves when nobody waits any more.
    async fn gone(&mut self) {
        match &mut self.reply {
            Some(reply) => reply.closed().await,
            None => std::future::pending().await,
        }
    }

    /// Frees the lane, then hands the outcome over: whoever gets it finds the slot free already.
    fn end(mut self, outcome: Result<Response, Error>, reusable: Reusable) {
        self.hand_over(outcome, reusable);
    }

    /// Ends a request whose connection is of no use any more.
    fn end_broken(self, error: Error, connection: &H1) {
        let reusable = match connection.progress().is_given_up() {
            true => Reusable::No,
            false => Reusable::after_h1(&error, connection.is_expired()),
        };
        let is_stale = matches!(reusable, Reusable::Stale);
        let error = if is_stale { error.stale() } else { error };
        self.end(Err(error), reusable);
    }

    fn hand_over(&mut self, outcome: Result<Response, Error>, reusable: Reusable) {
        let Some(reply) = self.reply.take() else { return };
        if let Some(asked) = &self.asked {
            asked.log(self.lane, &outcome);
        }
        if let Ok(response) = &outcome {
            self.shared.counts.answered(response);
        }
        self.shared.note(|| {
            let bytes = outcome.as_ref().map_or(0, |answer| answer.sunk + answer.body.len() as u64);
            What::Finished { attempt: self.attempt.0, bytes }
        });
        self.shared.tell(Command::Finished { attempt: self.attempt, lane: self.lane, reusable });
        let _ = reply.send(outcome);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let error = match std::thread::panicking() {
            true => Error::new(Kind::Sink, "the sink panicked while it took the answer"),
            false => Error::new(Kind::Closed, "the engine was shut down"),
        };
        self.hand_over(Err(error), Reusable::No);
    }
}

impl Exchange {
    pub(super) async fn over_h1(self, mut connection: Box<H1>, submission: Box<Submission>) {
        let Submission { attempt, mut request, reply, submitted, tracker, hedge_of, .. } = *submission;
        let mut waiter = self.waiter(attempt, reply, &request);
        let is_opener = request.expected.is_none() && request.sink.is_some();
        let timeout = request.no_progress.unwrap_or(self.shared.no_progress);
        let mut incoming = Incoming::new(request.sink.take(), submitted, tracker)
            .counting(self.freight_bytes())
            .through(request.gate.take())
            .heard_by(request.outage.take());
        self.shared.counts.asked(&request, hedge_of.is_some());
        let asked = tokio::select! {
            biased;
            asked = connection.ask(&mut request, &mut incoming, &self.shared) => asked,
            () = waiter.gone() => Err(cancelled()),
        };
        if self.freight {
            self.moved.fetch_add(request.body.len(), Relaxed);
        }
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => return waiter.end_broken(e, &connection),
        };
        if let Some(bytes) = incoming.announced().filter(|_| is_opener) {
            self.shared.tell(Command::Sized { attempt, bytes });
        }
        if let Some(limit) = pending.keeps_idle {
            self.shared.tell(Command::KeepsIdle { lane: self.lane, limit });
        }
        let moves = pending.route == Route::Freight && !self.freight;
        let home = self.shared.freight(self.lane.0).clone();
        if moves {
            self.shared.tell(Command::TurnedFreight(attempt));
            incoming = incoming.counting(Some(Arc::clone(&self.moved)));
        }
        if pending.is_last() {
            // Reported before the body comes, so that others need not wait for its end to have a lane dialled.
            self.shared.tell(Command::Draining { lane: self.lane });
        }
        let rest = async move {
            let received = tokio::select! {
                biased;
                received = connection.receive(pending, &mut incoming, timeout, &self.shared) => received,
                () = waiter.gone() => Err(cancelled()),
            };
            match received {
                Ok((stopped, again)) => {
                    let reusable = if again { Reusable::H1(connection) } else { Reusable::No };
                    waiter.end(incoming.finish(Protocol::H1, stopped), reusable);
                }
                Err(e) => waiter.end_broken(e, &connection),
            }
        };
        if moves {
            home.spawn(rest);
        } else {
            rest.await;
        }
    }

    pub(super) async fn over_h2(self, mut connection: H2, submission: Box<Submission>) {
        let timeout = submission.request.no_progress.unwrap_or(self.shared.no_progress);
        if connection.ready(timeout).await.is_err() {
            let is_unused = connection.answers().load(Relaxed) == 0;
            return self.shared.tell(Command::Bounced { submission, lane: self.lane, is_unused });
        }
        let Submission { attempt, mut request, reply, submitted, tracker, hedge_of, .. } = *submission;
        let mut waiter = self.waiter(attempt, reply, &request);
        let is_opener = request.expected.is_none() && request.sink.is_some();
        let (mut incoming, hedged) =
            (Incoming::new(request.sink.take(), submitted, tracker.clone()), tracker);
        incoming = incoming
            .counting(self.freight_bytes())
            .through(request.gate.take())
            .heard_by(request.outage.take());
        self.shared.counts.asked(&request, hedge_of.is_some());
        let (progress, answers) = (connection.progress(), connection.answers());
        let before = (progress.idle(Instant::now()), answers.load(Relaxed));
        // What had rested, and answered nobody since, was gone before the request came, most likely.
        let stale = move |error: Error| {
            let has_rested = before.0 >= RESTED && before.1 > 0 && answers.load(Relaxed) == before.1;
            let is_stale = has_rested && error.kind() == Kind::Interrupted && !error.is_unsent();
            if is_stale { error.stale() } else { error }
        };
        let reusable = move |outcome: &Result<_, Error>| {
            let Err(error) = outcome else { return Reusable::H2 };
            if progress.is_given_up() {
                return Reusable::No;
            }
            let is_hedged = hedged.is_some_and(|tracker| tracker.is_hedged());
            Reusable::after_h2(error, is_hedged, progress.idle(Instant::now()), timeout)
        };
        let sent = request.body.len();
        let is_small = request.expected.is_some_and(|down| down <= FREIGHT_ABOVE);
        let asked = tokio::select! {
            biased;
            asked = connection.ask(&mut request, &mut incoming, &self.shared) => asked,
            () = waiter.gone() => Err(cancelled()),
        };
        if self.freight {
            self.moved.fetch_add(sent, Relaxed);
        }
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => {
                let outcome = Err(stale(e));
                let reusable = reusable(&outcome);
                return waiter.end(outcome, reusable);
            }
        };
        if let Some(bytes) = incoming.announced().filter(|_| is_opener) {
            self.shared.tell(Command::Sized { attempt, bytes });
        }
        let moves = pending.route == Route::Freight && !self.freight;
        if moves && !is_small {
            // Bulk that showed itself only now must not share the express connection's window. Given up before its
            // body is read, it is asked for again in slices, which go as freight.
            drop(pending);
            return waiter.end(incoming.finish(Protocol::H2, true), Reusable::H2);
        }
        let home = self.shared.freight(self.lane.0).clone();
        let rest = async move {
            let received = tokio::select! {
                biased;
                received = pending.receive(&mut incoming, timeout, &self.shared) => received,
                () = waiter.gone() => Err(cancelled()),
            };
            let outcome = received.and_then(|stopped| incoming.finish(Protocol::H2, stopped));
            let reusable = reusable(&outcome);
            waiter.end(outcome, reusable);
        };
        if moves {
            // The end of a large object, small by itself: it may block where it is written.
            home.spawn(rest);
        } else {
            rest.await;
        }
    }

    fn freight_bytes(&self) -> Option<Arc<AtomicU64>> {
        self.freight.then(|| Arc::clone(&self.moved))
    }

    fn waiter(
        &self,
        attempt: AttemptId,
        reply: oneshot::Sender<Result<Response, Error>>,
        request: &Request,
    ) -> Waiter {
        let (shared, asked) = (Arc::clone(&self.shared), Asked::of(request));
        Waiter { attempt, lane: self.lane, reply: Some(reply), shared, asked }
    }
}

fn cancelled() -> Error {
    Error::new(Kind::Closed, "cancelled")
}
