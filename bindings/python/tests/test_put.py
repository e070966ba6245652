"""Writing objects."""

import asyncio
import io
import mmap

import laneway
import pytest

LARGE = bytes(range(256)) * 80_000  # more than a part


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, laneway.Bytes])
def test_buffers_of_every_kind(store, kind):
    for content in (b"", b"bytes", LARGE):
        assert store.put("k", kind(content))["size"] == len(content)
        assert store.get("k").bytes() == content


def test_a_small_writable_buffer_is_free_when_the_call_is_done(store):
    buffer = bytearray(b"bytes")
    store.put("k", buffer)
    buffer.clear()
    with mmap.mmap(-1, 4096) as memory:
        store.put("k", memory)


def test_files_and_iterables(store, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(LARGE)
    store.put("path", path)
    with path.open("rb") as file:
        store.put("file", file)
    store.put("io", io.BytesIO(LARGE))
    store.put("iterable", (LARGE[n : n + 1_000_000] for n in range(0, len(LARGE), 1_000_000)))
    for name in ("path", "file", "io", "iterable"):
        assert store.get(name).bytes() == LARGE, name
    with pytest.raises(OSError, match="nothing"):
        store.put("path", tmp_path / "nothing")


def test_what_fails_half_way_leaves_nothing(store):
    def broken():
        yield LARGE
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        store.put("k", broken())
    with pytest.raises(FileNotFoundError):
        store.head("k")


def test_modes_and_attributes(store):
    attributes = {"Content-Type": "text/x-notes", "Cache-Control": "no-store", "author": "me"}
    written = store.put("k", b"1", attributes=attributes, mode="create")
    assert store.head("k")["metadata"] == {"author": "me"}
    assert store.get("k").attributes["Content-Type"] == "text/x-notes"
    with pytest.raises((laneway.exceptions.AlreadyExistsError, laneway.exceptions.PreconditionError)):
        store.put("k", b"2", mode="create")
    store.put("k", b"2", mode={"e_tag": written["e_tag"], "version": written["version"]})
    with pytest.raises(laneway.exceptions.PreconditionError):
        store.put("k", b"3", mode={"e_tag": written["e_tag"], "version": written["version"]})
    with pytest.raises(ValueError, match="no mode .crate."):
        store.put("k", b"3", mode="crate")


def test_awaited(store, tmp_path):
    async def chunks():
        for n in range(3):
            await asyncio.sleep(0)
            yield b"%d" % n

    async def write():
        await store.put_async("chunks", chunks())
        await laneway.put_async(store, "io", io.BytesIO(LARGE))
        await asyncio.gather(*[store.put_async(f"many/{n}", b"%d" % n) for n in range(100)])
        return await (await store.get_async("chunks")).bytes_async()

    assert asyncio.run(write()) == b"012"
    assert store.get("io").bytes() == LARGE
    assert sum(map(len, store.list("many/"))) == 100


@pytest.mark.parametrize("is_async", [False, True])
def test_a_string_is_refused_with_what_to_pass(store, awaited, is_async):
    with pytest.raises(TypeError, match="pass pathlib.Path for a file, or bytes"):
        awaited(store.put_async, "k", "file.csv") if is_async else store.put("k", "file.csv")
