"""The expected outcomes of faults. This table doesn't use the package's code, except for its exceptions."""

from typing import NamedTuple

from laneway import exceptions as e

from fault_matrix.faults import Fault
from fault_matrix.operations import About, Strike


class Expected(NamedTuple):
    """The expected outcome of a cell."""

    may_succeed: bool
    errors: tuple[type[e.BaseError], ...]


SUCCESS = Expected(True, ())


def failure(*errors: type[e.BaseError]) -> Expected:
    return Expected(False, errors)


def either(*errors: type[e.BaseError]) -> Expected:
    """Allows success and failure. The outcome depends on the order in which requests came, or on the number of bytes
    in the broken answer.
    """
    return Expected(True, errors)


def expected(strike: Strike, fault: Fault, is_once: bool, scheme: str) -> Expected:
    """Returns the expected outcome. If the fault hits every request, the client doesn't retry."""
    about, kind = strike.about, fault.kind
    is_s3 = scheme == "s3"
    # If a batch fails, Laneway removes its keys one by one.
    is_batch = strike.operation == "delete-many"
    # The answer to an S3 HEAD or to a part consists only of headers, so a fault in later bytes has no effect.
    is_all_in_head = about is About.HEADERS and is_s3 or strike.verb == "part"
    # Bytes that a stream has delivered can't be taken back.
    is_streamed = strike.operation == "stream"

    def passes_or(*errors: type[e.BaseError]) -> Expected:
        return SUCCESS if is_once else failure(*errors)

    match kind:
        case "slowness" | "no length" | "goaway":
            return SUCCESS
        case "refusal" if is_batch:
            return SUCCESS
        # If the store refuses multipart uploads, the upload uses a session.
        case "refusal" if about is About.BEGIN and not is_s3 and is_once:
            return SUCCESS
        # fsspec's `isfile` never raises an error.
        case "refusal" if strike.operation == "directory-get" and about is About.DOCUMENT and is_once:
            return SUCCESS
        # A rename removes its source under a condition. A 403 may mean that only the condition isn't permitted, so
        # Laneway compares the source and removes it without the condition.
        case "refusal" if strike.operation == "rename" and about is About.REMOVAL and is_s3 and is_once:
            return SUCCESS
        # If GCS forbids a move by one request, Laneway copies the object and removes it.
        case "refusal" if strike.operation == "rename" and about is About.WRITE and not is_s3 and is_once:
            return SUCCESS
        # A HEAD that S3 forbids is sent once more without asking for the checksum.
        case "refusal" if about is About.HEADERS and is_s3 and is_once:
            return SUCCESS
        case "refusal":
            return failure(e.PermissionDeniedError)
        case "throttle" | "failure" if is_batch:
            return SUCCESS
        # On GCS a 503 is a failure, and on S3 it is a throttle. The answer to a HEAD doesn't show which of the two is
        # meant.
        case "throttle":
            return passes_or(*((e.ThrottledError,) if is_s3 and about is not About.HEADERS else (e.ThrottledError, e.ServerError)))
        case "failure":
            return passes_or(e.ServerError)
        case "break" | "not taken":
            return either(e.TransportError) if is_batch else passes_or(e.TransportError)
        # The answer to a delete consists only of the status. For a write, Laneway may not need the lost part of the
        # answer.
        case "loss" if about is About.REMOVAL or is_all_in_head or about is About.WRITE and not is_once:
            return either(e.TransportError)
        # An empty listing may end before the position of the fault.
        case "loss" if strike.operation == "sync-up" and not is_once:
            return either(e.TransportError)
        case "loss":
            return passes_or(e.TransportError)
        case "corruption" if is_streamed:
            return either(e.IntegrityError)
        case "corruption":
            return passes_or(e.IntegrityError)
        case "wrong checksum" if about is About.CONTENT:
            return either(e.IntegrityError) if is_streamed else passes_or(e.IntegrityError)
        case "wrong checksum" if about is About.WRITE:
            return either(e.IntegrityError)
        case "wrong checksum":
            return SUCCESS
        # If two headers state different lengths, it is unknown which is right. For these two operations, a listing
        # has also stated the length.
        case "long length" if strike.operation in ("sync-down", "directory-get") and about is About.CONTENT:
            return either(e.IntegrityError, e.TransportError)
        case "long length" if about is About.CONTENT:
            return failure(e.IntegrityError, e.InvalidRangeError, e.TransportError)
        case "long length" if about in (About.WRITE, About.REMOVAL):
            return either(e.TransportError)
        case "long length":
            return passes_or(e.TransportError)
        # Laneway begins the upload again.
        case "short length" | "error in 200" | "unreadable" if about is About.BEGIN and is_once:
            return SUCCESS
        case "short length" if about is About.RANGE:
            return either(e.TransportError, e.IntegrityError)
        case "short length" if about is About.CONTENT:
            return passes_or(e.TransportError, e.IntegrityError)
        case "short length":
            return either(e.TransportError, e.IntegrityError, e.ServerError)
        case "range ignored" | "range shifted":
            return failure(e.NotSupportedError)
        case "replacement" if strike.operation == "read-file":
            return either(e.PreconditionError)
        case "replacement":
            return SUCCESS
        case "error in 200" if about is About.RANGE:
            return failure(e.ServerError, e.NotSupportedError, e.PreconditionError)
        case "error in 200" if about in (About.CONTENT, About.REMOVAL) and not is_batch:
            return failure(e.ServerError)
        # If an answer reports success but gives no details, Laneway doesn't repeat the request. It looks at the object
        # instead.
        case "error in 200":
            return either(e.ServerError, e.IntegrityError)
        case "unreadable":
            return either(e.ServerError)
    raise AssertionError(fault)
