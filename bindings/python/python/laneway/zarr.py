"""Laneway as a store for zarr 3, which xarray uses too: `zarr.open(laneway.zarr.Store("gs://lake/cube.zarr"))`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, Self, TypeAlias

from zarr.abc.store import (  # type: ignore[import-not-found, unused-ignore]
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
)
from zarr.abc.store import (  # type: ignore[import-not-found, unused-ignore]
    Store as ZarrStore,
)
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype  # type: ignore[import-not-found, unused-ignore]

from laneway._laneway import ObjectStore
from laneway.exceptions import InvalidRangeError
from laneway.store import from_url
from laneway.types import GetOptions

__all__ = ["Store"]

_Buffers: TypeAlias = "list[Buffer | None]"


class Store(ZarrStore):  # type: ignore[misc, unused-ignore]
    """A zarr store in a store of Laneway, or below a URL. With a URL, the keyword arguments are those of Laneway's
    stores.
    """

    def __init__(self, store: ObjectStore | str, *, read_only: bool = False, **options: Any) -> None:
        super().__init__(read_only=read_only)
        if isinstance(store, ObjectStore):
            if options:
                raise TypeError(f"with a store, give no other options, because it has its own configuration: {', '.join(options)}")
            self.store: ObjectStore = store
        else:
            self.store = from_url(store, **options)

    def with_read_only(self, read_only: bool = False) -> Self:
        return type(self)(self.store, read_only=read_only)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.read_only == self.read_only and other.store == self.store

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.store.url

    def __repr__(self) -> str:
        return f"laneway.zarr.Store({self.store.url!r})"

    @property
    def supports_writes(self) -> bool:
        return True

    @property
    def supports_deletes(self) -> bool:
        return True

    @property
    def supports_listing(self) -> bool:
        return True

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        options = _options(byte_range)
        try:
            content = await (await self.store.get_async(key, options=options)).bytes_async()
        except InvalidRangeError:
            # A range beyond the end of the object is empty, as with a slice in Python.
            return prototype.buffer.from_bytes(b"")
        except FileNotFoundError:
            return None
        return prototype.buffer.from_bytes(content)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> _Buffers:
        return list(await asyncio.gather(*(self.get(key, prototype, byte_range) for key, byte_range in key_ranges)))

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        buffer = (prototype or default_buffer_prototype()).buffer
        try:
            content = self.store.get(key, options=_options(byte_range)).bytes()
        except InvalidRangeError:
            return buffer.from_bytes(b"")
        except FileNotFoundError:
            return None
        return buffer.from_bytes(content)

    async def exists(self, key: str) -> bool:
        try:
            await self.store.head_async(key)
        except FileNotFoundError:
            return False
        return True

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self.store.put_async(key, value.as_buffer_like())

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        with suppress(FileExistsError):
            await self.store.put_async(key, value.as_buffer_like(), mode="create")

    def set_sync(self, key: str, value: Buffer) -> None:
        self._check_writable()
        self.store.put(key, value.as_buffer_like())

    async def delete(self, key: str) -> None:
        self._check_writable()
        with suppress(FileNotFoundError):
            await self.store.delete_async(key)

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        with suppress(FileNotFoundError):
            self.store.delete(key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        # Another process may remove some of the objects at the same time.
        with suppress(FileNotFoundError):
            await self.store.delete_async([key async for key in self.list_prefix(_folder(prefix))])

    async def list(self) -> AsyncIterator[str]:
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        async for metas in self.store.list(prefix):
            for meta in metas:
                yield meta["path"]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        folder = _folder(prefix)
        below = await self.store.list_with_delimiter_async(folder)
        for name in [*below["common_prefixes"], *(meta["path"] for meta in below["objects"])]:
            if name != folder:
                yield name.removeprefix(folder)

    async def getsize(self, key: str) -> int:
        return (await self.store.head_async(key))["size"]

    async def getsize_prefix(self, prefix: str) -> int:
        metas = await self.store.list(_folder(prefix)).collect_async()
        return sum(meta["size"] for meta in metas)


def _options(byte_range: ByteRequest | None) -> GetOptions:
    match byte_range:
        case None:
            return {}
        case RangeByteRequest(start=start, end=end):
            return {"range": (start, end)}
        case OffsetByteRequest(offset=offset):
            return {"range": {"offset": offset}}
        case SuffixByteRequest(suffix=suffix):
            return {"range": {"suffix": suffix}}
    raise ValueError(f"Unexpected byte_range, got {byte_range}")


def _folder(prefix: str) -> str:
    return f"{prefix.rstrip('/')}/" if prefix.strip("/") else ""
