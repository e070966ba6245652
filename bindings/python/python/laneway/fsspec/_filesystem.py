"""The methods of the filesystems. They call the verbs of the stores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import datetime, timedelta
from glob import has_magic
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from fsspec.asyn import sync_wrapper  # type: ignore[import-untyped, unused-ignore]
from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped, unused-ignore]
from fsspec.implementations.local import make_path_posix, trailing_sep  # type: ignore[import-untyped, unused-ignore]
from fsspec.utils import isfilelike, tokenize  # type: ignore[import-untyped, unused-ignore]

from laneway._azure import named_account
from laneway._jobs import run_async
from laneway._laneway import Job, set_metadata_async, url_parts, versions_async
from laneway.exceptions import GenericError, InvalidRangeError
from laneway.fsspec._entries import file as entry_of_file
from laneway.fsspec._entries import state
from laneway.fsspec._files import open_file, open_stream, said
from laneway.fsspec._listing import Listing
from laneway.fsspec._options import HOST_OF_URL, of_azure, of_gcs, of_s3
from laneway.store import AzureStore, GCSStore, S3Store
from laneway.types import Progress, SignMethod


# True during a download. The names of local files are then made from the objects' paths.
_becomes_files: ContextVar[bool] = ContextVar("_becomes_files", default=False)


class LanewayFileSystem(Listing):
    """A filesystem of objects, whose top-level folders are buckets. Its options are the keyword arguments of stores.

    Directories exist as prefixes of objects. An empty directory that a program makes exists only in this filesystem
    object, until the program removes it. Listings are cached, as in fsspec's other filesystems. Opening a
    file doesn't use the cache.
    """

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        store, key = self._object(path)
        if start is None and end is None:
            return (await (await store.get_async(key)).bytes_async()).to_bytes()
        try:
            if start is not None and start < 0 and end is None:
                last = await store.get_async(key, options={"range": {"suffix": -start}})
                return (await last.bytes_async()).to_bytes()
            if end is None:
                rest = await store.get_async(key, options={"range": {"offset": start or 0}})
                return (await rest.bytes_async()).to_bytes()
            first, after = await self._limits(path, start, end)
            if after <= first:
                return b""
            return (await store.get_range_async(key, start=first, end=after)).to_bytes()
        except InvalidRangeError:
            # Reading beyond the end of a file returns no bytes, and is not an error.
            return b""

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Reads ranges of files. The engine joins ranges of a file into one request where that is faster, and ignores
        `max_gap`.
        """
        starts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        ends = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError(f"{len(paths)} paths, {len(starts)} starts and {len(ends)} ends: give as many of each")
        places: dict[str, list[int]] = {}
        for place, path in enumerate(paths):
            places.setdefault(self._strip_protocol(path), []).append(place)
        read = await asyncio.gather(
            *(self._ranges(path, [(starts[n], ends[n]) for n in numbers]) for path, numbers in places.items()),
            return_exceptions=True,
        )
        out: list[Any] = [None] * len(paths)
        for numbers, ranges in zip(places.values(), read, strict=True):
            if isinstance(ranges, BaseException) and (on_error == "raise" or not isinstance(ranges, Exception)):
                raise ranges
            for nth, place in enumerate(numbers):
                out[place] = ranges if isinstance(ranges, BaseException) else ranges[nth]
        return out

    async def _ranges(self, path: str, ranges: list[tuple[int | None, int | None]]) -> list[bytes]:
        """Reads ranges of a file. Like Python's slices, the ranges end at the file's end at the latest."""
        store, key = self._object(path)
        limits = await asyncio.gather(*(self._limits(path, start, end) for start, end in ranges))
        for is_last_try in (False, True):
            try:
                starts, ends = [first for first, _ in limits], [max(first, after) for first, after in limits]
                return [one.to_bytes() for one in await store.get_ranges_async(key, starts=starts, ends=ends)]
            except InvalidRangeError:
                if is_last_try:
                    raise
                size = (await self._info(path, refresh=True))["size"]
                limits = [(min(first, size), min(after, size)) for first, after in limits]
        raise AssertionError

    async def _limits(self, path: str, start: int | None, end: int | None) -> tuple[int, int]:
        """Converts a slice of a file to offsets. If the slice counts from the file's end, this looks up the file's
        size.
        """
        start = start or 0
        if start >= 0 and end is not None and end >= 0:
            return start, end
        size = (await self._info(path))["size"]
        first, after, _ = slice(start, end).indices(size)
        return first, after

    async def _pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        store, key = self._to_write(path)
        await store.put_async(key, value, mode=cast("Any", mode), **said(kwargs))
        self.invalidate_cache(path)

    async def _put_file(
        self, lpath: Any, rpath: str, mode: str = "overwrite", callback: Any = DEFAULT_CALLBACK, **kwargs: Any
    ) -> None:
        if os.path.isdir(lpath):
            return
        store, key = self._to_write(rpath)
        callback.set_size(os.path.getsize(lpath))
        done = await store.put_async(key, Path(lpath), mode=cast("Any", mode), **said(kwargs))
        callback.absolute_update(done["size"])
        self.invalidate_cache(rpath)

    async def _get_file(
        self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, outfile: Any = None, **kwargs: Any
    ) -> None:
        rpath = self._strip_protocol(rpath)
        known = self._known(rpath)
        if known is not None and known["type"] == "directory":
            os.makedirs(lpath, exist_ok=True)
            return
        store, key = self._object(rpath)
        try:
            body = await store.get_async(key)
        except FileNotFoundError:
            if not await self._isdir(rpath):
                raise
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(body.meta["size"])
        if outfile is not None or isfilelike(lpath):
            await _write(body, lpath if outfile is None else outfile, callback)
            return
        local = Path(lpath)
        local.parent.mkdir(parents=True, exist_ok=True)
        with local.open("wb") as file:
            try:
                await _write(body, file, callback)
            except BaseException:
                local.unlink()
                raise

    async def _get(
        self,
        rpath: Any,
        lpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Downloads files. One job of Laneway downloads a whole directory, as in `laneway.copy`. Otherwise fsspec
        downloads file by file.
        """
        path = self._strip_protocol(rpath)
        is_job = recursive and maxdepth is None and not (kwargs.keys() - {"batch_size"}) and _is_plain(rpath, lpath)
        if not is_job or await self._isfile(path) or not await self._has_files(path):
            token = _becomes_files.set(True)
            try:
                return await super()._get(rpath, lpath, recursive, callback, maxdepth, **kwargs)
            finally:
                _becomes_files.reset(token)
        local = cast("str", make_path_posix(lpath))
        if (trailing_sep(lpath) or os.path.isdir(local)) and not trailing_sep(rpath):
            local = f"{local.rstrip('/')}/{path.rpartition('/')[2]}"
        await self._job(f"{self._scheme}://{path}/", local, callback)

    async def _expand_path(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the paths that a pattern or a directory stands for. For downloads, it raises an exception if a path
        contains `..`. Older releases of fsspec would use such a path unchanged, and so write outside the destination.
        """
        paths = await super()._expand_path(*args, **kwargs)
        if _becomes_files.get():
            for path in paths:
                if ".." in path.split("/"):
                    raise GenericError(f"{self._scheme}://{path} can't be downloaded: its name contains '..', and would lead out of the destination")
        return paths

    async def _put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        batch_size: int | None = None,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Uploads files. One job of Laneway uploads a whole directory. Otherwise fsspec uploads file by file.
        """
        self._check_writable(str(rpath))
        is_job = recursive and maxdepth is None and kwargs == said(kwargs) and _is_plain(lpath, rpath)
        if not is_job or not os.path.isdir(lpath):
            return await super()._put(lpath, rpath, recursive, callback, batch_size, maxdepth, **kwargs)
        local, path = cast("str", make_path_posix(lpath)).rstrip("/") or "/", self._strip_protocol(rpath)
        if (trailing_sep(rpath) or await self._isdir(path)) and not trailing_sep(lpath):
            path = f"{path}/{local.rpartition('/')[2]}"
        try:
            await self._job(local, f"{self._scheme}://{path}/", callback, **kwargs)
        finally:
            # Do this even if the job fails, because a failed job has still uploaded all other files.
            folders = await asyncio.to_thread(lambda: [folder for folder, _, _ in os.walk(local)])
            for folder in folders:
                self._made.add(f"{path}/{os.path.relpath(folder, local)}".removesuffix("/."))
            self.invalidate_cache(path)

    async def _job(self, source: str, destination: str, callback: Any, **wishes: Any) -> None:
        """Runs a job that copies everything below a directory into another directory. The callback receives the numbers
        of files that were found and copied.
        """

        def report(progress: Progress) -> None:
            callback.set_size(progress.items_found)
            callback.absolute_update(progress.items_done)

        wishes = {name: wish for name, wish in wishes.items() if wish is not None}
        wishes |= {"recursive": True, "contents": True}
        await run_async(Job.begin("copy", self._settings(), [source], destination, wishes), report)

    async def _cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        self._check_writable(path2)
        path1 = self._strip_protocol(path1)
        known = self._known(path1)
        if known is not None and known["type"] == "directory":
            self._made.add(self._strip_protocol(path2))
            return
        (source, from_), (destination, to) = self._object(path1), self._object(path2)
        if source is destination:
            await source.copy_async(from_, to)
        else:
            body = await source.get_async(from_)
            await destination.put_async(to, body, attributes=body.attributes)
        self.invalidate_cache(path2)

    async def _rm(
        self,
        path: Any,
        recursive: bool = False,
        batch_size: Any = None,
        maxdepth: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Removes files, and with `recursive` everything below directories. Sends full batches of deletes."""
        paths = [self._strip_protocol(one) for one in (path if isinstance(path, list) else [path])]
        self._check_writable(str(path))
        matched: list[str] = []
        for one in paths:
            matched += cast("list[str]", await self._glob(one)) if has_magic(one) else [one]
        if not matched:
            raise FileNotFoundError(path)
        removed = await asyncio.gather(*(self._removable(one, recursive, maxdepth, one in paths) for one in matched))
        buckets: dict[str, dict[str, None]] = {}
        for bucket, keys in removed:
            buckets.setdefault(bucket, {}).update(dict.fromkeys(keys))
        try:
            for bucket, all_keys in buckets.items():
                if all_keys:
                    await self._at(bucket)[0].delete_async([*all_keys])
        finally:
            for one in matched:
                self.invalidate_cache(one)
                self._made = {made for made in self._made if not f"{made}/".startswith(f"{one}/")}

    async def _rm_file(self, path: str, **kwargs: Any) -> None:
        await self._rm(path)

    async def _removable(
        self, path: str, recursive: bool, maxdepth: int | None, is_named: bool
    ) -> tuple[str, list[str]]:
        """Returns the bucket of a path, and the keys to remove for it."""
        bucket, key = path.partition("/")[::2]
        store, _ = self._at(path)
        if recursive and maxdepth is None:
            # List all objects, because objects that stand for directories must be removed too.
            keys = [meta["path"] for meta in await store.list(f"{key}/" if key else "").collect_async()]
            if not key or keys and not await self._isfile(path):
                return bucket, keys
            named = await self._info(path, refresh=True)
            return bucket, [*keys, key] if named["type"] == "file" else keys
        if recursive:
            names = cast("list[str]", await self._find(path, maxdepth=maxdepth))
            return bucket, [name.partition("/")[2] for name in names]
        if (await self._info(path, refresh=True))["type"] == "file":
            return bucket, [key]
        if is_named:
            raise IsADirectoryError(f"{path} is a directory; pass recursive=True")
        return bucket, []

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Opens a file. The engine chooses what to read ahead, unless the caller names a `cache_type` of fsspec."""
        # Cast `self`: if a type checker also sees an installed copy of this package, it treats the two classes as
        # different.
        return open_file(cast(Any, self), path, mode, block_size, autocommit, cache_options, kwargs)

    async def open_async(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        """Opens a file whose reads and writes are awaited."""
        return await open_stream(cast(Any, self), path, mode, kwargs)

    def modified(self, path: str) -> datetime | None:
        """Returns the time of an object's last change, according to the store."""
        return cast("datetime | None", self._object_info(path)["last_modified"])

    def created(self, path: str) -> datetime | None:
        """Returns the time of an object's creation, according to the store. On S3 it equals `modified`, because a
        change there creates a new object.
        """
        # Listings don't contain this time, so look the object up.
        info = self._object_info(path, refresh=True)
        return cast("datetime | None", info.get("created", info["last_modified"]))

    def _object_info(self, path: str, refresh: bool = False) -> dict[str, Any]:
        info = cast("dict[str, Any]", self.info(path, refresh=refresh))
        if info["type"] == "directory":
            raise IsADirectoryError(f"{path}: a directory has no time")
        return info

    async def _metadata(self, path: str, **kwargs: Any) -> dict[str, str]:
        """Returns the user metadata of an object."""
        store, key = self._object(path)
        return dict((await store.head_async(key)).get("metadata") or {})

    async def _getxattr(self, path: str, attr_name: str, **kwargs: Any) -> str | None:
        """Returns the value of an entry of the user metadata, or `None` if there is no such entry."""
        return (await self._metadata(path)).get(attr_name)

    async def _setxattr(self, path: str, copy_kwargs: Any = None, **changes: str | None) -> None:
        """Changes entries of the user metadata, as in `setxattr(path, name="value")`. The value `None` removes an
        entry.
        """
        store, key = self._to_write(path)
        await set_metadata_async(store, key, changes)
        self.invalidate_cache(path)

    async def _object_version_info(self, path: str, **kwargs: Any) -> list[dict[str, Any]]:
        """Returns the versions of an object that its bucket keeps, as the store lists them. Each is an entry with
        `version`, `is_latest` and `delete_marker`.
        """
        store, key = self._object(path)
        return [entry_of_file(store.bucket, cast("Any", meta)) for meta in await versions_async(store, key)]

    metadata = sync_wrapper(_metadata)
    getxattr = sync_wrapper(_getxattr)
    setxattr = sync_wrapper(_setxattr)
    object_version_info = sync_wrapper(_object_version_info)

    def checksum(self, path: str, refresh: bool = False) -> int:
        """Returns a number that changes whenever the object changes."""
        return int(self.ukey(path, refresh=refresh), 16)

    def ukey(self, path: str, refresh: bool = False) -> str:
        """Returns 32 hexadecimal digits that change whenever the object changes."""
        return cast("str", tokenize(state(self.info(path, refresh=refresh))))

    def sign(self, path: str, expiration: int = 100, method: SignMethod = "GET", **kwargs: Any) -> str:
        """Returns a signed URL. For `expiration` seconds, anyone who has the URL can send requests of this method
        for the object.
        """
        if method not in ("GET", "HEAD"):
            self._check_writable(path)
        store, key = self._object(path)
        return store.sign(method, key, timedelta(seconds=expiration))


class GCSFileSystem(LanewayFileSystem):
    """Google Cloud Storage."""

    def url(self, path: str) -> str:
        """Returns the object's URL. Reading it needs credentials, unless the object is public. `sign` returns a URL
        that needs none.
        """
        store, key = self._object(path)
        base = self._settings().get("gcs_endpoint", "https://storage.googleapis.com").rstrip("/")
        return f"{base}/storage/v1/b/{store.bucket}/o/{quote(key, safe='')}?alt=media"

    protocol = ("gs", "gcs")
    _scheme = "gs"
    _store_of = GCSStore

    @staticmethod
    def _understood(options: dict[str, Any]) -> dict[str, Any]:
        return of_gcs(options)


class S3FileSystem(LanewayFileSystem):
    """S3, or a server that speaks its protocol."""

    def url(self, path: str, expires: int = 3600, client_method: str = "get_object", **kwargs: Any) -> str:
        """Returns a signed URL, as s3fs's `url` does."""
        methods: dict[str, SignMethod] = {
            "get_object": "GET", "head_object": "HEAD", "put_object": "PUT", "delete_object": "DELETE"
        }
        if client_method not in methods:
            raise ValueError(f"client_method must be one of {', '.join(methods)}, not {client_method!r}")
        return self.sign(path, expires, methods[client_method])

    protocol = ("s3", "s3a")
    _scheme = "s3"
    _store_of = S3Store

    @staticmethod
    def _understood(options: dict[str, Any]) -> dict[str, Any]:
        return of_s3(options)


class AzureFileSystem(LanewayFileSystem):
    """Azure Blob Storage, or a server that speaks its protocol. As in adlfs, a path is `container/key`, and the filesystem
    has one account. If a URL names an account, the filesystem of the URL has that account.
    """

    def url(self, path: str, expires: int = 3600, **kwargs: Any) -> str:
        """Returns a signed URL, as adlfs's `url` does."""
        return self.sign(path, expires)

    protocol = ("az", "abfs", "abfss")
    _scheme = "az"
    _store_of = AzureStore

    @staticmethod
    def _understood(options: dict[str, Any]) -> dict[str, Any]:
        return of_azure(options)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        if not isinstance(stripped, str):
            return stripped
        # A URL may also be `abfs://account.dfs.core.windows.net/container/key`.
        first, slash, rest = stripped.partition("/")
        container, at, _ = first.partition("@")
        return rest if not at and _is_azure_host(first) else container + slash + rest

    @staticmethod
    def _get_kwargs_from_urls(path: Any) -> dict[str, str]:
        """Returns the options of the account that a URL names."""
        scheme, separator, rest = str(path).partition("://")
        first = rest.partition("/")[0]
        if not separator or "@" not in first and "." not in first:
            return {}
        # The library refuses hosts of other services. The container of a URL without one doesn't matter here.
        _, container, _ = url_parts(f"{scheme}://{first if '@' in first else f'any@{first}'}/")
        _, account = named_account(container)
        return {"account_name": account["account_name"], HOST_OF_URL: account["endpoint"].removeprefix("https://")}


def _is_azure_host(name: str) -> bool:
    """Returns whether the first name of a path is a host of Azure, and not a container. Names of containers have no dots,
    but a path whose container is missing may begin with a file that has one.
    """
    if "." not in name:
        return False
    try:
        url_parts(f"abfss://any@{name}/")
    except ValueError:
        return False
    return True


def _is_plain(source: Any, destination: Any) -> bool:
    """Returns whether source and destination are single paths, and the source is not a pattern."""
    return isinstance(source, str) and isinstance(destination, str) and not has_magic(source)


async def _write(body: Any, file: Any, callback: Any) -> None:
    async for chunk in body:
        # Write on another thread, because a slow disk would block the event loop.
        await asyncio.to_thread(file.write, chunk)
        callback.relative_update(len(chunk))
