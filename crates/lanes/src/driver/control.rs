//! The handle by which the engine's tasks reach the driver, and the threads that they run on.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use super::Command;
use crate::shared::Shared;
use crate::trace::{Trace, What};

pub(crate) struct Control {
    pub(crate) commands: UnboundedSender<Command>,
    pub(crate) express: Handle,
    pub(crate) freight: Vec<Handle>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) trace: Option<Trace>,
}

impl Control {
    /// Tells the driver. After its end nobody listens, and nothing is left to be said.
    pub(crate) fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// The runtime of a freight thread; lanes are spread over them by number.
    pub(crate) fn freight(&self, number: u64) -> &Handle {
        &self.freight[number as usize % self.freight.len()]
    }

    /// Records a moment where the caller wants that; `what` is made only then.
    pub(crate) fn note(&self, what: impl FnOnce() -> What) {
        if let Some(trace) = &self.trace {
            trace.note(what());
        }
    }
}
