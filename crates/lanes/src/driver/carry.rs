//! One request on one connection, from its first byte to its outcome.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tokio::sync::oneshot;

use super::{Command, Reusable};
use crate::dispatch::{LaneId, WorkId};
use crate::error::{Error, Kind};
use crate::h1::H1;
use crate::h2::H2;
use crate::job::{Intake, Job};
use crate::shared::Shared;
use crate::trace::What;
use crate::{Protocol, Response, Route};

/// A request's ride on a lane.
pub(super) struct Carriage {
    pub(super) lane: LaneId,
    /// Whether it runs on a freight thread already.
    pub(super) freight: bool,
    /// The origin's count of freight bytes.
    pub(super) moved: Arc<AtomicU64>,
    pub(super) shared: Arc<Shared>,
}

/// Where the outcome goes.
struct Waiter {
    work: WorkId,
    reply: oneshot::Sender<Result<Response, Error>>,
}

impl Carriage {
    pub(super) async fn over_h1(self, mut connection: Box<H1>, job: Box<Job>) {
        let Job { work, mut request, reply, submitted, .. } = *job;
        let mut waiter = Waiter { work, reply };
        let patience = request.patience.unwrap_or(self.shared.no_progress);
        let mut intake = Intake::new(request.sink.take(), submitted).counting(self.freight_bytes());
        self.shared.counts.requests.fetch_add(1, Relaxed);
        let asked = tokio::select! {
            biased;
            asked = connection.ask(&mut request, &mut intake, &self.shared) => asked,
            () = waiter.reply.closed() => Err(cancelled()),
        };
        if self.freight {
            self.moved.fetch_add(request.body.len(), Relaxed);
        }
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => return self.end(waiter, Err(e), Reusable::No),
        };
        let moves = pending.route == Route::Freight && !self.freight;
        let home = self.shared.freight(self.lane.0).clone();
        if moves {
            self.shared.tell(Command::TurnedFreight(work));
            intake = intake.counting(Some(Arc::clone(&self.moved)));
        }
        let rest = async move {
            let received = tokio::select! {
                biased;
                received = connection.receive(pending, &mut intake, patience, &self.shared) => received,
                () = waiter.reply.closed() => Err(cancelled()),
            };
            match received {
                Ok((stopped, again)) => {
                    let reusable = if again { Reusable::H1(connection) } else { Reusable::No };
                    self.end(waiter, intake.finish(Protocol::H1, stopped), reusable);
                }
                Err(e) => self.end(waiter, Err(e), Reusable::No),
            }
        };
        if moves {
            home.spawn(rest);
        } else {
            rest.await;
        }
    }

    pub(super) async fn over_h2(self, mut connection: H2, job: Box<Job>) {
        let patience = job.request.patience.unwrap_or(self.shared.no_progress);
        if connection.ready(patience).await.is_err() {
            return self.shared.tell(Command::Bounced { job, lane: self.lane });
        }
        let Job { work, mut request, reply, submitted, .. } = *job;
        let mut waiter = Waiter { work, reply };
        let mut intake = Intake::new(request.sink.take(), submitted).counting(self.freight_bytes());
        self.shared.counts.requests.fetch_add(1, Relaxed);
        let progress = connection.progress();
        // A connection that moves nothing any more is not asked again: TCP itself would take a quarter of an hour.
        let reusable = move |outcome: &Result<_, Error>| match outcome {
            Err(e) if e.kind() == Kind::Timeout && progress.idle(Instant::now()) >= patience => Reusable::No,
            _ => Reusable::H2,
        };
        let sent = request.body.len();
        let asked = tokio::select! {
            biased;
            asked = connection.ask(&mut request, &mut intake, &self.shared) => asked,
            () = waiter.reply.closed() => Err(cancelled()),
        };
        if self.freight {
            self.moved.fetch_add(sent, Relaxed);
        }
        let pending = match asked {
            Ok(pending) => pending,
            Err(e) => {
                let outcome = Err(e);
                let reusable = reusable(&outcome);
                return self.end(waiter, outcome, reusable);
            }
        };
        let moves = pending.route == Route::Freight && !self.freight;
        let home = self.shared.freight(self.lane.0).clone();
        let rest = async move {
            let received = tokio::select! {
                biased;
                received = pending.receive(&mut intake, patience, &self.shared) => received,
                () = waiter.reply.closed() => Err(cancelled()),
            };
            let outcome = received.and_then(|stopped| intake.finish(Protocol::H2, stopped));
            let reusable = reusable(&outcome);
            self.end(waiter, outcome, reusable);
        };
        if moves {
            home.spawn(rest);
        } else {
            rest.await;
        }
    }

    fn freight_bytes(&self) -> Option<Arc<AtomicU64>> {
        self.freight.then(|| Arc::clone(&self.moved))
    }

    /// Frees the lane, then hands the outcome over: whoever gets it finds the slot free already.
    fn end(&self, waiter: Waiter, outcome: Result<Response, Error>, reusable: Reusable) {
        self.shared.note(|| {
            let bytes = outcome.as_ref().map_or(0, |answer| answer.sunk + answer.body.len() as u64);
            What::Finished { work: waiter.work.0, bytes }
        });
        self.shared.tell(Command::Finished { work: waiter.work, lane: self.lane, reusable });
        let _ = waiter.reply.send(outcome);
    }
}

fn cancelled() -> Error {
    Error::new(Kind::Closed, "cancelled")
}
