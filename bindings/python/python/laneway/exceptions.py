"""The exceptions of this package. If Python has an exception for the same problem, the class here is also a subclass of
Python's exception.

Each has `kind`, which is also the class in the program's `--json`. Each also has `url`, `status`, `service_code`,
`attempts` and `is_retryable`, as far as they are known. If the cause is a failure of this machine's file system, the
exception also has `errno`, `strerror` and `filename`, like any `OSError`.
"""

from __future__ import annotations

import errno
import os
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

    def __str__(self) -> str:
        # `OSError` would make a text of `errno`, `strerror` and `filename`, without Laneway's message.
        return Exception.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # `OSError` pickles only `args`.
        of_system = {name: value for name in _OF_SYSTEM if (value := getattr(self, name, None)) is not None}
        return type(self), self.args, self.__dict__ | of_system


_OF_SYSTEM = ("errno", "strerror", "filename")


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
    """The library refuses a name, a combination of source and destination, or a job, because it would be unsafe or
    ambiguous. An example of a refused job is a `sync` that would remove more than `max_delete` items.
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


class LocalPermissionError(LocalError, PermissionError):
    """The operating system doesn't permit a file operation (`EACCES` or `EPERM`)."""


class LocalDirectoryError(LocalError, IsADirectoryError):
    """A file operation found a directory in place of a file (`EISDIR`)."""


class SourceMissingError(SourceError, FileNotFoundError):
    """The source file doesn't exist, or no longer exists (`ENOENT`)."""


class SourceDirectoryError(SourceError, IsADirectoryError):
    """The source is a directory, and the call sends a single file (`EISDIR`)."""


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
# The classes for some of the operating system's codes.
_OF_ERRNO: dict[tuple[str, int], type[BaseError]] = {
    ("local", errno.EACCES): LocalPermissionError,
    ("local", errno.EPERM): LocalPermissionError,
    ("local", errno.EISDIR): LocalDirectoryError,
    ("source", errno.ENOENT): SourceMissingError,
    ("source", errno.EISDIR): SourceDirectoryError,
}


# Messages of the Rust library name options of the program. This package replaces them by its own names.
_WORDS = {
    "-r": "recursive=True",
    "--allow-empty": "allow_empty=True",
    "--allow-unverified": "allow_unverified=True",
    "--anonymous": "skip_signature=True",
    "--azure-account": "account_name",
    "--azure-endpoint": "endpoint",
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
    "--single-runner": "single_runner=True",
    "`laneway plan retry`": "Plan.retry",
    "copy with cp -r": "use laneway.copy with recursive=True",
    "run the command that makes it again": "make the call that makes it again",
    "run the same command": "make the same call again",
    "use cp to": "use laneway.copy to",
}
# The pattern doesn't match options of other programs' commands, such as `aws sso login --profile`.
_OPTIONS = re.compile(rf"(?<!login )(?<!ls )(?<![\w/-])({'|'.join(map(re.escape, _WORDS))})(?![\w-])")


# A message about a setting begins with the name that the setting has in every language.
_RENAMED = {
    "azure_credentials": "AzureStore",
    "azure_endpoint": "endpoint",
    "customer_key": "sse_customer_key_base64",
    "gcs_endpoint": "base_url",
    "retry_for": "retry_timeout",
    "s3_endpoint": "endpoint",
    "sse": "server_side_encryption",
    "stall_timeout": "read_timeout",
}
_SETTING = re.compile(rf"^({'|'.join(_RENAMED)})(?=: )")


def in_python(message: str) -> str:
    """Returns a message of the Rust library, with the names of options and settings replaced by this package's."""
    message = _SETTING.sub(lambda found: _RENAMED[found[1]], message)
    return _OPTIONS.sub(lambda found: _WORDS[found[1]], message)


def _of(kind: str, message: str, details: dict[str, Any]) -> BaseError:
    """Returns the exception for one of the library's kinds of errors, with its details as attributes."""
    code: int | None = details.pop("errno", None)
    error = (_OF_ERRNO.get((kind, code or 0)) or _CLASSES.get(kind, GenericError))(in_python(message))
    for name, value in details.items():
        setattr(error, name, value)
    if isinstance(error, OSError) and (code or kind in _ERRNO):
        error.errno = code or _ERRNO[kind]
        error.strerror = os.strerror(error.errno)
        if error.url and "://" not in error.url:
            error.filename = error.url
    return error
