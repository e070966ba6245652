# mypy: disable-error-code="no-any-return"
"""The verbs as functions: `laneway.get(store, "key")` is `store.get("key")`.

The methods are written in Rust, so they have no annotations at run time. These functions have annotations. Type
checkers use the methods' stubs instead, which have overloads.
"""

from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Any

from laneway._laneway import (
    AsyncReadableFile,
    AsyncWritableFile,
    Bytes,
    GetResult,
    ListStream,
    ObjectStore,
    ReadableFile,
    WritableFile,
)
from laneway.types import (
    AsyncInput,
    Attributes,
    Buffer,
    GetOptions,
    Input,
    Key,
    ListResult,
    ObjectMeta,
    Paths,
    PutMode,
    PutResult,
    SignMethod,
)

_METHODS: Any = ObjectStore


def get(
    store: ObjectStore, path: Key, *, options: GetOptions | None = None, into: Buffer | None = None
) -> GetResult | int:
    return _METHODS.get(store, path, options=options, into=into)


def get_async(
    store: ObjectStore, path: Key, *, options: GetOptions | None = None, into: Buffer | None = None
) -> Awaitable[GetResult | int]:
    return _METHODS.get_async(store, path, options=options, into=into)


def get_range(
    store: ObjectStore,
    path: Key,
    *,
    start: int,
    end: int | None = None,
    length: int | None = None,
    into: Buffer | None = None,
) -> Bytes | int:
    return _METHODS.get_range(store, path, start=start, end=end, length=length, into=into)


def get_range_async(
    store: ObjectStore,
    path: Key,
    *,
    start: int,
    end: int | None = None,
    length: int | None = None,
    into: Buffer | None = None,
) -> Awaitable[Bytes | int]:
    return _METHODS.get_range_async(store, path, start=start, end=end, length=length, into=into)


def get_ranges(
    store: ObjectStore,
    path: Key,
    *,
    starts: Sequence[int],
    ends: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    coalesce: int | None = None,
) -> Sequence[Bytes]:
    return _METHODS.get_ranges(store, path, starts=starts, ends=ends, lengths=lengths, coalesce=coalesce)


def get_ranges_async(
    store: ObjectStore,
    path: Key,
    *,
    starts: Sequence[int],
    ends: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    coalesce: int | None = None,
) -> Awaitable[Sequence[Bytes]]:
    return _METHODS.get_ranges_async(store, path, starts=starts, ends=ends, lengths=lengths, coalesce=coalesce)


def put(
    store: ObjectStore,
    path: Key,
    file: Input,
    *,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    mode: PutMode | None = None,
    use_multipart: bool | None = None,
    chunk_size: int | None = None,
    max_concurrency: int | None = None,
) -> PutResult:
    return _METHODS.put(
        store,
        path,
        file,
        attributes=attributes,
        tags=tags,
        mode=mode,
        use_multipart=use_multipart,
        chunk_size=chunk_size,
        max_concurrency=max_concurrency,
    )


def put_async(
    store: ObjectStore,
    path: Key,
    file: AsyncInput,
    *,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    mode: PutMode | None = None,
    use_multipart: bool | None = None,
    chunk_size: int | None = None,
    max_concurrency: int | None = None,
) -> Awaitable[PutResult]:
    return _METHODS.put_async(
        store,
        path,
        file,
        attributes=attributes,
        tags=tags,
        mode=mode,
        use_multipart=use_multipart,
        chunk_size=chunk_size,
        max_concurrency=max_concurrency,
    )


def head(store: ObjectStore, path: Key) -> ObjectMeta:
    return _METHODS.head(store, path)


def head_async(store: ObjectStore, path: Key) -> Awaitable[ObjectMeta]:
    return _METHODS.head_async(store, path)


def list(
    store: ObjectStore,
    prefix: Key | None = None,
    *,
    offset: Key | None = None,
    limit: int | None = None,
    chunk_size: int = 50,
    return_arrow: bool = False,
) -> "ListStream[Any]":
    return _METHODS.list(
        store, prefix, offset=offset, limit=limit, chunk_size=chunk_size, return_arrow=return_arrow
    )


def list_with_delimiter(
    store: ObjectStore, prefix: Key | None = None, *, name_prefix: str | None = None, return_arrow: bool = False
) -> ListResult[Any]:
    return _METHODS.list_with_delimiter(store, prefix, name_prefix=name_prefix, return_arrow=return_arrow)


def list_with_delimiter_async(
    store: ObjectStore, prefix: Key | None = None, *, name_prefix: str | None = None, return_arrow: bool = False
) -> Awaitable[ListResult[Any]]:
    return _METHODS.list_with_delimiter_async(store, prefix, name_prefix=name_prefix, return_arrow=return_arrow)


def delete(store: ObjectStore, paths: Paths) -> None:
    return _METHODS.delete(store, paths)


def delete_async(store: ObjectStore, paths: Paths) -> Awaitable[None]:
    return _METHODS.delete_async(store, paths)


def rename(store: ObjectStore, from_: Key, to: Key, *, overwrite: bool = True) -> PutResult:
    return _METHODS.rename(store, from_, to, overwrite=overwrite)


def rename_async(store: ObjectStore, from_: Key, to: Key, *, overwrite: bool = True) -> Awaitable[PutResult]:
    return _METHODS.rename_async(store, from_, to, overwrite=overwrite)


def sign(store: ObjectStore, method: SignMethod, paths: Paths, expires_in: timedelta) -> str | Sequence[str]:
    return _METHODS.sign(store, method, paths, expires_in)


def sign_async(
    store: ObjectStore, method: SignMethod, paths: Paths, expires_in: timedelta
) -> Awaitable[str | Sequence[str]]:
    return _METHODS.sign_async(store, method, paths, expires_in)


def open_reader(
    store: ObjectStore,
    path: Key,
    *,
    footer: int | None = None,
    size: int | None = None,
    buffer_size: int | None = None,
) -> ReadableFile:
    return _METHODS.open_reader(store, path, footer=footer, size=size, buffer_size=buffer_size)


def open_reader_async(
    store: ObjectStore,
    path: Key,
    *,
    footer: int | None = None,
    size: int | None = None,
    buffer_size: int | None = None,
) -> Awaitable[AsyncReadableFile]:
    return _METHODS.open_reader_async(store, path, footer=footer, size=size, buffer_size=buffer_size)


def open_writer(
    store: ObjectStore,
    path: Key,
    *,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    mode: PutMode | None = None,
    buffer_size: int | None = None,
    max_concurrency: int | None = None,
) -> WritableFile:
    return _METHODS.open_writer(
        store,
        path,
        attributes=attributes,
        tags=tags,
        mode=mode,
        buffer_size=buffer_size,
        max_concurrency=max_concurrency,
    )


def open_writer_async(
    store: ObjectStore,
    path: Key,
    *,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    mode: PutMode | None = None,
    buffer_size: int | None = None,
    max_concurrency: int | None = None,
) -> AsyncWritableFile:
    return _METHODS.open_writer_async(
        store,
        path,
        attributes=attributes,
        tags=tags,
        mode=mode,
        buffer_size=buffer_size,
        max_concurrency=max_concurrency,
    )


for _verb in (
    get, get_async, get_range, get_range_async, get_ranges, get_ranges_async, put, put_async, head, head_async, list,
    list_with_delimiter, list_with_delimiter_async, delete, delete_async, rename, rename_async, sign, sign_async,
    open_reader, open_reader_async, open_writer, open_writer_async,
):
    _verb.__doc__ = getattr(ObjectStore, _verb.__name__).__doc__
