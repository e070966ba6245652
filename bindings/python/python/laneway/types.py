"""Types for the arguments and results of verbs: typed dictionaries, protocols and type aliases."""

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar

if TYPE_CHECKING:
    from laneway._laneway import ObjectStore
    from typing_extensions import Buffer as Buffer
else:
    try:
        from collections.abc import Buffer
    except ImportError:
        # Python 3.11 has no type for buffers.
        Buffer = Any


class Checksums(TypedDict, total=False):
    """The store's checksums of an object."""

    crc32c: int
    crc32: int
    crc64nvme: int
    md5: bytes


class ObjectMeta(TypedDict):
    """The store's metadata of an object."""

    path: str
    last_modified: datetime | None
    size: int
    e_tag: str | None
    """The ETag. Conditions on S3 compare it. GCS returns one too, but its conditions compare `version`."""
    version: str | None
    """GCS's generation."""
    created: NotRequired[datetime]
    """The time of creation. GCS reports it for `head`. S3 doesn't report it."""
    content_type: NotRequired[str]
    content_encoding: NotRequired[str]
    storage_class: NotRequired[str]
    checksums: NotRequired[Checksums]
    metadata: NotRequired[dict[str, str]]


class PutResult(TypedDict):
    """The result of writing an object."""

    e_tag: str | None
    version: str | None
    size: int
    checksums: Checksums
    verified: str
    """The name of the checksum that verified the stored object, or `unverified` if the store returned none."""


Objects = TypeVar("Objects")


class ListResult(TypedDict, Generic[Objects]):
    """The entries of a folder."""

    common_prefixes: list[str]
    """The names of the folders in it, without a slash at the end."""
    objects: Objects
    """A list of `ObjectMeta`, or an Arrow table."""


class OffsetRange(TypedDict):
    """The bytes from an offset to the end."""

    offset: int


class SuffixRange(TypedDict):
    """The last bytes of an object. `suffix` is the number of these bytes."""

    suffix: int


class GetOptions(TypedDict, total=False):
    """The bytes to read, and conditions on the object's version."""

    range: tuple[int, int] | list[int] | OffsetRange | SuffixRange | None
    version: str | None
    """GCS's generation."""
    if_match: str | None
    """S3's ETag."""
    if_none_match: str | None
    if_modified_since: datetime | None


class UpdateVersion(TypedDict, total=False):
    """The version of an object that a write may replace. Take it from a `PutResult` or an `ObjectMeta`."""

    e_tag: str | None
    version: str | None


PutMode: TypeAlias = Literal["create", "overwrite"] | UpdateVersion
SignMethod: TypeAlias = Literal["GET", "HEAD", "PUT", "POST", "DELETE"]
Attributes: TypeAlias = dict[str, str]


class Readable(Protocol):
    """An object with a `read` method."""

    def read(self, size: int, /) -> Buffer: ...


Input: TypeAlias = Buffer | PathLike[str] | Readable | Iterable[Buffer]
AsyncInput: TypeAlias = Input | AsyncIterable[Buffer]
Config: TypeAlias = dict[str, Any]
Seconds: TypeAlias = float | timedelta | str
Key: TypeAlias = str | PathLike[str]
Paths: TypeAlias = Key | Sequence[Key]
LocalPath: TypeAlias = "str | PathLike[str]"
Place: TypeAlias = "str | PathLike[str] | ObjectStore | tuple[ObjectStore, Key]"
"""A local path, a URL such as `gs://bucket/key`, `s3://bucket/key` or `az://container/key`, a store, or a tuple of a store
and a key in it. Keys with `*`, `?` or `[` are patterns. If it contains a store, the job uses the store's configuration.
"""


class Progress(NamedTuple):
    """The progress of a job."""

    bytes_done: int
    bytes_found: int
    items_done: int
    items_found: int
    scan_complete: bool
    """True once all items have been found."""


class ProgressCallback(Protocol):
    """The methods of fsspec's callbacks that a job calls."""

    def set_size(self, size: int, /) -> object: ...
    def absolute_update(self, value: int, /) -> object: ...


ProgressReport: TypeAlias = bool | Callable[[Progress], object] | ProgressCallback | None


class PlannedItem(TypedDict):
    """An item that a dry run would copy or remove."""

    op: Literal["upload", "download", "copy", "move", "remove"]
    source: str
    destination: str | None
    size: int


class JobSummary(TypedDict):
    """The totals of a job."""

    files: int
    """Items that were done, or that would be done if it is a dry run."""
    failed: int
    skipped: int
    removed: int
    """Items that `sync` removed at its destination. `files` doesn't include them."""
    unchanged: int
    """Items that `sync` found equal on both sides."""
    asked: int
    """Objects whose metadata `sync` requested one by one, because the listing doesn't show their checksums or the file
    times in their metadata.
    """
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
    planned: list[PlannedItem]
    """The items that a dry run would copy or remove, in no particular order."""
