//! One request on one connection, from its first byte to its outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::reusable::RESTED;
use super::{Command, Control, Reusable};
use crate::dispatch::{AttemptId, FREIGHT_ABOVE, LaneId, Role};
use crate::error::{Error, Kind};
use crate::h1::H1;
use crate::h2::H2;
use crate::incoming::Incoming;
use crate::submission::Submission;
use crate::tally::Count;
use crate::trace::What;
use crate::{Protocol, Request, Response, Route};

/// A request's ride on a lane.
pub(super) struct Exchange {
    pub(super) lane: LaneId,
    /// Whether it runs on a freight thread already.
    pub(super) freight: bool,
    pub(super) control: Arc<Control>,
}

/// Where the outcome goes. Dropped without one, because the sink panicked or the engine ends, it frees the lane, which
/// nobody may use again, and tells whoever waits.
struct Waiter {
    attempt: AttemptId,
    lane: LaneId,
    reply: Option<oneshot::Sender<Result<Response, Error>>>,
    control: Arc<Control>,
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
    /// Waits for a step of the exchange, unless nobody waits for its outcome any more.
    async fn unless_gone<T>(&mut self, step: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let reply = &mut self.reply;
        let gone = async {
            match reply {
                Some(reply) => reply.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = step => done,
            () = gone => Err(Error::new(Kind::Closed, "cancelled")),
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
            false => Reusable::after_h1(&error, connection.rested()),
        };
        // What was given up at its first request goes elsewhere: no fault of the request.
        let is_unserved = connection.progress().is_given_up() && connection.is_first();
        let is_stale = matches!(reusable, Reusable::Stale) || is_unserved;
        let error = if is_stale { error.stale() } else { error };
        self.end(Err(error), reusable);
    }

    fn hand_over(&mut self, outcome: Result<Response, Error>, reusable: Reusable) {
        let Some(reply) = self.reply.take() else { return };
        if let Some(asked) = &self.asked {
            asked.log(self.lane, &outcome);
        }
        if let Ok(response) = &outcome {
            self.control.shared.counts.answered(response);
        }
        self.control.note(|| {
            let bytes = outcome.as_ref().map_or(0, |answer| answer.sunk + answer.body.len() as u64);
            What::Finished { attempt: self.attempt.0, bytes }
        });
        self.control.tell(Command::Finished { attempt: self.attempt, lane: self.lane, reusable });
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

/// An exchange that has begun, on whichever protocol.
struct Begun {
    waiter: Waiter,
    request: Request,
    incoming: Incoming,
    /// How long nothing may move.
    timeout: Duration,
    /// Whether its answer may be of any size.
    is_opener: bool,
}

impl Exchange {
    pub(super) async fn over_h1(self, mut connection: Box<H1>, submission: Box<Submission>) {
        let Begun { mut waiter, mut request, mut incoming, timeout, is_opener } = self.begin(*submission);
        let shared = Arc::clone(&self.control.shared);
        let asked = waiter.unless_gone(connection.ask(&mut request, &mut incoming, &shared)).await;
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => return waiter.end_broken(e, &connection),
        };
        if connection.is_first() {
            self.control.tell(Command::Answered { lane: self.lane });
        }
        self.sized(&waiter, &incoming, is_opener);
        if let Some(limit) = pending.keeps_idle {
            self.control.tell(Command::KeepsIdle { lane: self.lane, limit });
        }
        let moves = pending.route == Route::Freight && !self.freight;
        if moves {
            self.control.tell(Command::TurnedFreight(waiter.attempt));
            incoming = incoming.riding_as(Role::Freight);
        }
        if pending.is_last() {
            // Reported before the body comes, so that others need not wait for its end to have a lane dialled.
            self.control.tell(Command::Draining { lane: self.lane });
        }
        let rest = async move {
            let received = connection.receive(pending, &mut incoming, timeout, &shared);
            match waiter.unless_gone(received).await {
                Ok((stopped, again)) => {
                    let reusable = if again { Reusable::H1(connection) } else { Reusable::No };
                    waiter.end(incoming.finish(Protocol::H1, stopped), reusable);
                }
                Err(e) => waiter.end_broken(e, &connection),
            }
        };
        self.finish(moves, rest).await;
    }

    pub(super) async fn over_h2(self, mut connection: H2, submission: Box<Submission>) {
        let timeout = submission.request.no_progress.unwrap_or(self.control.shared.no_progress);
        if connection.ready(timeout).await.is_err() {
            let is_unused = connection.answers().load(Relaxed) == 0;
            return self.control.tell(Command::Bounced { submission, lane: self.lane, is_unused });
        }
        let hedged = submission.tracker.clone();
        let Begun { mut waiter, mut request, mut incoming, timeout, is_opener } = self.begin(*submission);
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
        let shared = Arc::clone(&self.control.shared);
        let asked = waiter.unless_gone(connection.ask(&mut request, &mut incoming, &shared)).await;
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => {
                let outcome = Err(stale(e));
                let reusable = reusable(&outcome);
                return waiter.end(outcome, reusable);
            }
        };
        if before.1 == 0 {
            self.control.tell(Command::Answered { lane: self.lane });
        }
        self.sized(&waiter, &incoming, is_opener);
        let moves = pending.route == Route::Freight && !self.freight;
        let is_small = request.expected.is_some_and(|down| down <= FREIGHT_ABOVE);
        if moves && !is_small {
            // Bulk that showed itself only now must not share the express connection's window. Given up before its
            // body is read, it is asked for again in slices, which go as freight.
            drop(pending);
            return waiter.end(incoming.finish(Protocol::H2, true), Reusable::H2);
        }
        let rest = async move {
            let received = waiter.unless_gone(pending.receive(&mut incoming, timeout, &shared)).await;
            let outcome = received.and_then(|stopped| incoming.finish(Protocol::H2, stopped));
            let reusable = reusable(&outcome);
            waiter.end(outcome, reusable);
        };
        // What moves is the end of a large object, small by itself: it may block where it is written.
        self.finish(moves, rest).await;
    }

    /// Takes a request up that goes onto the connection now.
    fn begin(&self, mut submission: Submission) -> Begun {
        submission.renew(Instant::now());
        let Submission { attempt, mut request, reply, submitted, tracker, hedge_of, .. } = submission;
        let shared = &self.control.shared;
        let waiter = Waiter {
            attempt,
            lane: self.lane,
            reply: Some(reply),
            control: Arc::clone(&self.control),
            asked: Asked::of(&request),
        };
        let is_opener = request.is_opener();
        let incoming = Incoming::new(request.sink.take(), submitted, tracker)
            .riding_as(if self.freight { Role::Freight } else { Role::Express })
            .through(request.pass.take())
            .heard_by(request.outage.take().map(|outage| (outage, request.origin.clone())))
            .tallied(request.tally.clone())
            .signed_by(request.credential);
        if let Some(sent) = &request.sent {
            sent.fetch_add(1, Relaxed);
        }
        shared.counts.add(incoming.tally(), Count::Request, 1);
        shared.counts.add(incoming.tally(), Count::Hedge, u64::from(hedge_of.is_some()));
        let timeout = request.no_progress.unwrap_or(shared.no_progress);
        Begun { waiter, request, incoming, timeout, is_opener }
    }

    /// Tells the size of an opener whose answer has begun.
    fn sized(&self, waiter: &Waiter, incoming: &Incoming, is_opener: bool) {
        if let Some(bytes) = incoming.announced().filter(|_| is_opener) {
            self.control.tell(Command::Sized { attempt: waiter.attempt, bytes });
        }
    }

    /// Receives the body: here, or on the lane's freight thread.
    async fn finish(self, moves: bool, rest: impl Future<Output = ()> + Send + 'static) {
        if moves {
            self.control.freight(self.lane.0).spawn(rest);
        } else {
            rest.await;
        }
    }
}
