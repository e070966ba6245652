//! The failures of an attempt.

use std::{fmt, io};

/// The cause of an error.
type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// An attempt that ended without a complete answer. An answer with an error status is no error here.
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

/// The kind of failure, as far as callers need it for a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The host name did not resolve.
    Resolve,
    /// No address took a connection, or the proxy refused one.
    Connect,
    /// The server's certificate was not accepted, or the server refused ours. Another attempt can't help.
    Certificate,
    /// TLS failed for another reason.
    Tls,
    /// The port speaks TLS but the URL says `http`, or no TLS although it says `https`, or only TLS versions that aren't accepted. Another
    /// attempt can't help.
    Scheme,
    /// Nothing moved for the no-progress time.
    Timeout,
    /// The connection ended or the stream was reset before the answer was complete.
    Interrupted,
    /// The peer's bytes aren't valid HTTP.
    Protocol,
    /// The sink refused bytes. The error's source tells the reason.
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

    /// Marks the request as never processed by the server.
    pub(crate) fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }

    /// The request was not sent, because its throttle key was limited after the request was admitted.
    pub(crate) fn held() -> Self {
        Self { held: true, ..Self::new(Kind::Interrupted, "the server has asked to slow down").unsent() }
    }

    /// Returns whether the request only has to be admitted again.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Marks a request whose connection, used before, was gone. The server most likely closed it before the request came.
    pub(crate) fn stale(mut self) -> Self {
        self.stale = true;
        self
    }

    /// Returns whether the connection was most likely gone before the request came.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Marks the end of a body that broke off too often.
    pub(crate) fn last(mut self) -> Self {
        self.is_last = true;
        self
    }

    /// Returns whether the body broke off too often, so that requesting the rest isn't worthwhile.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns a copy of the error for another waiter.
    pub(crate) fn again(&self) -> Self {
        let mut error = Self::new(self.kind, self.to_string());
        error.unsent = self.unsent;
        error
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the server certainly didn't act on the request. Any request may then be sent again.
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

    /// Returns whether the system lacked threads, descriptors or memory for it.
    pub fn is_exhausted(&self) -> bool {
        let code = self.cause::<io::Error>().and_then(io::Error::raw_os_error);
        matches!(code, Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN))
    }

    /// The direct cause, if it is of this type.
    pub(crate) fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.source.as_ref()?.downcast_ref()
    }

    /// Returns the error of the sink or the file, if there is one.
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
        // Display already prints the direct cause, so the chain goes on below it.
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
