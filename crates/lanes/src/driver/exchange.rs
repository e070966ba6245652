//! Carries out one request on one connection, from its first byte to its outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{DriverCommand, DriverHandle};
use crate::connection::{BodyEnd, ClientConnection, ConnectionFate};
use crate::dispatch::{AttemptId, LaneId, Role, Rules, is_announced_to_dispatcher};
use crate::error::{Error, Kind};
use crate::incoming::ResponseReceiver;
use crate::request::Submission;
use crate::stream::IoProgress;
use crate::tally::Metric;
use crate::trace::TraceEvent;
use crate::{Protocol, Request, Response, Route};

/// One request on a lane.
pub(crate) struct LaneExchange {
    pub(super) lane: LaneId,
    /// True if the exchange runs on a freight thread from the start.
    pub(super) freight: bool,
    pub(super) control: Arc<DriverHandle>,
}

/// Passes the outcome to the caller and the driver. If the sink panics or the engine ends, the waiter is dropped without an outcome. It
/// then reports an error to the caller, and frees the lane, but its connection isn't used again.
struct Waiter {
    attempt: AttemptId,
    lane: LaneId,
    reply: Option<oneshot::Sender<Result<Response, Error>>>,
    control: Arc<DriverHandle>,
    /// The request's label for logs. `None` if requests aren't logged.
    asked: Option<Box<RequestLabel>>,
}

/// A request as logs show it. Headers and query are left out, because they may contain credentials.
struct RequestLabel {
    line: String,
    at: Instant,
}

impl RequestLabel {
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
    /// Waits for a step of the exchange. Fails if the caller has dropped the request meanwhile.
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

    /// Frees the lane, and then passes the outcome to the caller. So the caller's next request finds the lane free.
    fn end(
        mut self,
        outcome: Result<Response, Error>,
        fate: ConnectionFate,
        connection: Option<Box<dyn DynConnection>>,
    ) {
        self.hand_over(outcome, fate, connection);
    }

    /// Ends a request that has failed. The connection's protocol decides if it can be used again.
    fn end_failed(
        self,
        error: Error,
        connection: &impl ClientConnection,
        incoming: &ResponseReceiver,
        timeout: Duration,
    ) {
        let (error, fate) = connection.failed(error, incoming.is_hedged(), timeout);
        self.end(Err(error), fate, None);
    }

    fn hand_over(
        &mut self,
        outcome: Result<Response, Error>,
        fate: ConnectionFate,
        connection: Option<Box<dyn DynConnection>>,
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
            TraceEvent::Finished { attempt: self.attempt.0, bytes }
        });
        let (attempt, lane) = (self.attempt, self.lane);
        self.control.tell(DriverCommand::Finished { attempt, lane, fate, connection });
        let _ = reply.send(outcome);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let error = match std::thread::panicking() {
            true => Error::new(Kind::Sink, "the sink panicked while it took the answer"),
            false => Error::new(Kind::Closed, "the engine was shut down"),
        };
        self.hand_over(Err(error), ConnectionFate::Spent, None);
    }
}

/// An exchange that has begun.
struct StartedExchange {
    waiter: Waiter,
    request: Request,
    incoming: ResponseReceiver,
    /// True if the dispatcher gets the answer's size and time.
    is_announced: bool,
}

impl LaneExchange {
    /// Starts the exchange as a task on the express thread, or on the lane's freight thread.
    pub(super) fn spawn<C: ClientConnection>(self, hold: ConnectionHold<C>, submission: Box<Submission>) {
        let control = Arc::clone(&self.control);
        let home = if self.freight { control.freight(self.lane.0) } else { &control.express };
        home.spawn(self.run(hold, submission));
    }

    async fn run<C: ClientConnection>(self, mut hold: ConnectionHold<C>, submission: Box<Submission>) {
        let connection = hold.connection();
        let timeout = submission.request.no_progress.unwrap_or(self.control.shared.no_progress);
        if connection.ready(timeout).await.is_err() {
            let is_unused = connection.is_unused();
            return self.control.tell(DriverCommand::Bounced { submission, lane: self.lane, is_unused });
        }
        let StartedExchange { mut waiter, mut request, mut incoming, is_announced } = self.begin(*submission);
        let shared = Arc::clone(&self.control.shared);
        let asked = waiter.unless_gone(connection.ask(&mut request, &mut incoming, &shared)).await;
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => return waiter.end_failed(e, connection, &incoming, timeout),
        };
        if connection.is_first() {
            self.control.tell(DriverCommand::Answered { lane: self.lane });
        }
        self.sized(&waiter, &incoming, is_announced);
        if let Some(limit) = pending.keeps_idle {
            self.control.tell(DriverCommand::KeepsIdle { lane: self.lane, limit });
        }
        let moves = pending.route == Route::Freight && !self.freight;
        if moves && !C::PROTOCOL.is_multiplexed() {
            self.control.tell(DriverCommand::TurnedFreight(waiter.attempt));
            incoming = incoming.riding_as(Role::Freight);
        } else if moves && request.expected.is_none_or(|down| down > Rules::CHOSEN.freight_above) {
            // The answer turned out to be bulk, which must not use the window of an express connection. The exchange ends before the body
            // is read. The caller then requests the object again in slices, which are freight. A small body that moves to a freight thread
            // isn't stopped: it is the last part of a large object, and moves because its sink may block.
            drop(pending);
            return waiter.end(incoming.finish(C::PROTOCOL, true), ConnectionFate::Usable, None);
        }
        if pending.is_last {
            // Report this before the body comes, so that a new lane for other requests can be dialled meanwhile.
            self.control.tell(DriverCommand::Draining { lane: self.lane });
        }
        let rest = async move {
            let connection = hold.connection();
            let received = connection.receive(pending, &mut incoming, timeout, &shared);
            match waiter.unless_gone(received).await {
                Ok(BodyEnd { is_stopped, is_reusable: true }) => {
                    let outcome = incoming.finish(C::PROTOCOL, is_stopped);
                    waiter.end(outcome, ConnectionFate::Usable, hold.into_whole());
                }
                Ok(BodyEnd { is_stopped, is_reusable: false }) => {
                    waiter.end(incoming.finish(C::PROTOCOL, is_stopped), ConnectionFate::Spent, None);
                }
                Err(e) => waiter.end_failed(e, connection, &incoming, timeout),
            }
        };
        self.finish(moves, rest).await;
    }

    /// Prepares a request that is sent now.
    fn begin(&self, mut submission: Submission) -> StartedExchange {
        submission.renew(Instant::now());
        let Submission { attempt, mut request, reply, submitted, tracker, hedge_of, .. } = submission;
        let shared = &self.control.shared;
        let waiter = Waiter {
            attempt,
            lane: self.lane,
            reply: Some(reply),
            control: Arc::clone(&self.control),
            asked: RequestLabel::of(&request),
        };
        let is_announced = request.is_opener() || request.expected.is_some_and(is_announced_to_dispatcher);
        let incoming = ResponseReceiver::new(request.sink.take(), submitted, tracker)
            .riding_as(if self.freight { Role::Freight } else { Role::Express })
            .through(request.pass.take())
            .heard_by(request.outage.take().map(|outage| (outage, request.origin.clone())))
            .tallied(request.tally.clone())
            .signed_by(request.credential);
        if let Some(sent) = &request.sent {
            sent.fetch_add(1, Relaxed);
        }
        shared.counts.add(incoming.tally(), Metric::Request, 1);
        shared.counts.add(incoming.tally(), Metric::Hedge, u64::from(hedge_of.is_some()));
        StartedExchange { waiter, request, incoming, is_announced }
    }

    /// Reports the size of an answer.
    fn sized(&self, waiter: &Waiter, incoming: &ResponseReceiver, is_announced: bool) {
        if let Some(bytes) = incoming.announced().filter(|_| is_announced) {
            self.control.tell(DriverCommand::Sized { attempt: waiter.attempt, bytes });
        }
    }

    /// Receives the body here, or on the lane's freight thread if `moves`.
    async fn finish(self, moves: bool, rest: impl Future<Output = ()> + Send + 'static) {
        if moves {
            self.control.freight(self.lane.0).spawn(rest);
        } else {
            rest.await;
        }
    }
}

/// An open connection of any protocol. Only methods that are called about once per request go through this trait. The exchange itself is
/// generic over the connection's type, so none of its futures is boxed.
pub(crate) trait DynConnection: Send {
    fn protocol(&self) -> Protocol;
    fn progress(&self) -> &Arc<IoProgress>;
    fn requests_max(&self) -> usize;
    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool;
    fn is_unused(&self) -> bool;

    /// Starts an exchange on the thread of its role. Returns the connection if it can take more requests meanwhile.
    fn carry(
        self: Box<Self>,
        exchange: LaneExchange,
        submission: Box<Submission>,
    ) -> Option<Box<dyn DynConnection>>;
}

impl<C: ClientConnection> DynConnection for C {
    fn protocol(&self) -> Protocol {
        C::PROTOCOL
    }

    fn progress(&self) -> &Arc<IoProgress> {
        ClientConnection::progress(self)
    }

    fn requests_max(&self) -> usize {
        ClientConnection::requests_max(self)
    }

    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        ClientConnection::is_quiet(self, cx)
    }

    fn is_unused(&self) -> bool {
        ClientConnection::is_unused(self)
    }

    fn carry(
        self: Box<Self>,
        exchange: LaneExchange,
        submission: Box<Submission>,
    ) -> Option<Box<dyn DynConnection>> {
        match self.share() {
            Some(handle) => {
                exchange.spawn(ConnectionHold::Share(handle), submission);
                Some(self)
            }
            None => {
                exchange.spawn(ConnectionHold::Whole(self), submission);
                None
            }
        }
    }
}

/// The connection of a request: the whole connection, or a handle that shares it.
pub(super) enum ConnectionHold<C> {
    Whole(Box<C>),
    Share(C),
}

impl<C: ClientConnection> ConnectionHold<C> {
    pub(super) fn connection(&mut self) -> &mut C {
        match self {
            Self::Whole(connection) => connection,
            Self::Share(handle) => handle,
        }
    }

    /// Returns the connection if the request had the whole connection, so that the lane gets it back.
    pub(super) fn into_whole(self) -> Option<Box<dyn DynConnection>> {
        match self {
            Self::Whole(connection) => Some(connection),
            Self::Share(_) => None,
        }
    }
}
