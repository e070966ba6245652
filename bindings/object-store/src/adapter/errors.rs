//! The library's errors under object_store's names, with the library's as their source.

use laneway::ErrorKind;

use super::object_store::Error;
use super::object_store::path::Path;

/// A failure of what was asked about a location.
pub(super) fn error(location: &Path, error: laneway::Error) -> Error {
    let path = location.to_string();
    let kind = error.kind();
    let source = Box::new(error);
    match kind {
        ErrorKind::NotFound => Error::NotFound { path, source },
        ErrorKind::AlreadyExists => Error::AlreadyExists { path, source },
        ErrorKind::Precondition => Error::Precondition { path, source },
        ErrorKind::NotModified => Error::NotModified { path, source },
        ErrorKind::Permission => Error::PermissionDenied { path, source },
        ErrorKind::Unauthenticated => Error::Unauthenticated { path, source },
        ErrorKind::Unsupported => Error::NotSupported { source },
        _ => Error::Generic { store: "Laneway", source },
    }
}

/// The same of an update: where nothing is, there isn't what was to be replaced.
pub(super) fn update_error(location: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::NotFound => Error::Precondition { path: location.to_string(), source: Box::new(failure) },
        _ => error(location, failure),
    }
}

/// The same of a copy: what is there already is the destination.
pub(super) fn copy_error(from: &Path, to: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::AlreadyExists => error(to, failure),
        _ => error(from, failure),
    }
}

/// What Laneway can't do.
pub(super) fn not_supported(why: impl Into<String>) -> Error {
    Error::NotSupported { source: why.into().into() }
}
