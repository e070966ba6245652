//! The reasons why there are no credentials.

use crate::{CredentialError, Error, ErrorKind, Operation};

/// No source is configured, or the configured one can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CredentialFailure {
    /// No source is configured. Holds the places that were searched, in order.
    Nothing(Vec<String>),
    /// This source is configured but can't be used. Laneway tries no other source, because the user chose this
    /// identity.
    Unusable { source: String, cause: String },
}

impl CredentialFailure {
    pub(super) fn unusable(source: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::Unusable { source: source.into(), cause: cause.into() }
    }

    pub(super) fn into_error(self) -> Error {
        let cause = match self {
            Self::Nothing(tried) => CredentialError::nothing(tried),
            Self::Unusable { source, cause } => CredentialError::unusable(source, cause),
        };
        Error::new(ErrorKind::Unauthenticated, Operation::Open, cause.to_string()).because(cause)
    }
}
