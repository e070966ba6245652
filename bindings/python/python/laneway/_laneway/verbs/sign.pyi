from collections.abc import Awaitable
from datetime import timedelta
from typing import overload, type_check_only

from laneway.types import Key, SignMethod

@type_check_only
class Sign:
    @overload
    def sign(self, method: SignMethod, paths: Key, expires_in: timedelta) -> str: ...
    @overload
    def sign(self, method: SignMethod, paths: list[str] | list[Key], expires_in: timedelta) -> list[str]: ...
    @overload
    def sign_async(self, method: SignMethod, paths: Key, expires_in: timedelta) -> Awaitable[str]: ...
    @overload
    def sign_async(
        self, method: SignMethod, paths: list[str] | list[Key], expires_in: timedelta
    ) -> Awaitable[list[str]]: ...
