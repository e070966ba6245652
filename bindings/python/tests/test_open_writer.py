import asyncio
import warnings

import pytest

CONTENT = bytes(range(256)) * 200


def test_a_file_that_is_written(store):
    with store.open_writer("k") as file:
        assert file.write(CONTENT) == len(CONTENT) and file.tell() == len(CONTENT)
        with pytest.raises(FileNotFoundError):
            store.head("k")
    assert file.closed and store.get("k").bytes() == CONTENT
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")


def test_a_file_that_is_left_by_an_exception_leaves_nothing(store):
    with pytest.raises(RuntimeError), store.open_writer("k") as file:
        file.write(b"bytes" * 5_000_000)
        raise RuntimeError
    assert store.list().collect() == []


def test_awaited(store):
    async def write():
        async with store.open_writer_async("k") as file:
            await file.write(CONTENT)

    asyncio.run(write())
    assert store.get("k").bytes() == CONTENT


def test_a_file_that_is_never_closed_is_warned_about(store):
    file = store.open_writer("k")
    file.write(CONTENT)
    with pytest.warns(ResourceWarning, match="unclosed file <laneway.WritableFile name=.*k.*>: its object was not written"):
        del file
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for end in ("close", "abort"):
            file = store.open_writer("k")
            getattr(file, end)()
            del file


def test_the_warning_keeps_the_exception_that_is_raised(store):
    def write():
        file = store.open_writer("k")
        file.write(CONTENT)
        raise KeyError("k")

    with pytest.warns(ResourceWarning):
        try:
            write()
        except KeyError:
            pass
