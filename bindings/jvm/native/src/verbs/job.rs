//! Whole jobs: files, trees and patterns that are copied, synced or removed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use laneway::dialect::VersionNames;
use laneway::{Client, CopyRequest, Event, Filter, Location, Outcome, RemoveRequest, Summary, SyncRequest};
use tokio::sync::Mutex;

use crate::call::Work;
use crate::failure::Failure;
use crate::handles::{self, Object};
use crate::opened::UnderWay;
use crate::options;
use crate::packed::{Packed, Unpacked};

/// How long a job is waited for until its progress is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Events that are taken at a time.
const EVENTS_MAX: usize = 1024;

impl UnderWay {
    /// Begins nothing more, gives up what is under way and cleans up.
    pub(crate) fn cancel(&self) {
        self.canceller.cancel();
    }

    /// How far it is.
    pub(crate) fn progress(&self) -> Packed {
        let (progress, mut packed) = (&self.progress, Packed::default());
        packed.number(progress.bytes_done()).number(progress.bytes_found());
        packed.number(progress.items_done()).number(progress.items_found());
        packed.flag(progress.scan_complete());
        packed
    }
}

/// A job that begins, by its number.
///
/// # Errors
/// For what can't be meant.
pub(crate) fn job(client: &Client, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let verb = from.text()?;
    let sources: Vec<Location> = from.list()?.into_iter().map(str::parse).collect::<Result<_, _>>()?;
    let destination = from.maybe_text()?.map(str::parse::<Location>).transpose()?;
    let wishes = from.texts()?;
    let mut filter = from.list()?.into_iter().try_fold(Filter::default(), Filter::line)?;
    // The names of versions only matter to conditions, of which a job's objects have none.
    let put = options::put(VersionNames::ETagAndId, from)?;
    let no_option = |name: &str| Failure::usage(format!("{name}: a {verb} has no such option"));
    let number = |name: &str, value: &str| value.parse::<u64>().map_err(|_| no_option(name));
    let mut plain = Vec::new();
    for (name, value) in wishes {
        filter = match name {
            "min_size" => filter.min_size(number(name, value)?),
            "max_size" => filter.max_size(number(name, value)?),
            _ => {
                plain.push((name, value));
                filter
            }
        };
    }
    let job = match (verb, destination, sources.as_slice()) {
        ("copy", Some(destination), _) => {
            let mut request = CopyRequest::new(sources, destination).put(put).filter(filter);
            for (name, _) in plain {
                request = match name {
                    "recursive" => request.recursive(true),
                    "remove_source" => request.remove_source(true),
                    "dry_run" => request.dry_run(true),
                    "no_clobber" => request.no_clobber(true),
                    "contents" => request.contents(true),
                    "durable" => request.durable(true),
                    "keep_partial" => request.keep_partial(true),
                    "preserve" => request.preserve(true),
                    "follow_symlinks" => request.follow_symlinks(true),
                    _ => return Err(no_option(name)),
                };
            }
            request.check()?;
            client.copy(request)
        }
        ("sync", Some(destination), [source]) => {
            let mut request = SyncRequest::new(source.clone(), destination).put(put).filter(filter);
            for (name, value) in plain {
                request = match name {
                    "delete" => request.delete(true),
                    "allow_empty" => request.allow_empty(true),
                    "max_delete" => request.max_delete(number(name, value)?),
                    "dry_run" => request.dry_run(true),
                    "checksum" => request.checksum(true),
                    "existing" => request.existing(true),
                    "ignore_existing" => request.ignore_existing(true),
                    "durable" => request.durable(true),
                    "keep_partial" => request.keep_partial(true),
                    "preserve" => request.preserve(true),
                    "follow_symlinks" => request.follow_symlinks(true),
                    _ => return Err(no_option(name)),
                };
            }
            request.check()?;
            client.sync(request)
        }
        ("remove", None, _) => {
            let mut request = RemoveRequest::new(sources).filter(filter);
            for (name, _) in plain {
                request = match name {
                    "recursive" => request.recursive(true),
                    "dry_run" => request.dry_run(true),
                    _ => return Err(no_option(name)),
                };
            }
            request.check()?;
            client.remove(request)
        }
        _ => return Err(Failure::of_another_version()),
    };
    let (progress, canceller) = (Arc::clone(job.progress()), job.canceller());
    let under_way = UnderWay { client: client.clone(), job: Mutex::new(job), progress, canceller };
    Ok(handles::keep(Object::Job(Arc::new(under_way))))
}

/// What has happened by now, or a moment later: failures, warnings, and the summary once it has ended.
pub(super) fn events(job: Arc<UnderWay>) -> Work {
    let client = job.client.clone();
    Work::new(&client, async move {
        let mut job = job.job.lock().await;
        let (mut failures, mut warnings) = ((0, Packed::default()), (0, Packed::default()));
        let mut summary = None;
        for round in 0..EVENTS_MAX {
            let next = match round {
                0 => tokio::time::timeout(TICK, job.next()).await.ok(),
                _ => job.next().now_or_never(),
            };
            match next {
                Some(Some(Event::Item(item))) => {
                    if let Outcome::Failed(error) = item.outcome {
                        failures.0 += 1;
                        failures.1.all(&Failure::from(error).packed());
                    }
                }
                Some(Some(Event::Warning(warning))) => {
                    warnings.0 += 1;
                    warnings.1.text(&warning.to_string());
                }
                Some(Some(Event::Done(done))) => summary = Some(done),
                Some(Some(_)) => {}
                // Its summary is every job's last event, after which nobody asks.
                Some(None) => return Err(Failure::internal("the job has ended without a summary")),
                None => break,
            }
            if summary.is_some() {
                break;
            }
        }
        let mut packed = Packed::default();
        packed.number(failures.0).all(&failures.1).number(warnings.0).all(&warnings.1);
        packed.flag(summary.is_some());
        if let Some(summary) = &summary {
            summarised(&mut packed, summary);
        }
        Ok(packed)
    })
}

fn summarised(to: &mut Packed, summary: &Summary) {
    let counts = [
        ("files", summary.files),
        ("failed", summary.failed),
        ("skipped", summary.skipped),
        ("removed", summary.removed),
        ("unchanged", summary.unchanged),
        ("asked", summary.asked),
        ("bytes", summary.bytes),
        ("network_bytes", summary.network_bytes),
        ("connections", summary.connections),
        ("handshakes", summary.handshakes),
        ("requests", summary.requests),
        ("retries", summary.retries),
        ("hedges", summary.hedges),
        ("unverified", summary.unverified),
        ("kept_bytes", summary.kept_bytes),
        ("resumed_bytes", summary.resumed_bytes),
        ("not_done", summary.not_done),
        ("milliseconds", (summary.seconds * 1000.0) as u64),
        ("interrupted", summary.interrupted.into()),
        ("stopped", summary.stopped.into()),
    ];
    to.number(counts.len() as u64);
    for (name, count) in counts {
        to.text(name).number(count);
    }
}
