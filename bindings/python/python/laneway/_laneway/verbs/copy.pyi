from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import Key, PutResult

@type_check_only
class Copy:
    def copy(self, from_: Key, to: Key, *, overwrite: bool = True) -> PutResult: ...
    def copy_async(self, from_: Key, to: Key, *, overwrite: bool = True) -> Awaitable[PutResult]: ...
