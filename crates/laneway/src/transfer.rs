//! The work of jobs: downloads, uploads, copies, removals, syncs, restorations and changes of metadata.

pub(crate) mod compose;
mod composite;
pub(crate) mod copy;
pub(crate) mod download;
mod moved;
pub(crate) mod remove;
pub(crate) mod restore;
pub(crate) mod set_meta;
pub(crate) mod sync;
pub(crate) mod upload;

use crate::Error;

/// Logs that a whole object is transferred again. No store says which of the object's bytes are wrong.
pub(crate) fn log_second_try(error: &Error) {
    tracing::info!(target: laneway_lanes::RETRY, attempt = 2, after_ms = 0, throttled = false, cause = %error, "trying again");
}
