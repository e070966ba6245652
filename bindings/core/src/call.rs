//! A call of the library. The engine runs the call until it is done or cancelled. The call's end becomes an event for
//! the caller.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use laneway::Client;

use crate::events::{Events, PendingRanges};
use crate::failure::{Failure, answer};
use crate::packed::Packed;
use crate::threads::{Mutex, PoisonError};

/// The end of a call. It is announced when its last owner drops this value. The call's task is one owner, and memory
/// that is lent to the call is another.
pub struct Ending {
    events: Arc<Events>,
    call: u64,
    answer: Mutex<Option<Packed>>,
}

impl Ending {
    /// Returns the end of a call with the caller's own number.
    pub fn new(events: &Arc<Events>, call: u64) -> Arc<Self> {
        Arc::new(Self { events: Arc::clone(events), call, answer: Mutex::default() })
    }

    fn give(&self, outcome: Result<Packed, Failure>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer(outcome));
    }

    /// Announces a range that arrived before the call's end.
    pub(crate) fn range(&self, place: usize, body: &Packed) {
        self.events.range(self.call, place, body);
    }

    /// Announces that a range is complete in its lent memory. The library has already released that memory.
    pub(crate) fn filled(&self, place: usize, len: usize) {
        self.events.filled(self.call, place, len);
    }

    /// Registers the function that gives up single ranges of the call, until the returned value is dropped.
    pub(crate) fn filling(&self, give_up: impl Fn(usize) + Send + Sync + 'static) -> PendingRanges {
        self.events.filling(self.call, give_up)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let answered = self.answer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.events.ended(self.call, &answered.unwrap_or_else(|| answer(Err(Failure::cancelled()))));
    }
}

/// A verb with its arguments: a future, and the client whose engine runs it.
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

/// Begins a call.
pub fn begin(ending: Arc<Ending>, work: Result<Work, Failure>) {
    let Work { client, future } = match work {
        Ok(work) => work,
        Err(failure) => return ending.give(Err(failure)),
    };
    let (events, announced, call) = (Arc::clone(&ending.events), Arc::clone(&ending), ending.call);
    let carried_out = async move {
        ending.give(future.await);
        // The call is done and can't be cancelled any more. The lock waits until the thread that began the call has
        // registered it.
        drop(ending.events.running().remove(&call));
    };
    let mut running = events.running();
    match client.spawn(carried_out) {
        Ok(spawned) => drop(running.insert(call, spawned)),
        Err(error) => announced.give(Err(error.into())),
    }
}

/// Cancels a call. Its end is still announced.
pub fn cancel(events: &Events, call: u64) {
    let under_way = events.running().remove(&call);
    // Drop the task after the lock is released.
    drop(under_way);
}

/// Gives up one range of a call that fills the host's memory. After this returns, nothing is written to the range's
/// memory. No event announces the range unless it was filled before. The call continues with the other ranges.
pub fn give_up(events: &Events, call: u64, place: usize) {
    events.give_up(call, place);
}
