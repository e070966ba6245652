"""Verbs that need few words."""

import asyncio
import urllib.request
from datetime import timedelta

import laneway
import pytest


def test_head(store):
    store.put("k", b"bytes")
    meta = store.head("k")
    assert (meta["size"], meta["path"]) == (5, "k") and (meta["e_tag"] or meta["version"])
    assert asyncio.run(awaited(store.head_async, "k"))["size"] == 5


def test_get_range(store):
    store.put("k", b"0123456789")
    assert store.get_range("k", start=2, end=5) == b"234"
    assert laneway.get_range(store, "k", start=8, length=50) == b"89"
    assert asyncio.run(awaited(store.get_range_async, "k", start=0, length=1)) == b"0"
    with pytest.raises(TypeError, match="either an end or a length"):
        store.get_range("k", start=2)
    with pytest.raises(ValueError):
        store.get_range("k", start=20, end=30)


def test_get_ranges(store):
    store.put("k", b"0123456789")
    assert store.get_ranges("k", starts=[7, 0, 3], ends=[9, 2, 3]) == [b"78", b"01", b""]
    assert asyncio.run(awaited(laneway.get_ranges_async, store, "k", starts=[1], lengths=[2])) == [b"12"]
    with pytest.raises(ValueError, match="2 starts and 1 ends"):
        store.get_ranges("k", starts=[1, 2], ends=[3])


def test_list(store):
    for n in range(120):
        store.put(f"logs/{n:03}", b"")
    chunks = list(store.list("logs/"))
    assert [len(chunk) for chunk in chunks] == [50, 50, 20]
    assert [meta["path"] for meta in store.list("logs/", offset="logs/117").collect()] == ["logs/118", "logs/119"]

    before = store.counters()["requests"]
    assert [meta["path"] for meta in store.list("logs/", limit=2).collect()] == ["logs/000", "logs/001"]
    assert store.counters()["requests"] - before == 1

    async def listed():
        return [meta["path"] async for chunk in store.list("logs/1", chunk_size=7) for meta in chunk]

    assert asyncio.run(listed()) == [f"logs/{n:03}" for n in range(100, 120)]
    assert len(asyncio.run(awaited(store.list("logs/0").collect_async))) == 100


def test_list_with_delimiter(store):
    for path in ("a/1", "a/b/2", "a/b/3", "c"):
        store.put(path, b"")
    below = store.list_with_delimiter("a/")
    assert below["common_prefixes"] == ["a/b/"]
    assert [meta["path"] for meta in below["objects"]] == ["a/1"]
    assert asyncio.run(awaited(store.list_with_delimiter_async))["common_prefixes"] == ["a/"]


def test_delete(store):
    for n in range(10):
        store.put(f"{n}", b"")
    store.delete("0")
    store.delete(["1", "2", "3"])
    asyncio.run(awaited(store.delete_async, ["4", "5"]))
    assert [meta["path"] for meta in store.list().collect()] == ["6", "7", "8", "9"]


def test_copy_and_rename(store):
    store.put("a", b"bytes")
    store.copy("a", "b")
    with pytest.raises((laneway.exceptions.AlreadyExistsError, laneway.exceptions.PreconditionError)):
        store.copy("a", "b", overwrite=False)
    asyncio.run(awaited(laneway.rename_async, store, "b", "c"))
    assert [meta["path"] for meta in store.list().collect()] == ["a", "c"]


def test_sign(make):
    store = make()
    hour = timedelta(hours=1)
    if store.scheme == "gs":
        # Nobody signs for who has no credentials.
        with pytest.raises(laneway.exceptions.BaseError):
            store.sign("GET", "k", hour)
        return
    store.put("k", b"bytes")
    with urllib.request.urlopen(store.sign("GET", "k", hour)) as answer:
        assert answer.read() == b"bytes"
    urls = asyncio.run(awaited(laneway.sign_async, store, "PUT", ["a", "b"], hour))
    with urllib.request.urlopen(urllib.request.Request(urls[1], b"put", method="PUT")):
        assert store.get("b").bytes() == b"put"
    with pytest.raises(ValueError):
        store.sign("FETCH", "k", hour)


async def awaited(verb, *args, **kwargs):
    return await verb(*args, **kwargs)
