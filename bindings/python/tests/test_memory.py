"""The memory that stays allocated after a burst of calls."""

import asyncio
import os
import platform
import subprocess
import sys
import time

import pytest

PUTS = 5000
# The limit in MiB. The burst takes 85 MiB, of which its bytes take 23 MiB.
LEFT_MAX = 20
# The limit in seconds. The engine returns memory one second after the last call.
WAIT_MAX = 30


def resident():
    """Returns the resident memory in MiB."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators go by rules of their own")
def test_a_burst_of_puts_leaves_little_memory(make):
    """Runs in a separate process, because the tests before it leave much free memory."""
    store = make()
    subprocess.run([sys.executable, __file__, type(store).__name__, repr(store.config)], check=True)


if __name__ == "__main__":
    import ast

    import laneway

    store = getattr(laneway, sys.argv[1])(prefix="burst", **ast.literal_eval(sys.argv[2]))

    async def burst(count):
        data = [os.urandom(4700) for _ in range(count)]
        await asyncio.gather(*(store.put_async(f"{n}", data[n]) for n in range(count)))

    asyncio.run(burst(10))
    before, began = resident(), time.monotonic()
    asyncio.run(burst(PUTS))
    while (left := resident() - before) > LEFT_MAX:
        assert time.monotonic() - began < WAIT_MAX, f"{left:.0f} MiB stay"
        time.sleep(0.2)
