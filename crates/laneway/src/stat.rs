//! What a store knows about objects.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use laneway_store::{ObjectId, ObjectMeta};
use tokio::sync::mpsc;

use crate::fork::OfProcess;
use crate::state::State;
use crate::{Error, Location};

/// Objects that are asked for at once.
const AT_ONCE: usize = 64;

/// What a store knows of several objects, in the order in which they were named. Dropping it ends the asking.
#[derive(Debug)]
pub struct Stats {
    answers: OfProcess<mpsc::Receiver<(Location, Result<ObjectMeta, Error>)>>,
}

impl Stats {
    /// The answers, and the task that brings them.
    pub(crate) fn new(engine: Arc<State>, places: Vec<Location>) -> (Self, impl Future<Output = ()> + Send) {
        let (out, answers) = mpsc::channel(AT_ONCE);
        let fill = async move {
            let asked = places.into_iter().map(|at| {
                let engine = Arc::clone(&engine);
                async move { (at.clone(), stat(engine, at).await) }
            });
            let mut answers = stream::iter(asked).buffered(AT_ONCE);
            while let Some(answer) = answers.next().await {
                if out.send(answer).await.is_err() {
                    return;
                }
            }
        };
        (Self { answers: OfProcess::new(answers) }, fill)
    }

    /// What is asked of an engine that can't work: the first place has the error.
    pub(crate) fn failed(places: Vec<Location>, error: Error) -> Self {
        let (out, answers) = mpsc::channel(1);
        if let Some(first) = places.into_iter().next() {
            // There is room for one.
            let _ = out.try_send((first, Err(error)));
        }
        Self { answers: OfProcess::new(answers) }
    }

    /// The next object and what is known of it; `None` at the end. Blocks the thread; not to be called on one that runs async
    /// tasks.
    pub fn next_blocking(&mut self) -> Option<(Location, Result<ObjectMeta, Error>)> {
        self.answers.get_mut()?.blocking_recv()
    }
}

/// Asks for an object's metadata.
///
/// # Errors
/// What the store says; `ErrorKind::Usage` for what names no object.
pub(crate) async fn stat(engine: Arc<State>, at: Location) -> Result<ObjectMeta, Error> {
    let Location::Object { provider, bucket, key } = &at else {
        return Err(Error::usage(at.to_string(), "names no object in a store"));
    };
    if key.is_empty() {
        return Err(Error::usage(at.to_string(), "names no object"));
    }
    Ok(engine.store(*provider)?.head(&ObjectId::new(bucket, key), None).await?)
}
