"""Open files. They wrap Laneway's own files, and add the methods that users of fsspec's files expect."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped, unused-ignore]

from laneway._laneway import AsyncReadableFile, AsyncWritableFile, ObjectStore
from laneway.exceptions import PreconditionError
from laneway.fsspec import _entries
from laneway.fsspec._columns import Range

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from laneway.fsspec._filesystem import LanewayFileSystem

T = TypeVar("T")

# To append, the old content is copied in chunks of this size.
_CHUNK = 8 << 20
_MODES = "'rb', 'wb', 'xb' or 'ab'"


def open_file(
    fs: LanewayFileSystem,
    path: str,
    mode: str,
    block_size: int | None,
    autocommit: bool,
    cache_options: dict[str, Any] | None,
    kwargs: dict[str, Any],
) -> Any:
    store, key = fs._object(path)
    path = fs._strip_protocol(path)
    if mode == "rb" and kwargs.get("cache_type"):
        sizes: dict[str, Any] = {"block_size": block_size or fs.blocksize, "size": kwargs.get("size")}
        return CachedFile(fs, path, mode, cache_type=kwargs["cache_type"], cache_options=cache_options, **sizes)
    if mode == "rb":
        return Reader(fs, path)
    if mode not in ("wb", "xb", "ab"):
        raise ValueError(f"{path}: the mode must be {_MODES}, not {mode!r}")
    fs._check_writable(path)
    options = said(kwargs)
    old = None
    if mode == "xb":
        if fs.exists(path):
            raise FileExistsError(f"{path} exists")
        options["mode"] = "create"
    if mode == "ab":
        old = _old(store, key)
        options["mode"] = "create" if old is None else {"e_tag": old.meta["e_tag"], "version": old.meta["version"]}
        options["attributes"] = options.get("attributes", {}) if old is None else old.attributes | options.get("attributes", {})
    writer = Writer(fs, path, mode, autocommit, options)
    if old is not None:
        for chunk in old.stream(_CHUNK):
            writer.write(chunk)
    return writer


def said(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the caller's options that are properties of the new object. Options for the sizes of parts are ignored,
    because the engine chooses them.
    """
    return {name: value for name, value in kwargs.items() if name in ("attributes", "tags")}


def _old(store: ObjectStore, key: str) -> Any:
    try:
        return store.get(key)
    except FileNotFoundError:
        return None


class Reader(io.BufferedIOBase):
    """An object as a file for reading. The engine decides what to read ahead. All reads get the same version of the
    object.
    """

    mode = "rb"

    def __init__(self, fs: LanewayFileSystem, path: str) -> None:
        self.fs, self.path = fs, path
        self._file, self._ahead, self._is_early = fs.openings.open(path)
        # For a file that was opened ahead: a lock for the first read, and whether the program has learnt the file's
        # size.
        self._first, self._is_size_told = threading.RLock(), False
        self.blocksize = fs.blocksize

    def __repr__(self) -> str:
        return f"<laneway.fsspec.Reader {self.full_name}>"

    @property
    def size(self) -> int:
        self._is_size_told = True
        return self._file.size

    @property
    def details(self) -> _entries.Entry:
        self._is_size_told = True
        return _entries.file(self.path.partition("/")[0], self._file.meta)

    def info(self) -> _entries.Entry:
        return self.details

    @property
    def full_name(self) -> str:
        return cast("str", self.fs.unstrip_protocol(self.path))

    @property
    def loc(self) -> int:
        return self.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        is_whole = size is None or size < 0
        return self._of_one_version(lambda: self._read(size), is_whole=is_whole)

    def _read(self, size: int | None) -> bytes:
        if self._ahead is None or size is None or size < 0:
            return self._file.read(size)
        # Other threads may seek during the read. So move the position first, and then read at the old one.
        start = self._file.tell()
        asked = Range(start, max(start, min(start + size, self._file.size)))
        self._file.seek(asked.end)
        try:
            parts = self._ahead.read(asked)
            content = self._ahead.content(parts) if parts else None
            if content is None:
                content = self._file.read_at(asked.start, asked.end - asked.start)
                self._ahead.saw(asked, content)
        except BaseException:
            if self._file.tell() == asked.end:
                self._file.seek(start)
            raise
        return content

    def _of_one_version(self, read: Callable[[], T], is_whole: bool = False) -> T:
        """Reads with `read`. If a file that was opened ahead has been replaced or removed meanwhile, opens it again.
        This is only possible until its first bytes are returned.
        """
        if not self._is_early:
            return read()
        with self._first:
            start = self._file.tell()
            try:
                content = read()
            except (FileNotFoundError, PreconditionError):
                if not self._is_early or not self._open_anew(start, is_whole):
                    raise
                content = read()
            if content:
                self._is_early = False
            else:
                # A read that returns no bytes shows the program where the file ends, and thus the file's size.
                self._is_size_told = True
            return content

    def _open_anew(self, start: int, is_whole: bool) -> bool:
        """Opens the current version of the file. Returns false if its size differs, and the program may have learnt the
        old size.
        """
        file, ahead, _ = self.fs.openings.open_now(self.path)
        if self._is_size_told and file.size != self._file.size and not (is_whole and start == 0):
            return False
        file.seek(start)
        self._file, self._ahead, self._is_early = file, ahead, False
        return True

    def read1(self, size: int = -1, /) -> bytes:
        return self._of_one_version(lambda: self._file.read(size), is_whole=size < 0)

    def readinto(self, buffer: Buffer, /) -> int:
        return self._of_one_version(lambda: self._file.readinto(buffer))

    def readinto1(self, buffer: Buffer, /) -> int:
        return self.readinto(buffer)

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._of_one_version(lambda: self._file.readline(size))

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        return self._of_one_version(lambda: self._file.readlines(hint), is_whole=hint is None or hint <= 0)

    def __next__(self) -> bytes:
        return self._of_one_version(lambda: next(self._file))

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._is_size_told |= whence == io.SEEK_END
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        self._file.close()
        super().close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.fs, self.path, self.tell())


def _again(fs: LanewayFileSystem, path: str, position: int) -> Reader:
    reader = Reader(fs, path)
    reader.seek(position)
    return reader


class CachedFile(AbstractBufferedFile):  # type: ignore[misc, unused-ignore]
    """An object as a file that is read through one of fsspec's caches."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        store, key = self.fs._object(self.path)
        return cast("bytes", store.get_range(key, start=start, end=end).to_bytes()) if start < end else b""


class Writer(io.BufferedIOBase):
    """A new object as a file for writing. The object becomes visible when the file is closed, or when its transaction
    ends. An exception in a `with` block aborts the upload.
    """

    def __init__(
        self, fs: LanewayFileSystem, path: str, mode: str, autocommit: bool, options: dict[str, Any]
    ) -> None:
        self.fs, self.path, self.mode, self.autocommit = fs, path, mode, autocommit
        store, key = fs._object(path)
        self._file = store.open_writer(key, **options)
        self.blocksize = fs.blocksize

    def __repr__(self) -> str:
        return f"<laneway.fsspec.Writer {self.full_name} mode={self.mode!r}>"

    @property
    def full_name(self) -> str:
        return cast("str", self.fs.unstrip_protocol(self.path))

    @property
    def loc(self) -> int:
        return self.tell()

    def write(self, buffer: Buffer, /) -> int:
        self._check()
        return self._file.write(buffer)

    def tell(self) -> int:
        return self._file.tell()

    def writable(self) -> bool:
        return True

    def flush(self, force: bool = False) -> None:
        """Does nothing, because the object is visible only after `close`."""
        self._check()

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self.autocommit:
                self.commit()
        finally:
            super().close()

    def commit(self) -> None:
        """Completes the object."""
        self._file.close()
        self.fs.invalidate_cache(self.path)

    def discard(self) -> None:
        """Aborts the upload."""
        self.autocommit = False
        self._file.abort()

    def __exit__(self, kind: Any, raised: Any, traceback: Any) -> None:
        if kind is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        # fsspec's compressing files don't close the file that they write to. They leave this to the garbage
        # collector.
        if hasattr(self, "_file"):
            self.close()

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


async def open_stream(fs: LanewayFileSystem, path: str, mode: str, kwargs: dict[str, Any]) -> Stream:
    store, key = fs._object(path)
    if mode == "rb":
        return Stream(fs, path, await store.open_reader_async(key))
    if mode not in ("wb", "xb"):
        raise ValueError(f"{path}: the mode of an async file must be 'rb', 'wb' or 'xb', not {mode!r}")
    fs._check_writable(path)
    options = said(kwargs)
    if mode == "xb":
        if await fs._exists(path):
            raise FileExistsError(f"{path} exists")
        options["mode"] = "create"
    return Stream(fs, path, store.open_writer_async(key, **options))


class Stream:
    """A file whose reads or writes are awaited."""

    def __init__(self, fs: LanewayFileSystem, path: str, file: AsyncReadableFile | AsyncWritableFile) -> None:
        self.fs, self.path, self._file = fs, path, file
        self.size = file.size if isinstance(file, AsyncReadableFile) else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __repr__(self) -> str:
        return f"<laneway.fsspec.Stream {self.path} of {self._file!r}>"

    async def read(self, length: int = -1) -> bytes:
        return cast("bytes", await cast("Any", self._file).read(length))

    async def write(self, data: Buffer) -> int:
        return cast("int", await cast("Any", self._file).write(data))

    async def close(self) -> None:
        if isinstance(self._file, AsyncReadableFile):
            self._file.close()
        else:
            await self._file.close()
            self.fs.invalidate_cache(self.path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, raised: Any, traceback: Any) -> None:
        if kind is not None and isinstance(self._file, AsyncWritableFile):
            await self._file.abort()
        else:
            await self.close()
