from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import ObjectMeta

@type_check_only
class Head:
    def head(self, path: str) -> ObjectMeta: ...
    def head_async(self, path: str) -> Awaitable[ObjectMeta]: ...
