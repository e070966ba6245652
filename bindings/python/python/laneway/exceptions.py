"""The exceptions of this package. If Python has an exception for the same problem, the class here is also a subclass of
Python's exception.

Each has `kind`, which is also the class in the program's `--json`. Each also has `url`, `status`, `service_code`,
`attempts` and `is_retryable`, as far as they are known.
"""

import errno
import re
from typing import Any


class BaseError(Exception):
    """Any failure of a call."""

    kind = "internal"
    url: str | None = None
    status: int | None = None
    service_code: str | None = None
    attempts: int = 0
    is_retryable: bool = False


class GenericError(BaseError):
    """A failure without a more specific exception."""


class NotFoundError(BaseError, FileNotFoundError):
    """The object, bucket or path doesn't exist."""

    kind = "not_found"


class AlreadyExistsError(BaseError, FileExistsError):
    """The call writes the object only if it doesn't exist, but the object exists."""

    kind = "already_exists"


class PreconditionError(BaseError):
    """The object isn't in the state that the call requires, such as a certain version."""

    kind = "precondition"


class NotModifiedError(BaseError):
    """The object has not changed since the version or time that the call names."""

    kind = "not_modified"


class PermissionDeniedError(BaseError, PermissionError):
    """The credentials don't permit the call."""

    kind = "permission"


class UnauthenticatedError(BaseError, PermissionError):
    """There are no credentials, or the store doesn't accept them."""

    kind = "unauthenticated"


class DeadlineError(BaseError, TimeoutError):
    """The deadline of the call passed."""

    kind = "timeout"


class InvalidRangeError(BaseError, ValueError):
    """The range is empty, or lies outside the object."""

    kind = "invalid_range"


class UsageError(BaseError, ValueError):
    """The arguments of the call are invalid or contradict each other. Nothing was sent."""

    kind = "usage"


class UnknownConfigurationKeyError(UsageError):
    """A configuration key that doesn't exist, or has no meaning here."""


class InvalidPathError(BaseError, ValueError):
    """The library refuses a name, or a combination of source and destination, because it would be unsafe or ambiguous.
    """

    kind = "refused"


class NotSupportedError(BaseError, NotImplementedError):
    """The store, or Laneway with this store, doesn't support the call."""

    kind = "unsupported"


class ThrottledError(GenericError):
    """The store throttled the request, and also all its retries."""

    kind = "throttled"


class ServerError(GenericError):
    """The store reported an internal error, even after all retries, or it sent an invalid response."""

    kind = "server"


class TransportError(GenericError, ConnectionError):
    """No response came, or it was incomplete."""

    kind = "transport"


class IntegrityError(GenericError):
    """The bytes or checksums that arrived differ from the expected ones."""

    kind = "integrity"


class InvalidError(GenericError):
    """The store refuses the request as invalid, and would do so in any state of the object."""

    kind = "invalid"


class ArchivedError(GenericError):
    """The object must be restored from an archive before it can be read."""

    kind = "archived"


class SourceError(GenericError, OSError):
    """The source changed or was removed during the transfer, or can't be read."""

    kind = "source"


class DestinationError(GenericError, OSError):
    """The bytes can't be written to the destination."""

    kind = "destination"


class LocalError(GenericError, OSError):
    """A file operation failed."""

    kind = "local"


class CancelledError(GenericError):
    """The call or job was cancelled before it was done, or was started before the process forked."""

    kind = "cancelled"


class InternalError(GenericError):
    """The engine itself failed."""


_ERRNO = {
    "not_found": errno.ENOENT,
    "already_exists": errno.EEXIST,
    "permission": errno.EACCES,
    "unauthenticated": errno.EACCES,
    "timeout": errno.ETIMEDOUT,
}

_CLASSES: dict[str, type[BaseError]] = {
    kind.kind: kind
    for kind in (
        AlreadyExistsError,
        ArchivedError,
        CancelledError,
        DeadlineError,
        DestinationError,
        IntegrityError,
        InternalError,
        InvalidError,
        InvalidPathError,
        InvalidRangeError,
        LocalError,
        NotFoundError,
        NotModifiedError,
        NotSupportedError,
        PermissionDeniedError,
        PreconditionError,
        ServerError,
        SourceError,
        ThrottledError,
        TransportError,
        UnauthenticatedError,
        UsageError,
    )
}


# Messages of the Rust library name options of the program. This package replaces them by its own names.
_WORDS = {
    "-r": "recursive=True",
    "--allow-empty": "allow_empty=True",
    "--allow-unverified": "allow_unverified=True",
    "--anonymous": "skip_signature=True",
    "--ca-cert FILE": "root_certificate",
    "--delete": "delete=True",
    "--existing": "existing",
    "--follow-symlinks": "follow_symlinks",
    "--force": "force=True",
    "--gcs-endpoint": "base_url",
    "--ignore-existing": "ignore_existing",
    "--ignore-symlinks": "ignore_symlinks",
    "--include and --exclude": "filters",
    "--max-delete": "max_delete",
    "--no-clobber": "no_clobber=True",
    "--profile": "profile",
    "--project": "project",
    "--retry-for": "retry_timeout",
    "--s3-endpoint": "endpoint",
    "copy with cp -r": "use laneway.copy with recursive=True",
    "use cp to": "use laneway.copy to",
}
# The pattern doesn't match options of other programs' commands, such as `aws sso login --profile`.
_OPTIONS = re.compile(rf"(?<!login )(?<!ls )(?<![\w/-])({'|'.join(map(re.escape, _WORDS))})(?![\w-])")


def in_python(message: str) -> str:
    """Returns a message of the Rust library, with the program's options replaced by this package's."""
    return _OPTIONS.sub(lambda found: _WORDS[found[1]], message)


def _of(kind: str, message: str, details: dict[str, Any]) -> BaseError:
    """Returns the exception for one of the library's kinds of errors, with its details as attributes."""
    error = _CLASSES.get(kind, GenericError)(in_python(message))
    for name, value in details.items():
        setattr(error, name, value)
    if isinstance(error, OSError) and kind in _ERRNO:
        error.errno = _ERRNO[kind]
    return error
