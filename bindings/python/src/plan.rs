//! Plans of very large transfers. `python/laneway/plan.py` makes, runs and checks them.

use std::sync::Arc;

use laneway::Client;
use laneway_bindings_core::fork::Turns;
use laneway_bindings_core::plan::{self, OpenPlan, PlanEvents, PlanHost, PlanTask, PlanTaskKind, Stop};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::LibraryCall;
use crate::{call, error, settings, value};

/// A plan that was opened.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct OpenedPlan(Arc<OpenPlan>);

#[pymethods]
impl OpenedPlan {
    /// Starts an action on this plan.
    fn begin(&self, py: Python<'_>, verb: &str, wishes: &Bound<'_, PyDict>) -> PyResult<PlanTaskHandle> {
        PlanTaskHandle::new(py, &PlanHost::Plan(Arc::clone(&self.0)), verb, wishes)
    }
}

/// A running action on a plan. Dropping it stops the action.
#[pyclass(frozen, name = "PlanTask", module = "laneway")]
pub(crate) struct PlanTaskHandle {
    client: Client,
    task: Turns<PlanTask>,
    stop: Stop,
}

#[pymethods]
impl PlanTaskHandle {
    /// Starts an action that makes or opens a plan.
    #[staticmethod]
    fn begin(
        py: Python<'_>,
        verb: &str,
        settings: &Bound<'_, PyDict>,
        wishes: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        Self::new(py, &PlanHost::Client(Box::new(settings::built(py, settings)?)), verb, wishes)
    }

    /// Waits for events, and returns those since the last call: rows as JSON, warnings, and the progress of planning.
    /// Once the action has ended, it also returns the failure, or the result as JSON and the opened plan.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let line = call::turn(&self.task, py)?;
        let happened = async move {
            Ok(match line.turn().await {
                Some(mut task) => task.next_events().await,
                None => PlanEvents::default(),
            })
        };
        LibraryCall::new(&self.client, happened, described).wait(py)
    }

    /// Stops the action. After that, `wait` returns its end.
    fn stop(&self) {
        self.stop.stop();
    }
}

impl PlanTaskHandle {
    fn new(py: Python<'_>, host: &PlanHost, verb: &str, wishes: &Bound<'_, PyDict>) -> PyResult<Self> {
        let verb =
            PlanTaskKind::named(verb).ok_or_else(|| PyValueError::new_err("plans have no such action"))?;
        let options = value::named(wishes, plan::kind_of)?;
        let task = PlanTask::begin(host, verb, options).map_err(|e| error::failed(py, &e))?;
        let stop = task.stop().clone();
        Ok(Self { client: host.client().clone(), task: Turns::new(task), stop })
    }
}

fn described(py: Python<'_>, events: PlanEvents) -> PyResult<Py<PyAny>> {
    let PlanEvents { rows, warnings, progress, ended } = events;
    let rows: Vec<String> = rows.iter().map(|row| plan::row_json(row).to_string()).collect();
    let progress = progress.map(|now| (now.listed, now.rows, now.bytes, now.parts));
    let (failure, answer, opened) = match ended {
        None => (None, None, None),
        Some(Err(failure)) => (Some(error::failed(py, &failure).into_value(py)), None, None),
        Some(Ok(answer)) => {
            let opened = answer.opened.map(|plan| Bound::new(py, OpenedPlan(plan)));
            (None, Some(answer.json.to_string()), opened.transpose()?)
        }
    };
    Ok((rows, warnings, progress, failure, answer, opened).into_pyobject(py)?.into_any().unbind())
}
