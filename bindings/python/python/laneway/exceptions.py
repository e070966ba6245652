"""The failures, as exceptions. They are also Python's own exceptions if Python has one for the kind.

Each has `kind`, the name in the library and the program, and `url`, `status`, `service_code`, `attempts` and
`is_retryable`, as far as they are known.
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
    """A failure without a class of its own."""


class NotFoundError(BaseError, FileNotFoundError):
    """The object, bucket or path doesn't exist."""

    kind = "not_found"


class AlreadyExistsError(BaseError, FileExistsError):
    """The object exists, and the write was allowed only if it doesn't."""

    kind = "already_exists"


class PreconditionError(BaseError):
    """The object isn't in the state that the request named."""

    kind = "precondition"


class NotModifiedError(BaseError):
    """The object has not changed since the named state or time."""

    kind = "not_modified"


class PermissionDeniedError(BaseError, PermissionError):
    """The store forbids it."""

    kind = "permission"


class UnauthenticatedError(BaseError, PermissionError):
    """There are no credentials, or the store doesn't accept them."""

    kind = "unauthenticated"


class DeadlineError(BaseError, TimeoutError):
    """The deadline of the call passed."""

    kind = "timeout"


class InvalidRangeError(BaseError, ValueError):
    """The range lies outside the object, or is empty."""

    kind = "invalid_range"


class UsageError(BaseError, ValueError):
    """The call as a whole makes no sense. Nothing was sent."""

    kind = "usage"


class UnknownConfigurationKeyError(UsageError):
    """A configuration key that doesn't exist, or has no meaning here."""


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
    """No answer came, or an incomplete one."""

    kind = "transport"


class IntegrityError(GenericError):
    """Bytes or checksums differ from the expected ones."""

    kind = "integrity"


class InvalidError(GenericError):
    """The store refuses the request, whatever the object's state."""

    kind = "invalid"


class ArchivedError(GenericError):
    """The object must be restored from an archive before it can be read."""

    kind = "archived"


class SourceError(GenericError, OSError):
    """The source changed, vanished or can't be read."""

    kind = "source"


class DestinationError(GenericError, OSError):
    """The destination doesn't take the bytes."""

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


# The program's options in messages of the library, as this package calls them.
_WORDS = {
    "-r": "recursive=True",
    "--allow-empty": "allow_empty=True",
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
    "--profile": "profile",
    "--project": "project",
    "--retry-for": "retry_timeout",
    "--s3-endpoint": "endpoint",
    "use cp to": "use laneway.copy to",
}
# Commands of other programs keep their options.
_OPTIONS = re.compile(rf"(?<!login )(?<!ls )(?<![\w/-])({'|'.join(map(re.escape, _WORDS))})(?![\w-])")


def in_python(message: str) -> str:
    """Returns a message of the library with this package's names of options."""
    return _OPTIONS.sub(lambda found: _WORDS[found[1]], message)


def _of(kind: str, message: str, details: dict[str, Any]) -> BaseError:
    """Returns the exception of one of the library's kinds, with its details."""
    error = _CLASSES.get(kind, GenericError)(in_python(message))
    for name, value in details.items():
        setattr(error, name, value)
    if isinstance(error, OSError) and kind in _ERRNO:
        error.errno = _ERRNO[kind]
    return error
