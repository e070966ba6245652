from collections.abc import Awaitable
from typing import type_check_only

from laneway._laneway.files import AsyncReadableFile, Opening, ReadableFile
from laneway.types import Key

@type_check_only
class OpenReader:
    def open_reader(self, path: Key, *, footer: int | None = None, size: int | None = None, buffer_size: int | None = None) -> ReadableFile: ...
    def open_reader_async(self, path: Key, *, footer: int | None = None, size: int | None = None, buffer_size: int | None = None) -> Awaitable[AsyncReadableFile]: ...
    def begin_reader(self, path: Key, *, footer: int | None = None) -> Opening: ...
