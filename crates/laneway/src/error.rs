//! The error of this library, for a failed item or a failed request.

mod kind;

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use laneway_store::SinkError;

pub use kind::ErrorKind;

/// An error of this library. `Display` writes one line that names the object or path and the cause, and never
/// contains a secret.
pub struct Error(Box<ErrorDetails>);

struct ErrorDetails {
    cause: Cause,
    attempts: u32,
    kept: u64,
    /// True if a checksum differs and transferring the bytes once more may help.
    is_mismatch: bool,
    /// If a list in a file named the failed item, the position of its line, as `FILE:LINE`.
    line: Option<Box<str>>,
    /// The operating system's code for the failure, if the cause is [`Cause::Own`] and the system returned one.
    system: Option<io::Error>,
}

enum Cause {
    Store(laneway_store::Error),
    Lanes(laneway_lanes::Error),
    Local { target: String, message: &'static str, source: io::Error },
    Own { kind: ErrorKind, target: String, message: String },
}

impl Error {
    /// Makes the error for bytes or checksums that differ from the expected ones.
    pub(crate) fn integrity(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Integrity, target, message)
    }

    /// Makes the error for a checksum that differs from the expected one. A bit may have flipped on the way,
    /// so transferring the bytes once more may help.
    pub(crate) fn mismatch(target: impl Into<String>, message: impl Into<String>) -> Self {
        let mut error = Self::integrity(target, message);
        error.0.is_mismatch = true;
        error
    }

    /// Adds the position (`FILE:LINE`) of the line that named the item.
    pub(crate) fn of_line(mut self, line: Option<Box<str>>) -> Self {
        self.0.line = line.or(self.0.line);
        self
    }

    /// Returns whether a checksum differs and transferring the bytes once more may help.
    pub(crate) fn is_mismatch(&self) -> bool {
        self.0.is_mismatch
    }

    /// Marks the error as one where transferring the bytes once more may help.
    pub(crate) fn for_now(mut self) -> Self {
        self.0.is_mismatch = true;
        self
    }

    /// Marks the error as one where transferring the bytes once more can't help.
    pub(crate) fn for_good(mut self) -> Self {
        self.0.is_mismatch = false;
        self
    }

    /// Makes the error for a name or a combination that Laneway refuses, because it would be unsafe or
    /// ambiguous.
    pub(crate) fn refused(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Refused, target, message)
    }

    /// Makes the error for a destination that exists and must not be replaced.
    pub(crate) fn exists(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::AlreadyExists, target, message)
    }

    /// Makes the error for a request that is invalid as a whole, because of a mistake by the caller.
    pub(crate) fn usage(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Usage, target, message)
    }

    /// Makes the error for a source that can't be sent, because it changed, vanished, or isn't a file.
    pub(crate) fn source(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Source, target, message)
    }

    /// Adds the operating system's code. `Display` doesn't show it, but [`source`](std::error::Error::source)
    /// returns it.
    pub(crate) fn with_system_code(mut self, code: i32) -> Self {
        self.0.system = Some(io::Error::from_raw_os_error(code));
        self
    }

    pub(crate) fn invalid_range(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::InvalidRange, target, message)
    }

    /// Makes the error for a move whose copy can't be verified by a checksum. The source stays.
    pub(crate) fn unverified(target: impl Into<String>) -> Self {
        let message = "copied, but the store reports no checksum that Laneway can compute, so only the size was compared; the \
                       source is kept: remove it yourself, or move with --allow-unverified";
        Self::own(ErrorKind::Integrity, target, message)
    }

    /// Makes the error for a move whose source was replaced after the copy. The new source stays.
    pub(crate) fn replaced(target: impl Into<String>) -> Self {
        Self::source(target, "copied, but the source was replaced meanwhile; the new version is kept")
    }

    /// Makes the error for an object, bucket or path that doesn't exist.
    pub(crate) fn not_found(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::NotFound, target, message)
    }

    /// Makes the error for a listing that contradicts itself, so that the bucket's content remains unknown.
    pub(crate) fn disorder(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Server, target, message)
    }

    /// Makes the error for a job that was cancelled before the item was done.
    pub(crate) fn cancelled(target: impl Into<String>) -> Self {
        Self::own(ErrorKind::Cancelled, target, "cancelled")
    }

    /// Makes the error for a call that began before a `fork`. This process is the child and can't continue
    /// the call.
    pub(crate) fn forked(target: impl Into<String>) -> Self {
        Self::own(
            ErrorKind::Cancelled,
            target,
            "this operation began in the parent process before a fork, and can't continue in the child process",
        )
    }

    /// Makes the error for a call that took longer than its deadline.
    pub(crate) fn timed_out(target: impl Into<String>, deadline: Duration) -> Self {
        Self::own(
            ErrorKind::Timeout,
            target,
            format!("the call took longer than its deadline of {} s", deadline.as_secs_f64()),
        )
    }

    /// Makes the error for an engine that couldn't start or carry out a request, so that no store answered.
    pub(crate) fn engine(error: laneway_lanes::Error) -> Self {
        Self::from(Cause::Lanes(error))
    }

    /// Makes the error for a failed file operation. `message` says which operation failed.
    pub(crate) fn local(path: impl AsRef<Path>, message: &'static str, source: impl Into<io::Error>) -> Self {
        let target = path.as_ref().display().to_string();
        Self::from(Cause::Local { target, message, source: source.into() })
    }

    pub(crate) fn own(kind: ErrorKind, target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::from(Cause::Own { kind, target: target.into(), message: message.into() })
    }

    /// Returns the same error for another item that fails for the same reason.
    pub(crate) fn again(&self, target: impl Into<String>) -> Self {
        let again = Self::own(self.kind(), target, self.to_string());
        let system = std::error::Error::source(self).and_then(|source| source.downcast_ref::<io::Error>());
        match system.and_then(io::Error::raw_os_error) {
            Some(code) => again.with_system_code(code),
            None => again,
        }
    }

    /// Sets the largest number of attempts that one of the item's requests took.
    pub(crate) fn after(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// Sets the number of the item's bytes that are kept, so that the next run of the same request needn't
    /// transfer them.
    pub(crate) fn keeping(mut self, bytes: u64) -> Self {
        self.0.kept = bytes;
        self
    }

    /// Returns whether the same request, run again later, can continue from the bytes transferred so far.
    /// Laneway then keeps these bytes. The request can continue if the network or the store failed, if
    /// credentials or permissions were missing, or if the disk or a quota is full.
    pub(crate) fn is_passing(&self) -> bool {
        match &self.0.cause {
            Cause::Store(error) => Self::is_passing_of(error),
            Cause::Lanes(_) => true,
            Cause::Local { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Cause::Own { .. } => false,
        }
    }

    /// Does the same as [`is_passing`](Self::is_passing) for a store's error.
    pub(crate) fn is_passing_of(error: &laneway_store::Error) -> bool {
        use laneway_store::ErrorKind::{Permission, Server, Throttled, Transport, Unauthenticated};
        matches!(error.kind(), Transport | Server | Throttled | Unauthenticated | Permission)
    }

    /// Returns how many bytes of the item are kept, in a file next to its destination or in an unfinished
    /// upload in the store. If the same request runs again, it transfers only the missing bytes.
    pub fn kept_bytes(&self) -> u64 {
        self.0.kept
    }

    /// Returns the kind of the failure. A caller can use it to decide what to do.
    pub fn kind(&self) -> ErrorKind {
        match &self.0.cause {
            Cause::Store(error) => ErrorKind::of(error.kind()),
            Cause::Lanes(error) => of_engine(error),
            Cause::Local { .. } => ErrorKind::Local,
            Cause::Own { kind, .. } => *kind,
        }
    }

    /// Returns the URL or path that the error concerns, if any. A URL names an object or a bucket.
    pub fn url(&self) -> Option<&str> {
        let url = match &self.0.cause {
            Cause::Store(error) => error.target(),
            Cause::Lanes(_) => "",
            Cause::Local { target, .. } | Cause::Own { target, .. } => target,
        };
        Some(url).filter(|url| !url.is_empty())
    }

    /// Returns the HTTP status of the store's answer, if it answered.
    pub fn status(&self) -> Option<u16> {
        Some(self.as_store()?.status()?.as_u16())
    }

    /// Returns the store's own error code (`NoSuchKey`, `rateLimitExceeded`), if it gave one.
    pub fn service_code(&self) -> Option<&str> {
        self.as_store()?.code()
    }

    /// Returns whether the same call may succeed later, without any change by the caller. The same call may
    /// succeed if the network or the store failed, the store throttled, or the deadline passed. Laneway has
    /// already made its own retries. A write that failed in this way may still have taken effect.
    pub fn is_retryable(&self) -> bool {
        match &self.0.cause {
            Cause::Store(error) => error.is_retryable(),
            Cause::Lanes(error) => error.is_transient(),
            Cause::Local { .. } => false,
            Cause::Own { kind, .. } => *kind == ErrorKind::Timeout || self.0.is_mismatch,
        }
    }

    /// Returns how many attempts were made, or 0 if nothing was sent.
    pub fn attempts(&self) -> u32 {
        match &self.0.cause {
            Cause::Store(error) => error.attempts().max(self.0.attempts),
            _ => self.0.attempts,
        }
    }

    /// Returns whether the object must be restored from an archive before it can be read.
    pub fn is_archived(&self) -> bool {
        self.as_store().is_some_and(laneway_store::Error::is_archived)
    }

    /// Returns whether the requested object, bucket or path doesn't exist.
    pub fn is_not_found(&self) -> bool {
        match &self.0.cause {
            Cause::Local { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => self.kind() == ErrorKind::NotFound,
        }
    }

    pub(crate) fn is_about_bucket(&self) -> bool {
        let says_so = |error: &laneway_store::Error| {
            error.code() == Some("NoSuchBucket") || error.message().contains("bucket does not exist")
        };
        self.as_store().is_some_and(says_so)
    }

    /// Returns whether the call failed because the object exists, or isn't in the state that the call
    /// requires.
    pub fn is_precondition(&self) -> bool {
        matches!(self.kind(), ErrorKind::AlreadyExists | ErrorKind::Precondition)
    }

    /// Returns whether the store refused the write because another write of the same object was under way.
    pub(crate) fn is_conflict(&self) -> bool {
        self.as_store().is_some_and(laneway_store::Error::is_conflict)
    }

    /// Returns whether the store no longer has the multipart upload, so that the upload must start again from
    /// the beginning.
    pub(crate) fn is_upload_gone(&self) -> bool {
        self.as_store().is_some_and(laneway_store::Error::is_upload_gone)
    }

    /// Returns whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.kind() == ErrorKind::Cancelled
    }

    /// Returns whether the request as a whole was invalid, because of a mistake by the caller.
    pub fn is_usage(&self) -> bool {
        self.kind() == ErrorKind::Usage
    }

    /// Returns whether the output is a pipe that the reading program has closed.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(&self.0.cause, Cause::Local { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn as_store(&self) -> Option<&laneway_store::Error> {
        match &self.0.cause {
            Cause::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Self {
        Self(Box::new(ErrorDetails {
            cause,
            attempts: 0,
            kept: 0,
            is_mismatch: false,
            line: None,
            system: None,
        }))
    }
}

impl From<laneway_store::Error> for Error {
    /// If one of Laneway's own sinks failed, returns the sink's original error with the number of attempts. If
    /// bytes were damaged on their way from the store, returns the error of a wrong checksum. Wraps any other
    /// error.
    fn from(error: laneway_store::Error) -> Self {
        if error.kind() == laneway_store::ErrorKind::Integrity && error.is_retryable() {
            return Self::mismatch(error.target(), error.message()).after(error.attempts());
        }
        if error.kind() != laneway_store::ErrorKind::Sink {
            return Self::from(Cause::Store(error));
        }
        let (attempts, target, message) = (error.attempts(), error.target().to_owned(), error.to_string());
        match error.into_sink_error().map(|source: SinkError| source.downcast::<Self>()) {
            Some(Ok(ours)) => ours.after(attempts),
            _ => Self::own(ErrorKind::Destination, target, message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = &self.0.line {
            write!(f, "{}: ", Printable(line))?;
        }
        match &self.0.cause {
            Cause::Store(error) => error.fmt(f),
            Cause::Lanes(error) => error.fmt(f),
            Cause::Local { target, message, source } => {
                write!(f, "{}: {message}: {source}", Printable(target))
            }
            Cause::Own { target, message, .. } if target.is_empty() => f.write_str(message),
            Cause::Own { target, message, .. } => write!(f, "{}: {message}", Printable(target)),
        }?;
        match self.0.kept {
            0 => Ok(()),
            bytes => write!(f, " ({bytes} bytes are kept; run the same command to continue from there)"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.kind())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.cause {
            Cause::Store(error) => error.source(),
            Cause::Lanes(error) => error.source(),
            Cause::Local { source, .. } => Some(source),
            Cause::Own { .. } => self.0.system.as_ref().map(|system| system as _),
        }
    }
}

/// Returns the kind for an error of the engine. The engine returns such an error if a request got no usable
/// response from a store.
fn of_engine(error: &laneway_lanes::Error) -> ErrorKind {
    use laneway_lanes::Kind;
    match error.kind() {
        // If the system refuses threads or descriptors, the settings aren't the cause.
        Kind::Invalid if error.is_exhausted() => ErrorKind::Local,
        // The settings name a bad CA file or proxy.
        Kind::Invalid => ErrorKind::Usage,
        Kind::Sink => ErrorKind::Destination,
        Kind::Source => ErrorKind::Source,
        Kind::Closed => ErrorKind::Cancelled,
        _ => ErrorKind::Transport,
    }
}

/// A text that is displayed with a `?` in place of each control character. Names come from stores and
/// disks, so they may contain line breaks, or control sequences that would change the terminal.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split(char::is_control).enumerate().try_for_each(|(i, text)| {
            if i > 0 {
                f.write_str("?")?;
            }
            f.write_str(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_failure_names_path_deed_and_cause() {
        let error =
            Error::local("/d/k", "can't be created", io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(error.to_string(), "/d/k: can't be created: permission denied");
        assert_eq!((error.kind(), error.url(), error.status()), (ErrorKind::Local, Some("/d/k"), None));
        assert!(std::error::Error::source(&error).is_some_and(|cause| cause.is::<io::Error>()));
    }

    #[test]
    fn control_characters_in_names_never_reach_the_terminal() {
        assert_eq!(Error::refused("a\u{1b}[2J\nb", "x").to_string(), "a?[2J?b: x");
    }

    #[test]
    fn a_reader_that_went_away_is_told_apart() {
        assert!(Error::local("-", "write", io::Error::from(io::ErrorKind::BrokenPipe)).is_broken_pipe());
    }
}
