from collections.abc import Awaitable
from typing import Any, Self

from laneway._laneway import verbs
from laneway.types import Key

class ObjectStore(
    verbs.Get,
    verbs.GetRange,
    verbs.GetRanges,
    verbs.Put,
    verbs.Head,
    verbs.List,
    verbs.ListWithDelimiter,
    verbs.Delete,
    verbs.Copy,
    verbs.Rename,
    verbs.Sign,
    verbs.OpenReader,
    verbs.OpenWriter,
):
    def __new__(cls, url: str, settings: dict[str, Any]) -> Self: ...
    @property
    def url(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def prefix(self) -> str | None: ...
    @property
    def scheme(self) -> str: ...
    def counters(self) -> dict[str, int]: ...

def buckets_async(url: str, settings: dict[str, Any], /) -> Awaitable[list[str]]: ...
def url_parts(url: str, /) -> tuple[str, str, str]: ...
def versions_async(store: ObjectStore, path: Key, /) -> Awaitable[list[dict[str, Any]]]: ...
def set_metadata_async(store: ObjectStore, path: Key, changes: dict[str, str | None], /) -> Awaitable[None]: ...
