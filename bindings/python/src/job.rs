//! Jobs, which copy, sync or remove many files and objects. `python/laneway/_jobs.py` runs them, and reports their
//! progress.

use std::ffi::OsString;
use std::sync::Arc;

use laneway::{Canceller, Client, Item, Job, Progress, PutOptions, Summary};
use laneway_bindings_core::described::counts;
use laneway_bindings_core::fork::Turns;
use laneway_bindings_core::options::{self, JobRequest, JobVerb};
use laneway_bindings_core::verbs::{JobEvents, next_events};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::LibraryCall;
use crate::{call, error, settings, value};

/// A running job. Dropping it cancels the job.
#[pyclass(frozen, name = "Job", module = "laneway")]
pub(crate) struct JobHandle {
    client: Client,
    job: Turns<Job>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

#[pymethods]
impl JobHandle {
    /// Starts a job. `verb` is `copy`, `sync` or `remove`.
    #[staticmethod]
    fn begin(
        py: Python<'_>,
        verb: &str,
        settings: &Bound<'_, PyDict>,
        sources: Vec<OsString>,
        destination: Option<OsString>,
        wishes: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let client = settings::client(py, settings)?;
        let verb = JobVerb::named(verb)
            .ok_or_else(|| PyValueError::new_err("the verb of a job must be copy, sync or remove"))?;
        let options = value::named(wishes, options::kind_of)?;
        let request = JobRequest { verb, sources, destination, options, put: PutOptions::default() };
        let job = options::begin(&client, request).map_err(|failure| error::failed(py, &failure))?;
        let (progress, canceller) = (Arc::clone(job.progress()), job.canceller());
        Ok(Self { client, job: Turns::new(job), progress, canceller })
    }

    /// Waits for events of the job, and returns those since the last call: failures, warnings, and the planned items of
    /// a dry run. Once the job has ended, it also returns the summary.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.happened(py)?.wait(py)
    }

    /// The awaitable form of `wait`.
    fn wait_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.happened(py)?.awaited(py)
    }

    /// Returns the job's progress: bytes done, bytes found, items done, items found, and whether all items have been
    /// found.
    fn progress(&self) -> (u64, u64, u64, u64, bool) {
        let progress = &self.progress;
        let bytes = (progress.bytes_done(), progress.bytes_found());
        (bytes.0, bytes.1, progress.items_done(), progress.items_found(), progress.scan_complete())
    }

    fn __repr__(&self) -> String {
        let (_, _, done, found, _) = self.progress();
        format!("<laneway.Job items={done}/{found}>")
    }

    /// Cancels the job: it starts no more items, abandons those under way, and cleans up. After that, `wait` returns
    /// the summary.
    fn cancel(&self) {
        self.canceller.cancel();
    }
}

impl JobHandle {
    fn happened(&self, py: Python<'_>) -> PyResult<LibraryCall> {
        let line = call::turn(&self.job, py)?;
        let happened = async move {
            let Some(mut job) = line.turn().await else { return Ok(JobEvents::default()) };
            // In a forked child, `next_events` returns `None`, because the job runs in the parent. The child reports
            // the job as ended.
            let ended = || JobEvents { summary: Some(Summary::default()), ..JobEvents::default() };
            Ok(next_events(&mut job).await.unwrap_or_else(ended))
        };
        Ok(LibraryCall::new(
            &self.client,
            happened,
            |py, JobEvents { failures, warnings, planned, summary }| {
                let raised = PyList::empty(py);
                for failure in &failures {
                    raised.append(error::raised(py, failure).into_value(py))?;
                }
                let planned =
                    planned.iter().map(|item| planned_item(py, item)).collect::<PyResult<Vec<_>>>()?;
                let summary = summary.map(|summary| summarised(py, &summary)).transpose()?;
                Ok((raised, warnings, planned, summary).into_pyobject(py)?.into_any().unbind())
            },
        ))
    }
}

fn planned_item<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("op", item.op.name())?;
    dict.set_item("source", &item.source)?;
    dict.set_item("destination", &item.destination)?;
    dict.set_item("size", item.bytes)?;
    Ok(dict)
}

fn summarised<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in counts(summary) {
        dict.set_item(name, value)?;
    }
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("interrupted", summary.interrupted)?;
    dict.set_item("stopped", summary.stopped)?;
    Ok(dict)
}
