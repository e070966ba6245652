//! Failures of calls. Bindings turn them into exceptions or errors.

use laneway::{Error, ErrorKind};

use crate::packed::{OtherVersion, Packed};

/// A failure of the library or of a binding.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure. Callers use it to decide what to do.
    pub kind: ErrorKind,
    /// The message for people. It holds no secret.
    pub message: String,
    /// The URL of the object.
    pub url: Option<String>,
    /// The HTTP status of the store's answer.
    pub status: Option<u16>,
    /// The store's own error code.
    pub service_code: Option<String>,
    /// The number of attempts that were made.
    pub attempts: u32,
    /// True if the same call may succeed later.
    pub is_retryable: bool,
    /// The operating system's code, if it caused the failure.
    pub system_code: Option<i32>,
}

impl Failure {
    /// Returns a failure that a binding itself detects.
    pub fn own(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let (url, status, service_code, system_code) = (None, None, None, None);
        Self { kind, message, url, status, service_code, attempts: 0, is_retryable: false, system_code }
    }

    /// Returns a failure for a mistake of the caller.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Usage, message)
    }

    /// Returns the failure that ends a cancelled call.
    pub(crate) fn cancelled() -> Self {
        Self::own(ErrorKind::Cancelled, "cancelled")
    }

    /// Returns a failure for the use of a closed object.
    pub(crate) fn closed() -> Self {
        Self::usage("this object is closed")
    }

    /// Returns the failure for arguments that this library doesn't understand. The host's package and this native
    /// library then have different versions.
    pub(crate) fn of_another_version() -> Self {
        Self::internal("the native library and the package that uses it have different versions")
    }

    /// Returns a failure that only a bug in Laneway can cause.
    pub(crate) fn internal(message: &str) -> Self {
        Self::own(ErrorKind::Internal, message)
    }

    /// Packs the failure.
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

/// Packs an answer: a flag that is true for success, and then the result or the failure.
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
            // A missing local file also counts as not found.
            kind: if error.is_not_found() { ErrorKind::NotFound } else { error.kind() },
            message: error.to_string(),
            url: error.url().map(str::to_owned),
            status: error.status(),
            service_code: error.service_code().map(str::to_owned),
            attempts: error.attempts(),
            is_retryable: error.is_retryable(),
            system_code: system_code(error),
        }
    }
}

fn system_code(error: &Error) -> Option<i32> {
    let first = std::error::Error::source(error);
    std::iter::successors(first, |error| error.source())
        .find_map(|error| error.downcast_ref::<std::io::Error>()?.raw_os_error())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}
