"""Reading objects."""

import asyncio
from pathlib import Path, PurePosixPath

import laneway
import pytest

LARGE = bytes(range(256)) * 80_000  # 20 MB: several slices


def test_bytes_and_what_is_known_of_them(store):
    store.put("notes.txt", b"one line\n")
    got = store.get("notes.txt")
    assert (got.meta["path"], got.meta["size"], got.range) == ("notes.txt", 9, (0, 9))
    assert got.meta["last_modified"].tzinfo is not None
    assert got.attributes["Content-Type"] == "text/plain"
    assert got.bytes() == b"one line\n"
    with pytest.raises(ValueError, match="already been read"):
        got.bytes()


def test_ranges_by_options(store):
    store.put("k", b"0123456789")
    for options, wanted in [
        ({"range": (2, 5)}, b"234"),
        ({"range": {"offset": 7}}, b"789"),
        ({"range": {"suffix": 4}}, b"6789"),
    ]:
        assert laneway.get(store, "k", options=options).bytes() == wanted
    with pytest.raises(laneway.exceptions.InvalidRangeError):
        store.get("k", options={"range": (20, 30)})
    with pytest.raises(ValueError, match="no option .rnage."):
        store.get("k", options={"rnage": (0, 1)})


def test_only_what_is_new(store):
    store.put("k", b"bytes")
    meta = store.head("k")
    with pytest.raises(laneway.exceptions.NotModifiedError):
        store.get("k", options={"if_modified_since": meta["last_modified"]})
    pin = {"version": meta["version"]} if meta["version"] else {"if_match": meta["e_tag"]}
    assert store.get("k", options=pin).bytes() == b"bytes"
    store.put("k", b"other")
    with pytest.raises(laneway.exceptions.PreconditionError):
        store.get("k", options=pin)


def test_what_is_not_there_is_a_file_not_found(store):
    with pytest.raises(FileNotFoundError) as raised:
        store.get("nothing")
    assert isinstance(raised.value, laneway.exceptions.NotFoundError)
    assert "nothing" in str(raised.value) and raised.value.url.endswith("/nothing")
    assert (raised.value.kind, raised.value.status) == ("not_found", 404)


def test_a_large_object_streams_and_fills_the_callers_buffer(store):
    store.put("large", LARGE)
    chunks = list(store.get("large").stream(min_chunk_size=1 << 20))
    assert all(len(chunk) >= 1 << 20 for chunk in chunks[:-1]) and b"".join(chunks) == LARGE
    buffer = bytearray(len(LARGE) + 1)
    assert store.get("large").readinto(buffer) == len(LARGE)
    assert buffer[:-1] == LARGE
    buffer.clear()  # no call holds it any more
    with pytest.raises(ValueError, match="don't fit"):
        store.get("large").readinto(bytearray(5))
    with pytest.raises(TypeError, match="read-only"):
        store.get("large").readinto(bytes(len(LARGE)))


def test_bytes_into_the_callers_buffer(store):
    store.put("large", LARGE)
    buffer = bytearray(len(LARGE) + 1)
    assert store.get("large", into=buffer) == len(LARGE) and buffer[:-1] == LARGE
    assert laneway.get(store, "large", options={"range": {"suffix": 5}}, into=buffer) == 5 and buffer[:5] == LARGE[-5:]
    part = memoryview(buffer)[100:200]
    assert store.get_range("large", start=7, into=part) == 100 and buffer[100:200] == LARGE[7:107]
    assert store.get_range("large", start=8, end=8 + 12_000_000, into=buffer) == 12_000_000
    assert buffer[:12_000_000] == LARGE[8 : 8 + 12_000_000]
    assert laneway.get_range(store, "large", start=len(LARGE) - 3, length=50, into=buffer) == 3 and buffer[:3] == LARGE[-3:]
    assert store.get_range("large", start=5, length=0, into=buffer) == 0 == store.get_range("large", start=5, into=bytearray())
    before = store.counters()["requests"]
    with pytest.raises(ValueError, match="6 bytes don't fit into a buffer of 5"):
        store.get_range("large", start=0, end=6, into=bytearray(5))
    with pytest.raises(TypeError, match="read-only"):
        store.get("large", into=bytes(len(LARGE)))
    assert store.counters()["requests"] == before
    with pytest.raises(ValueError, match=f"{len(LARGE)} bytes don't fit into a buffer of 5"):
        store.get("large", into=bytearray(5))
    with pytest.raises(laneway.exceptions.InvalidRangeError):
        store.get_range("large", start=len(LARGE), into=buffer)
    with pytest.raises(FileNotFoundError):
        store.get("nothing", into=buffer)

    async def read():
        other = bytearray(len(LARGE))
        assert await store.get_async("large", into=other) == len(LARGE) and other == LARGE
        parts = [memoryview(other)[n * 1000 : (n + 1) * 1000] for n in range(100)]
        reads = [laneway.get_range_async(store, "large", start=n, into=part) for n, part in enumerate(parts)]
        assert await asyncio.gather(*reads) == [1000] * 100
        assert all(part == LARGE[n : n + 1000] for n, part in enumerate(parts))

    asyncio.run(read())


def test_awaited(store):
    async def read():
        await store.put_async("k", LARGE)
        got = await store.get_async("k")
        assert await got.bytes_async() == LARGE
        buffer = bytearray(len(LARGE))
        assert await (await laneway.get_async(store, "k")).readinto_async(buffer) == len(LARGE)
        assert buffer == LARGE
        assert b"".join([chunk async for chunk in await store.get_async("k")]) == LARGE
        with pytest.raises(FileNotFoundError):
            await store.get_async("nothing")
        many = await asyncio.gather(*[store.get_range_async("k", start=n, length=2) for n in range(200)])
        assert many == [LARGE[n : n + 2] for n in range(200)]

    asyncio.run(read())


def test_keys_are_text_or_paths(store):
    key = PurePosixPath("folder") / "k"
    store.put(key, b"0123456789", mode="create")
    assert store.head(Path("folder/k"))["path"] == "folder/k" and laneway.get(store, key).bytes() == b"0123456789"
    assert store.get_range(key, start=1, length=2) == b"12" and store.get_ranges(key, starts=[1], ends=[2]) == [b"1"]
    store.copy(key, PurePosixPath("folder2"))
    assert [meta["path"] for meta in store.list(PurePosixPath("folder")).collect()] == ["folder/k"]
    assert store.list_with_delimiter(PurePosixPath("."))["common_prefixes"] == ["folder"]
    with store.open_reader(key) as file:
        assert file.read() == b"0123456789"
    store.delete([key, PurePosixPath("folder2")])
    assert store.list().collect() == []
    with pytest.raises(TypeError, match="a key is text or a path, not int"):
        store.get(5)


def test_ranges_are_tuples_or_lists_and_negative_numbers_are_values(store):
    store.put("k", b"0123456789")
    for pair in ((2, 4), [2, 4]):
        assert store.get("k", options={"range": pair}).bytes() == b"23"
    wrong = [
        lambda: store.get("k", options={"range": (-2, 4)}),
        lambda: store.get("k", options={"range": {"suffix": -2}}),
        lambda: store.get("k", options={"range": {"offset": -2}}),
        lambda: store.get_range("k", start=-1, length=2),
        lambda: store.get_range("k", start=1, length=-2),
        lambda: store.get_ranges("k", starts=[1, -1], lengths=[2, 2]),
        lambda: store.list(limit=-1),
        lambda: store.list(chunk_size=-1),
        lambda: store.get("k").stream(min_chunk_size=-1),
        lambda: store.open_reader("k", footer=-1),
        lambda: store.open_reader("k").read_ranges(starts=[-1], ends=[2]),
        lambda: store.get_range("k", start=2**64, length=2),
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="is negative, or too large"):
            call()
    with pytest.raises(TypeError, match="a range must be"):
        store.get("k", options={"range": "2-4"})


def test_results_say_what_they_are(store):
    store.put("k", b"0123456789")
    result = store.get("k", options={"range": (2, 4)})
    assert repr(result) == '<laneway.GetResult path="k" size=10 range=(2, 4)>'
    assert repr(result.stream()) == '<laneway.BytesStream path="k">'
    assert repr(store.list("a", chunk_size=7)) == '<laneway.ListStream prefix="a" chunk_size=7>'
    assert repr(laneway.ObjectStore(store.url, store._settings())) == f"<laneway.ObjectStore {store.url}>"
