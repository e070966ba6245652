"""Writes objects from sources that produce bytes piece by piece: objects with `read`, and (async) iterables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from laneway._laneway import ObjectStore
from laneway.types import PutResult

if TYPE_CHECKING:
    from typing_extensions import Buffer

# The number of bytes to request in each `read`. This is large enough that system calls and Python's own work cost
# little, and smaller than a part of an upload.
_CHUNK = 1 << 20


def put(store: ObjectStore, path: str, file: Any, **options: Any) -> PutResult | None:
    _check(file)
    writer = store.open_writer(path, **options)
    try:
        for chunk in _chunks(file):
            writer.write(chunk)
    except BaseException:
        writer.abort()
        raise
    return writer.close()


async def put_async(store: ObjectStore, path: str, file: Any, **options: Any) -> PutResult | None:
    _check(file)
    writer = store.open_writer_async(path, **options)
    try:
        if hasattr(file, "__aiter__"):
            async for chunk in file:
                await writer.write(chunk)
        else:
            for chunk in _chunks(file):
                await writer.write(chunk)
        return await writer.close()
    except BaseException:
        # A cancelled task can't await `abort`. Dropping the writer aborts the upload too.
        del writer
        raise


def _check(file: Any) -> None:
    # The author of a string may mean its text or the path of a file.
    if isinstance(file, str):
        raise TypeError("a str isn't accepted: pass pathlib.Path for a file, or bytes")


def _chunks(file: Any) -> Iterator[Buffer]:
    read = getattr(file, "read", None)
    if read is None:
        yield from file
        return
    while chunk := read(_CHUNK):
        yield chunk
