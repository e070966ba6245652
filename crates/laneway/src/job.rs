//! A running job: the caller's handle to it, the searches that find its items, and the counts of their
//! outcomes.

pub(crate) mod existing;
pub(crate) mod lookup;
pub(crate) mod pump;
pub(crate) mod running;
pub(crate) mod search;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use laneway_store::{ErrorKind, Operation, Provider};
use tokio::sync::{mpsc, watch};

use crate::engine::fork::OfProcess;
use crate::{
    CopyRequest, Error, Event, Item, Location, Op, Outcome, Progress, RemoveRequest, RestoreRequest,
    SetMetaRequest, Summary, SyncRequest, Warning,
};

/// The maximum number of events that wait for the caller. At this number, the job pauses until the caller
/// takes one.
const EVENTS_WAITING_MAX: usize = 1024;

/// A running job: a stream of its events. The job pauses if the caller doesn't take its events. Dropping this
/// value cancels the job. In the child of a `fork`, a job of the parent yields no more events and can't be
/// cancelled.
#[derive(Debug)]
pub struct Job {
    /// `None` for a job without events.
    events: Option<OfProcess<mpsc::Receiver<Event>>>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

/// Cancels a job, or a call such as `Client::compose_until`, from any thread.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<OfProcess<watch::Sender<bool>>>);

/// The tasks' ends of the channels between a [`Job`] and its tasks.
#[derive(Debug)]
pub(crate) struct JobEnds {
    pub(crate) events: Option<mpsc::Sender<Event>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) cancel: CancelFlag,
    pub(crate) canceller: Canceller,
}

/// A flag that shows a job's tasks whether the job was cancelled.
#[derive(Clone, Debug)]
pub(crate) struct CancelFlag(watch::Receiver<bool>);

impl Job {
    pub(crate) fn new() -> (Self, JobEnds) {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let (mut job, mut ends) = Self::unheard();
        (job.events, ends.events) = (Some(OfProcess::new(events)), Some(sender));
        (job, ends)
    }

    /// Makes a job without events, for a single call. A channel for events would take 5 KB of memory.
    pub(crate) fn unheard() -> (Self, JobEnds) {
        let (cancel, cancelled) = watch::channel(false);
        let progress = Arc::new(Progress::default());
        let canceller = Canceller(Arc::new(OfProcess::new(cancel)));
        let job = Self { events: None, progress: Arc::clone(&progress), canceller: canceller.clone() };
        (job, JobEnds { events: None, progress, cancel: CancelFlag(cancelled), canceller })
    }

    /// Returns the next event, or `None` after [`Event::Done`].
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Does the same as [`next`](Self::next), and blocks the thread. Don't call it on a thread that runs
    /// async tasks.
    pub fn next_blocking(&mut self) -> Option<Event> {
        self.events.as_mut()?.get_mut()?.blocking_recv()
    }

    /// Returns the progress of the job.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Returns a handle that cancels the job. A cancelled job begins no further item, and abandons the items
    /// that are under way. The job removes temporary files and aborts unfinished uploads, unless
    /// [`CopyRequest::keep_partial`](crate::CopyRequest::keep_partial) is set. The last event is
    /// [`Event::Done`] with [`interrupted`](crate::Summary::interrupted).
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl Stream for Job {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        match self.events.as_mut().and_then(OfProcess::get_mut) {
            Some(events) => events.poll_recv(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}

/// A canceller for a call that isn't a job.
impl Default for Canceller {
    fn default() -> Self {
        Self(Arc::new(OfProcess::new(watch::Sender::new(false))))
    }
}

impl Canceller {
    /// Cancels the job and returns at once. The job's last event reports when it has ended.
    pub fn cancel(&self) {
        if let Some(cancel) = self.0.get() {
            cancel.send_replace(true);
        }
    }
}

impl JobEnds {
    /// Returns the ends of a call that only this canceller cancels. The call has no events and no [`Job`].
    pub(crate) fn of_call(canceller: &Canceller) -> Self {
        // In a child of the process that made the canceller, the call counts as cancelled.
        let cancelled = canceller.0.get().map_or_else(|| watch::channel(true).1, watch::Sender::subscribe);
        let progress = Arc::new(Progress::default());
        Self { events: None, progress, cancel: CancelFlag(cancelled), canceller: canceller.clone() }
    }

    /// Reports the error of a job that could not begin, and ends it.
    pub(crate) fn fail(self, op: Op, error: Error) {
        let Some(events) = self.events else { return };
        let item = Item { attempts: 0, ..Item::new(op, "", Outcome::Failed(error)) };
        // These can't fail, because the channel is empty and has room for both events.
        let _ = events.try_send(Event::Item(item));
        let _ = events.try_send(Event::Done(Summary { failed: 1, ..Summary::default() }));
    }
}

impl CancelFlag {
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the job is cancelled.
    pub(crate) async fn wait(&self) {
        // If the sender is gone, waiting fails. The job was then dropped, and so it counts as cancelled.
        let _ = self.0.clone().wait_for(|cancelled| *cancelled).await;
    }
}

/// The items that the warnings concern. A job reports each kind of warning once, at its end.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    archived: RemarkedItems,
    sparse: RemarkedItems,
}

#[derive(Debug, Default)]
struct RemarkedItems {
    first: Option<String>,
    count: u64,
    bytes: u64,
}

impl RemarkedItems {
    fn add(&mut self, name: &str, bytes: u64) {
        self.first.get_or_insert_with(|| name.to_owned());
        self.count += 1;
        self.bytes += bytes;
    }

    fn warning(&self, message: impl FnOnce(u64, u64) -> String) -> Option<Warning> {
        Some(Warning { target: self.first.clone()?, message: message(self.count, self.bytes) })
    }
}

impl Remarks {
    /// Records that a listed object was skipped, because it lies in an archive.
    pub(crate) fn archived(&mut self, source: &str) {
        self.archived.add(source, 0);
    }

    /// Records a sparse file whose holes have this many bytes. Laneway sends holes as zeros, so the object is
    /// larger than the disk space that the file uses.
    pub(crate) fn sparse(&mut self, path: &str, bytes: u64) {
        self.sparse.add(path, bytes);
    }

    /// Returns one warning for archived objects and one for sparse files, if there are any.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let archived = self.archived.warning(|count, _| match count {
            1 => "skipped: it is archived; restore it first".to_owned(),
            n => format!("is one of {n} archived objects, which were skipped; restore them first"),
        });
        let sparse = self.sparse.warning(|count, bytes| match count {
            1 => format!("is sparse: {bytes} bytes of it are holes, which become zeros in the object"),
            n => format!(
                "is one of {n} sparse files; their holes, {bytes} bytes in total, become zeros in the objects"
            ),
        });
        archived.into_iter().chain(sparse).collect()
    }
}

/// The buckets that every item of a job uses. An error such as a missing bucket affects all these items. The
/// first item with such an error ends the job, so that the job reports the error once instead of for each
/// item.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct CommonBuckets(Vec<(Provider, String)>);

impl CommonBuckets {
    pub(crate) fn of_copy(request: &CopyRequest) -> Self {
        let mut common = Self::of_all(&request.sources);
        if let Location::Object { provider, bucket, .. } = &request.destination {
            common.0.push((*provider, bucket.clone()));
        }
        common
    }

    pub(crate) fn of_remove(request: &RemoveRequest) -> Self {
        Self::of_all(&request.targets)
    }

    pub(crate) fn of_set_meta(request: &SetMetaRequest) -> Self {
        Self::of_all(&request.targets)
    }

    pub(crate) fn of_restore(request: &RestoreRequest) -> Self {
        Self::of_all(&request.targets)
    }

    pub(crate) fn of_sync(request: &SyncRequest) -> Self {
        let ends = [&request.source, &request.destination].map(std::slice::from_ref);
        Self(ends.into_iter().flat_map(|end| Self::of_all(end).0).collect())
    }

    /// Returns the bucket of these places if they are all in one bucket. Otherwise returns no bucket.
    fn of_all(places: &[Location]) -> Self {
        let mut buckets = places.iter().map(|place| match place {
            Location::Object { provider, bucket, .. } | Location::Version { provider, bucket, .. } => {
                Some((*provider, bucket.as_str()))
            }
            Location::Local(_) | Location::Standard => None,
        });
        let Some(Some(first)) = buckets.next() else { return Self::default() };
        match buckets.all(|bucket| bucket == Some(first)) {
            true => Self(vec![(first.0, first.1.to_owned())]),
            false => Self::default(),
        }
    }

    /// Returns whether every other item would fail for the same reason.
    pub(crate) fn is_met_by(&self, error: &Error) -> bool {
        let Some(error) = error.as_store() else { return false };
        // The error of a copy inside a store may concern the source's bucket or the destination's bucket. So
        // it concerns every item only if all items share both buckets.
        let is_about_all = match error.operation() {
            Operation::Copy => self.0.len() > 1,
            _ => bucket_of(error.target()).is_some_and(|(scheme, bucket)| {
                self.0
                    .iter()
                    .any(|(provider, common)| (provider.scheme(), common.as_str()) == (scheme, bucket))
            }),
        };
        is_about_all && is_of_the_place(error)
    }
}

/// Returns whether an error concerns the bucket, the credentials or an unreachable server, not a single
/// object.
fn is_of_the_place(error: &laneway_store::Error) -> bool {
    match error.kind() {
        ErrorKind::Unauthenticated => true,
        ErrorKind::NotFound => error.is_missing_bucket(),
        _ => error.is_unreachable(),
    }
}

fn bucket_of(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    Some((scheme, rest.split('/').next().unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_items_of_a_kind_are_one_warning() {
        let mut remarks = Remarks::default();
        assert!(remarks.warnings().is_empty());
        remarks.sparse("a", 5);
        assert_eq!(
            remarks.warnings()[0].message,
            "is sparse: 5 bytes of it are holes, which become zeros in the object"
        );
        remarks.sparse("b", 6);
        remarks.archived("s3://b/k");
        let shown: Vec<_> = remarks.warnings().iter().map(ToString::to_string).collect();
        assert!(shown[0].starts_with("s3://b/k: skipped: it is archived"), "{shown:?}");
        assert!(
            shown[1].starts_with("a: is one of 2 sparse files; their holes, 11 bytes in total"),
            "{shown:?}"
        );
    }

    fn copy(sources: &[&str], destination: &str) -> CommonBuckets {
        let sources = sources.iter().map(|source| source.parse().unwrap()).collect();
        CommonBuckets::of_copy(&CopyRequest::new(sources, destination.parse().unwrap()))
    }

    #[test]
    fn a_bucket_is_common_where_every_item_is_about_it() {
        let buckets =
            |common: CommonBuckets| common.0.into_iter().map(|(_, bucket)| bucket).collect::<Vec<_>>();
        assert_eq!(buckets(copy(&["d"], "gs://to/p/")), ["to"]);
        assert_eq!(buckets(copy(&["s3://from/a", "s3://from/b"], "d/")), ["from"]);
        assert_eq!(buckets(copy(&["s3://from/a", "s3://other/b"], "gs://to/")), ["to"]);
        assert_eq!(buckets(copy(&["s3://from/a", "f"], "gs://to/")), ["to"]);
        assert!(buckets(copy(&["s3://from/a", "gs://from/b"], "d/")).is_empty());
    }

    #[test]
    fn a_url_tells_its_bucket() {
        assert_eq!(bucket_of("gs://b/k/x"), Some(("gs", "b")));
        assert_eq!(bucket_of("s3://b"), Some(("s3", "b")));
        assert_eq!(bucket_of("b"), None);
    }

    #[test]
    fn an_error_of_this_machine_is_one_items_own() {
        let error = Error::source("f", "it changed");
        assert!(!copy(&["d"], "gs://to/p/").is_met_by(&error));
    }
}
