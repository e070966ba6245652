from collections.abc import Awaitable
from typing import Any, Literal, overload, type_check_only

from laneway.types import Key, ListResult, ObjectMeta

@type_check_only
class ListWithDelimiter:
    @overload
    def list_with_delimiter(self, prefix: Key | None = None, *, name_prefix: str | None = None, return_arrow: Literal[False] = False) -> ListResult[list[ObjectMeta]]: ...
    @overload
    def list_with_delimiter(self, prefix: Key | None = None, *, name_prefix: str | None = None, return_arrow: bool) -> ListResult[Any]: ...
    @overload
    def list_with_delimiter_async(self, prefix: Key | None = None, *, name_prefix: str | None = None, return_arrow: Literal[False] = False) -> Awaitable[ListResult[list[ObjectMeta]]]: ...
    @overload
    def list_with_delimiter_async(self, prefix: Key | None = None, *, name_prefix: str | None = None, return_arrow: bool) -> Awaitable[ListResult[Any]]: ...
