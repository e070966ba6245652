//! Failures as Java's `LanewayException` tells them.

use laneway::{Error, ErrorKind};

use crate::packed::{OtherVersion, Packed};

/// What is told of a failure.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    message: String,
    url: Option<String>,
    status: Option<u16>,
    service_code: Option<String>,
    attempts: u32,
    is_retryable: bool,
}

impl Failure {
    fn own(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (url, status, service_code) = (None, None, None);
        Self { kind, message: message.into(), url, status, service_code, attempts: 0, is_retryable: false }
    }

    /// The caller's mistake.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Usage, message)
    }

    /// A call that was given up.
    pub(crate) fn cancelled() -> Self {
        Self::own(ErrorKind::Cancelled, "cancelled")
    }

    /// What is used after it was closed.
    pub(crate) fn closed() -> Self {
        Self::usage("it is closed")
    }

    /// What Java's part says and this one doesn't know.
    pub(crate) fn of_another_version() -> Self {
        Self::internal("the native library is of another version than its classes")
    }

    /// What should never happen.
    pub(crate) fn internal(message: &str) -> Self {
        Self::own(ErrorKind::Internal, message)
    }

    pub(crate) fn packed(&self) -> Packed {
        let mut packed = Packed::default();
        packed
            .number(self.kind.code().into())
            .text(&self.message)
            .maybe_text(self.url.as_deref())
            .number(self.status.unwrap_or_default().into())
            .maybe_text(self.service_code.as_deref())
            .number(self.attempts.into())
            .flag(self.is_retryable);
        packed
    }
}

/// An answer: a flag, and behind it what was asked for or a failure.
pub(crate) fn answer(outcome: Result<Packed, Failure>) -> Packed {
    let mut packed = Packed::default();
    match outcome {
        Ok(given) => packed.flag(true).all(&given),
        Err(failure) => packed.flag(false).all(&failure.packed()),
    };
    packed
}

impl From<OtherVersion> for Failure {
    fn from(_: OtherVersion) -> Self {
        Self::of_another_version()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            // The name of a file that isn't there is one that isn't found.
            kind: if error.is_not_found() { ErrorKind::NotFound } else { error.kind() },
            message: error.to_string(),
            url: error.url().map(str::to_owned),
            status: error.status(),
            service_code: error.service_code().map(str::to_owned),
            attempts: error.attempts(),
            is_retryable: error.is_retryable(),
        }
    }
}
