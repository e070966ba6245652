"""Reads, writes and moves objects of Google Cloud Storage, S3 and Azure Blob Storage, as fast as the network allows, without
tuning.
"""

import atexit
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from laneway import exceptions, plan, store
from laneway._laneway import (
    AsyncReadableFile,
    AsyncWritableFile,
    Bytes,
    BytesStream,
    GetResult,
    ListStream,
    ObjectStore,
    ReadableFile,
    WritableFile,
    __version__,
    end_logging,
)
from laneway._copy import copy, copy_async
from laneway._remove import remove, remove_async
from laneway._sync import sync, sync_async
from laneway.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store, from_url

# Each verb is also a function that takes the store first: `laneway.get(store, "key")` is `store.get("key")`.
if TYPE_CHECKING:
    get = ObjectStore.get
    get_async = ObjectStore.get_async
    get_range = ObjectStore.get_range
    get_range_async = ObjectStore.get_range_async
    get_ranges = ObjectStore.get_ranges
    get_ranges_async = ObjectStore.get_ranges_async
    put = ObjectStore.put
    put_async = ObjectStore.put_async
    head = ObjectStore.head
    head_async = ObjectStore.head_async
    list = ObjectStore.list
    list_with_delimiter = ObjectStore.list_with_delimiter
    list_with_delimiter_async = ObjectStore.list_with_delimiter_async
    delete = ObjectStore.delete
    delete_async = ObjectStore.delete_async
    rename = ObjectStore.rename
    rename_async = ObjectStore.rename_async
    sign = ObjectStore.sign
    sign_async = ObjectStore.sign_async
    open_reader = ObjectStore.open_reader
    open_reader_async = ObjectStore.open_reader_async
    open_writer = ObjectStore.open_writer
    open_writer_async = ObjectStore.open_writer_async
else:
    from laneway._verbs import (
        delete,
        delete_async,
        get,
        get_async,
        get_range,
        get_range_async,
        get_ranges,
        get_ranges_async,
        head,
        head_async,
        list,
        list_with_delimiter,
        list_with_delimiter_async,
        open_reader,
        open_reader_async,
        open_writer,
        open_writer_async,
        put,
        put_async,
        rename,
        rename_async,
        sign,
        sign_async,
    )

# Register the classes, so that libraries that test a file for `io.BufferedIOBase` accept them.
io.BufferedIOBase.register(ReadableFile)
io.BufferedIOBase.register(WritableFile)

# The thread that passes the engine's messages to `logging` must end before the interpreter does.
atexit.register(end_logging)

__all__ = [
    "AsyncReadableFile",
    "AsyncWritableFile",
    "AzureStore",
    "Bytes",
    "BytesStream",
    "GCSStore",
    "GetResult",
    "ListStream",
    "LocalStore",
    "MemoryStore",
    "ObjectStore",
    "ReadableFile",
    "S3Store",
    "WritableFile",
    "__version__",
    "copy",
    "copy_async",
    "delete",
    "delete_async",
    "exceptions",
    "from_url",
    "get",
    "get_async",
    "get_range",
    "get_range_async",
    "get_ranges",
    "get_ranges_async",
    "head",
    "head_async",
    "list",
    "list_with_delimiter",
    "list_with_delimiter_async",
    "open_reader",
    "open_reader_async",
    "open_writer",
    "open_writer_async",
    "plan",
    "put",
    "put_async",
    "remove",
    "remove_async",
    "rename",
    "rename_async",
    "sign",
    "sign_async",
    "store",
    "sync",
    "sync_async",
]


def __dir__() -> Sequence[str]:
    return __all__
