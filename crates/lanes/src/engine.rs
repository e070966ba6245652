//! The engine: its threads, and the handle that callers use.

mod retrying;

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use http::HeaderValue;
use http::header::USER_AGENT;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use crate::config::DIAL_MAX;
use crate::dial::Dialer;
use crate::dispatch::{AttemptId, Rules};
use crate::driver::{Driver, DriverCommand, DriverHandle, Transport};
use crate::error::{Error, Kind};
use crate::hedge::Tracker;
use crate::outage::Outage;
use crate::proxy::Proxies;
use crate::request::Submission;
use crate::retry::{AttemptFailure, Backoff, RETRY_AFTER_MAX, RetryBudget};
use crate::shared::{CounterCells, SharedState};
use crate::spare::{Spare, SpareClaim};
use crate::tally::{self, Metric};
use crate::throttle::{Admission, AdmissionPass, AdmissionRequest, Throttles};
use crate::trust::extra_roots;
use crate::valve::Valve;
use crate::{
    Call, CallOutcome, Counters, LanesConfig, MemoryBudget, Origin, Path, Protocol, Request, Response, Times,
    Verdict,
};
use retrying::FinishedAttempt;

/// The maximum number of freight threads. Up to this maximum, there is one thread per core, because TLS needs CPU time. Eight threads are
/// faster than any network card that we have tested.
const FREIGHT_THREADS_MAX: usize = 8;

/// A body up to this size is sent without a share of the bandwidth limit. Such a body fits into one packet. Without this exception, a
/// request for an access token might have to wait until other uploads have ended.
const SHARELESS_MAX: u64 = 1400;

/// A connection is stale if the server had already closed it before the request. Up to this number, a call's failures on stale connections
/// don't count as attempts. After the first such failure, the request is sent on a new connection, or on one that was used more recently.
const STALE_MAX: u32 = 3;

/// The target of log events about repeated attempts. Fields: `attempt` (the number of the next attempt, where the first is 1), `after_ms`
/// (the time since the first attempt began), `throttled`, `pause`, `cause`.
pub const RETRY: &str = "laneway::retry";

/// A handle to a running engine. Clones share the engine. Its threads end when the last clone is dropped.
///
/// The engine has its own threads: one for express lanes and decisions, and a few for freight. So a blocked runtime of the host program
/// doesn't stop the engine. The futures of its methods may be awaited on any runtime.
#[derive(Clone)]
pub struct Lanes {
    inner: Arc<EngineState>,
    user_agent: HeaderValue,
    retry_for: Duration,
    retry_unanswered_for: Duration,
}

struct EngineState {
    control: Arc<DriverHandle>,
    shared: Arc<SharedState>,
    attempts: AtomicU64,
    memory: MemoryBudget,
    budget: Mutex<RetryBudget>,
    outages: Mutex<HashMap<Origin, Arc<Outage>>>,
    throttles: Mutex<Throttles>,
    /// Dropping these senders ends the threads.
    _ends: Vec<oneshot::Sender<()>>,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lanes({:?})", self.counters())
    }
}

impl Lanes {
    /// Starts the engine's threads. No connection is opened yet.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) for an unreadable CA file, a proxy that isn't a URL, or threads that can't be started.
    pub fn start(config: LanesConfig) -> Result<Self, Error> {
        let transport = Dialer {
            tls: tokio::sync::OnceCell::new(),
            roots: extra_roots(&config.trust)?,
            proxies: Proxies::new(&config)?,
            user_agent: config.user_agent.clone(),
            timeout: config.no_progress.min(DIAL_MAX),
            tcp_handshake_min: config.tcp_handshake_min,
            resolve: config.resolve.clone(),
        };
        Self::start_over(Arc::new(transport), config)
    }

    /// Starts an engine that opens connections with this transport.
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start).
    pub(crate) fn start_over(transport: Arc<dyn Transport>, config: LanesConfig) -> Result<Self, Error> {
        let (commands, queue) = mpsc::unbounded_channel();
        let express = runtime()?;
        let freight_threads = config.bulk_threads.map_or_else(
            || thread::available_parallelism().map_or(2, usize::from).min(FREIGHT_THREADS_MAX),
            |threads| threads.max(1),
        );
        let freight = (0..freight_threads).map(|_| runtime()).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(SharedState {
            no_progress: config.no_progress,
            pace: config.bandwidth,
            counts: CounterCells::default(),
            down: Valve::default(),
            up: Valve::default(),
        });
        let control = Arc::new(DriverHandle {
            commands,
            express: express.handle().clone(),
            freight: freight.iter().map(|r| r.handle().clone()).collect(),
            shared: Arc::clone(&shared),
            trace: config.trace,
        });
        let connections_max = config.connections_max.unwrap_or(Rules::CHOSEN.connections_max);
        let driver = Driver::new(connections_max, transport, Arc::clone(&control));
        let (end, ended) = oneshot::channel();
        let mut ends = vec![end];
        spawn("laneway-express", express, driver.run(queue, ended))?;
        for runtime in freight {
            let (end, ended) = oneshot::channel::<()>();
            ends.push(end);
            spawn("laneway-freight", runtime, async move {
                let _ = ended.await;
            })?;
        }
        Ok(Self {
            inner: Arc::new(EngineState {
                control,
                shared,
                attempts: AtomicU64::new(0),
                memory: config.memory,
                budget: Mutex::new(RetryBudget::new()),
                outages: Mutex::default(),
                throttles: Mutex::new(Throttles::default()),
                _ends: ends,
            }),
            user_agent: config.user_agent,
            retry_for: config.retry_for,
            retry_unanswered_for: config.retry_unanswered_for,
        })
    }

    /// Returns a handle to the same engine for another caller. Requests through it send `user_agent`. The two times replace
    /// [`LanesConfig::retry_for`] and [`LanesConfig::retry_unanswered_for`].
    #[must_use]
    pub fn for_caller(
        &self,
        user_agent: HeaderValue,
        retry_for: Duration,
        retry_unanswered_for: Duration,
    ) -> Self {
        Self { inner: Arc::clone(&self.inner), user_agent, retry_for, retry_unanswered_for }
    }

    /// Returns the `User-Agent` of requests that don't set one.
    pub fn user_agent(&self) -> &HeaderValue {
        &self.user_agent
    }

    /// Returns a handle for repeating a call whose origin has never answered and whose last attempt timed out. Such a server has accepted a
    /// request, so its name and port are right. The repeated call therefore retries for the whole [`LanesConfig::retry_for`]. Returns `None` if
    /// the call ended for another reason, or if the time for retries is over.
    pub fn for_silent_origin(&self, ended: &CallOutcome) -> Option<Self> {
        let is_silent = ended.outcome.as_ref().is_err_and(|error| error.kind() == Kind::Timeout);
        let is_left = self.retry_unanswered_for < self.retry_for && ended.elapsed < self.retry_for;
        let goes_on = ended.is_origin_away && is_silent && is_left;
        goes_on.then(|| Self { retry_unanswered_for: self.retry_for, ..self.clone() })
    }

    /// Carries out a single attempt. Dropping the future cancels the request and frees its lane.
    ///
    /// # Errors
    /// See [`Kind`](crate::Kind). An answer with an error status is not an error here.
    pub async fn exchange(&self, request: Request) -> Result<Response, Error> {
        self.exchange_as(self.number(), request, None, None).await
    }

    /// Carries out a single attempt with the given id. `tracker` signals when a hedge is wanted. `hedge_of` is `Some` if this attempt is a
    /// hedge.
    async fn exchange_as(
        &self,
        attempt: AttemptId,
        mut request: Request,
        tracker: Option<Arc<Tracker>>,
        hedge_of: Option<AttemptId>,
    ) -> Result<Response, Error> {
        request.headers.entry(USER_AGENT).or_insert_with(|| self.user_agent.clone());
        request.tally = request.tally.take().or_else(tally::current);
        let (reply, outcome) = oneshot::channel();
        let submitted = Instant::now();
        let _share = match (&self.inner.shared.pace, request.body.len()) {
            (Some(pace), len) if len > SHARELESS_MAX => pace.share(len).await,
            _ => None,
        };
        let claim = SpareClaim::take();
        let submission =
            Submission { attempt, request, reply, submitted, bounces: 0, tracker, hedge_of, claim };
        self.inner.control.tell(DriverCommand::Submit(Box::new(submission)));
        let cancel = CancelOnDrop { control: &self.inner.control, attempt: Some(attempt) };
        let outcome = outcome.await;
        cancel.defuse();
        outcome.unwrap_or_else(|_| Err(Error::new(Kind::Closed, "the engine was shut down")))
    }

    /// Carries out a call, in several attempts if needed. The call ends without success once the origin has been silent for
    /// [`LanesConfig::retry_for`]. Backoff, the engine's retry budget and throttles decide when the next attempt is sent. If the call allows it,
    /// an attempt that is slow compared to similar ones gets a hedge on another connection. The number of hedges is limited to 2 % of all
    /// requests, but two are always allowed.
    ///
    /// # Errors
    /// Returns the call's refusal if it can't make a request.
    pub async fn run<C: Call>(&self, call: &C) -> Result<CallOutcome, C::Refusal> {
        let started = Instant::now();
        let mut backoff = Backoff::default();
        let (mut attempts, mut stale) = (0, 0);
        loop {
            let pass = self.admitted(call).await;
            let admitted = Instant::now();
            let mut request = call.request(attempts + 1).await?;
            let origin = request.origin.clone();
            let outage = self.outage(&origin);
            let _asking = outage.asked();
            // The bytes of this attempt are counted separately, because they count as lost if the attempt fails.
            let sent = tally::current().filter(|_| !request.body.is_empty()).map(|all| all.part());
            request.tally.clone_from(&sent);
            let timeout = request.no_progress.unwrap_or(self.inner.shared.no_progress);
            (request.pass, request.outage) = (Some(pass.clone()), Some(Arc::clone(&outage)));
            let (outcome, verdict) = match call.hedged_among() {
                Some(alike) => self.attempt(call, request, alike).await,
                None => {
                    let outcome = self.exchange(request).await;
                    let verdict = call.judge(&outcome);
                    (outcome, verdict)
                }
            };
            if outcome.as_ref().is_err_and(Error::is_held) {
                continue;
            }
            if verdict != Verdict::Done || outcome.is_err() {
                let lost = sent.map_or(0, |sent| sent.bytes_sent());
                self.inner.shared.counts.add(tally::current().as_ref(), Metric::ByteLost, lost);
            }
            // The server had closed the connection before the request arrived. The first `STALE_MAX` such attempts of a call don't count.
            let is_stale = outcome.as_ref().is_err_and(Error::is_stale) && verdict == Verdict::Retry;
            if is_stale && stale < STALE_MAX {
                stale += 1;
                continue;
            }
            attempts += 1;
            let unprocessed = matches!(&outcome, Err(e) if e.is_unsent() && e.kind() == Kind::Interrupted);
            let tried = FinishedAttempt {
                outcome: &outcome,
                began: admitted,
                started,
                number: attempts,
                origin: &origin,
                outage: &outage,
                timeout,
            };
            let transient = tried.transient(Instant::now());
            let failure = match verdict {
                _ if unprocessed => Some(AttemptFailure::Unprocessed),
                Verdict::Done => None,
                Verdict::Retry => Some(transient),
                Verdict::Unavailable if !pass.is_throttled() => Some(transient),
                Verdict::Again => Some(AttemptFailure::Learned),
                Verdict::Throttled { .. } | Verdict::Unavailable => {
                    let after = verdict.asked_pause();
                    self.throttled(call, admitted, after);
                    Some(AttemptFailure::Throttled(after))
                }
            };
            let goes_on = match failure {
                Some(failure) => self.waits(&mut backoff, failure, &tried).await,
                None => false,
            };
            if goes_on {
                continue;
            }
            if failure.is_none() && outcome.is_ok() {
                let (key, object) = (call.throttle_key(), call.throttle_object());
                self.throttles(|t| t.succeeded(key, object, Instant::now()));
                self.budget(RetryBudget::succeed);
            }
            let broke_off = outcome.as_ref().is_err_and(Error::is_transient) && failure.is_none();
            let is_last = match call.breaks().filter(|_| broke_off) {
                Some((breaks, came)) => !self.waits_to_go_on(breaks, came, &tried).await,
                None => false,
            };
            crate::attempts::note(attempts);
            let outcome = if is_last { outcome.map_err(Error::last) } else { outcome };
            let now = Instant::now();
            let is_origin_away =
                (failure.is_some() || is_last) && outage.is_given_up(now, self.bounds(&outage).retry_for);
            let (elapsed, away_for) = (now.saturating_duration_since(started), outage.lasts(now));
            return Ok(CallOutcome { outcome, attempts, elapsed, is_origin_away, away_for });
        }
    }

    /// Tells the engine which protocol the origin probably uses. The engine can then open the right number of connections before
    /// the first handshake. The engine uses the protocol that ALPN selects, even if it is another one.
    pub fn expect(&self, origin: &Origin, protocol: Protocol) {
        self.inner.control.tell(DriverCommand::Expect(origin.clone(), protocol));
    }

    /// Announces a number of requests that will follow soon, so that connections are opened for them meanwhile. 0 withdraws the
    /// announcement.
    pub fn anticipate(&self, origin: &Origin, requests: usize) {
        self.inner.control.tell(DriverCommand::Anticipate(origin.clone(), requests, tally::current()));
    }

    /// Returns the measured path to the origin. All its fields are empty if the engine has ended.
    pub async fn path(&self, origin: &Origin) -> Path {
        let (reply, path) = oneshot::channel();
        self.inner.control.tell(DriverCommand::Path(origin.clone(), reply));
        path.await.unwrap_or_default()
    }

    /// Returns the maximum `Retry-After` that a call waits for.
    pub fn retry_after_max(&self) -> Duration {
        RETRY_AFTER_MAX.max(self.retry_for)
    }

    /// Returns how long a server may be silent before a request fails: `most`, but at most half of the time for retries. So there is enough
    /// time to try another connection.
    pub fn silence_max(&self, most: Duration) -> Duration {
        if self.retry_for.is_zero() { most } else { most.min(self.retry_for / 2) }
    }

    /// Returns how many more bulk requests (above 1 MiB) to an origin would raise the total rate, if each had its own lane. The number in
    /// the returned value is kept up to date.
    pub async fn spare(&self, origin: &Origin) -> Spare {
        let (reply, spare) = oneshot::channel();
        self.inner.control.tell(DriverCommand::Spare(origin.clone(), reply));
        spare.await.unwrap_or_else(|_| Spare::none())
    }

    /// Returns the origin from which calls await an answer. If there are several such origins, returns the one that has been silent for
    /// longest.
    pub fn waits_for(&self) -> Option<Origin> {
        let outages = self.inner.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let awaited = outages.iter().filter_map(|(origin, outage)| Some((outage.awaited_since()?, origin)));
        awaited.min_by_key(|(since, _)| *since).map(|(_, origin)| origin.clone())
    }

    /// Returns the memory budget from which callers reserve buffers.
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.memory
    }

    /// Returns the counters since the engine's start.
    pub fn counters(&self) -> Counters {
        self.inner.shared.counts.snapshot()
    }

    /// Returns the distributions of waiting times of the answered requests.
    pub fn times(&self) -> Times {
        self.inner.shared.counts.times()
    }

    /// Waits until the throttles permit a request of the call.
    async fn admitted<C: Call>(&self, call: &C) -> AdmissionPass {
        let (key, object) = (call.throttle_key(), call.throttle_object());
        if let Some(object) = object {
            let mut place = AdmissionRequest::default();
            while let Some(wait) = self.throttles(|t| t.wait_alone(object, &mut place, Instant::now())) {
                self.pause(wait).await;
            }
        }
        let mut place = AdmissionRequest::default();
        loop {
            match self.throttles(|t| t.admit(key, &mut place, Instant::now())) {
                Admission::Go(gate) => return AdmissionPass::new(gate, object, Instant::now()),
                Admission::Wait(wait) => self.pause(wait).await,
            }
        }
    }

    /// Records an answer that asked for fewer requests.
    fn throttled<C: Call>(&self, call: &C, admitted: Instant, after: Option<Duration>) {
        self.count(Metric::Throttle);
        let (key, object) = (call.throttle_key(), call.throttle_object());
        self.throttles(|t| t.throttled(key, object, admitted, Instant::now(), after));
    }

    /// Waits with a timer of the engine's runtime, because the caller's runtime may have no timers.
    async fn pause(&self, pause: Duration) {
        if !pause.is_zero() {
            // The timer must be created inside this task. A timer belongs to the runtime that creates it, and the caller's runtime may end
            // before the pause does.
            let slept = self.inner.control.express.spawn(async move { tokio::time::sleep(pause).await });
            // This fails only if the engine has ended. The next exchange then reports that.
            let _ = slept.await;
        }
    }

    fn count(&self, what: Metric) {
        self.inner.shared.counts.add(tally::current().as_ref(), what, 1);
    }

    fn number(&self) -> AttemptId {
        AttemptId(self.inner.attempts.fetch_add(1, Relaxed))
    }

    fn budget<T>(&self, with: impl FnOnce(&mut RetryBudget) -> T) -> T {
        with(&mut self.inner.budget.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn throttles<T>(&self, with: impl FnOnce(&mut Throttles) -> T) -> T {
        with(&mut self.inner.throttles.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Cancels the attempt in the driver when the caller drops the future.
struct CancelOnDrop<'a> {
    control: &'a DriverHandle,
    attempt: Option<AttemptId>,
}

impl CancelOnDrop<'_> {
    fn defuse(mut self) {
        self.attempt = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt {
            self.control.tell(DriverCommand::Cancel(attempt));
        }
    }
}

fn runtime() -> Result<Runtime, Error> {
    let failed = |e| Error::because(Kind::Invalid, "the engine can't start", e);
    can_be_opened().map_err(failed)?;
    Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)
}

/// Checks that a runtime can open its file descriptors. For this check, it opens and closes five: a runtime needs two, and three more for
/// signals. In a program that uses signals, tokio opens the latter three with the first runtime, and panics if it can't.
fn can_be_opened() -> io::Result<()> {
    let (one, _other) = UnixStream::pair()?;
    let _more = (UnixStream::pair()?, one.try_clone()?);
    Ok(())
}

fn spawn(name: &str, runtime: Runtime, main: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    let failed = |e| Error::because(Kind::Invalid, "the engine's threads can't start", e);
    // `main` is spawned as a task. If `block_on` ran it directly, each wake-up would need a system call, even one from the same thread.
    let body = move || {
        let main = runtime.spawn(main);
        // The result doesn't matter, because the thread ends when the task does.
        let _ = runtime.block_on(main);
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(failed)
}
