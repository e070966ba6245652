import asyncio
import gzip
import io
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

LINES = b"".join(b"%d\n" % n for n in range(10_000)) + b"end"


def test_a_file_that_is_read(store):
    store.put("lines", LINES)
    with store.open_reader("lines") as file:
        assert (file.size, file.tell(), file.readable(), file.seekable()) == (len(LINES), 0, True, True)
        assert file.read(5) == LINES[:5] and file.tell() == 5
        assert file.seek(-3, io.SEEK_END) == len(LINES) - 3
        assert file.read() == b"end" and file.read(1) == b"" and file.readline() == b""
        file.seek(0)
        assert list(file) == LINES.splitlines(keepends=True)
        file.seek(2)
        assert file.readline() == b"1\n" and file.readlines(3) == [b"2\n", b"3\n"]
        buffer = bytearray(4)
        assert file.readinto(buffer) == 4 and buffer == b"4\n5\n"
        assert file.read_ranges(starts=[0, 100], ends=[2, 103]) == [LINES[:2], LINES[100:103]]
        with pytest.raises(ValueError, match="negative"):
            file.seek(-1)
    with pytest.raises(ValueError, match="closed"):
        file.read()
    assert isinstance(store.open_reader("lines", footer=8).read(2), bytes)


def test_large_buffers_are_filled_from_any_offset(store):
    content = random.Random(1).randbytes(24 << 20)
    store.put("k", content)
    with store.open_reader("k", footer=1000) as file:
        # Read a header and the bytes after it, skip a gap, and jump back. The last read reaches beyond the end.
        for at, size in [(0, 30), (30, 9 << 20), (10 << 20, 5 << 20), (7, 4 << 20), (20 << 20, 8 << 20)]:
            file.seek(at)
            buffer = bytearray(size)
            read = file.readinto(buffer)
            assert (read, file.tell()) == (min(size, len(content) - at), at + read)
            assert buffer[:read] == content[at : at + read] and not any(buffer[read:])
    # A file may be declared shorter than its object. Its reads end there.
    buffer = bytearray(8 << 20)
    with store.open_reader("k", size=5 << 20) as file:
        assert file.readinto(buffer) == 5 << 20
    assert buffer == content[: 5 << 20] + bytes(3 << 20)


def test_threads_that_seek_and_read_by_turns_get_what_they_sought(store):
    content = bytes(range(256)) * 40_000
    store.put("k", content)
    before = sys.getswitchinterval()
    # DuckDB's threads hold the interpreter's lock from one call to the next. The threads of this test imitate
    # that.
    sys.setswitchinterval(100)
    try:
        with store.open_reader("k") as file, ThreadPoolExecutor(8) as threads:

            def read(at):
                file.seek(at)
                if at % 2:
                    return file.read(5000)
                buffer = bytearray(5000)
                return buffer[: file.readinto(buffer)]

            places = [at * 99_991 % (len(content) - 5000) for at in range(200)]
            assert list(threads.map(read, places)) == [content[at : at + 5000] for at in places]
    finally:
        sys.setswitchinterval(before)


def test_ranges_are_on_their_way_while_others_are_read(store):
    store.put("lines", LINES)
    with store.open_reader("lines") as file:
        fetched = file.fetch(starts=[0, 100], ends=[2, 103])
        assert file.read(3) == LINES[:3]
        assert fetched.result() == [LINES[:2], LINES[100:103]]
        with pytest.raises(ValueError, match="already been returned"):
            fetched.result()
        with pytest.raises(FileNotFoundError):
            store.open_reader("none")


def test_others_read_it(store):
    store.put("z", gzip.compress(LINES))
    with gzip.open(store.open_reader("z")) as file:
        assert file.read() == LINES


def test_awaited(store):
    store.put("lines", LINES)

    async def read():
        file = await store.open_reader_async("lines")
        assert await file.read(5) == LINES[:5]
        assert await file.seek(0) == 0 and await file.tell() == 0
        assert [line async for line in file] == LINES.splitlines(keepends=True)

    asyncio.run(read())
