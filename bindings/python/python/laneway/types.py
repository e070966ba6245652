"""What verbs take and give besides classes: dictionaries, and what may stand for what."""

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Checksums(TypedDict, total=False):
    """Checksums that a store tells of an object."""

    crc32c: int
    crc32: int
    crc64nvme: int
    md5: bytes


class ObjectMeta(TypedDict):
    """What a store says of an object."""

    path: str
    last_modified: datetime | None
    size: int
    e_tag: str | None
    """S3's name for its state. GCS has one too, but compares `version`."""
    version: str | None
    """GCS's generation."""
    created: NotRequired[datetime]
    """What GCS says to a `head`; to S3 whatever changes is another object."""
    content_type: NotRequired[str]
    content_encoding: NotRequired[str]
    storage_class: NotRequired[str]
    checksums: NotRequired[Checksums]
    metadata: NotRequired[dict[str, str]]


class PutResult(TypedDict):
    """An object as it was written."""

    e_tag: str | None
    version: str | None
    size: int
    checksums: Checksums
    verified: str
    """By which checksum it was compared with what was sent; `unverified` where there is none."""


class ListResult(TypedDict):
    """What lies directly below a prefix."""

    common_prefixes: list[str]
    objects: list[ObjectMeta]


class OffsetRange(TypedDict):
    """From a byte on."""

    offset: int


class SuffixRange(TypedDict):
    """The last bytes."""

    suffix: int


class GetOptions(TypedDict, total=False):
    """Which bytes to read, and in which state of the object."""

    range: tuple[int, int] | OffsetRange | SuffixRange | None
    version: str | None
    """GCS's generation."""
    if_match: str | None
    """S3's ETag."""
    if_none_match: str | None
    if_modified_since: datetime | None


class UpdateVersion(TypedDict, total=False):
    """The state of an object that is to be replaced, and no other: what a `PutResult` or an `ObjectMeta` says."""

    e_tag: str | None
    version: str | None


PutMode: TypeAlias = Literal["create", "overwrite"] | UpdateVersion
SignMethod: TypeAlias = Literal["GET", "HEAD", "PUT", "POST", "DELETE"]
Attributes: TypeAlias = dict[str, str]


class Readable(Protocol):
    """What has `read`."""

    def read(self, size: int, /) -> "Buffer": ...


Input: TypeAlias = "Buffer | PathLike[str] | Readable | Iterable[Buffer]"
AsyncInput: TypeAlias = "Input | AsyncIterable[Buffer]"
Config: TypeAlias = dict[str, Any]
Seconds: TypeAlias = float | timedelta | str
Paths: TypeAlias = str | Sequence[str]
Place: TypeAlias = str | PathLike[str]
"""A path of this machine, `gs://bucket/key` or `s3://bucket/key`; keys with `*`, `?` or `[` are patterns."""


class Progress(NamedTuple):
    """How far a job is."""

    bytes_done: int
    bytes_found: int
    items_done: int
    items_found: int
    scan_complete: bool
    """Whether nothing more will be found."""


class ProgressCallback(Protocol):
    """What fsspec's callbacks have."""

    def set_size(self, size: int, /) -> object: ...
    def absolute_update(self, value: int, /) -> object: ...


ProgressReport: TypeAlias = bool | Callable[[Progress], object] | ProgressCallback | None


class JobSummary(TypedDict):
    """What a job did."""

    files: int
    """Items that were done; in a dry run: planned."""
    failed: int
    skipped: int
    removed: int
    """What `sync` has removed at its destination, which is not among the `files`."""
    unchanged: int
    """What `sync` has found to be the same on both sides."""
    asked: int
    """Objects that `sync` had to ask for one by one, because no listing tells their checksums, or the times that they carry."""
    bytes: int
    seconds: float
    network_bytes: int
    connections: int
    handshakes: int
    requests: int
    retries: int
    hedges: int
    unverified: int
    kept_bytes: int
    resumed_bytes: int
    not_done: int
    interrupted: bool
    stopped: bool
