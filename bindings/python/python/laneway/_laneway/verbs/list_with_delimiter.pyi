from collections.abc import Awaitable
from typing import type_check_only

from laneway.types import Key, ListResult

@type_check_only
class ListWithDelimiter:
    def list_with_delimiter(self, prefix: Key | None = None) -> ListResult: ...
    def list_with_delimiter_async(self, prefix: Key | None = None) -> Awaitable[ListResult]: ...
