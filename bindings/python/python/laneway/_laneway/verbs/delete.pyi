from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import Paths

@type_check_only
class Delete:
    def delete(self, paths: Paths) -> None: ...
    def delete_async(self, paths: Paths) -> Awaitable[None]: ...
