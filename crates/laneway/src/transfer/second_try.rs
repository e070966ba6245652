//! Second tries of transfers whose result was wrong.

use crate::Error;

/// Logs that an object is moved once more. No store says which of its bytes are wrong.
pub(crate) fn log_second_try(error: &Error) {
    tracing::info!(target: laneway_lanes::RETRY, attempt = 2, after_ms = 0, throttled = false, cause = %error, "trying again");
}
