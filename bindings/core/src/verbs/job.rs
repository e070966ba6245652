//! Jobs, which copy, sync or remove many files and objects.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use laneway::dialect::VersionNames;
use laneway::{Client, Error, Event, Item, Job, Outcome, Summary};
use tokio::sync::Mutex;

use crate::call::Work;
use crate::described::put_options;
use crate::failure::Failure;
use crate::handles::RunningJob;
use crate::handles::{self, HandleTarget};
use crate::options::{self, JobRequest, JobVerb};
use crate::packed::{Packed, Unpacked};
use crate::{described, value};

/// If no event comes within this time, [`next_events`] returns without one, so that the host can show the progress.
const TICK: Duration = Duration::from_millis(100);

/// The maximum number of events that are returned at a time.
const EVENTS_MAX: usize = 1024;

impl RunningJob {
    /// Cancels the job: it starts no more work, aborts the work under way, and cleans up.
    pub fn cancel(&self) {
        self.canceller.cancel();
    }

    /// Packs the progress.
    pub fn progress(&self) -> Packed {
        let (progress, mut packed) = (&self.progress, Packed::default());
        packed.number(progress.bytes_done()).number(progress.bytes_found());
        packed.number(progress.items_done()).number(progress.items_found());
        packed.flag(progress.scan_complete());
        packed
    }
}

/// Starts a job, and returns its handle. The packed request has the verb, the sources, an optional destination, options
/// by name, and the options of a write.
///
/// # Errors
/// Fails if the request is invalid.
pub fn job(client: &Client, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let verb = JobVerb::named(from.text()?).ok_or_else(Failure::of_another_version)?;
    let sources = from.list()?.into_iter().map(Into::into).collect();
    let destination = from.maybe_text()?.map(Into::into);
    let options = value::of_texts(from.pairs()?, options::kind_of)?;
    options::check_signs(&options)?;
    // The `VersionNames` have no effect here, because writes of a job have no conditions on versions.
    let put = put_options(VersionNames::ETagAndId, from)?;
    let job = options::begin(client, JobRequest { verb, sources, destination, options, put })?;
    let (progress, canceller) = (Arc::clone(job.progress()), job.canceller());
    let running = RunningJob { client: client.clone(), job: Mutex::new(job), progress, canceller };
    Ok(handles::keep(HandleTarget::Job(Arc::new(running))))
}

/// Events of a job since the last call.
#[derive(Debug, Default)]
pub struct JobEvents {
    /// Failures of items.
    pub failures: Vec<Error>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Items that a dry run would copy or remove.
    pub planned: Vec<Item>,
    /// The summary, once the job has ended.
    pub summary: Option<Summary>,
}

/// Waits briefly for events of a job, and returns those that have arrived. Returns `None` if no more events will
/// follow: after the summary, and in a forked child if the parent started the job.
pub async fn next_events(job: &mut Job) -> Option<JobEvents> {
    let mut events = JobEvents::default();
    for round in 0..EVENTS_MAX {
        let next = match round {
            0 => tokio::time::timeout(TICK, job.next()).await.ok(),
            _ => job.next().now_or_never(),
        };
        match next {
            Some(Some(Event::Item(item))) => match item.outcome {
                Outcome::Failed(error) => events.failures.push(error),
                Outcome::Planned => events.planned.push(item),
                _ => {}
            },
            Some(Some(Event::Warning(warning))) => events.warnings.push(warning.to_string()),
            Some(Some(Event::Done(done))) => {
                events.summary = Some(done);
                break;
            }
            Some(Some(_)) => {}
            Some(None) if round == 0 => return None,
            Some(None) | None => break,
        }
    }
    Some(events)
}

/// Returns a call that packs the next failures and warnings, and the summary once the job has ended.
pub(super) fn events(job: Arc<RunningJob>) -> Work {
    let client = job.client.clone();
    Work::new(&client, async move {
        let events = next_events(&mut *job.job.lock().await).await;
        let events = events.ok_or_else(|| Failure::internal("the job has ended without a summary"))?;
        let mut packed = Packed::default();
        packed.number(events.failures.len() as u64);
        for failure in &events.failures {
            packed.all(&Failure::from(failure).packed());
        }
        packed.number(events.warnings.len() as u64);
        for warning in &events.warnings {
            packed.text(warning);
        }
        packed.flag(events.summary.is_some());
        if let Some(summary) = &events.summary {
            described::summary(&mut packed, summary);
        }
        Ok(packed)
    })
}
