"""Creates fsspec's dictionaries that describe files and directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from laneway.types import ObjectMeta

Entry: TypeAlias = dict[str, Any]


def file(bucket: str, meta: ObjectMeta) -> Entry:
    """Returns the entry of an object. It has the store's metadata, and also `mtime`, which pyarrow reads."""
    entry = {"name": f"{bucket}/{meta['path']}", "type": "file", "mtime": meta["last_modified"], **meta}
    del entry["path"]
    return entry


def directory(name: str) -> Entry:
    return {"name": name, "size": 0, "type": "directory"}


def entry(bucket: str, meta: ObjectMeta) -> Entry:
    """Returns the entry of an object. An object whose name ends in a slash stands for a directory: the stores' web
    consoles create such objects.
    """
    if meta["path"].endswith("/"):
        return directory(f"{bucket}/{meta['path'].removesuffix('/')}")
    return file(bucket, meta)


def state(entry: Entry) -> tuple[Any, ...]:
    """Returns a value that changes whenever an object changes. The value is the same for metadata from a listing and
    from a lookup.
    """
    return entry["name"], entry["size"], entry["type"], entry.get("version") or entry.get("e_tag")


def tree(root: str, entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Returns the listing of a directory and of each directory below it, given all entries below it."""
    levels: dict[str, list[Entry]] = {root: []}
    directories = {root}
    for found in entries:
        one = found
        while one["type"] == "file" or one["name"] not in directories:
            parent = one["name"].rpartition("/")[0]
            levels.setdefault(parent, []).append(one)
            if one["type"] == "directory":
                directories.add(one["name"])
                levels.setdefault(one["name"], [])
            one = directory(parent)
    for level in levels.values():
        level.sort(key=lambda entry: str(entry["name"]))
    return levels
