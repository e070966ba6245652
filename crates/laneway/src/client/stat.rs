//! Requests the metadata of objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::vec;

use futures_util::{StreamExt as _, stream};
use laneway_store::{AccessGrant, ObjectMeta};
use tokio::sync::mpsc;

use crate::engine::fork::OfProcess;
use crate::engine::settings::ClientState;
use crate::{Error, Location};

/// The number of objects whose metadata is requested concurrently.
const AT_ONCE: usize = 64;

/// The tags of an object, and the grants of its access control list. The object's metadata doesn't include
/// them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ObjectAccess {
    /// The object's tags. The map is empty on GCS, which has no tags.
    pub tags: BTreeMap<String, String>,
    /// The grants. On GCS, objects in buckets with uniform bucket-level access have none.
    pub grants: Vec<AccessGrant>,
}

/// Requests an object's tags, its grants, or both.
pub(crate) async fn access(
    engine: Arc<ClientState>,
    at: Location,
    (tags, grants): (bool, bool),
) -> Result<ObjectAccess, Error> {
    let Some((provider, id)) = at.as_object() else {
        return Err(Error::usage(at.to_string(), "only objects in a store have tags and grants"));
    };
    let store = engine.store(provider)?;
    let mut access = ObjectAccess::default();
    if tags {
        access.tags = store.tags(&id).await?;
    }
    if grants {
        access.grants = store.access_list(&id).await?;
    }
    Ok(access)
}

/// The metadata of several objects, in the order of the request. Each object has its own outcome: metadata or
/// an error. Dropping this value ends the requests.
#[derive(Debug)]
pub struct Stats {
    /// Objects whose answers the caller has not taken yet.
    places: vec::IntoIter<Location>,
    answers: OfProcess<mpsc::Receiver<Result<ObjectMeta, Error>>>,
}

impl Stats {
    /// Returns the answers, and the task that fetches them.
    pub(crate) fn new(
        engine: Arc<ClientState>,
        places: Vec<Location>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (out, stats) = Self::begun(places.clone());
        let fill = async move {
            let asked = places.into_iter().map(|at| stat(Arc::clone(&engine), at));
            let mut answers = stream::iter(asked).buffered(AT_ONCE);
            while let Some(answer) = answers.next().await {
                if out.send(answer).await.is_err() {
                    return;
                }
            }
        };
        (stats, fill)
    }

    /// Returns the error for the first object and leaves out the others. Used if the engine can't start.
    pub(crate) fn failed(mut places: Vec<Location>, error: Error) -> Self {
        places.truncate(1);
        let (out, stats) = Self::begun(places);
        // This can't fail, because the channel is empty and has room for the error.
        let _ = out.try_send(Err(error));
        stats
    }

    fn begun(places: Vec<Location>) -> (mpsc::Sender<Result<ObjectMeta, Error>>, Self) {
        let (out, answers) = mpsc::channel(AT_ONCE);
        (out, Self { places: places.into_iter(), answers: OfProcess::new(answers) })
    }

    /// Returns the next object and its metadata, or `None` at the end.
    pub async fn next(&mut self) -> Option<(Location, Result<ObjectMeta, Error>)> {
        let at = self.places.next()?;
        let answer = match self.answers.get_mut() {
            Some(answers) => Some(answers.recv().await),
            None => None,
        };
        Some(taken(at, answer))
    }

    /// Does the same as [`next`](Self::next), and blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    pub fn next_blocking(&mut self) -> Option<(Location, Result<ObjectMeta, Error>)> {
        let at = self.places.next()?;
        let answer = self.answers.get_mut().map(mpsc::Receiver::blocking_recv);
        Some(taken(at, answer))
    }
}

/// Returns the answer for an object. Returns an error if the task has died, or if this process was forked
/// after the task began.
fn taken(
    at: Location,
    answer: Option<Option<Result<ObjectMeta, Error>>>,
) -> (Location, Result<ObjectMeta, Error>) {
    let answer = match answer {
        Some(Some(answer)) => answer,
        Some(None) => Err(Error::cancelled(at.to_string())),
        None => Err(Error::forked(at.to_string())),
    };
    (at, answer)
}

/// Requests an object's metadata.
///
/// # Errors
/// The store's error; `ErrorKind::Usage` if the location names no object.
pub(crate) async fn stat(engine: Arc<ClientState>, at: Location) -> Result<ObjectMeta, Error> {
    let Some((provider, id)) = at.as_object() else {
        return Err(Error::usage(at.to_string(), "is not an object in a store"));
    };
    if id.key.is_empty() {
        return Err(Error::usage(at.to_string(), "names a bucket, not an object"));
    }
    Ok(engine.store(provider)?.head(&id, None).await?)
}

#[cfg(test)]
mod tests {
    use laneway_store::ObjectId;

    use super::*;

    #[test]
    fn a_place_that_nobody_asks_for_any_more_has_an_error() {
        let places: Vec<Location> =
            ["s3://b/k", "s3://b/l", "s3://b/m"].map(|at| at.parse().unwrap()).to_vec();
        let (out, mut lost) = Stats::begun(places.clone());
        out.try_send(Ok(ObjectMeta::new(ObjectId::new("b", "k"), 1))).unwrap();
        drop(out);
        let (at, answer) = lost.next_blocking().unwrap();
        assert!(at == places[0] && answer.unwrap().size == 1);
        for place in &places[1..] {
            let (at, answer) = lost.next_blocking().unwrap();
            let error = answer.unwrap_err();
            assert!(at == *place && error.is_cancelled(), "{at}: {error}");
            assert_eq!(error.url(), Some(at.to_string().as_str()));
        }
        assert!(lost.next_blocking().is_none());

        let mut failed = Stats::failed(places, Error::cancelled("s3://b/"));
        assert!(failed.next_blocking().unwrap().1.is_err() && failed.next_blocking().is_none());
    }
}
