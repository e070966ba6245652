//! Runs calls of the library. The engine runs a call until it is done or cancelled. Then an event reports the
//! call's end to the caller.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use laneway::Client;

use crate::events::{Events, PendingRanges};
use crate::failure::{Failure, answer};
use crate::packed::Packed;
use crate::threads::{Mutex, PoisonError};

/// The answer to a call, which is sent as an event when the last owner drops this value. The call's task is an owner,
/// and so is memory that is lent to the call. So the caller learns that the call has ended only when the call no longer
/// uses this memory.
pub struct PendingAnswer {
    events: Arc<Events>,
    call: u64,
    answer: Mutex<Option<Packed>>,
}

impl PendingAnswer {
    /// Creates the ending of a call. `call` is the number that the caller chose for the call.
    pub fn new(events: &Arc<Events>, call: u64) -> Arc<Self> {
        Arc::new(Self { events: Arc::clone(events), call, answer: Mutex::default() })
    }

    fn give(&self, outcome: Result<Packed, Failure>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer(outcome));
    }

    /// Sends a range that has arrived, before the call ends.
    pub(crate) fn range(&self, place: usize, body: &Packed) {
        self.events.range(self.call, place, body);
    }

    /// Reports that a range is complete in the memory that was lent for it. The library no longer uses that memory.
    pub(crate) fn filled(&self, place: usize, len: usize) {
        self.events.filled(self.call, place, len);
    }

    /// Registers a function that gives up single ranges of the call. Dropping the returned value removes it.
    pub(crate) fn filling(&self, give_up: impl Fn(usize) + Send + Sync + 'static) -> PendingRanges {
        self.events.filling(self.call, give_up)
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let answered = self.answer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.events.ended(self.call, &answered.unwrap_or_else(|| answer(Err(Failure::cancelled()))));
    }
}

/// A call that is ready to run: a future, and the client whose engine runs it.
pub struct Work {
    client: Client,
    future: BoxFuture<'static, Result<Packed, Failure>>,
}

impl Work {
    pub(crate) fn new(
        client: &Client,
        future: impl Future<Output = Result<Packed, Failure>> + Send + 'static,
    ) -> Self {
        Self { client: client.clone(), future: future.boxed() }
    }
}

/// Starts a call. If `work` is a failure, the call ends with it at once.
pub fn begin(ending: Arc<PendingAnswer>, work: Result<Work, Failure>) {
    let Work { client, future } = match work {
        Ok(work) => work,
        Err(failure) => return ending.give(Err(failure)),
    };
    let (events, announced, call) = (Arc::clone(&ending.events), Arc::clone(&ending), ending.call);
    let carried_out = async move {
        ending.give(future.await);
        // The call is done, so remove it from the calls that can be cancelled. If the code below hasn't inserted the
        // call yet, the lock makes this task wait for it.
        drop(ending.events.running().remove(&call));
    };
    let mut running = events.running();
    match client.spawn(carried_out) {
        Ok(spawned) => drop(running.insert(call, spawned)),
        Err(error) => announced.give(Err(error.into())),
    }
}

/// Cancels a call. An event still reports the call's end.
pub fn cancel(events: &Events, call: u64) {
    let under_way = events.running().remove(&call);
    // Drop the task only after the lock is released, because the drop may take time.
    drop(under_way);
}

/// Gives up one range of a call that fills the host's memory. After this returns, nothing is written to the range's
/// memory. No event reports the range, unless it was complete before. The call continues with the other ranges.
pub fn give_up(events: &Events, call: u64, place: usize) {
    events.give_up(call, place);
}
