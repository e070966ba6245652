//! Small objects into files: one request each, all of a group at once, written in groups by the file threads.

use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use laneway_store::{Get, Got, ObjectId, Store};

use super::large::{Fetched, store_small};
use super::{Target, finish};
use crate::folder::Placing;
use crate::location::url;
use crate::running::{Begun, Moved, Running};
use crate::second_try::log_second_try;
use crate::{CopyRequest, Error, Op};

/// Fetches a group of objects of at most [`SMALL_DOWNLOAD_MAX`](crate::plan::SMALL_DOWNLOAD_MAX) bytes each, for which
/// memory is reserved. They are not pinned to the state that the listing saw: each comes whole in one answer, with
/// that answer's own checksum.
pub(crate) async fn fetch_group(
    job: Arc<Running>,
    request: Arc<CopyRequest>,
    store: Store,
    targets: Vec<Target>,
) {
    let mut gets: FuturesUnordered<_> = targets
        .into_iter()
        .map(|target| {
            let begun = target.begin(&job, &store);
            get(&store, target, begun, 1)
        })
        .collect();
    let mut writes = FuturesUnordered::new();
    // Of a move each ends with a request of its own, none of which waits for another.
    let mut endings = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(written) = writes.next(), if !writes.is_empty() => {
                for Written { target, begun, tries, result } in written {
                    match result {
                        Err(error) if error.is_mismatch() && tries == 1 => {
                            log_second_try(&error);
                            gets.push(get(&store, target, begun, 2));
                        }
                        result => endings.push(finish(&job, &request, &store, target, begun, result)),
                    }
                }
            }
            Some(()) = endings.next(), if !endings.is_empty() => {}
            Some(first) = gets.next(), if !gets.is_empty() => {
                // What else is there already goes to a file thread with it.
                let mut ready = vec![first];
                while let Some(Some(next)) = gets.next().now_or_never() {
                    ready.push(next);
                }
                writes.push(write(&job, request.placing(), &store, ready));
            }
            else => return,
        }
    }
}

struct Answer {
    target: Target,
    begun: Begun,
    /// How often it was asked for, its attempts not counted.
    tries: u32,
    got: Result<Got, laneway_store::Error>,
}

struct Written {
    target: Target,
    begun: Begun,
    tries: u32,
    result: Result<Fetched, Error>,
}

async fn get(store: &Store, target: Target, begun: Begun, tries: u32) -> Answer {
    let id: &ObjectId = &target.id;
    let expected = target.meta.as_ref().map(|meta| meta.size);
    let got = store.get(Get { expected, size: expected, ..Get::new(id) }).await;
    Answer { target, begun, tries, got }
}

async fn write(job: &Arc<Running>, placing: Placing, store: &Store, answers: Vec<Answer>) -> Vec<Written> {
    let (provider, inside) = (store.provider(), Arc::clone(job));
    let (items, permit) = (answers.len(), job.writing().await);
    let written = job.engine.files.run(move || {
        let _permit = permit;
        let mut written = Vec::with_capacity(answers.len());
        for Answer { target, begun, tries, got } in answers {
            let result = got.map_err(Error::from).and_then(|got| {
                let source = url(provider, &target.id);
                let moved = store_small(&source, &got.meta, &got.body, &target.place, placing)?;
                inside.progress.moved(moved.bytes);
                let moved = Moved { attempts: got.attempts + tries - 1, ..moved };
                Ok(Fetched { moved, version: got.meta.version })
            });
            written.push(Written { target, begun, tries, result });
        }
        written
    });
    match written.await {
        Ok(written) => written,
        Err(error) => {
            job.fail_group(Op::Download, items, error).await;
            Vec::new()
        }
    }
}
