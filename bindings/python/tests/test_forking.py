"""Processes that are forked, spawned or started by a fork server: each has its own engine, and no process hangs."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest

# A child that takes more seconds than this counts as hanging.
CHILD_MAX = 60

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


def read(store, key):
    return bytes(store.get(key).bytes())


def read_some(file):
    return file.read(5)


@pytest.fixture
def busy(store):
    """Returns the store, while threads keep its engine busy."""
    store.put("k", b"bytes")
    store.put("large", b"x" * 9_000_000)
    is_over = threading.Event()

    def work():
        while not is_over.is_set():
            store.get("large").bytes()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    yield store
    is_over.set()
    for thread in threads:
        thread.join()


def in_child(work):
    """Runs `work` in a forked child, and returns whether it succeeded. A child that hangs is killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(CHILD_MAX)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_fork_beside_a_busy_engine(busy):
    file = busy.open_reader("k")
    listing = iter(busy.list(chunk_size=1))
    assert len(next(listing)) == 1
    got = busy.get("k")

    def child():
        assert read(busy, "k") == b"bytes"
        # An open file can still be read. Calls that were under way during the fork fail.
        assert file.read(5) == b"bytes"
        for used in (listing.__next__, got.bytes):
            try:
                used()
            except Exception as error:
                assert "fork" in str(error), error
        busy.put(f"child-{os.getpid()}", b"")

    for _ in range(8):
        assert in_child(child)
    assert got.bytes() == b"bytes" and read(busy, "k") == b"bytes"


def test_a_child_does_not_warn_about_the_file_of_its_parent(busy):
    files = [busy.open_writer("k")]
    files[0].write(b"bytes")

    def child():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            files.clear()
        assert not caught

    assert in_child(child)
    files[0].close()
    assert read(busy, "k") == b"bytes"


def test_a_fork_while_a_loop_runs(busy):
    import asyncio

    async def main():
        future = busy.get_async("large")

        def child():
            assert asyncio.run(awaited(busy.get_range_async, "k", start=0, length=5)) == b"bytes"

        assert in_child(child)
        assert len(await (await future).bytes_async()) == 9_000_000

    asyncio.run(main())


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes(busy, method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.starmap_async(read, [(busy, "k")] * 6).get(CHILD_MAX) == [b"bytes"] * 6


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_executors_of_processes(busy, method):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert [job.result(CHILD_MAX) for job in [pool.submit(read, busy, "k") for _ in range(4)]] == [b"bytes"] * 4
        with pytest.raises(FileNotFoundError):
            pool.submit(read, busy, "nothing").result(CHILD_MAX)


async def awaited(verb, *args, **kwargs):
    return await verb(*args, **kwargs)


if sys.platform == "darwin":
    # Most of macOS's own libraries don't work in a forked child.
    pytestmark = [pytestmark, pytest.mark.skip(reason="macOS")]
