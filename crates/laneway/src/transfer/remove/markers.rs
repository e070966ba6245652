//! Holds back S3's delete markers when a job removes all versions. A key's marker is listed before its older
//! versions, but must be removed after them. Otherwise an interrupted removal could make an older version the
//! live object again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::job::pump::CancelledJob;
use crate::listing::SourceObject;

/// The number of markers that may wait in memory. At this number, Laneway removes the markers of all keys
/// that are completely listed.
const WAITING_MAX: usize = 10_000;

/// Delete markers that wait until the older versions of their keys are removed.
pub(super) struct Markers {
    waiting: Vec<SourceObject>,
    /// The key that was listed last. The listing may still return more versions of this key.
    last: String,
    below: Arc<OlderVersions>,
    /// A channel without messages. The channel closes once every batch of versions has ended.
    under_way: (mpsc::Sender<()>, mpsc::Receiver<()>),
}

/// The progress of removing the versions that are older than the markers. The batches share it with
/// [`Markers`].
#[derive(Default)]
struct OlderVersions {
    /// For each key with a waiting marker: true if a version of the key could not be removed, so that the
    /// marker must stay.
    is_left: Mutex<HashMap<String, bool>>,
    /// The number of batches that have not ended.
    batches: AtomicUsize,
}

impl OlderVersions {
    fn is_left(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.is_left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle by which a batch of versions reports its end to the waiting markers.
pub(super) struct BatchHandle {
    below: Arc<OlderVersions>,
    _under_way: mpsc::Sender<()>,
}

impl BatchHandle {
    /// Records that the batch has ended. For each key in `left`, records that a version of it could not be
    /// removed.
    pub(super) fn end<'a>(self, left: impl Iterator<Item = &'a str>) {
        let mut is_left = self.below.is_left();
        for key in left {
            if let Some(is_left) = is_left.get_mut(key) {
                *is_left = true;
            }
        }
        drop(is_left);
        self.below.batches.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for Markers {
    fn default() -> Self {
        Self { waiting: Vec::new(), last: String::new(), below: Arc::default(), under_way: mpsc::channel(1) }
    }
}

impl Markers {
    /// Takes some listed versions, keeps the delete markers among them, and returns the others.
    pub(super) fn take(&mut self, arrived: Vec<SourceObject>) -> Vec<SourceObject> {
        if let Some(last) = arrived.last() {
            self.last.clone_from(&last.id.key);
        }
        let (markers, versions): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(SourceObject::is_delete_marker);
        if !markers.is_empty() {
            let mut is_left = self.below.is_left();
            for marker in &markers {
                is_left.entry(marker.id.key.clone()).or_default();
            }
        }
        self.waiting.extend(markers);
        versions
    }

    /// Returns the handle for a batch of versions that is about to be removed.
    pub(super) fn above(&self) -> BatchHandle {
        self.below.batches.fetch_add(1, Ordering::AcqRel);
        BatchHandle { below: Arc::clone(&self.below), _under_way: self.under_way.0.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether [`WAITING_MAX`] markers wait, so that the caller should now remove the markers of
    /// completely listed keys.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX && self.waiting.iter().any(|marker| marker.id.key != self.last)
    }

    /// Waits until the batches of versions have ended. Returns the markers that may be removed now, and those
    /// that must stay because a version stayed. Unless `is_all`, the markers of the last listed key stay,
    /// because the listing can still return more versions of this key.
    ///
    /// # Errors
    /// If the job was cancelled before all batches ended.
    pub(super) async fn settled(
        &mut self,
        is_all: bool,
    ) -> Result<(Vec<SourceObject>, Vec<SourceObject>), CancelledJob> {
        let (begun, mut ended) = std::mem::replace(&mut self.under_way, mpsc::channel(1));
        drop(begun);
        // Nothing is ever sent on this channel. The channel closes when the last batch ends.
        while ended.recv().await.is_some() {}
        if self.below.batches.load(Ordering::Acquire) > 0 {
            return Err(CancelledJob);
        }
        let last = &self.last;
        let (settled, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|marker| is_all || marker.id.key != *last);
        self.waiting = waiting;
        let mut is_left = self.below.is_left();
        let (kept, gone) =
            settled.into_iter().partition(|marker| is_left.get(&marker.id.key).copied().unwrap_or_default());
        is_left.retain(|key, _| !is_all && key == last);
        Ok((gone, kept))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use laneway_store::{ObjectId, ObjectMeta};

    use super::*;

    fn listed(key: &str, is_marker: bool) -> SourceObject {
        let mut meta = ObjectMeta::new(ObjectId::new("b", key), 1);
        meta.delete_marker = is_marker;
        let id = meta.id.clone();
        SourceObject { id, meta: Some(Box::new(meta)), name: key.to_owned(), line: None, in_tree: true }
    }

    fn keys(objects: &[SourceObject]) -> Vec<&str> {
        objects.iter().map(|object| object.id.key.as_str()).collect()
    }

    #[test]
    fn markers_go_once_the_versions_below_them_have() {
        let mut markers = Markers::default();
        let versions =
            markers.take(vec![listed("a", true), listed("a", false), listed("b", true), listed("b", false)]);
        assert_eq!(keys(&versions), ["a", "b"]);
        let batch = markers.above();
        assert!(markers.settled(false).now_or_never().is_none(), "the versions are still there");
        // The abandoned wait has dropped the channel's receiver. The batch can still end.
        batch.end(std::iter::empty());
        let (gone, kept) = markers.settled(false).now_or_never().expect("ready").expect("settled");
        assert_eq!((keys(&gone), kept.len()), (vec!["a"], 0), "more versions of b may follow");
        let (gone, _) = markers.settled(true).now_or_never().expect("ready").expect("settled");
        assert!(keys(&gone) == ["b"] && markers.is_empty());
    }

    #[test]
    fn the_marker_above_a_version_that_stays_is_kept() {
        let mut markers = Markers::default();
        markers.take(vec![listed("a", true), listed("b", true)]);
        markers.above().end(["a", "c"].into_iter());
        let (gone, kept) = markers.settled(true).now_or_never().expect("ready").expect("settled");
        assert_eq!((keys(&gone), keys(&kept)), (vec!["b"], vec!["a"]));
    }

    #[test]
    fn batches_that_were_given_up_let_no_marker_go() {
        let mut markers = Markers::default();
        markers.take(vec![listed("a", true)]);
        drop(markers.above());
        assert!(markers.settled(true).now_or_never().expect("ready").is_err());
    }
}
