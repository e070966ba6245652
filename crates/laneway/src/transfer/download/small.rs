//! Downloads small objects into files. Each object takes one request. All requests of a group run
//! concurrently, and file threads write the files in groups. If an answer breaks off, Laneway requests the
//! whole object again, so that an object that was replaced meanwhile is downloaded in its new version.

use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use laneway_store::{Get, Got, ObjectId, Provider, Store};

use super::verify::store_small;
use super::{DownloadItem, DownloadOutcome, finish};
use crate::job::running::{ActiveItem, JobState};
use crate::location::url;
use crate::transfer::second_try::log_second_try;
use crate::{CopyRequest, Error};

/// Downloads a group of objects of at most [`SMALL_DOWNLOAD_MAX`](crate::plan::SMALL_DOWNLOAD_MAX) bytes
/// each, for which the caller has reserved memory. An object that was replaced since the listing is
/// downloaded in its new version. This is safe, because one answer brings all its bytes and their checksum.
pub(crate) async fn fetch_group(
    job: Arc<JobState>,
    request: Arc<CopyRequest>,
    store: Store,
    items: Vec<DownloadItem>,
) {
    let mut gets: FuturesUnordered<_> = items
        .into_iter()
        .map(|item| {
            let begun = item.begin(&job, &store);
            get(&store, item, begun, 1)
        })
        .collect();
    let mut writes = FuturesUnordered::new();
    // In a move, each source is removed by its own request, and these requests run concurrently.
    let mut endings = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(written) = writes.next(), if !writes.is_empty() => {
                for WrittenFile { asked: RequestedObject { item, begun, tries }, result } in written {
                    match result {
                        Err(error) if error.is_mismatch() && tries == 1 => {
                            log_second_try(&error);
                            gets.push(get(&store, item, begun, 2));
                        }
                        result => endings.push(finish(&job, &request, &store, item, begun, result)),
                    }
                }
            }
            Some(()) = endings.next(), if !endings.is_empty() => {}
            Some(first) = gets.next(), if !gets.is_empty() => {
                // Hand all objects that have arrived to a file thread together.
                let mut ready = vec![first];
                while let Some(Some(next)) = gets.next().now_or_never() {
                    ready.push(next);
                }
                writes.push(write(&job, &request, &store, ready));
            }
            else => return,
        }
    }
}

struct RequestedObject {
    item: DownloadItem,
    begun: ActiveItem,
    /// The number of tries. A second try follows if the first brought wrong bytes. Each try may take several
    /// attempts.
    tries: u32,
}

struct ObjectAnswer {
    asked: RequestedObject,
    got: Result<Got, laneway_store::Error>,
}

struct WrittenFile {
    asked: RequestedObject,
    result: Result<DownloadOutcome, Error>,
}

async fn get(store: &Store, item: DownloadItem, mut begun: ActiveItem, tries: u32) -> ObjectAnswer {
    let id: &ObjectId = &item.id;
    let expected = item.meta.as_ref().map(|meta| meta.size);
    let got = store.get(Get { expected, size: expected, ..Get::new(id) }).await;
    begun.attempts = got.as_ref().map_or(0, |got| got.attempts + tries - 1);
    ObjectAnswer { asked: RequestedObject { item, begun, tries }, got }
}

async fn write(
    job: &Arc<JobState>,
    request: &Arc<CopyRequest>,
    store: &Store,
    answers: Vec<ObjectAnswer>,
) -> Vec<WrittenFile> {
    let (provider, inside, from) = (store.provider(), Arc::clone(job), store.clone());
    let preserve = request.preserves(store.capabilities());
    let (asked, got): (Vec<_>, Vec<_>) = answers.into_iter().map(|answer| (answer.asked, answer.got)).unzip();
    let (permit, asked) = (job.writing().await, Arc::new(asked));
    let (read, request) = (Arc::clone(&asked), Arc::clone(request));
    let written = job.engine.files.run(move || {
        let _permit = permit;
        let store_one = |(asked, got): (&RequestedObject, Result<Got, laneway_store::Error>)| {
            let (item, got) = (&asked.item, got?);
            let placing = request.placing(&inside, preserve, [Some(&got.meta), item.meta.as_deref()]);
            let moved = store_small(&from, &got.meta, &got.body, &item.place, &placing)?;
            inside.progress.moved(moved.bytes);
            Ok(DownloadOutcome { moved, version: got.meta.version })
        };
        read.iter().zip(got).map(store_one).collect::<Vec<_>>()
    });
    let written = written.await;
    // The file thread has dropped its reference to the objects, even if it failed, so this reference is the
    // only one.
    let asked = Arc::into_inner(asked).unwrap_or_default();
    let results = written.unwrap_or_else(|error| for_each(provider, &asked, &error));
    asked.into_iter().zip(results).map(|(asked, result)| WrittenFile { asked, result }).collect()
}

/// Returns the failure of a whole group as the error of each of its objects.
fn for_each<T>(provider: Provider, asked: &[RequestedObject], error: &Error) -> Vec<Result<T, Error>> {
    asked.iter().map(|asked| Err(error.again(url(provider, &asked.item.id)))).collect()
}
