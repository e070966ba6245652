from typing import type_check_only

from laneway._laneway.files import AsyncWritableFile, WritableFile
from laneway.types import Attributes, Key, PutMode

@type_check_only
class OpenWriter:
    def open_writer(self, path: Key, *, attributes: Attributes | None = None, tags: dict[str, str] | None = None, mode: PutMode | None = None, buffer_size: int | None = None, max_concurrency: int | None = None) -> WritableFile: ...
    def open_writer_async(self, path: Key, *, attributes: Attributes | None = None, tags: dict[str, str] | None = None, mode: PutMode | None = None, buffer_size: int | None = None, max_concurrency: int | None = None) -> AsyncWritableFile: ...
