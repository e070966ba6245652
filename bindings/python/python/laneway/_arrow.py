"""Converts listed objects to Arrow, by arro3 or, if it isn't installed, by pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from laneway.types import ObjectMeta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_batch(metas: Sequence[ObjectMeta]) -> Any:
    """Returns a record batch with the columns `path`, `last_modified`, `size`, `e_tag` and `version`."""
    arrow, is_arro3 = _library()
    kinds = arrow.DataType if is_arro3 else arrow
    text, times = (kinds.utf8() if is_arro3 else kinds.string()), kinds.timestamp("us", tz="UTC")
    make = arrow.Array if is_arro3 else arrow.array
    # arro3 can't convert Python's timestamps, but it can cast integers.
    updated = make([_micros(meta["last_modified"]) for meta in metas], kinds.int64()).cast(times)
    columns = {
        "path": make([meta["path"] for meta in metas], text),
        "last_modified": updated,
        "size": make([meta["size"] for meta in metas], kinds.uint64()),
        "e_tag": make([meta["e_tag"] for meta in metas], text),
        "version": make([meta["version"] for meta in metas], text),
    }
    return arrow.RecordBatch.from_pydict(columns)


def table(metas: Sequence[ObjectMeta]) -> Any:
    """Returns a table with the columns of `record_batch`."""
    batch = record_batch(metas)
    return _library()[0].Table.from_batches([batch])


def _library() -> tuple[Any, bool]:
    """Returns the module with Arrow's classes, and whether it is arro3's."""
    for name in ("arro3.core", "pyarrow"):
        try:
            return import_module(name), name == "arro3.core"
        except ImportError:
            pass
    raise ImportError("return_arrow=True needs arro3-core or pyarrow")


def _micros(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // timedelta(microseconds=1)
