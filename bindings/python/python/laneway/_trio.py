"""What tasks of trio await."""

from typing import Any

import trio


async def wait(pending: Any) -> Any:
    """Waits for a call, which ends when the wait is cancelled."""
    try:
        await trio.lowlevel.wait_readable(pending)
    except BaseException:
        pending.cancel()
        raise
    return pending.result()
