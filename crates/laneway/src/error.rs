//! The failure of an item, or of a whole request.

mod kind;

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use laneway_store::SinkError;

pub use kind::ErrorKind;

/// A failure. `Display` is one line that names the object or path and the cause, and never contains a secret.
pub struct Error(Box<Inner>);

struct Inner {
    cause: Cause,
    attempts: u32,
    kept: u64,
    /// True if a checksum differs.
    is_mismatch: bool,
    /// The line that named the failed item, as `FILE:LINE`.
    line: Option<Box<str>>,
}

enum Cause {
    Store(laneway_store::Error),
    Lanes(laneway_lanes::Error),
    Local { target: String, message: &'static str, source: io::Error },
    Own { kind: ErrorKind, target: String, message: String },
}

impl Error {
    /// Bytes or checksums differ from the expected ones.
    pub(crate) fn integrity(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Integrity, target, message)
    }

    /// A checksum differs from the expected one. A bit may have flipped on the way, so moving the bytes once
    /// more may help.
    pub(crate) fn mismatch(target: impl Into<String>, message: impl Into<String>) -> Self {
        let mut error = Self::integrity(target, message);
        error.0.is_mismatch = true;
        error
    }

    /// Adds the line of the file that named the item.
    pub(crate) fn of_line(mut self, line: Option<Box<str>>) -> Self {
        self.0.line = line.or(self.0.line);
        self
    }

    /// Returns whether a checksum differs and moving the bytes once more may help.
    pub(crate) fn is_mismatch(&self) -> bool {
        self.0.is_mismatch
    }

    /// Marks the error as one where moving the bytes once more may help.
    pub(crate) fn for_now(mut self) -> Self {
        self.0.is_mismatch = true;
        self
    }

    /// Marks the error as one where moving the bytes once more can't help.
    pub(crate) fn for_good(mut self) -> Self {
        self.0.is_mismatch = false;
        self
    }

    /// Laneway refuses a name or a combination, because it would be unsafe or ambiguous.
    pub(crate) fn refused(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Refused, target, message)
    }

    /// The destination exists and must not be replaced.
    pub(crate) fn exists(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::AlreadyExists, target, message)
    }

    /// The request as a whole makes no sense.
    pub(crate) fn usage(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Usage, target, message)
    }

    /// The source can't be sent as it is: it changed, vanished, or isn't a file.
    pub(crate) fn source(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Source, target, message)
    }

    pub(crate) fn invalid_range(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::InvalidRange, target, message)
    }

    /// The copy of a move could not be compared, so the source stays.
    pub(crate) fn unverified(target: impl Into<String>) -> Self {
        let message = "copied, but only its size could be compared, since the store tells no checksum of these bytes that Laneway can \
                       compute; the source is kept: remove it yourself, or move with --allow-unverified";
        Self::own(ErrorKind::Integrity, target, message)
    }

    /// The source of a move was replaced after it had been copied, so the source stays.
    pub(crate) fn replaced(target: impl Into<String>) -> Self {
        Self::source(target, "copied, but the source was replaced meanwhile; the new version is kept")
    }

    /// The object, bucket or path doesn't exist.
    pub(crate) fn not_found(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::NotFound, target, message)
    }

    /// A listing contradicts itself, so it can't show the store's content.
    pub(crate) fn disorder(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::own(ErrorKind::Server, target, message)
    }

    /// The job was cancelled before the item was done.
    pub(crate) fn cancelled(target: impl Into<String>) -> Self {
        Self::own(ErrorKind::Cancelled, target, "cancelled")
    }

    /// A parent of this process began the call, and this process can't continue it.
    pub(crate) fn forked(target: impl Into<String>) -> Self {
        Self::own(ErrorKind::Cancelled, target, "was begun before a fork, in the parent of this process")
    }

    /// A call took longer than its caller allows.
    pub(crate) fn timed_out(target: impl Into<String>, deadline: Duration) -> Self {
        Self::own(ErrorKind::Timeout, target, format!("not done within {} s", deadline.as_secs_f64()))
    }

    /// The engine failed before any store answered.
    pub(crate) fn engine(error: laneway_lanes::Error) -> Self {
        Self::from(Cause::Lanes(error))
    }

    /// A file operation failed. `message` says which one.
    pub(crate) fn local(path: impl AsRef<Path>, message: &'static str, source: impl Into<io::Error>) -> Self {
        let target = path.as_ref().display().to_string();
        Self::from(Cause::Local { target, message, source: source.into() })
    }

    fn own(kind: ErrorKind, target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::from(Cause::Own { kind, target: target.into(), message: message.into() })
    }

    /// Returns the same failure for another item that it affects.
    pub(crate) fn again(&self, target: impl Into<String>) -> Self {
        Self::own(self.kind(), target, self.to_string())
    }

    /// Adds the largest number of attempts that a request for the item took.
    pub(crate) fn after(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// Adds the number of the item's bytes that are kept for the next run of the same request.
    pub(crate) fn keeping(mut self, bytes: u64) -> Self {
        self.0.kept = bytes;
        self
    }

    /// Returns whether the bytes so far are good, so that the same request may continue with them later. This
    /// holds if the network or the store failed, credentials expired, or the disk is full.
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

    /// Does the same for a store's error.
    pub(crate) fn is_passing_of(error: &laneway_store::Error) -> bool {
        use laneway_store::ErrorKind::{Permission, Server, Throttled, Transport, Unauthenticated};
        matches!(error.kind(), Transport | Server | Throttled | Unauthenticated | Permission)
    }

    /// Returns how many bytes of the item are kept, beside its destination file or in the store. If the same
    /// request runs again, it moves only the missing bytes.
    pub fn kept_bytes(&self) -> u64 {
        self.0.kept
    }

    /// Returns the kind of the failure, by which a caller can decide what to do.
    pub fn kind(&self) -> ErrorKind {
        match &self.0.cause {
            Cause::Store(error) => ErrorKind::of(error.kind()),
            Cause::Lanes(error) => of_engine(error),
            Cause::Local { .. } => ErrorKind::Local,
            Cause::Own { kind, .. } => *kind,
        }
    }

    /// Returns the URL of the object or bucket, or the path, that the error concerns, if any.
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

    /// Returns whether the same call may succeed later, without any change by the caller. This holds if the
    /// network or the store failed, the store throttled, or the deadline passed. Laneway has already made its
    /// own retries. A write that failed in this way may have taken effect nevertheless.
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

    /// Returns whether the object must first be restored from an archive.
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

    /// Returns whether the object already exists, or isn't in the requested state.
    pub fn is_precondition(&self) -> bool {
        matches!(self.kind(), ErrorKind::AlreadyExists | ErrorKind::Precondition)
    }

    /// Returns whether another write of the object was under way.
    pub(crate) fn is_conflict(&self) -> bool {
        self.as_store().is_some_and(laneway_store::Error::is_conflict)
    }

    /// Returns whether the store has lost the upload, so that it must begin anew.
    pub(crate) fn is_upload_gone(&self) -> bool {
        self.as_store().is_some_and(laneway_store::Error::is_upload_gone)
    }

    /// Returns whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.kind() == ErrorKind::Cancelled
    }

    /// Returns whether the request as a whole makes no sense.
    pub fn is_usage(&self) -> bool {
        self.kind() == ErrorKind::Usage
    }

    /// Returns whether the reader of the output (a pipe) has gone away.
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
        Self(Box::new(Inner { cause, attempts: 0, kept: 0, is_mismatch: false, line: None }))
    }
}

impl From<laneway_store::Error> for Error {
    /// If the error came from one of Laneway's own sinks, returns that original error, with the number of
    /// attempts filled in. Wraps any other error.
    fn from(error: laneway_store::Error) -> Self {
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
            Cause::Own { .. } => None,
        }
    }
}

/// Returns the kind for an attempt that the engine could not carry out.
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

/// Text without control characters. Names come from stores and disks and may contain line breaks, and a
/// terminal obeys control characters.
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
