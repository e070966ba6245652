//! Whole jobs, which copy, sync or remove files, trees and patterns. `python/laneway/_jobs.py` runs them, and
//! reports their progress.

use std::ffi::OsString;
use std::sync::Arc;

use laneway::{Canceller, Client, Item, Job as Running, Progress, PutOptions, Summary};
use laneway_bindings_core::described::counts;
use laneway_bindings_core::fork::Turns;
use laneway_bindings_core::options::{self, JobRequest, JobVerb};
use laneway_bindings_core::verbs::{JobEvents, next_events};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::Call;
use crate::{error, settings, turns, value};

/// A running job. Dropping it cancels it.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct Job {
    client: Client,
    job: Turns<Running>,
    progress: Arc<Progress>,
    canceller: Canceller,
}

#[pymethods]
impl Job {
    /// Begins a job, by the name of its verb.
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
        let verb =
            JobVerb::named(verb).ok_or_else(|| PyValueError::new_err("a job copies, syncs or removes"))?;
        let options = value::named(wishes, options::kind_of)?;
        let request = JobRequest { verb, sources, destination, options, put: PutOptions::default() };
        let job = options::begin(&client, request).map_err(|failure| error::failed(py, &failure))?;
        let (progress, canceller) = (Arc::clone(job.progress()), job.canceller());
        Ok(Self { client, job: Turns::new(job), progress, canceller })
    }

    /// Returns the events so far, or a moment later: failures, warnings, items that a dry run would do, and the
    /// summary once the job has ended.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.happened(py)?.wait(py)
    }

    /// As `wait`, to be awaited.
    fn wait_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.happened(py)?.awaited(py)
    }

    /// Returns its progress: bytes done and found, items done and found, and whether all are found.
    fn progress(&self) -> (u64, u64, u64, u64, bool) {
        let progress = &self.progress;
        let bytes = (progress.bytes_done(), progress.bytes_found());
        (bytes.0, bytes.1, progress.items_done(), progress.items_found(), progress.scan_complete())
    }

    fn __repr__(&self) -> String {
        let (_, _, done, found, _) = self.progress();
        format!("<laneway.Job items={done}/{found}>")
    }

    /// Begins nothing more, abandons work under way and cleans up. The summary comes when that is done.
    fn cancel(&self) {
        self.canceller.cancel();
    }
}

impl Job {
    fn happened(&self, py: Python<'_>) -> PyResult<Call> {
        let line = turns::line(&self.job, py)?;
        let happened = async move {
            let Some(mut job) = line.turn().await else { return Ok(JobEvents::default()) };
            // A child of a `fork` gets no more events of its parent's job.
            let ended = || JobEvents { summary: Some(Summary::default()), ..JobEvents::default() };
            Ok(next_events(&mut job).await.unwrap_or_else(ended))
        };
        Ok(Call::new(&self.client, happened, |py, JobEvents { failures, warnings, planned, summary }| {
            let raised = PyList::empty(py);
            for failure in &failures {
                raised.append(error::raised(py, failure).into_value(py))?;
            }
            let planned = planned.iter().map(|item| planned_item(py, item)).collect::<PyResult<Vec<_>>>()?;
            let summary = summary.map(|summary| summarised(py, &summary)).transpose()?;
            Ok((raised, warnings, planned, summary).into_pyobject(py)?.into_any().unbind())
        }))
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
