from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import Key, ObjectMeta

@type_check_only
class Head:
    def head(self, path: Key) -> ObjectMeta: ...
    def head_async(self, path: Key) -> Awaitable[ObjectMeta]: ...
