"""What tasks of asyncio await."""

import asyncio
from typing import Any


class Future(asyncio.Future[Any]):
    """A call under way, which ends when its future is cancelled: its lane is free then."""

    running: Any = None

    def cancel(self, msg: Any | None = None) -> bool:
        if self.running is not None:
            self.running.cancel()
        return super().cancel(msg)
