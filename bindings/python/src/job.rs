//! Whole jobs: files, trees and patterns that are copied, synced or removed. `python/laneway/_jobs.py` runs them, and reports how far they are.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use laneway::dialect::VersionNames;
use laneway::{
    Canceller, Client, CopyRequest, Error, Event, Filter, Gzip, Job as Running, Location, Outcome, Progress,
    RemoveRequest, Summary, SyncRequest,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::attributes::options;
use crate::call::Call;
use crate::turns::Turns;
use crate::{error, settings};

/// How long a job is waited for until its progress is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Events that are taken at a time.
const EVENTS_MAX: usize = 1024;

/// A job under way. Dropped, it is cancelled.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct Job {
    client: Client,
    job: Turns<Running>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

/// What has happened since it was last asked.
#[derive(Default)]
struct Happened {
    failures: Vec<Error>,
    warnings: Vec<String>,
    summary: Option<Summary>,
}

#[pymethods]
impl Job {
    /// Begins to copy sources to a destination.
    #[staticmethod]
    #[pyo3(signature = (settings, sources, destination, wishes))]
    fn copy(
        py: Python<'_>,
        settings: &Bound<'_, PyDict>,
        sources: Vec<OsString>,
        destination: OsString,
        wishes: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let client = settings::client(py, settings)?;
        let mut request = CopyRequest::new(locations(py, &sources)?, location(py, &destination)?);
        let attributes = wishes.get_item("attributes")?.map(Bound::cast_into::<PyDict>).transpose()?;
        let tags = wishes.get_item("tags")?.map(Bound::cast_into::<PyDict>).transpose()?;
        // The names of versions only matter to conditions, of which there are none.
        let put = options(VersionNames::ETagAndId, attributes.as_ref(), tags.as_ref(), None)?;
        request = request.put(put);
        let mut filter = Filter::default();
        for (name, value) in wishes {
            let name: String = name.extract()?;
            request = match name.as_str() {
                "attributes" | "tags" => request,
                "gzip" => {
                    let gzip = Gzip::extensions(value.extract::<Vec<String>>()?);
                    request.gzip(gzip.map_err(|error| error::raised(py, &error))?)
                }
                "recursive" => request.recursive(value.extract()?),
                "remove_source" => request.remove_source(value.extract()?),
                "dry_run" => request.dry_run(value.extract()?),
                "no_clobber" => request.no_clobber(value.extract()?),
                "durable" => request.durable(value.extract()?),
                "keep_partial" => request.keep_partial(value.extract()?),
                "contents" => request.contents(value.extract()?),
                "follow_symlinks" => request.follow_symlinks(value.extract()?),
                "files_from" => request.files_from(location(py, &value.extract()?)?),
                _ => {
                    filter = filtered(py, filter, &name, &value)?;
                    request
                }
            };
        }
        let request = request.filter(filter);
        request.check().map_err(|error| error::raised(py, &error))?;
        let job = client.copy(request);
        Ok(Self::of(client, job))
    }

    /// Begins to make one place equal to another.
    #[staticmethod]
    fn sync(
        py: Python<'_>,
        settings: &Bound<'_, PyDict>,
        source: OsString,
        destination: OsString,
        wishes: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let client = settings::client(py, settings)?;
        let mut request = SyncRequest::new(location(py, &source)?, location(py, &destination)?);
        let mut filter = Filter::default();
        for (name, value) in wishes {
            let name: String = name.extract()?;
            request = match name.as_str() {
                "delete" => request.delete(value.extract()?),
                "allow_empty" => request.allow_empty(value.extract()?),
                "max_delete" => request.max_delete(value.extract()?),
                "dry_run" => request.dry_run(value.extract()?),
                "checksum" => request.checksum(value.extract()?),
                "existing" => request.existing(value.extract()?),
                "ignore_existing" => request.ignore_existing(value.extract()?),
                "preserve" => request.preserve(value.extract()?),
                "follow_symlinks" => request.follow_symlinks(value.extract()?),
                "ignore_symlinks" => request.ignore_symlinks(value.extract()?),
                "durable" => request.durable(value.extract()?),
                "keep_partial" => request.keep_partial(value.extract()?),
                "files_from" => request.files_from(location(py, &value.extract()?)?),
                _ => {
                    filter = filtered(py, filter, &name, &value)?;
                    request
                }
            };
        }
        let request = request.filter(filter);
        request.check().map_err(|error| error::raised(py, &error))?;
        let job = client.sync(request);
        Ok(Self::of(client, job))
    }

    /// Begins to remove objects.
    #[staticmethod]
    fn remove(
        py: Python<'_>,
        settings: &Bound<'_, PyDict>,
        targets: Vec<OsString>,
        wishes: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let client = settings::client(py, settings)?;
        let mut request = RemoveRequest::new(locations(py, &targets)?);
        let mut filter = Filter::default();
        for (name, value) in wishes {
            let name: String = name.extract()?;
            request = match name.as_str() {
                "recursive" => request.recursive(value.extract()?),
                "dry_run" => request.dry_run(value.extract()?),
                "files_from" => request.files_from(location(py, &value.extract()?)?),
                _ => {
                    filter = filtered(py, filter, &name, &value)?;
                    request
                }
            };
        }
        let request = request.filter(filter);
        request.check().map_err(|error| error::raised(py, &error))?;
        let job = client.remove(request);
        Ok(Self::of(client, job))
    }

    /// What has happened by now, or a moment later: failures, warnings, and the summary once it has ended.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.happened(py)?.wait(py)
    }

    /// As `wait`, to be awaited.
    fn wait_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.happened(py)?.awaited(py)
    }

    /// How far it is: bytes done and found, items done and found, and whether all are found.
    fn progress(&self) -> (u64, u64, u64, u64, bool) {
        let progress = &self.progress;
        let bytes = (progress.bytes_done(), progress.bytes_found());
        (bytes.0, bytes.1, progress.items_done(), progress.items_found(), progress.scan_complete())
    }

    /// Begins nothing more, gives up what is under way and cleans up; the summary comes when that is done.
    fn cancel(&self) {
        self.canceller.cancel();
    }
}

impl Job {
    fn of(client: Client, job: Running) -> Self {
        let (progress, canceller) = (Arc::clone(job.progress()), job.canceller());
        Self { client, job: Turns::new(job), progress, canceller }
    }

    fn happened(&self, py: Python<'_>) -> PyResult<Call> {
        let line = self.job.line(py)?;
        let happened = async move {
            let mut happened = Happened::default();
            let Some(mut job) = line.turn().await else { return Ok(happened) };
            let mut next = tokio::time::timeout(TICK, job.next()).await.ok();
            // What was taken out of the job is told, the last one too.
            for left in (0..EVENTS_MAX).rev() {
                let Some(event) = next.take() else { break };
                match event {
                    Some(Event::Item(item)) => {
                        if let Outcome::Failed(error) = item.outcome {
                            happened.failures.push(error);
                        }
                    }
                    Some(Event::Warning(warning)) => happened.warnings.push(warning.to_string()),
                    Some(Event::Done(summary)) => happened.summary = Some(summary),
                    // Of a parent of this process there is no more to hear.
                    None => happened.summary = happened.summary.or_else(|| Some(Summary::default())),
                    Some(_) => {}
                }
                if happened.summary.is_none() && left > 0 {
                    next = job.next().now_or_never();
                }
            }
            Ok(happened)
        };
        Ok(Call::new(&self.client, happened, |py, Happened { failures, warnings, summary }| {
            let raised = PyList::empty(py);
            for failure in &failures {
                raised.append(error::raised(py, failure).into_value(py))?;
            }
            let summary = summary.map(|summary| summarised(py, &summary)).transpose()?;
            Ok((raised, warnings, summary).into_pyobject(py)?.into_any().unbind())
        }))
    }
}

/// A filter with one more wish.
fn filtered(py: Python<'_>, filter: Filter, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Filter> {
    Ok(match name {
        "filters" => {
            let rules = value.extract::<Vec<String>>()?;
            let filter = rules.iter().try_fold(filter, |filter, rule| filter.line(rule));
            filter.map_err(|error| error::raised(py, &error))?
        }
        "min_size" => filter.min_size(value.extract()?),
        "max_size" => filter.max_size(value.extract()?),
        "newer" => filter.newer(value.extract::<SystemTime>()?),
        "older" => filter.older(value.extract::<SystemTime>()?),
        _ => {
            let message = format!("{name}: a job has no such option");
            return Err(error::own(py, laneway::ErrorKind::Usage, &message));
        }
    })
}

fn summarised<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
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
    ] {
        dict.set_item(name, value)?;
    }
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("interrupted", summary.interrupted)?;
    dict.set_item("stopped", summary.stopped)?;
    Ok(dict)
}

fn location(py: Python<'_>, text: &OsString) -> PyResult<Location> {
    Location::parse(text).map_err(|error| error::raised(py, &error))
}

fn locations(py: Python<'_>, texts: &[OsString]) -> PyResult<Vec<Location>> {
    texts.iter().map(|text| location(py, text)).collect()
}
