//! Converts the library's errors to object_store's, with the library's error as the source.

use laneway::ErrorKind;

use super::object_store::Error;
use super::object_store::path::Path;

/// Converts the error of a request for the object at a location.
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

/// Converts the error of a `PutMode::Update`. A missing object becomes `Precondition`, because the version to be
/// replaced doesn't exist.
pub(super) fn update_error(location: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::NotFound => Error::Precondition { path: location.to_string(), source: Box::new(failure) },
        _ => error(location, failure),
    }
}

/// Converts the error of a copy. `AlreadyExists` names the destination, and other errors name the source.
pub(super) fn copy_error(from: &Path, to: &Path, failure: laneway::Error) -> Error {
    match failure.kind() {
        ErrorKind::AlreadyExists => error(to, failure),
        _ => error(from, failure),
    }
}

/// Returns the error for something that Laneway doesn't support.
pub(super) fn not_supported(why: impl Into<String>) -> Error {
    Error::NotSupported { source: why.into().into() }
}
