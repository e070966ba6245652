"""Waits for calls of the library in tasks of trio."""

from typing import Any

import trio


async def wait(pending: Any) -> Any:
    """Waits for a call. Cancelling the wait cancels the call."""
    try:
        await trio.lowlevel.wait_readable(pending)
    except BaseException:
        pending.cancel()
        raise
    return pending.result()
