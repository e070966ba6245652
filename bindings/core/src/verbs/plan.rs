//! Plans of very large transfers.

use std::sync::Arc;

use serde_json::Value as Json;
use tokio::sync::Mutex;

use crate::call::Work;
use crate::failure::Failure;
use crate::handles::{self, HandleTarget, RunningPlanTask};
use crate::packed::{Packed, Unpacked};
use crate::plan::{PlanAnswer, PlanTask, PlanTaskKind, kind_of, row_json};
use crate::{options, value};

impl RunningPlanTask {
    /// Stops the action. A runner gives up its part, so that another runner can take it at once.
    pub fn stop(&self) {
        self.stop.stop();
    }
}

/// Starts an action on a plan, and returns its handle. `of` is the handle of the plan, or of the client that makes or
/// opens one. The packed request has the action's name, and options by name.
///
/// # Errors
/// Fails if the request is invalid.
pub fn plan(of: u64, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let host = handles::plan_host(of)?;
    let verb = PlanTaskKind::named(from.text()?).ok_or_else(Failure::of_another_version)?;
    let options = value::of_texts(from.pairs()?, kind_of)?;
    options::check_signs(&options)?;
    let task = PlanTask::begin(&host, verb, options)?;
    let stop = task.stop().clone();
    let running = RunningPlanTask { client: host.client().clone(), task: Mutex::new(task), stop };
    Ok(handles::keep(HandleTarget::PlanTask(Arc::new(running))))
}

/// Returns a call that packs the next rows and warnings, and the end of the action once it has ended.
pub(super) fn events(task: Arc<RunningPlanTask>) -> Work {
    let client = task.client.clone();
    Work::new(&client, async move {
        let events = task.task.lock().await.next_events().await;
        let mut packed = Packed::default();
        packed.number(events.rows.len() as u64);
        for row in &events.rows {
            json(&mut packed, &row_json(row));
        }
        packed.number(events.warnings.len() as u64);
        for warning in &events.warnings {
            packed.text(warning);
        }
        packed.flag(events.ended.is_some());
        match events.ended {
            None => {}
            Some(Err(failure)) => drop(packed.flag(false).all(&failure.packed())),
            Some(Ok(PlanAnswer { json: answer, opened })) => {
                json(packed.flag(true), &answer);
                // The number 0 means that no plan was opened.
                packed.number(opened.map_or(0, |plan| handles::keep(HandleTarget::Plan(plan))));
            }
        }
        Ok(packed)
    })
}

/// Packs a value of JSON, with the number of its type in front.
fn json(to: &mut Packed, value: &Json) {
    match value {
        Json::Null => drop(to.number(0)),
        Json::Bool(flag) => drop(to.number(1).flag(*flag)),
        Json::Number(number) => match number.as_u64() {
            Some(whole) => drop(to.number(2).number(whole)),
            None => drop(to.number(3).number(number.as_f64().unwrap_or_default().to_bits())),
        },
        Json::String(text) => drop(to.number(4).text(text)),
        Json::Array(list) => {
            to.number(5).number(list.len() as u64);
            list.iter().for_each(|value| json(to, value));
        }
        Json::Object(fields) => {
            to.number(6).number(fields.len() as u64);
            for (name, value) in fields {
                json(to.text(name), value);
            }
        }
    }
}
