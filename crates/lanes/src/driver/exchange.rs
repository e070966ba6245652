//! One request on one connection, from its first byte to its outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::carrier::{Carrier, Hold};
use super::{Command, Control};
use crate::connection::{BodyEnd, Connection, Fate};
use crate::dispatch::{AttemptId, LaneId, Role, Rules};
use crate::error::{Error, Kind};
use crate::incoming::Incoming;
use crate::submission::Submission;
use crate::tally::Count;
use crate::trace::What;
use crate::{Request, Response, Route};

/// A request's ride on a lane.
pub(crate) struct Exchange {
    pub(super) lane: LaneId,
    /// True if it runs on a freight thread already.
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

/// A request as a log names it. No header and no query: they carry credentials.
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
    fn end(mut self, outcome: Result<Response, Error>, fate: Fate, connection: Option<Box<dyn Carrier>>) {
        self.hand_over(outcome, fate, connection);
    }

    /// Ends a request that has failed, and leaves it to the connection what becomes of it.
    fn end_failed(self, error: Error, connection: &impl Connection, incoming: &Incoming, timeout: Duration) {
        let (error, fate) = connection.failed(error, incoming.is_hedged(), timeout);
        self.end(Err(error), fate, None);
    }

    fn hand_over(
        &mut self,
        outcome: Result<Response, Error>,
        fate: Fate,
        connection: Option<Box<dyn Carrier>>,
    ) {
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
        let (attempt, lane) = (self.attempt, self.lane);
        self.control.tell(Command::Finished { attempt, lane, fate, connection });
        let _ = reply.send(outcome);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let error = match std::thread::panicking() {
            true => Error::new(Kind::Sink, "the sink panicked while it took the answer"),
            false => Error::new(Kind::Closed, "the engine was shut down"),
        };
        self.hand_over(Err(error), Fate::Spent, None);
    }
}

/// An exchange that has begun.
struct Begun {
    waiter: Waiter,
    request: Request,
    incoming: Incoming,
    /// True if its answer may be of any size.
    is_opener: bool,
}

impl Exchange {
    /// Runs on the express thread, or on the lane's freight thread.
    pub(super) fn spawn<C: Connection>(self, hold: Hold<C>, submission: Box<Submission>) {
        let control = Arc::clone(&self.control);
        let home = if self.freight { control.freight(self.lane.0) } else { &control.express };
        home.spawn(self.run(hold, submission));
    }

    async fn run<C: Connection>(self, mut hold: Hold<C>, submission: Box<Submission>) {
        let connection = hold.connection();
        let timeout = submission.request.no_progress.unwrap_or(self.control.shared.no_progress);
        if connection.ready(timeout).await.is_err() {
            let is_unused = connection.is_unused();
            return self.control.tell(Command::Bounced { submission, lane: self.lane, is_unused });
        }
        let Begun { mut waiter, mut request, mut incoming, is_opener } = self.begin(*submission);
        let shared = Arc::clone(&self.control.shared);
        let asked = waiter.unless_gone(connection.ask(&mut request, &mut incoming, &shared)).await;
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => return waiter.end_failed(e, connection, &incoming, timeout),
        };
        if connection.is_first() {
            self.control.tell(Command::Answered { lane: self.lane });
        }
        self.sized(&waiter, &incoming, is_opener);
        if let Some(limit) = pending.keeps_idle {
            self.control.tell(Command::KeepsIdle { lane: self.lane, limit });
        }
        let moves = pending.route == Route::Freight && !self.freight;
        if moves && !C::PROTOCOL.is_multiplexed() {
            self.control.tell(Command::TurnedFreight(waiter.attempt));
            incoming = incoming.riding_as(Role::Freight);
        } else if moves && request.expected.is_none_or(|down| down > Rules::CHOSEN.freight_above) {
            // Bulk that showed itself only now must not share the express connection's window. Given up before its
            // body is read, it is asked for again in slices, which go as freight. What moves otherwise is the end of a large
            // object, small by itself: it may block where it is written.
            drop(pending);
            return waiter.end(incoming.finish(C::PROTOCOL, true), Fate::Usable, None);
        }
        if pending.is_last {
            // Reported before the body comes, so that others need not wait for its end to have a lane dialled.
            self.control.tell(Command::Draining { lane: self.lane });
        }
        let rest = async move {
            let connection = hold.connection();
            let received = connection.receive(pending, &mut incoming, timeout, &shared);
            match waiter.unless_gone(received).await {
                Ok(BodyEnd { is_stopped, is_reusable: true }) => {
                    let outcome = incoming.finish(C::PROTOCOL, is_stopped);
                    waiter.end(outcome, Fate::Usable, hold.into_whole());
                }
                Ok(BodyEnd { is_stopped, is_reusable: false }) => {
                    waiter.end(incoming.finish(C::PROTOCOL, is_stopped), Fate::Spent, None);
                }
                Err(e) => waiter.end_failed(e, connection, &incoming, timeout),
            }
        };
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
        Begun { waiter, request, incoming, is_opener }
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
