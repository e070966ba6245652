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


class PlanProgress(NamedTuple):
    """The progress of planning."""

    listed: int
    """Objects that were listed at the source."""
    rows: int
    bytes: int
    parts: int


class PlanTotals(TypedDict):
    """The totals of a plan that was made."""

    objects: int
    """Objects that the plan copies or compares."""
    bytes: int
    """Their bytes."""
    removed: int
    """Objects that the plan removes."""
    parts: int
    resumed_rows: int
    """Rows that an earlier, interrupted call had planned."""


class KeyRange(TypedDict):
    """A range of names, relative to the plan's prefix. A bound that is missing leaves the range open."""

    after: NotRequired[str]
    through: NotRequired[str]


class PlanPart(TypedDict):
    """A part of a plan."""

    name: str
    action: Literal["copy", "remove", "verify"]
    range: KeyRange
    rows: int
    bytes: int
    size: int
    """The size of the part's file."""
    crc32c: str


class PlanIndex(TypedDict):
    """The index of a plan. `docs/plans.md` describes its fields."""

    format: str
    version: int
    kind: Literal["copy", "sync", "remove", "verify"]
    source: str
    destination: NotRequired[str]
    options: dict[str, Any]
    selection: str
    range: KeyRange
    retry_of: NotRequired[str]
    created: str
    rows: int
    bytes: int
    parts: list[PlanPart]


# A call makes this type, because `class` is a keyword, and a class's body couldn't declare a field of this name.
PlanRow = TypedDict(
    "PlanRow",
    {
        "url": str,
        "destination": NotRequired[str],
        "outcome": Literal["done", "skipped", "failed"],
        "bytes": int,
        "attempts": int,
        "verified": NotRequired[str],
        "skipped": NotRequired[str],
        "error": NotRequired[str],
        "class": NotRequired[str],
        "status": NotRequired[int],
    },
)
"""The outcome of one object."""


class PartResult(TypedDict):
    """The result of a part."""

    number: int
    """The part's number, counted from 0."""
    runner: str
    attempt: int
    rows: int
    done: int
    skipped: int
    failed: int
    unverified: int
    """Rows that were done, but without a checksum to compare."""
    bytes: int
    requests: int
    seconds: float
    failures: dict[str, int]
    """The number of failures of each kind."""
    part: str
    part_crc32c: str
    data: str
    """The name of the file with the outcome of each row, relative to the plan's folder."""
    data_size: int
    data_crc32c: str


class PlanStatus(TypedDict):
    """The state of a plan."""

    parts: int
    ended: int
    running: int
    expired: int
    """Parts whose runner has died. Another runner repeats them."""
    given_up: int
    """Parts whose runners always died. Only `Plan.run_part` still runs them."""
    done: int
    skipped: int
    failed: int
    left: int
    """Rows of parts that haven't ended."""
    bytes_done: int
    bytes_left: int
    seconds: float
    failures: dict[str, int]
    states: list[Literal["waiting", "running", "expired", "given_up", "ended"]]
    """The state of each part."""


class PlanCheck(TypedDict):
    """The outcome of a comparison of a plan with its destination."""

    is_clean: bool
    """True if everything that the plan names is as planned."""
    same: int
    unverified: int
    """Rows among `same` whose objects have equal sizes, but no checksum to compare."""
    missing: int
    different: int
    left: int
    """Objects that should have been removed, and are still there."""
    extra: int
    """Objects at the destination that the plan doesn't name."""
