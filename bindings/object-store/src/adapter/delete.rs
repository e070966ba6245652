//! Deletes many objects.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use laneway::{Bucket, DeleteMany};

use super::errors::error;
use super::object_store::path::Path;
use super::object_store::{Error, Result};

/// The errors that the caller's stream of locations yielded, each with the number of locations before it.
type LocationErrors = Arc<Mutex<VecDeque<(usize, Error)>>>;

struct DeleteStream {
    removed: DeleteMany,
    interjected: LocationErrors,
    given: usize,
    /// The next outcome, which waits until an earlier error of the caller's stream has been returned.
    held: Option<(String, std::result::Result<(), laneway::Error>)>,
}

/// Deletes the objects at these locations in full batches. The outcomes come in the order of the locations. If
/// the caller's stream yields an error, the error comes at the same position.
pub(super) fn many(
    bucket: &Bucket,
    locations: BoxStream<'static, Result<Path>>,
) -> BoxStream<'static, Result<Path>> {
    let interjected = LocationErrors::default();
    let aside = Arc::clone(&interjected);
    let mut before = 0;
    let keys = locations.filter_map(move |location| {
        let key = match location {
            Ok(location) => {
                before += 1;
                Some(location.to_string())
            }
            Err(error) => {
                aside.lock().unwrap_or_else(PoisonError::into_inner).push_back((before, error));
                None
            }
        };
        futures_util::future::ready(key)
    });
    let removing = DeleteStream { removed: bucket.delete_many(keys), interjected, given: 0, held: None };
    stream::unfold(removing, |mut removing| async move {
        let outcome = removing.next().await?;
        Some((outcome, removing))
    })
    .boxed()
}

impl DeleteStream {
    async fn next(&mut self) -> Option<Result<Path>> {
        if self.held.is_none() {
            self.held = self.removed.next().await;
        }
        let due = self.held.as_ref().map_or(usize::MAX, |_| self.given);
        if let Some(error) = self.interjected(due) {
            return Some(Err(error));
        }
        let (key, outcome) = self.held.take()?;
        self.given += 1;
        // Each key came from a `Path`, so parsing it can't fail.
        let location = Path::parse(key).map_err(Error::from);
        Some(location.and_then(|location| match outcome {
            Ok(()) => Ok(location),
            Err(failure) => Err(error(&location, failure)),
        }))
    }

    /// Takes an error that the caller's stream yielded before the location at index `number`.
    fn interjected(&self, number: usize) -> Option<Error> {
        let mut interjected = self.interjected.lock().unwrap_or_else(PoisonError::into_inner);
        interjected.front().filter(|(before, _)| *before <= number)?;
        interjected.pop_front().map(|(_, error)| error)
    }
}
