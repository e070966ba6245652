//! Why a verb failed: few meanings, opaque inside, a question for each decision a caller makes.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use laneway_lanes::SinkError;

use crate::{Condition, ObjectId, Provider};

/// What S3 calls it when two conditional writes of one object meet.
pub(crate) const CONFLICT: &str = "ConditionalRequestConflict";

/// A verb that failed. `Display` is one line and never holds a secret, a signature, a token or a query.
pub struct Error(Box<Inner>);

struct Inner {
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

/// What went wrong, as far as a caller decides by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// No such object, bucket or upload.
    NotFound,
    /// The credentials don't allow it.
    Permission,
    /// There are no credentials, or the store doesn't accept them.
    Unauthenticated,
    /// The object isn't in the state that was asked for.
    Precondition,
    /// The object exists, and was to be written only where there is none.
    AlreadyExists,
    /// The object is still what the reader has: see [`Unless`](crate::Unless).
    NotModified,
    /// The store asked to slow down until the attempts ran out.
    Throttled,
    /// Bytes or checksums that differ from what they must be.
    Integrity,
    /// The request can't be right whatever the store's state.
    Invalid,
    /// The object lies in an archive, from which it has to be restored before it can be read.
    Archived,
    /// The range starts at or beyond the end of the object.
    InvalidRange,
    /// This store can't do this.
    Unsupported,
    /// The store failed: a 5xx that outlived the attempts, or an answer that makes no sense.
    Server,
    /// No answer, or not a whole one.
    Transport,
    /// The sink refused the bytes: see [`Error::into_sink_error`].
    Sink,
    /// The file that was to be sent could not be read.
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
    /// [`Store::tags`](crate::Store::tags).
    Tags,
    /// [`Store::sign`](crate::Store::sign).
    Sign,
    /// [`Store::create_bucket`](crate::Store::create_bucket).
    CreateBucket,
    /// [`Store::delete_bucket`](crate::Store::delete_bucket).
    DeleteBucket,
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
    /// Its name in errors.
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
            Self::Tags => "tags of",
            Self::Sign => "sign a URL of",
            Self::CreateBucket => "make bucket",
            Self::DeleteBucket => "remove bucket",
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
    /// Makes an error of a verb.
    pub fn new(kind: ErrorKind, operation: Operation, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
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

    /// Names the bucket or endpoint, as a URL.
    #[must_use]
    pub fn on(mut self, target: impl Into<String>) -> Self {
        self.0.target = target.into();
        self
    }

    /// Names the object.
    #[must_use]
    pub fn on_object(self, provider: Provider, id: &ObjectId) -> Self {
        self.on(format!("{}://{id}", provider.scheme()))
    }

    pub(crate) fn answered(mut self, status: StatusCode, code: Option<String>) -> Self {
        self.0.status = Some(status);
        self.0.code = code;
        self
    }

    /// Tells how many attempts were made, and how long they took together.
    #[must_use]
    pub fn after(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// Marks whether the same, later, can succeed.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Marks that a body broke after bytes of it had reached the sink.
    #[must_use]
    pub fn interrupted(mut self, interrupted: bool) -> Self {
        self.0.interrupted = interrupted;
        self
    }

    /// Marks that no connection could be had, or that nothing has come for too long.
    pub(crate) fn unreachable(mut self, unreachable: bool) -> Self {
        self.0.unreachable = unreachable;
        self
    }

    /// Marks that an attempt may have been carried out although its answer was lost.
    #[must_use]
    pub fn uncertain(mut self, uncertain: bool) -> Self {
        self.0.uncertain = uncertain;
        self
    }

    /// The same error, met while doing something else.
    pub(crate) fn within(mut self, operation: Operation) -> Self {
        self.0.operation = operation;
        self
    }

    /// The same error with another meaning.
    pub(crate) fn but(mut self, kind: ErrorKind, message: impl Into<String>) -> Self {
        self.0.kind = kind;
        self.0.message = message.into();
        self
    }

    /// The same error of a write under `condition`: where that was [`Condition::Absent`] and failed, the object exists.
    pub fn of_write(mut self, condition: &Condition) -> Self {
        if self.0.kind == ErrorKind::Precondition && *condition == Condition::Absent {
            self.0.kind = ErrorKind::AlreadyExists;
        }
        self
    }

    /// The same error, which means that what was to be made exists.
    pub(crate) fn existing(mut self) -> Self {
        self.0.kind = ErrorKind::AlreadyExists;
        self
    }

    pub(crate) fn lacking_size(mut self, lacks_size: bool) -> Self {
        self.0.lacks_size = lacks_size;
        self
    }

    /// Whether the answer could be taken if the object's size were known.
    pub(crate) fn lacks_size(&self) -> bool {
        self.0.lacks_size
    }

    /// Whether an attempt may have been carried out although its answer was lost.
    pub fn is_uncertain(&self) -> bool {
        self.0.uncertain
    }

    /// Adds the error that caused it.
    #[must_use]
    pub fn because(mut self, source: impl Into<SinkError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The verb that failed.
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// The object, bucket or endpoint, as a URL.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// The store's status, if it answered.
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// The store's own name for what is wrong (`NoSuchKey`, `rateLimitExceeded`), if it gave one.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// What happened, in words.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// How many attempts were made; 0 when nothing was sent.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// From the first attempt's start to the last one's end.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// No such object, bucket or upload.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound
    }

    /// The credentials don't allow it.
    pub fn is_permission(&self) -> bool {
        self.0.kind == ErrorKind::Permission
    }

    /// No credentials, or none that the store accepts.
    pub fn is_unauthenticated(&self) -> bool {
        self.0.kind == ErrorKind::Unauthenticated
    }

    /// The object isn't in the state that was asked for, or exists and must not.
    pub fn is_precondition(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Precondition | ErrorKind::AlreadyExists)
    }

    /// The object is still what the reader has.
    pub fn is_not_modified(&self) -> bool {
        self.0.kind == ErrorKind::NotModified
    }

    /// The store asked to slow down.
    pub fn is_throttled(&self) -> bool {
        self.0.kind == ErrorKind::Throttled
    }

    /// Bytes or checksums differ.
    pub fn is_integrity(&self) -> bool {
        self.0.kind == ErrorKind::Integrity
    }

    /// The request can't be right, or its range lies outside the object.
    pub fn is_invalid(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Invalid | ErrorKind::InvalidRange)
    }

    /// The object lies in an archive.
    pub fn is_archived(&self) -> bool {
        self.0.kind == ErrorKind::Archived
    }

    /// No answer, or not a whole one.
    pub fn is_transport(&self) -> bool {
        self.0.kind == ErrorKind::Transport
    }

    /// This store can't do this.
    pub fn is_unsupported(&self) -> bool {
        self.0.kind == ErrorKind::Unsupported
    }

    /// Another write of the object was under way. A multipart upload has to be begun anew then
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>).
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(CONFLICT)
    }

    /// The upload is gone to which a part was sent, or which was to be completed (`NoSuchUpload`; 404 and 410 of a session). It can be
    /// begun anew.
    pub fn is_upload_gone(&self) -> bool {
        let is_of_upload = matches!(self.0.operation, Operation::Part | Operation::Complete);
        self.is_not_found() && is_of_upload && !self.is_missing_bucket()
    }

    /// No connection could be had (the host's name or address, the proxy, the scheme or the certificate is wrong, or nobody is
    /// there), or nothing at all has come from there for as long as is tried again.
    pub fn is_unreachable(&self) -> bool {
        self.0.unreachable
    }

    /// The bucket itself is missing. Who writes or lists needs nothing else that could be; otherwise the store says it
    /// (`NoSuchBucket`; in words on GCS).
    pub fn is_missing_bucket(&self) -> bool {
        let says_so = self.code() == Some("NoSuchBucket") || self.0.message.contains("bucket does not exist");
        self.is_not_found()
            && (says_so || matches!(self.0.operation, Operation::Put | Operation::Begin | Operation::List))
    }

    /// A body broke after bytes of it had reached the sink: go on where the sink stands.
    pub fn is_interrupted(&self) -> bool {
        self.0.interrupted
    }

    /// Whether the same again, later, can succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// The error that the caller's sink gave, if that is what ended the download.
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

/// No credentials are set up, or those that are can't be used.
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
            "no credentials are set up; looked at {}; `laneway help credentials` explains how to set them up, and --anonymous sends none",
            tried.join(", ")
        );
        Self { message, unusable: None, tried }
    }

    pub(crate) fn unusable(source: String, cause: String) -> Self {
        Self { message: format!("{source}: {cause}"), unusable: Some(source), tried: Vec::new() }
    }

    /// The source that is set up and can't be used, as the message names it: with its variable or file. `None` where
    /// none is set up.
    pub fn unusable_source(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// Where credentials were looked for when none are set up, in order.
    pub fn tried(&self) -> &[String] {
        &self.tried
    }
}

/// Servers' messages may hold line breaks, and a terminal obeys control characters.
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
