//! The errors of an attempt.

use std::{fmt, io};

/// The cause of an error.
type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// The reason why an attempt ended without a complete answer. A complete answer with an error status isn't an error here.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    source: Option<ErrorSource>,
    unsent: bool,
    held: bool,
    stale: bool,
    is_last: bool,
}

/// The kind of failure. Callers use it to decide what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The host name did not resolve.
    Resolve,
    /// No address accepted a connection, or the proxy refused to connect.
    Connect,
    /// The server's certificate was not accepted, or the server refused ours. Another attempt can't help.
    Certificate,
    /// TLS failed for another reason.
    Tls,
    /// The URL's scheme doesn't fit the port: it is `http` for a port with TLS, or `https` for a port without TLS. Another cause is a
    /// server that supports only TLS versions that Laneway doesn't accept. Another attempt can't help.
    Scheme,
    /// No byte moved for the [no-progress time](crate::LanesConfig::no_progress).
    Timeout,
    /// The connection ended or the stream was reset before the answer was complete.
    Interrupted,
    /// The peer's bytes aren't valid HTTP.
    Protocol,
    /// The sink refused bytes. The error's source is the sink's error.
    Sink,
    /// The request body's file could not be read, or ended early.
    Source,
    /// The request itself can't be sent. This is the caller's mistake.
    Invalid,
    /// The engine was shut down.
    Closed,
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
            unsent: false,
            held: false,
            stale: false,
            is_last: false,
        }
    }

    pub(crate) fn because(kind: Kind, message: impl Into<String>, source: impl Into<ErrorSource>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: Some(source.into()),
            unsent: false,
            held: false,
            stale: false,
            is_last: false,
        }
    }

    /// Marks the error: the server certainly didn't process the request.
    pub(crate) fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }

    /// Returns the error of a request that was admitted but not sent, because the server throttled its key while it waited for a lane.
    pub(crate) fn held() -> Self {
        Self { held: true, ..Self::new(Kind::Interrupted, "the server has asked to slow down").unsent() }
    }

    /// Returns whether a throttle has kept the request from being sent. Such a request can be sent once the throttle admits it again.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Marks the error of a request on a connection that had been used before. Most likely the server had closed the connection before the
    /// request reached it.
    pub(crate) fn stale(mut self) -> Self {
        self.stale = true;
        self
    }

    /// Returns whether the server had most likely closed the connection before the request reached it.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Marks the error of a body that has broken off too often.
    pub(crate) fn last(mut self) -> Self {
        self.is_last = true;
        self
    }

    /// Returns whether the body has broken off too often. The caller then shouldn't request the rest.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns a copy of the error for another request that waited for the same connection.
    pub(crate) fn again(&self) -> Self {
        let mut error = Self::new(self.kind, self.to_string());
        error.unsent = self.unsent;
        error
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the server certainly didn't process the request. If so, any request may be sent again, even one that isn't
    /// idempotent.
    pub fn is_unsent(&self) -> bool {
        self.unsent
            || matches!(
                self.kind,
                Kind::Resolve | Kind::Connect | Kind::Certificate | Kind::Scheme | Kind::Invalid
            )
    }

    /// Returns whether another attempt may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind, Kind::Resolve | Kind::Connect | Kind::Tls | Kind::Timeout | Kind::Interrupted)
    }

    /// Returns whether the attempt failed because this machine lacks threads, file descriptors or memory.
    pub fn is_exhausted(&self) -> bool {
        let code = self.cause::<io::Error>().and_then(io::Error::raw_os_error);
        matches!(code, Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN))
    }

    /// Returns the direct cause if it is of this type.
    pub(crate) fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.source.as_ref()?.downcast_ref()
    }

    /// Returns the cause, such as the error of the sink or the file.
    pub fn into_source(self) -> Option<ErrorSource> {
        self.source
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // `Display` already prints the direct cause, so the chain continues with that cause's own source.
        self.source.as_ref().and_then(|s| s.source())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_lacks_is_told_apart_from_what_was_asked_for() {
        let error = |code| Error::because(Kind::Invalid, "can't start", io::Error::from_raw_os_error(code));
        assert!(error(libc::EMFILE).is_exhausted() && error(libc::EAGAIN).is_exhausted());
        assert!(!error(libc::ENOENT).is_exhausted() && !Error::new(Kind::Invalid, "no URL").is_exhausted());
    }
}
