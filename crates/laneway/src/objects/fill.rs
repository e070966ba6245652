//! Fills the caller's buffer with bytes of an object, directly from the connections and without another copy
//! in memory.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use laneway_store::{ObjectMeta, Route};

use crate::content::range_writer::{ObjectPin, Output, RangeWriter};
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::plan::slices::SLICE_MAX;
use crate::{Bucket, Error, Progress};

/// The maximum number of concurrent requests for one buffer. Some of them may wait, because the dispatcher
/// decides how many it sends.
const AT_ONCE: usize = 32;

/// A buffer that several requests write to, each to its own range. Once the buffer is taken out, no request
/// can write to it any more.
type SharedBuffer<B> = Arc<Mutex<Option<B>>>;

/// The range of a buffer that one request fills.
struct BufferSlice<B> {
    buffer: SharedBuffer<B>,
    /// The offset in the object of the buffer's first byte.
    start: u64,
    /// The offset in the object at which this request's range ends.
    end: u64,
}

impl<B: AsMut<[u8]> + Send + 'static> Output for BufferSlice<B> {
    fn route(&self, at: u64) -> Route {
        if self.end - at <= SMALL_DOWNLOAD_MAX { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let own = (bytes.len() as u64).min(self.end - at) as usize;
        let from = (at - self.start) as usize;
        let mut buffer = lock(&self.buffer);
        let place = buffer.as_mut().and_then(|buffer| buffer.as_mut().get_mut(from..from + own));
        let Some(place) = place else { return Ok(0) };
        place.copy_from_slice(&bytes[..own]);
        Ok(own as u64)
    }
}

/// Fetches a range of an open object into the beginning of `buffer`, and returns the buffer. The buffer must
/// be at least as long as the range.
///
/// # Errors
/// The store's error; an object that was replaced. After an error, the buffer is dropped.
pub(super) async fn fill<B: AsMut<[u8]> + Send + 'static>(
    bucket: &Bucket,
    meta: &ObjectMeta,
    range: Range<u64>,
    buffer: B,
) -> Result<B, Error> {
    let (store, id) = (bucket.store()?, bucket.id(&meta.id.key)?);
    let shared: SharedBuffer<B> = Arc::new(Mutex::new(Some(buffer)));
    let writers = slices(&range).map(|own| {
        let slice = BufferSlice { buffer: Arc::clone(&shared), start: range.start, end: own.end };
        RangeWriter::pinned(own.start, ObjectPin::of(meta), slice, Arc::new(Progress::default()))
    });
    let brought = stream::iter(writers)
        .map(|writer| {
            let (store, id) = (&store, &id);
            async move { writer.bring(store, id).await }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await;
    // Take the buffer out. Otherwise a request that still runs after an error could write to it.
    let buffer = lock(&shared).take();
    brought?;
    buffer.ok_or_else(|| Error::cancelled(bucket.url_of(&meta.id.key)))
}

/// Splits a range into slices, each for one request.
fn slices(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    (range.start..end).step_by(SLICE_MAX as usize).map(move |start| start..end.min(start + SLICE_MAX))
}

fn lock<B>(buffer: &Mutex<Option<B>>) -> MutexGuard<'_, Option<B>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_buffer_was_taken_back_goes_nowhere() {
        let shared: SharedBuffer<Vec<u8>> = Arc::new(Mutex::new(Some(vec![0; 4])));
        let mut slice = BufferSlice { buffer: Arc::clone(&shared), start: 10, end: 14 };
        assert_eq!(slice.write(11, b"ab").expect("there is room"), 2);
        assert_eq!(slice.write(13, b"cde").expect("there is room"), 1, "the rest lies behind the part's end");
        let taken = lock(&shared).take();
        assert_eq!(taken.as_deref(), Some(b"\0abc".as_slice()));
        assert_eq!(slice.write(10, b"x").expect("it says so"), 0);
    }

    #[test]
    fn a_long_range_is_cut() {
        let cut: Vec<_> = slices(&(5..SLICE_MAX + 6)).collect();
        assert_eq!(cut, [5..SLICE_MAX + 5, SLICE_MAX + 5..SLICE_MAX + 6]);
        assert_eq!(slices(&(7..7)).count(), 0);
    }
}
