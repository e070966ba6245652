from collections.abc import Awaitable, Sequence
from typing import type_check_only

from laneway._laneway.bytes import Bytes
from laneway.types import Key

@type_check_only
class GetRanges:
    def get_ranges(self, path: Key, *, starts: Sequence[int], ends: Sequence[int] | None = None, lengths: Sequence[int] | None = None, coalesce: int | None = None) -> list[Bytes]: ...
    def get_ranges_async(self, path: Key, *, starts: Sequence[int], ends: Sequence[int] | None = None, lengths: Sequence[int] | None = None, coalesce: int | None = None) -> Awaitable[list[Bytes]]: ...
