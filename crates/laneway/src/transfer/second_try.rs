//! Second tries of transfers whose bytes arrived wrong.

use crate::Error;

/// Logs that a whole object is transferred again. No store says which of the object's bytes are wrong.
pub(crate) fn log_second_try(error: &Error) {
    tracing::info!(target: laneway_lanes::RETRY, attempt = 2, after_ms = 0, throttled = false, cause = %error, "trying again");
}
