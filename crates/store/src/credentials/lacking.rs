//! Why there are no credentials.

use crate::{CredentialError, Error, ErrorKind, Operation};

/// Nothing is set up, or what is set up can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lacking {
    /// Nothing is set up: where it was looked, in order.
    Nothing(Vec<String>),
    /// This source is set up and can't be used. None after it is tried: who set it up doesn't want to be somebody else.
    Unusable { source: String, cause: String },
}

impl Lacking {
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
