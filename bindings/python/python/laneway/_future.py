"""Awaitables for calls of the library, in tasks of asyncio and trio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any


class Future(asyncio.Future[Any]):
    """A running call. Cancelling the future ends the call and frees its connection.

    This class also has the methods of a coroutine, so that `asyncio.create_task` and `TaskGroup` accept it.
    """

    running: Any = None
    _steps: Iterator[Any] | None = None

    def cancel(self, msg: Any | None = None) -> bool:
        if self.running is not None:
            self.running.cancel()
        return super().cancel(msg)

    def send(self, value: Any) -> Any:
        """Continues to wait for the call. A task calls this, as it does with a coroutine."""
        if self._steps is None:
            self._steps = iter(self.__await__())
        return next(self._steps)

    def throw(self, kind: Any, raised: Any = None, traceback: Any = None, /) -> Any:
        """Cancels the call, because the task that waits for it received an exception."""
        self.close()
        raise kind if raised is None else raised

    def close(self) -> None:
        """Cancels the call."""
        if not self.done():
            self.cancel()


async def wait(pending: Any) -> Any:
    """Waits for a call that was made without a running asyncio loop. Cancelling the wait cancels the call."""
    if asyncio._get_running_loop() is None:
        from laneway._trio import wait as wait_in_trio

        return await wait_in_trio(pending)
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pending.fileno(), readable.set)
    try:
        await readable.wait()
    except BaseException:
        pending.cancel()
        raise
    finally:
        loop.remove_reader(pending.fileno())
    return pending.result()
