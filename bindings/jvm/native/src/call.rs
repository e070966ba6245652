//! How a call is carried out: on the engine's thread, until it is done or given up, and its end goes into a queue.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use laneway::Client;

use crate::failure::{Failure, answer};
use crate::packed::Packed;
use crate::queue::Queue;
use crate::threads::{Mutex, PoisonError};

/// A call's end. It is told when the last owner drops it: the call's task is one, memory that is lent to the call the others.
pub(crate) struct Ending {
    queue: Arc<Queue>,
    call: u64,
    answer: Mutex<Option<Packed>>,
}

impl Ending {
    pub(crate) fn new(queue: &Arc<Queue>, call: u64) -> Arc<Self> {
        Arc::new(Self { queue: Arc::clone(queue), call, answer: Mutex::default() })
    }

    fn give(&self, outcome: Result<Packed, Failure>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer(outcome));
    }

    /// Tells of a range that is here before the end.
    pub(crate) fn range(&self, place: usize, body: &Packed) {
        self.queue.range(self.call, place, body);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let given = self.answer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        self.queue.ended(self.call, &given.unwrap_or_else(|| answer(Err(Failure::cancelled()))));
    }
}

/// What a verb makes of its arguments: whose engine carries it out, and how.
pub(crate) struct Work {
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
pub(crate) fn begin(ending: Arc<Ending>, work: Result<Work, Failure>) {
    let Work { client, future } = match work {
        Ok(work) => work,
        Err(failure) => return ending.give(Err(failure)),
    };
    let (queue, told, call) = (Arc::clone(&ending.queue), Arc::clone(&ending), ending.call);
    let carried_out = async move {
        ending.give(future.await);
        // It is done, and can't be given up any more. Whoever began it has noted it by then.
        drop(ending.queue.running().remove(&call));
    };
    let mut running = queue.running();
    match client.spawn(carried_out) {
        Ok(spawned) => drop(running.insert(call, spawned)),
        Err(error) => told.give(Err(error.into())),
    }
}

/// Gives a call up.
pub(crate) fn cancel(queue: &Queue, call: u64) {
    let under_way = queue.running().remove(&call);
    // Ends it, not while the others are locked.
    drop(under_way);
}
