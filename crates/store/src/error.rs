//! Errors of verbs. There are few kinds, and a method for each decision that callers have to make.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use laneway_lanes::SinkError;

use crate::{Condition, ObjectId, Provider};

/// S3's error code if two conditional writes of one object ran at the same time.
pub(crate) const CONFLICT: &str = "ConditionalRequestConflict";

/// The error of a failed verb. `Display` writes one line, which never contains a secret, a signature, a token or a
/// URL's query.
pub struct Error(Box<ErrorFields>);

struct ErrorFields {
    kind: ErrorKind,
    operation: Operation,
    target: String,
    status: Option<StatusCode>,
    code: Option<String>,
    message: String,
    attempts: u32,
    elapsed: Duration,
    retryable: bool,
    interrupted: bool,
    unreachable: bool,
    uncertain: bool,
    lacks_size: bool,
    source: Option<SinkError>,
}

/// The kind of a failure, for callers that treat failures differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// The object, bucket or upload doesn't exist.
    NotFound,
    /// The credentials don't permit the operation.
    Permission,
    /// There are no credentials, or the store doesn't accept them.
    Unauthenticated,
    /// The object isn't in the requested state.
    Precondition,
    /// The object exists, although the condition demands that it doesn't.
    AlreadyExists,
    /// The object hasn't changed: it is still in the state that the reader has (see [`Unless`](crate::Unless)).
    NotModified,
    /// Even at the last attempt, the store asked the client to slow down.
    Throttled,
    /// Bytes or checksums differ from the expected ones.
    Integrity,
    /// The request itself is wrong, so it would fail with any state of the store.
    Invalid,
    /// The object is in an archive. It must be restored before it can be read.
    Archived,
    /// The range starts at or beyond the end of the object.
    InvalidRange,
    /// The store doesn't support this operation.
    Unsupported,
    /// The store failed: even the last attempt got a 5xx, or the answer doesn't fit the request.
    Server,
    /// There was no answer, or only part of one.
    Transport,
    /// The sink refused the bytes: see [`Error::into_sink_error`].
    Sink,
    /// The file to be sent could not be read.
    Source,
}

/// The verb that failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Making a [`Store`](crate::Store).
    Open,
    /// [`Store::head`](crate::Store::head).
    Head,
    /// [`Store::get`](crate::Store::get).
    Get,
    /// [`Store::put`](crate::Store::put).
    Put,
    /// [`Store::delete`](crate::Store::delete) and [`Store::delete_many`](crate::Store::delete_many).
    Delete,
    /// [`Store::list`](crate::Store::list) and [`Store::buckets`](crate::Store::buckets).
    List,
    /// [`Store::copy`](crate::Store::copy).
    Copy,
    /// [`Store::begin`](crate::Store::begin) and [`Store::resumable_begin`](crate::Store::resumable_begin).
    Begin,
    /// [`Store::part`](crate::Store::part), [`Store::part_copy`](crate::Store::part_copy) and
    /// [`Store::resumable_append`](crate::Store::resumable_append).
    Part,
    /// [`Store::set_meta`](crate::Store::set_meta).
    SetMeta,
    /// [`Store::restore`](crate::Store::restore).
    Restore,
    /// [`Store::compose`](crate::Store::compose).
    Compose,
    /// [`Store::tags`](crate::Store::tags).
    Tags,
    /// [`Store::access_list`](crate::Store::access_list).
    Access,
    /// [`Store::sign`](crate::Store::sign).
    Sign,
    /// [`Store::create_bucket`](crate::Store::create_bucket).
    CreateBucket,
    /// [`Store::delete_bucket`](crate::Store::delete_bucket).
    DeleteBucket,
    /// [`Store::bucket_setting`](crate::Store::bucket_setting) and
    /// [`Store::set_bucket_setting`](crate::Store::set_bucket_setting).
    BucketSettings,
    /// Opening a session of a directory bucket.
    Session,
    /// [`Store::list_parts`](crate::Store::list_parts).
    ListParts,
    /// [`Store::list_uploads`](crate::Store::list_uploads).
    ListUploads,
    /// [`Store::complete`](crate::Store::complete).
    Complete,
    /// [`Store::abort`](crate::Store::abort) and [`Store::resumable_cancel`](crate::Store::resumable_cancel).
    Abort,
}

impl Operation {
    /// Returns the verb's name in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Head => "head",
            Self::Get => "get",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Copy => "copy",
            Self::SetMeta => "set metadata",
            Self::Begin => "begin upload",
            Self::Part => "upload part",
            Self::Restore => "restore",
            Self::Compose => "compose",
            Self::Tags => "tags of",
            Self::Access => "access control list of",
            Self::Sign => "sign a URL of",
            Self::CreateBucket => "make bucket",
            Self::DeleteBucket => "remove bucket",
            Self::BucketSettings => "settings of bucket",
            Self::Session => "open session",
            Self::ListParts => "list parts",
            Self::ListUploads => "list uploads",
            Self::Complete => "complete upload",
            Self::Abort => "abort upload",
        }
    }
}

impl ErrorKind {
    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Permission => "permission denied",
            Self::Unauthenticated => "not authenticated",
            Self::Precondition => "precondition failed",
            Self::AlreadyExists => "it exists",
            Self::NotModified => "not modified",
            Self::Throttled => "throttled",
            Self::Integrity => "integrity",
            Self::Invalid => "invalid request",
            Self::Archived => "archived",
            Self::InvalidRange => "range outside the object",
            Self::Unsupported => "not supported by this store",
            Self::Server => "the store failed",
            Self::Transport => "no answer",
            Self::Sink => "destination",
            Self::Source => "source",
        }
    }
}

impl Error {
    /// Returns an error of a verb.
    pub fn new(kind: ErrorKind, operation: Operation, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorFields {
            kind,
            operation,
            target: String::new(),
            status: None,
            code: None,
            message: message.into(),
            attempts: 0,
            elapsed: Duration::ZERO,
            retryable: false,
            interrupted: false,
            unreachable: false,
            uncertain: false,
            lacks_size: false,
            source: None,
        }))
    }

    /// Sets the bucket or endpoint that the error names, as a URL.
    #[must_use]
    pub fn on(mut self, target: impl Into<String>) -> Self {
        self.0.target = target.into();
        self
    }

    /// Sets the object that the error names.
    #[must_use]
    pub fn on_object(self, provider: Provider, id: &ObjectId) -> Self {
        self.on(format!("{}://{id}", provider.scheme()))
    }

    pub(crate) fn answered(mut self, status: StatusCode, code: Option<String>) -> Self {
        self.0.status = Some(status);
        self.0.code = code;
        self
    }

    /// Sets the number of attempts, and the time that they took together.
    #[must_use]
    pub fn after(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// Sets whether the same request can succeed later.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Sets whether a body broke off after some of its bytes had reached the sink.
    #[must_use]
    pub fn interrupted(mut self, interrupted: bool) -> Self {
        self.0.interrupted = interrupted;
        self
    }

    /// Sets whether no connection could be made, or the server stayed silent for too long.
    pub(crate) fn unreachable(mut self, unreachable: bool) -> Self {
        self.0.unreachable = unreachable;
        self
    }

    /// Sets whether the server may have carried out an attempt although its answer was lost.
    #[must_use]
    pub fn uncertain(mut self, uncertain: bool) -> Self {
        self.0.uncertain = uncertain;
        self
    }

    /// Returns the same error, reported as a failure of the operation during which it occurred.
    pub(crate) fn within(mut self, operation: Operation) -> Self {
        self.0.operation = operation;
        self
    }

    /// Returns the same error with another kind and message.
    pub(crate) fn but(mut self, kind: ErrorKind, message: impl Into<String>) -> Self {
        self.0.kind = kind;
        self.0.message = message.into();
        self
    }

    /// Returns the error of a write with this `condition`. If [`Condition::Absent`] failed, the kind becomes
    /// `AlreadyExists`.
    pub fn of_write(mut self, condition: &Condition) -> Self {
        if self.0.kind == ErrorKind::Precondition && *condition == Condition::Absent {
            self.0.kind = ErrorKind::AlreadyExists;
        }
        self
    }

    /// Returns the same error with the kind `AlreadyExists`.
    pub(crate) fn existing(mut self) -> Self {
        self.0.kind = ErrorKind::AlreadyExists;
        self
    }

    pub(crate) fn lacking_size(mut self, lacks_size: bool) -> Self {
        self.0.lacks_size = lacks_size;
        self
    }

    /// Returns true if only the object's size was missing. The answer can then be used if the caller finds out the
    /// size.
    pub(crate) fn lacks_size(&self) -> bool {
        self.0.lacks_size
    }

    /// Returns true if the server may have carried out an attempt although its answer was lost.
    pub fn is_uncertain(&self) -> bool {
        self.0.uncertain
    }

    /// Sets the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl Into<SinkError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the verb that failed.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// Returns the object, bucket or endpoint, as a URL.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// Returns the HTTP status, if the store answered.
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// Returns the store's own error code (`NoSuchKey`, `rateLimitExceeded`), if it sent one.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// Returns the description of what happened.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the number of attempts; 0 if nothing was sent.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns the time from the first attempt's start to the last one's end.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// Returns true if the object, bucket or upload doesn't exist.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound
    }

    /// Returns true if the credentials don't permit the operation.
    pub fn is_permission(&self) -> bool {
        self.0.kind == ErrorKind::Permission
    }

    /// Returns true if there are no credentials, or the store doesn't accept them.
    pub fn is_unauthenticated(&self) -> bool {
        self.0.kind == ErrorKind::Unauthenticated
    }

    /// Returns true if the object isn't in the requested state, or if it exists although the condition demands that it
    /// doesn't.
    pub fn is_precondition(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Precondition | ErrorKind::AlreadyExists)
    }

    /// Returns true if the object is still in the state that the reader has.
    pub fn is_not_modified(&self) -> bool {
        self.0.kind == ErrorKind::NotModified
    }

    /// Returns true if the store asked to slow down.
    pub fn is_throttled(&self) -> bool {
        self.0.kind == ErrorKind::Throttled
    }

    /// Returns true if bytes or checksums differ.
    pub fn is_integrity(&self) -> bool {
        self.0.kind == ErrorKind::Integrity
    }

    /// Returns true if the request is wrong, or its range lies outside the object.
    pub fn is_invalid(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Invalid | ErrorKind::InvalidRange)
    }

    /// Returns true if the object is in an archive.
    pub fn is_archived(&self) -> bool {
        self.0.kind == ErrorKind::Archived
    }

    /// Returns true if there was no answer, or only part of one.
    pub fn is_transport(&self) -> bool {
        self.0.kind == ErrorKind::Transport
    }

    /// Returns true if the store doesn't support this operation.
    pub fn is_unsupported(&self) -> bool {
        self.0.kind == ErrorKind::Unsupported
    }

    /// Returns true if another write of the object ran at the same time. A multipart upload must then be started again
    /// from the beginning (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>).
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(CONFLICT)
    }

    /// Returns true if a part or a completion failed because the upload no longer exists (`NoSuchUpload`; 404 and 410
    /// of a session). The caller can start the upload again from the beginning.
    pub fn is_upload_gone(&self) -> bool {
        let is_of_upload = matches!(self.0.operation, Operation::Part | Operation::Complete);
        self.is_not_found() && is_of_upload && !self.is_missing_bucket()
    }

    /// Returns true if no connection could be made, or if the server stayed silent until the retries ended. The host's
    /// name or address, the proxy, the scheme or the certificate may be wrong, or the server may be down.
    pub fn is_unreachable(&self) -> bool {
        self.0.unreachable
    }

    /// Returns true if the store says that the bucket itself is missing (`NoSuchBucket`, `ContainerNotFound`, or a message of GCS). Any
    /// other 404 may concern only one key, even for a write. The emulator moto, for example, answers 404 to a key with
    /// a line break.
    pub fn is_missing_bucket(&self) -> bool {
        let says_so = matches!(self.code(), Some("NoSuchBucket" | "ContainerNotFound"))
            || self.0.message.contains("bucket does not exist");
        self.is_not_found() && says_so
    }

    /// Returns true if a body broke off after some of its bytes had reached the sink. The caller can continue from the
    /// sink's position.
    pub fn is_interrupted(&self) -> bool {
        self.0.interrupted
    }

    /// Returns true if the same request can succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Returns the error of the caller's sink, if the sink ended the download.
    pub fn into_sink_error(self) -> Option<SinkError> {
        if self.0.kind == ErrorKind::Sink { self.0.source } else { None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "{}", inner.operation.name())?;
        if !inner.target.is_empty() {
            write!(f, " {}", one_line(&inner.target))?;
        }
        write!(f, ": {}", inner.kind.words())?;
        let message = one_line(&inner.message);
        match (inner.status, &inner.code) {
            (Some(status), Some(code)) => write!(f, " ({} {}", status.as_u16(), one_line(code))?,
            (Some(status), None) => write!(f, " ({}", status.as_u16())?,
            (None, _) if message.is_empty() => {}
            (None, _) => write!(f, ": {message}")?,
        }
        if inner.status.is_some() {
            f.write_str(if message.is_empty() { ")" } else { ": " })?;
            if !message.is_empty() {
                write!(f, "{message})")?;
            }
        }
        match inner.attempts {
            0 => Ok(()),
            1 => write!(f, ", 1 attempt in {:.2} s", inner.elapsed.as_secs_f64()),
            n => write!(f, ", {n} attempts in {:.2} s", inner.elapsed.as_secs_f64()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// The cause of an error if no credentials are set up, or if those that are set up can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CredentialError {
    message: String,
    unusable: Option<String>,
    tried: Vec<String>,
}

impl CredentialError {
    pub(crate) fn nothing(tried: Vec<String>) -> Self {
        let message = format!(
            "no credentials are set up; Laneway looked at {}; `laneway help credentials` explains how to set them up, and --anonymous sends requests without credentials",
            tried.join(", ")
        );
        Self { message, unusable: None, tried }
    }

    pub(crate) fn unusable(source: String, cause: String) -> Self {
        Self { message: format!("{source}: {cause}"), unusable: Some(source), tried: Vec::new() }
    }

    /// Returns the name of the source that is set up but can't be used: its variable or file, as in the message.
    /// Returns `None` if no source is set up.
    pub fn unusable_source(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// Returns the places where credentials were looked for, in order, if none are set up.
    pub fn tried(&self) -> &[String] {
        &self.tried
    }
}

/// Joins lines and removes control characters. A server's message may contain them, and control characters could change
/// the user's terminal.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answered_error_is_one_line_with_status_code_and_attempts() {
        let error = Error::new(ErrorKind::NotFound, Operation::Get, "No such\n object")
            .on_object(Provider::Gcs, &ObjectId::new("b", "k"))
            .answered(StatusCode::NOT_FOUND, Some("notFound".into()))
            .after(1, Duration::from_millis(50));
        assert_eq!(
            error.to_string(),
            "get gs://b/k: not found (404 notFound: No such object), 1 attempt in 0.05 s"
        );
    }

    #[test]
    fn an_error_without_an_answer_says_what_happened() {
        let error = Error::new(ErrorKind::Transport, Operation::Put, "connection reset")
            .on("s3://b/k")
            .after(3, Duration::from_secs(2));
        assert_eq!(error.to_string(), "put s3://b/k: no answer: connection reset, 3 attempts in 2.00 s");
    }

    #[test]
    fn control_characters_of_a_server_never_reach_the_terminal() {
        let error = Error::new(ErrorKind::Server, Operation::Get, "a\u{1b}[31mb").on("s3://b/k");
        assert_eq!(error.to_string(), "get s3://b/k: the store failed: a[31mb");
    }

    #[test]
    fn only_a_refusing_sink_gives_its_error_back() {
        let error = Error::new(ErrorKind::Sink, Operation::Get, "disk full").because("disk full");
        assert_eq!(error.into_sink_error().map(|e| e.to_string()).as_deref(), Some("disk full"));
        assert!(Error::new(ErrorKind::Server, Operation::Get, "").because("x").into_sink_error().is_none());
    }
}
