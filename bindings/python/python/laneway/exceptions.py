"""What went wrong, as exceptions that are also Python's own where it has one for that.

Each has `kind`, the name that the library and the program give it, and `url`, `status`, `service_code`, `attempts` and `is_retryable`,
as far as they are known.
"""

import errno
from typing import Any


class BaseError(Exception):
    """Whatever went wrong with a call."""

    kind = "internal"
    url: str | None = None
    status: int | None = None
    service_code: str | None = None
    attempts: int = 0
    is_retryable: bool = False


class GenericError(BaseError):
    """What has no class of its own."""


class NotFoundError(BaseError, FileNotFoundError):
    """The object, bucket or path isn't there."""

    kind = "not_found"


class AlreadyExistsError(BaseError, FileExistsError):
    """The object exists, and was to be written only where there is none."""

    kind = "already_exists"


class PreconditionError(BaseError):
    """The object isn't in the state that was asked for."""

    kind = "precondition"


class NotModifiedError(BaseError):
    """The object has not changed since the state or time that was named."""

    kind = "not_modified"


class PermissionDeniedError(BaseError, PermissionError):
    """The store doesn't allow it."""

    kind = "permission"


class UnauthenticatedError(BaseError, PermissionError):
    """There are no credentials, or the store doesn't accept them."""

    kind = "unauthenticated"


class DeadlineError(BaseError, TimeoutError):
    """The deadline of the call passed."""

    kind = "timeout"


class InvalidRangeError(BaseError, ValueError):
    """The range lies outside the object, or holds no byte."""

    kind = "invalid_range"


class UsageError(BaseError, ValueError):
    """The call makes no sense as a whole, and nothing was sent."""

    kind = "usage"


class UnknownConfigurationKeyError(UsageError):
    """A configuration key that there isn't, or that means nothing here."""


class InvalidPathError(BaseError, ValueError):
    """A name or a combination that would be unsafe or ambiguous."""

    kind = "refused"


class NotSupportedError(BaseError, NotImplementedError):
    """The store can't do this."""

    kind = "unsupported"


class ThrottledError(GenericError):
    """The store asked to slow down until the attempts ran out."""

    kind = "throttled"


class ServerError(GenericError):
    """The store failed until the attempts ran out, or its answer makes no sense."""

    kind = "server"


class TransportError(GenericError, ConnectionError):
    """No answer, or not a whole one."""

    kind = "transport"


class IntegrityError(GenericError):
    """Bytes or checksums differ from what they must be."""

    kind = "integrity"


class InvalidError(GenericError):
    """The store refuses the request, whatever its state."""

    kind = "invalid"


class ArchivedError(GenericError):
    """The object has to be restored from an archive before it can be read."""

    kind = "archived"


class SourceError(GenericError, OSError):
    """The source changed, vanished or can't be read."""

    kind = "source"


class DestinationError(GenericError, OSError):
    """The destination doesn't take what comes."""

    kind = "destination"


class LocalError(GenericError, OSError):
    """A file operation failed."""

    kind = "local"


class CancelledError(GenericError):
    """The call or job was cancelled before it was done, or begun before a fork."""

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


def _of(kind: str, message: str, details: dict[str, Any]) -> BaseError:
    """The exception of a kind of the library's, with what is known besides."""
    error = _CLASSES.get(kind, GenericError)(message)
    for name, value in details.items():
        setattr(error, name, value)
    if isinstance(error, OSError) and kind in _ERRNO:
        error.errno = _ERRNO[kind]
    return error
