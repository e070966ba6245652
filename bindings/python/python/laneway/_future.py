"""Futures for tasks of asyncio."""

import asyncio
from typing import Any


class Future(asyncio.Future[Any]):
    """A running call. Cancelling the future ends the call and frees its connection."""

    running: Any = None

    def cancel(self, msg: Any | None = None) -> bool:
        if self.running is not None:
            self.running.cancel()
        return super().cancel(msg)
