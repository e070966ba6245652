from collections.abc import Awaitable
from typing import overload, type_check_only

from typing_extensions import Buffer

from laneway._laneway.bytes import Bytes
from laneway.types import Key

@type_check_only
class GetRange:
    @overload
    def get_range(
        self, path: Key, *, start: int, end: int | None = None, length: int | None = None, into: None = None
    ) -> Bytes: ...
    @overload
    def get_range(
        self, path: Key, *, start: int, end: int | None = None, length: int | None = None, into: Buffer
    ) -> int: ...
    @overload
    def get_range_async(
        self, path: Key, *, start: int, end: int | None = None, length: int | None = None, into: None = None
    ) -> Awaitable[Bytes]: ...
    @overload
    def get_range_async(
        self, path: Key, *, start: int, end: int | None = None, length: int | None = None, into: Buffer
    ) -> Awaitable[int]: ...
