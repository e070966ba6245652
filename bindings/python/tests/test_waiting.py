"""Calls that wait: other threads and event loops continue, and a cancelled call frees its connection."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing import get_context

import pytest
import trio
from conftest import ACCOUNT, ACCOUNT_KEY, options

# A call that takes more seconds than this counts as hanging.
CALL_MAX = 30


@pytest.fixture
def listening():
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(CALL_MAX)
        yield listening


@pytest.fixture
def silent(listening):
    """Returns the URL of the server that never answers."""
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_other_threads_run_while_a_call_waits(make, listening, silent):
    """A signal ends the call. The thread that sends the signal needs the interpreter, so the call must not hold the
    interpreter's lock."""
    store = make(base_url=silent) if "GCS" in repr(make()) else make(endpoint=silent)

    def interrupt():
        # Once the call has connected, it waits for an answer.
        with listening.accept()[0]:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        store.get("k")
    thread.join()


def test_ctrl_c_ends_a_program_that_waits(listening, silent):
    program = f"import laneway; laneway.S3Store('b', endpoint={silent!r}, region='r', skip_signature=True).get('k')"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as process:
        with listening.accept()[0]:
            process.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in process.communicate(timeout=CALL_MAX)[1]


def test_a_cancelled_task_ends_its_call(store):
    async def cancelled():
        await store.put_async("k", b"bytes" * 4_000_000)
        before = store.counters()["bytes_received"]
        task = asyncio.ensure_future(store.get_async("k"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # A cancelled call doesn't affect the others.
        got = await asyncio.wait_for(store.get_range_async("k", start=0, length=5), 30)
        assert got == b"bytes" and store.counters()["bytes_received"] - before < 20_000_000

    asyncio.run(cancelled())


@pytest.fixture
def holding():
    """Starts a server that begins to answer reads of `held` and never ends them. Yields its URL."""
    program = os.environ.get("LANEWAY_PROGRAM", "laneway")
    command = [program, "serve", "--listen", "127.0.0.1:0", "--bucket", "lake", "--fault", "get key=*held stall@1KiB", "--account", ACCOUNT, "--account-key", ACCOUNT_KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


READS = {
    "get_range": lambda store: store.get_range_async("held", start=0, length=100_000),
    "get_ranges": lambda store: store.get_ranges_async("held", starts=[0, 50_000], lengths=[9, 50_000]),
    "into": lambda store: store.get_async("held", into=bytearray(100_000)),
}


async def cancel_what_is_held(store, read):
    for key in ("held", "free"):
        await store.put_async(key, b"x" * 100_000)
    for _ in range(3):
        before = store.counters()["bytes_received"]
        held = asyncio.ensure_future(READS[read](store))
        # The server is another process, so only the counter shows that its bytes have arrived.
        while store.counters()["bytes_received"] < before + 1024:
            await asyncio.sleep(0.001)
        waiting = asyncio.ensure_future(store.get_range_async("free", start=0, length=5))
        # Let the task begin, so that it sends its request.
        await asyncio.sleep(0)
        assert not held.done() and not waiting.done()
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        assert await asyncio.wait_for(waiting, CALL_MAX) == b"xxxxx"
        assert store.counters()["connections_open"] == 1


def run(work, *arguments):
    asyncio.run(work(*arguments))


@pytest.mark.parametrize("read", READS)
def test_a_cancelled_call_frees_its_connection(make, holding, read):
    """There is only one connection. The next call begins once the cancelled call has freed the connection. Otherwise
    it waits forever.
    """
    store = make(**options(make().scheme, holding), client_options={"connections_max": 1})
    # An engine reads its limit of connections when it starts, so another process starts the engine.
    with get_context("spawn").Pool(1) as pool:
        pool.apply_async(run, (cancel_what_is_held, store, read)).get(2 * CALL_MAX)


def test_a_timeout_ends_its_call(make, silent):
    store = make(base_url=silent) if "GCS" in repr(make()) else make(endpoint=silent)

    async def timed_out():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.get_async("k"), 0.05)

    asyncio.run(timed_out())


def test_loops_come_and_go(store):
    store.put("k", b"bytes")
    for _ in range(20):
        assert asyncio.run(awaited(store.get_range_async, "k", start=0, length=2)) == b"by"
    threads = [threading.Thread(target=lambda: asyncio.run(awaited(store.head_async, "k"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_call_may_begin_before_its_loop(store):
    store.put("k", b"bytes")
    assert asyncio.run(store.get_range_async("k", start=0, length=2)) == b"by"
    with pytest.raises(FileNotFoundError):
        asyncio.run(store.head_async("nothing"))


def test_tasks_are_made_of_calls(store):
    async def main():
        await asyncio.create_task(store.put_async("k", b"bytes"))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(store.get_range_async("k", start=n, length=1)) for n in range(5)]
        assert b"".join(bytes(task.result()) for task in tasks) == b"bytes"
        with pytest.raises(FileNotFoundError):
            await asyncio.create_task(store.head_async("nothing"))
        task = asyncio.create_task(store.get_async("k"))
        # Let the task begin, so that it sends its request.
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.gather(store.head_async("k"), store.head_async("k"))

    asyncio.run(main())


def test_a_writer_can_be_awaited(store):
    async def main():
        writer = await store.open_writer_async("k")
        await writer.write(b"bytes")
        await writer.close()
        async with await store.open_writer_async("other") as file:
            await file.write(b"bytes")

    asyncio.run(main())
    assert store.get("k").bytes() == store.get("other").bytes() == b"bytes"


def test_under_trio(store, make, silent):
    async def main():
        await store.put_async("k", b"bytes")
        assert await (await store.get_async("k")).bytes_async() == b"bytes"
        with pytest.raises(FileNotFoundError):
            await store.head_async("nothing")
        async with trio.open_nursery() as nursery:
            for n in range(50):
                nursery.start_soon(store.put_async, f"many/{n}", b"")
        far = make(base_url=silent) if "GCS" in repr(store) else make(endpoint=silent)
        with trio.move_on_after(0.05) as scope:
            await far.get_async("k")
        assert scope.cancelled_caught
        assert sum(map(len, [chunk async for chunk in store.list("many/")])) == 50

    trio.run(main)


async def awaited(verb, *args, **kwargs):
    return await verb(*args, **kwargs)
