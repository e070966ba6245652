from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import AsyncInput, Attributes, Input, Key, PutMode, PutResult

@type_check_only
class Put:
    def put(self, path: Key, file: Input, *, attributes: Attributes | None = None, tags: dict[str, str] | None = None, mode: PutMode | None = None) -> PutResult: ...
    def put_async(self, path: Key, file: AsyncInput, *, attributes: Attributes | None = None, tags: dict[str, str] | None = None, mode: PutMode | None = None) -> Awaitable[PutResult]: ...
