//! The driver carries out the dispatcher's decisions: it dials connections, sends requests and closes connections.
//!
//! One task on the express thread owns all state. Other tasks send it a [`DriverCommand`].

mod dialling;
mod exchange;
mod resting;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::addresses::SLOW_FOR;
use crate::connection::ConnectionFate;
use crate::dispatch::{
    AttemptId, Direction, DispatchAction, DispatchEvent, Dispatcher, LaneId, OriginId, RequestSize, Role,
    Rules,
};
use crate::error::{Error, Kind};
use crate::hedge::{HedgeWatch, budget_left};
use crate::request::Submission;
use crate::shared::SharedState;
use crate::spare::{Spare, SpareClaim, SpareLanes};
use crate::stream::{IoProgress, OriginBytes, Traffic};
use crate::tally::Tally;
use crate::throttle::AdmissionPass;
use crate::trace::{Trace, TraceEvent};
use crate::{Origin, Path, Protocol};
use dialling::HostAddresses;
pub(crate) use dialling::{Dial, DialReport, NewConnection, Transport};
pub(crate) use exchange::DynConnection;
use resting::Standstill;

/// The maximum number of commands that are taken from the queue at a time.
const BATCH: usize = 256;

/// A request fails if this many new connections had ended before the request could be sent on them.
const BOUNCES_MAX: u8 = 4;

/// A message to the driver.
pub(crate) enum DriverCommand {
    /// Sends a request.
    Submit(Box<Submission>),
    /// The lane had ended or refused the request. Nothing of the request was sent, so the request gets another lane. `is_unused` is true if
    /// the server has never answered on the ended lane.
    Bounced { submission: Box<Submission>, lane: LaneId, is_unused: bool },
    /// The caller has dropped this attempt.
    Cancel(AttemptId),
    /// The origin is likely to speak this protocol.
    Expect(Origin, Protocol),
    /// Announces this many requests. Connections that are dialled for them are counted in the tally.
    Anticipate(Origin, usize, Option<Tally>),
    /// Asks for the measured path to the origin.
    Path(Origin, oneshot::Sender<Path>),
    /// Asks how many more bulk requests, each on a lane of its own, would raise the total rate.
    Spare(Origin, oneshot::Sender<Spare>),
    /// The TCP handshake of a dial has ended.
    Reached { lane: LaneId, rtt: Duration },
    /// A dial has ended.
    Dialled { lane: LaneId, outcome: Result<NewConnection, Error> },
    /// The size of the answer to a request of unknown size is now known.
    Sized { attempt: AttemptId, bytes: u64 },
    /// The attempt turned out to be bulk.
    TurnedFreight(AttemptId),
    /// An attempt has ended. `connection` is its connection if the attempt had the whole connection and left
    /// it usable.
    Finished {
        attempt: AttemptId,
        lane: LaneId,
        fate: ConnectionFate,
        connection: Option<Box<dyn DynConnection>>,
    },
    /// The first answer on the connection has begun.
    Answered { lane: LaneId },
    /// The server will close the connection after the current answer.
    Draining { lane: LaneId },
    /// The connection has ended.
    Closed { lane: LaneId },
    /// An idle connection has become readable.
    IdleReadable { lane: LaneId },
    /// The server announces how long it keeps idle connections open.
    KeepsIdle { lane: LaneId, limit: Duration },
}

/// The driver's record of a lane. It exists from the beginning of the dial.
struct LaneSlot {
    origin: OriginId,
    stage: LaneStage,
}

enum LaneStage {
    Dialling,
    /// The dial has failed. Attempts that fail because of the dial get a copy of this error.
    Failed(Error),
    Open(OpenLane),
}

struct OpenLane {
    /// The connection. `None` while a request uses the whole connection.
    connection: Option<Box<dyn DynConnection>>,
    address: SocketAddr,
    progress: Arc<IoProgress>,
    /// The maximum number of concurrent requests that was last reported to the dispatcher.
    requests_max: usize,
}

impl LaneSlot {
    fn open(&self) -> Option<&OpenLane> {
        match &self.stage {
            LaneStage::Open(open) => Some(open),
            _ => None,
        }
    }

    fn open_mut(&mut self) -> Option<&mut OpenLane> {
        match &mut self.stage {
            LaneStage::Open(open) => Some(open),
            _ => None,
        }
    }
}

/// The driver's record of an origin.
struct OriginEntry {
    origin: Origin,
    traffic: Arc<Traffic>,
    names: Arc<HostAddresses>,
    /// The number of further bulk requests that would raise the total rate, each on a lane of its own.
    spare: SpareLanes,
    /// The tally of the last request. New connections are counted in it.
    tally: Option<Tally>,
}

impl OriginEntry {
    fn asked_for(&mut self, tally: Option<&Tally>) {
        if !Tally::is_same(self.tally.as_ref(), tally) {
            self.tally = tally.cloned();
        }
    }
}

pub(crate) struct Driver {
    dispatcher: Dispatcher,
    queued: FxHashMap<AttemptId, Box<Submission>>,
    lanes: FxHashMap<LaneId, LaneSlot>,
    origins: Vec<OriginEntry>,
    numbers: HashMap<Origin, OriginId>,
    transport: Arc<dyn Transport>,
    control: Arc<DriverHandle>,
    shared: Arc<SharedState>,
    watch: HedgeWatch,
    claims: Vec<SpareClaim>,
    standstill: Standstill,
    /// The time when the driver last looked for lanes on which the server doesn't answer. The map contains the lanes that it found,
    /// with their unacknowledged bytes.
    unserved: (Option<Instant>, FxHashMap<LaneId, Option<u64>>),
    /// The number of requested hedges. Some of them weren't sent, because they were no longer needed when they could be sent.
    hedges_asked: u64,
}

impl Driver {
    pub(crate) fn new(
        connections_max: usize,
        transport: Arc<dyn Transport>,
        control: Arc<DriverHandle>,
    ) -> Self {
        let shared = Arc::clone(&control.shared);
        Self {
            watch: HedgeWatch::new(shared.pace.is_none()),
            claims: Vec::new(),
            standstill: Standstill::default(),
            unserved: Default::default(),
            hedges_asked: 0,
            dispatcher: Dispatcher::new(connections_max),
            queued: FxHashMap::default(),
            lanes: FxHashMap::default(),
            origins: Vec::new(),
            numbers: HashMap::new(),
            transport,
            control,
            shared,
        }
    }

    /// Runs until the last handle to the engine is dropped.
    pub(crate) async fn run(
        mut self,
        mut commands: UnboundedReceiver<DriverCommand>,
        mut ended: ShutdownSignal,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let tick = self.dispatcher.next_tick();
            let looks = [tick, self.watch.next_look(), self.standstill.next_look()];
            let wake = looks.into_iter().flatten().min();
            let timer = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = commands.recv_many(&mut batch, BATCH) => {}
                () = timer => {}
                _ = &mut ended => return,
            }
            // Make these checks before processing new commands, because new commands may use idle connections.
            self.look_for_a_standstill(Instant::now());
            self.look_for_the_unserved(Instant::now());
            let mut now = self.take_all(&mut batch);
            if tick.is_some_and(|t| t <= now) {
                // If this thread has waited for a core, events that came before the tick are still in the queue. Process them first.
                tokio::task::yield_now().await;
                while let Ok(command) = commands.try_recv() {
                    batch.push(command);
                }
                now = self.take_all(&mut batch);
                self.tick(now);
            }
            self.carry_out();
            if !self.claims.is_empty() {
                // The dispatcher counts these requests itself now, so release the places that were reserved for them.
                self.claims.clear();
                self.origins.iter().for_each(|entry| entry.spare.set_again());
            }
            self.look_for_stragglers(now);
        }
    }

    /// Processes the batch in order. Returns the time when the processing began.
    fn take_all(&mut self, batch: &mut Vec<DriverCommand>) -> Instant {
        let now = Instant::now();
        batch.drain(..).for_each(|command| self.take(now, command));
        now
    }

    fn take(&mut self, now: Instant, command: DriverCommand) {
        let rests = match &command {
            DriverCommand::Finished { lane, .. }
            | DriverCommand::Dialled { lane, .. }
            | DriverCommand::IdleReadable { lane } => Some(*lane),
            _ => None,
        };
        match command {
            DriverCommand::Submit(submission) => self.submit(now, submission),
            DriverCommand::Bounced { submission, lane, is_unused } => {
                let attempt = submission.attempt;
                self.watch.end(now, attempt);
                self.dispatcher.handle(now, DispatchEvent::Finished { attempt, reusable: false });
                self.forget(lane);
                self.bounce(now, submission, is_unused);
            }
            DriverCommand::Cancel(attempt) => {
                self.queued.remove(&attempt);
                self.dispatcher.handle(now, DispatchEvent::Cancelled { attempt });
            }
            DriverCommand::Expect(origin, protocol) => {
                let origin = self.number(&origin);
                self.dispatcher.handle(now, DispatchEvent::Expected { origin, protocol });
            }
            DriverCommand::Anticipate(origin, attempts, tally) => {
                let origin = self.number(&origin);
                self.origins[origin.0].asked_for(tally.as_ref());
                self.dispatcher.handle(now, DispatchEvent::Anticipated { origin, attempts });
            }
            DriverCommand::Path(origin, reply) => {
                let origin = self.number(&origin);
                // This fails if the caller has dropped its receiver.
                let _ = reply.send(self.dispatcher.path(origin));
            }
            DriverCommand::Spare(origin, reply) => {
                let origin = self.number(&origin);
                let _ = reply.send(self.origins[origin.0].spare.subscribe());
            }
            DriverCommand::Reached { lane, rtt } => {
                tracing::debug!(lane = lane.0, ?rtt, "server reached");
                self.dispatcher.handle(now, DispatchEvent::Reached { lane, rtt });
            }
            DriverCommand::Dialled { lane, outcome } => self.dialled(now, lane, outcome),
            DriverCommand::Sized { attempt, bytes } => {
                if bytes > Rules::CHOSEN.freight_above {
                    self.watch.turned_freight(attempt);
                }
                self.dispatcher.handle(now, DispatchEvent::Sized { attempt, bytes });
            }
            DriverCommand::TurnedFreight(attempt) => {
                self.control.note(|| TraceEvent::TurnedFreight { attempt: attempt.0 });
                self.watch.turned_freight(attempt);
                self.dispatcher.handle(now, DispatchEvent::TurnedFreight { attempt });
            }
            DriverCommand::Answered { lane } => self.dispatcher.handle(now, DispatchEvent::Answered { lane }),
            DriverCommand::Draining { lane } => self.dispatcher.handle(now, DispatchEvent::Draining { lane }),
            DriverCommand::Finished { attempt, lane, fate, connection } => {
                self.finished(now, attempt, lane, fate, connection);
            }
            DriverCommand::Closed { lane } => {
                self.forget(lane);
                self.dispatcher.handle(now, DispatchEvent::Closed { lane });
            }
            DriverCommand::KeepsIdle { lane, limit } => {
                self.dispatcher.handle(now, DispatchEvent::KeepsIdle { lane, limit });
            }
            DriverCommand::IdleReadable { .. } => {}
        }
        self.carry_out();
        // This does nothing if the next request already uses the connection.
        if let Some(lane) = rests {
            self.rest(now, lane);
        }
    }

    fn submit(&mut self, now: Instant, mut submission: Box<Submission>) {
        if submission.reply.is_closed() {
            return;
        }
        let request = &submission.request;
        let size = RequestSize::new(request.body.len(), request.expected, request.sink.is_some());
        let (attempt, hedge_of, origin) =
            (submission.attempt, submission.hedge_of, self.number(&submission.request.origin));
        self.origins[origin.0].asked_for(submission.request.tally.as_ref());
        self.claims.extend(submission.claim.take());
        self.queued.insert(attempt, submission);
        let event = match hedge_of {
            Some(hedge_of) => DispatchEvent::Hedged { attempt, origin, size, hedge_of },
            None => DispatchEvent::Submitted { attempt, origin, size },
        };
        self.dispatcher.handle(now, event);
    }

    /// Submits an attempt again, because its lane had ended. If the lane had been used before, the number of used lanes becomes smaller
    /// with each repetition, so these repetitions end. But a server can close every new connection at once. So the attempt fails without
    /// being sent if a few new lanes have ended before it.
    fn bounce(&mut self, now: Instant, mut submission: Box<Submission>, is_unused: bool) {
        submission.bounces += u8::from(is_unused);
        self.control.note(|| TraceEvent::Finished { attempt: submission.attempt.0, bytes: 0 });
        if submission.bounces < BOUNCES_MAX {
            return self.submit(now, submission);
        }
        let why = format!("{} accepts connections but closes them at once", submission.request.origin);
        let _ = submission.reply.send(Err(Error::new(Kind::Connect, why)));
    }

    fn finished(
        &mut self,
        now: Instant,
        attempt: AttemptId,
        lane: LaneId,
        fate: ConnectionFate,
        connection: Option<Box<dyn DynConnection>>,
    ) {
        self.watch.end(now, attempt);
        if let Some(time) = fate.avoided_for() {
            self.avoid(now, lane, time);
        }
        if fate == ConnectionFate::Broken {
            self.dispatcher.handle(now, DispatchEvent::Unserved { lane });
        }
        if matches!(fate, ConnectionFate::Stale | ConnectionFate::Lost) {
            self.dispatcher.handle(now, DispatchEvent::Stale { lane });
        }
        let open =
            self.lanes.get_mut(&lane).and_then(LaneSlot::open_mut).filter(|_| fate == ConnectionFate::Usable);
        let reusable = open.is_some();
        if let Some(open) = open {
            open.connection = connection.or(open.connection.take());
            let announced = open.connection.as_ref().map(|connection| connection.requests_max());
            if let Some(max) = announced.filter(|max| *max != open.requests_max) {
                open.requests_max = max;
                self.dispatcher.handle(now, DispatchEvent::Streams { lane, max });
            }
        }
        self.dispatcher.handle(now, DispatchEvent::Finished { attempt, reusable });
    }

    fn tick(&mut self, now: Instant) {
        let mut all_resent = 0;
        for (number, OriginEntry { traffic, .. }) in self.origins.iter().enumerate() {
            let OriginBytes { down, up, flow, resent } = traffic.carried.moved();
            all_resent += resent;
            self.dispatcher.handle(now, DispatchEvent::Moved { origin: OriginId(number), down, up, flow });
        }
        self.shared.counts.segments_resent.store(all_resent, Relaxed);
        self.dispatcher.handle(now, DispatchEvent::Tick);
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.dispatcher.poll() {
            match action {
                DispatchAction::Dial { lane, origin, role } => self.dial(lane, origin, role),
                DispatchAction::Send { attempt, lane, role } => self.send(attempt, lane, role),
                DispatchAction::Close { lane } => self.forget(lane),
                DispatchAction::Yield { direction, rate } => {
                    self.control.note(|| TraceEvent::Yields { direction, rate });
                    tracing::debug!(?direction, ?rate, "bulk yields");
                    self.bulk_is_held(direction, rate.is_some());
                    self.shared.valve(direction).set(rate);
                }
                DispatchAction::Window { origin, bytes } => {
                    tracing::debug!(?bytes, "window of each connection that downloads bulk");
                    self.origins[origin.0].traffic.window.store(bytes.unwrap_or(0), Relaxed);
                }
                DispatchAction::SendBuffer { origin, bytes } => {
                    tracing::debug!(?bytes, "send buffer of each connection that uploads bulk");
                    self.origins[origin.0].traffic.send_buffer.store(bytes.unwrap_or(0), Relaxed);
                }
                DispatchAction::Unsent { origin, bytes } => {
                    self.origins[origin.0].traffic.unsent.store(bytes, Relaxed);
                }
                DispatchAction::Pace { origin, rate } => {
                    tracing::debug!(?rate, "pace of each connection that uploads bulk, bytes per second");
                    self.origins[origin.0].traffic.pace.store(rate.unwrap_or(u32::MAX), Relaxed);
                }
                DispatchAction::Spare { origin, lanes, open } => {
                    tracing::debug!(lanes, open, "spare lanes for bulk");
                    self.origins[origin.0].spare.set(lanes, open);
                }
                DispatchAction::Fail { attempt, because } => {
                    if let Some(submission) = self.queued.remove(&attempt) {
                        let error = match self.lanes.get(&because).map(|lane| &lane.stage) {
                            Some(LaneStage::Failed(error)) => error.again(),
                            _ => Error::new(Kind::Connect, "no connection"),
                        };
                        let _ = submission.reply.send(Err(error));
                    }
                }
            }
        }
    }

    fn send(&mut self, attempt: AttemptId, lane: LaneId, role: Role) {
        let now = Instant::now();
        let Some(submission) = self.queued.remove(&attempt).filter(|j| !j.reply.is_closed()) else {
            return self.dispatcher.handle(now, DispatchEvent::Finished { attempt, reusable: true });
        };
        if submission.request.pass.as_ref().is_some_and(AdmissionPass::is_shut) {
            let _ = submission.reply.send(Err(Error::held()));
            return self.dispatcher.handle(now, DispatchEvent::Finished { attempt, reusable: true });
        }
        if submission.request.no_progress.is_some_and(|own| own > self.control.shared.no_progress)
            && let Some(open) = self.lanes.get(&lane).and_then(LaneSlot::open)
        {
            open.progress.allow_silence();
        }
        self.control.note(|| sent(&submission, lane, role));
        let freight = role == Role::Freight;
        let exchange = exchange::LaneExchange { lane, freight, control: Arc::clone(&self.control) };
        let open = self.lanes.get_mut(&lane).and_then(LaneSlot::open_mut);
        match open.and_then(|open| open.connection.take()) {
            Some(mut connection) => {
                if connection.is_quiet(&mut Context::from_waker(Waker::noop())) {
                    self.begin_watching(now, &submission, lane, role);
                    let shared = connection.carry(exchange, submission);
                    if let Some(open) = self.lanes.get_mut(&lane).and_then(LaneSlot::open_mut) {
                        open.connection = shared;
                    }
                } else {
                    // The server has just closed the connection. Nothing of the request was sent, so it gets another connection, and this
                    // doesn't count as an attempt.
                    self.forget(lane);
                    self.dispatcher.handle(now, DispatchEvent::Stale { lane });
                    self.dispatcher.handle(now, DispatchEvent::Closed { lane });
                    self.dispatcher.handle(now, DispatchEvent::Finished { attempt, reusable: false });
                    self.bounce(now, submission, connection.is_unused());
                }
            }
            None => {
                self.dispatcher.handle(now, DispatchEvent::Finished { attempt, reusable: false });
                self.bounce(now, submission, true);
            }
        }
    }

    fn forget(&mut self, lane: LaneId) {
        if self.lanes.remove(&lane).is_some_and(|gone| gone.open().is_some()) {
            tracing::info!(lane = lane.0, "connection closed");
            self.closed_one();
            self.control.note(|| TraceEvent::Closed { lane: lane.0 });
        }
    }

    fn closed_one(&self) {
        self.shared.counts.connections_open.fetch_sub(1, Relaxed);
    }

    fn number(&mut self, origin: &Origin) -> OriginId {
        if let Some(id) = self.numbers.get(origin) {
            return *id;
        }
        let id = OriginId(self.origins.len());
        self.numbers.insert(origin.clone(), id);
        let (traffic, names) = (Arc::default(), Arc::default());
        let spare = SpareLanes::new();
        self.origins.push(OriginEntry { origin: origin.clone(), traffic, names, spare, tally: None });
        id
    }
}

fn sent(submission: &Submission, lane: LaneId, role: Role) -> TraceEvent {
    let request = &submission.request;
    let label = format!("{} {}", request.method, request.target.path());
    TraceEvent::Sent { attempt: submission.attempt.0, lane: lane.0, role, label, bytes: request.body.len() }
}

/// Resolves when the last handle is dropped.
pub(crate) type ShutdownSignal = tokio::sync::oneshot::Receiver<()>;

/// The channel from the engine's tasks to the driver, and the threads that the tasks run on.
pub(crate) struct DriverHandle {
    pub(crate) commands: UnboundedSender<DriverCommand>,
    pub(crate) express: Handle,
    pub(crate) freight: Vec<Handle>,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) trace: Option<Trace>,
}

impl DriverHandle {
    /// Sends the driver a command. If the driver has ended, the command is dropped.
    pub(crate) fn tell(&self, command: DriverCommand) {
        let _ = self.commands.send(command);
    }

    /// Returns the runtime of a freight thread. The lane's number selects the thread.
    pub(crate) fn freight(&self, number: u64) -> &Handle {
        &self.freight[number as usize % self.freight.len()]
    }

    /// Records an event if the caller asked for a trace. Otherwise `what` isn't called.
    pub(crate) fn note(&self, what: impl FnOnce() -> TraceEvent) {
        if let Some(trace) = &self.trace {
            trace.note(what());
        }
    }
}

// Hedging: the driver watches the requests that it sends, and asks for hedges of slow ones.
impl Driver {
    /// Starts watching a request that is being sent, if it may be hedged.
    fn begin_watching(&mut self, now: Instant, submission: &Submission, lane: LaneId, role: Role) {
        if let (Some(tracker), Some(lane)) = (&submission.tracker, self.lanes.get(&lane)) {
            let expected = submission.request.expected;
            // Compare a request of unknown size with small requests, even on a freight lane, until its answer shows that the body is large.
            // Among large transfers, there might be no other request to compare it with.
            let role = if submission.request.is_opener() { Role::Express } else { role };
            self.watch.begin(now, submission.attempt, (lane.origin, role), expected, Arc::clone(tracker));
        }
    }

    fn bulk_is_held(&mut self, direction: Direction, is_held: bool) {
        if direction == Direction::Down {
            self.watch.hold_bulk(Instant::now(), is_held);
        }
    }

    /// Asks for hedges of the stragglers.
    fn look_for_stragglers(&mut self, now: Instant) {
        if self.watch.next_look().is_none_or(|at| at > now) {
            return;
        }
        let most = budget_left(self.shared.counts.all().requests(), self.hedges_asked);
        let is_all = self.dispatcher.attempts() <= 1;
        let stragglers = self.watch.look(now, most, is_all);
        self.hedges_asked += stragglers.len() as u64;
        for lane in stragglers.iter().filter_map(|attempt| self.dispatcher.lane_of(*attempt)) {
            self.avoid(now, lane, SLOW_FOR);
        }
    }
}

#[cfg(test)]
mod tests;
