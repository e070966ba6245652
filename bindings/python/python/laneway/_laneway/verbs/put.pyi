from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import AsyncInput, Attributes, Input, Key, PutMode, PutResult

@type_check_only
class Put:
    def put(self, path: Key, file: Input, *, attributes: Attributes | None = None, tags: dict[str, str] | None = None, mode: PutMode | None = None, use_multipart: bool | None = None, chunk_size: int | None = None, max_concurrency: int | None = None) -> PutResult: ...
    def put_async(self, path: Key, file: AsyncInput, *, attributes: Attributes | None = None, tags: dict[str, str] | None = None, mode: PutMode | None = None, use_multipart: bool | None = None, chunk_size: int | None = None, max_concurrency: int | None = None) -> Awaitable[PutResult]: ...
