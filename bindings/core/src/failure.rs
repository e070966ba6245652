//! Failures, as bindings make exceptions and errors of them.

use laneway::{Error, ErrorKind};

use crate::packed::{OtherVersion, Packed};

/// A failure of the library or of a binding.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind, by which callers decide.
    pub kind: ErrorKind,
    /// The message for people. It holds no secret.
    pub message: String,
    /// The URL of the object.
    pub url: Option<String>,
    /// The status of the store's answer.
    pub status: Option<u16>,
    /// The store's own code.
    pub service_code: Option<String>,
    /// The number of attempts that were made.
    pub attempts: u32,
    /// Set where the same call may succeed later.
    pub is_retryable: bool,
}

impl Failure {
    /// A failure of a binding's own.
    pub fn own(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (url, status, service_code) = (None, None, None);
        Self { kind, message: message.into(), url, status, service_code, attempts: 0, is_retryable: false }
    }

    /// A mistake of the caller's.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Usage, message)
    }

    /// The end of a call that was cancelled.
    pub(crate) fn cancelled() -> Self {
        Self::own(ErrorKind::Cancelled, "cancelled")
    }

    /// The use of something that was closed.
    pub(crate) fn closed() -> Self {
        Self::usage("it is closed")
    }

    /// A request of the host's part that this library doesn't know.
    pub(crate) fn of_another_version() -> Self {
        Self::internal("the native library is of another version than the package that uses it")
    }

    /// A failure that should never happen.
    pub(crate) fn internal(message: &str) -> Self {
        Self::own(ErrorKind::Internal, message)
    }

    /// Packs it.
    pub fn packed(&self) -> Packed {
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

/// Packs an answer: a flag, and behind it the result or the failure.
pub fn answer(outcome: Result<Packed, Failure>) -> Packed {
    let mut packed = Packed::default();
    match outcome {
        Ok(result) => packed.flag(true).all(&result),
        Err(failure) => packed.flag(false).all(&failure.packed()),
    };
    packed
}

impl From<OtherVersion> for Failure {
    fn from(_: OtherVersion) -> Self {
        Self::of_another_version()
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            // The name of a file that isn't there is not found either.
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}
