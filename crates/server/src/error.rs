//! Errors in a server's configuration and start.

use std::io;

/// The reason why a server could not be configured or started. Its message is a single line for a terminal.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] StartError);

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("`{text}` is not {what}: expected {expected}")]
    Unreadable { what: &'static str, text: String, expected: &'static str },
    #[error("fault rule `{rule}`: {problem}")]
    Rule { rule: String, problem: String },
    #[error("{doing}: {cause}")]
    Io { doing: String, cause: io::Error },
    #[error("{doing}: {cause}")]
    Tls { doing: String, cause: String },
    #[error(
        "bucket name `{0}` is not usable: it must have 1 to 222 letters, digits, `-`, `_` or `.`, and not begin with `.`"
    )]
    BucketName(String),
}

impl Error {
    pub(crate) fn unreadable(what: &'static str, text: &str, expected: &'static str) -> Error {
        Error(StartError::Unreadable { what, text: text.to_owned(), expected })
    }

    pub(crate) fn rule(rule: &str, problem: impl Into<String>) -> Error {
        Error(StartError::Rule { rule: rule.to_owned(), problem: problem.into() })
    }

    pub(crate) fn io(doing: impl Into<String>, cause: io::Error) -> Error {
        Error(StartError::Io { doing: doing.into(), cause })
    }

    pub(crate) fn tls(doing: impl Into<String>, cause: impl ToString) -> Error {
        Error(StartError::Tls { doing: doing.into(), cause: cause.to_string() })
    }

    pub(crate) fn bucket_name(name: &str) -> Error {
        Error(StartError::BucketName(name.to_owned()))
    }
}
