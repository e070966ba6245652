"""Lists and looks up entries. A listing is cached until a write below it, or for `listings_expiry_time`."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from laneway._laneway import ObjectStore, buckets_async
from laneway.fsspec._base import Base
from laneway.fsspec._entries import Entry, directory, entry, file, tree
from laneway.fsspec._openings import Openings


class Listing(Base):
    def __init__(self, **options: Any) -> None:
        # Directories that the program made. They may be empty. Stores have no empty directories, so they exist only
        # in this object until they are removed.
        self._made: set[str] = set()
        super().__init__(**options)
        self.openings = Openings(self.dircache.get, self._object)

    async def _mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        self._check_writable(path)
        path = self._strip_protocol(path)
        if "/" in path:
            self._made.add(path)
            return
        if await self._exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        raise NotImplementedError(f"{path}: this filesystem can't create buckets; use the provider's own tools")

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._check_writable(path)
        if not exist_ok and await self._exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if "/" in self._strip_protocol(path) or not await self._exists(path):
            await self._mkdir(path)

    async def _rmdir(self, path: str) -> None:
        """Removes an empty directory. Raises an exception if it isn't empty or not a directory, as `os.rmdir` does."""
        self._check_writable(path)
        info = await self._info(path, refresh=True)
        path = info["name"]
        if info["type"] != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        store, key = self._at(path)
        marker = f"{key}/"
        below = [meta["path"] for meta in await store.list(_folder(key), limit=2).collect_async()]
        if below and below != [marker]:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        if not key:
            raise NotImplementedError(f"{path}: this filesystem can't remove buckets; use the provider's own tools")
        if below:
            await store.delete_async(marker)
        self.invalidate_cache(path)
        self._made.discard(path)

    def rmdir(self, path: str) -> None:
        sync(self.loop, self._rmdir, path)

    async def _touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        """Makes an empty object. With `truncate=False`, raises an exception if the object exists, because its time
        can't be set.
        """
        self._check_writable(path)
        if truncate or not await self._exists(path):
            await self._pipe_file(path, b"", **kwargs)
            return
        raise NotImplementedError(f"{path}: truncate=False can't set the time of an object that exists")

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        sync(self.loop, self._touch, path, truncate, **kwargs)

    async def _info(self, path: str, refresh: bool = False, **kwargs: Any) -> Entry:
        is_folder = str(path).endswith("/")
        path = self._strip_protocol(path)
        if not path:
            return directory("")
        known = None if refresh else self._known(path)
        if known is not None:
            return known
        store, key = self._at(path)
        if not key:
            await _first(store, "")
            return directory(path)
        below: asyncio.Task[bool] | None = None
        try:
            if not is_folder:
                if _may_be_folder(key) and path not in self._made:
                    below = asyncio.ensure_future(_first(store, f"{key}/"))
                try:
                    return file(store.bucket, await store.head_async(key))
                except FileNotFoundError:
                    pass
            if path in self._made or await (below or _first(store, f"{key}/")):
                return directory(path)
        finally:
            if below is not None:
                # If the object exists, the result of this lookup isn't needed.
                below.cancel()
                below.add_done_callback(_is_looked_at)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    async def _has_files(self, path: str) -> bool:
        """Returns whether there are objects below a directory."""
        store, key = self._at(path)
        return await _first(store, _folder(key))

    async def _ls(self, path: str, detail: bool = True, refresh: bool = False, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if not path:
            # Don't cache the list of buckets, because other programs may make and remove some.
            buckets = await buckets_async(f"{self._scheme}://", self._settings())
            return [directory(name) if detail else name for name in buckets]
        entries = await self._level(path, kwargs.get("prefix", ""), refresh=refresh)
        if not entries and "/" in path:
            info = await self._info(path, refresh=True)
            entries = [info] if info["type"] == "file" else []
        return entries if detail else [one["name"] for one in entries]

    async def _find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any
    ) -> list[str] | dict[str, Entry]:
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        prefix = kwargs.get("prefix") or ""
        entries = await (self._all(path, prefix) if maxdepth is None else self._levels(path, maxdepth, prefix))
        found = {one["name"]: one for one in entries if withdirs and one["type"] == "directory"}
        found |= {one["name"]: one for one in entries if one["type"] == "file"}
        if entries and withdirs and path:
            found.setdefault(path, directory(path))
        if not entries:
            try:
                info = await self._info(path)
            except FileNotFoundError:
                pass
            else:
                if withdirs or info["type"] == "file":
                    found[path] = info
        names = sorted(found)
        return {name: found[name] for name in names} if kwargs.get("detail") else names

    def invalidate_cache(self, path: str | None = None) -> None:
        super().invalidate_cache(path)
        path = str(self._strip_protocol(path or ""))
        self.openings.forget(path)
        if not path:
            self.dircache.clear()
            return
        if self.dircache.pop(path, None) is not None:
            for below in [name for name in self.dircache if name.startswith(f"{path}/")]:
                self.dircache.pop(below, None)
        while path:
            path = self._parent(path)
            self.dircache.pop(path, None)

    def _known(self, path: str) -> Entry | None:
        """Returns the entry of a path from the cached listings. `None` doesn't mean that the path doesn't exist,
        because it may have been written since.
        """
        for one in self.dircache.get(self._parent(path), ()):
            if one["name"] == path:
                return dict(one)
        return directory(path) if path in self.dircache else None

    async def _level(self, path: str, prefix: str = "", refresh: bool = False) -> list[Entry]:
        """Returns the entries directly below a directory whose names begin with `prefix`."""
        known = None if refresh else self.dircache.get(path)
        if known is not None:
            return [one for one in known if one["name"].startswith(f"{path}/{prefix}")]
        store, key = self._at(path)
        below = await store.list_with_delimiter_async(_folder(key), name_prefix=prefix)
        names = [f"{store.bucket}/{folder}" for folder in below["common_prefixes"]]
        entries = [directory(name) for name in names]
        entries += [entry(store.bucket, meta) for meta in below["objects"]]
        entries = sorted((one for one in entries if one["name"] != path), key=lambda one: str(one["name"]))
        if not prefix and (entries or not key):
            self.dircache[path] = entries
        return list(entries)

    async def _levels(self, path: str, maxdepth: int, prefix: str) -> list[Entry]:
        """Returns the entries at most `maxdepth` levels below a directory. Each directory on these levels takes a
        request of its own.
        """
        found = level = await self._level(path, prefix)
        for _ in range(maxdepth - 1):
            folders = [one["name"] for one in level if one["type"] == "directory"]
            level = [one for entries in await asyncio.gather(*map(self._level, folders)) for one in entries]
            found = found + level
        return found

    async def _all(self, path: str, prefix: str) -> list[Entry]:
        """Returns all entries below a directory, from a single recursive listing."""
        store, key = self._at(path)
        metas = await store.list(_folder(key) + prefix).collect_async()
        levels = tree(path, (entry(store.bucket, meta) for meta in metas))
        if metas and not prefix:
            for name, entries in levels.items():
                self.dircache[name] = entries
        return [one for entries in levels.values() for one in entries]


def _folder(key: str) -> str:
    return f"{key}/" if key else ""


def _may_be_folder(key: str) -> bool:
    """Returns whether a path may be a folder. If so, it is worth looking for a file and a folder at the same time.
    Names of files usually have an extension.
    """
    return "." not in key.rpartition("/")[2]


def _is_looked_at(task: asyncio.Task[bool]) -> None:
    """Reads the result of a task whose result isn't needed, so that asyncio doesn't log its failure."""
    if not task.cancelled():
        task.exception()


async def _first(store: ObjectStore, prefix: str) -> bool:
    """Returns whether there are objects whose keys begin with a prefix."""
    return bool(await store.list(prefix, limit=1).collect_async())
