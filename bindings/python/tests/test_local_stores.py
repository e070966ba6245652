"""Stores on this machine: `MemoryStore` and `LocalStore`."""

import asyncio
import pickle
from pathlib import Path

import laneway
import pytest
from laneway.exceptions import BaseError, InvalidPathError, NotSupportedError


@pytest.fixture(params=["memory", "local"])
def local(request, tmp_path):
    return laneway.MemoryStore() if request.param == "memory" else laneway.LocalStore(tmp_path / "lake", mkdir=True)


def test_verbs(local):
    local.put("logs/1", b"0123456789", mode="create")
    with pytest.raises(FileExistsError):
        local.put("logs/1", b"other", mode="create")
    local.put("logs/2", iter([b"a", b"b"]), use_multipart=False, chunk_size=5 << 20, max_concurrency=2)
    assert local.get("logs/1").bytes() == b"0123456789" and local.head("logs/2")["size"] == 2
    assert local.get_ranges("logs/1", starts=[0, 8], ends=[2, 10], coalesce=0) == [b"01", b"89"]
    local.copy("logs/1", "copy")
    local.rename("copy", "moved")
    assert [meta["path"] for meta in local.list().collect()] == ["logs/1", "logs/2", "moved"]
    assert local.list_with_delimiter()["common_prefixes"] == ["logs"]
    local.delete(["logs/1", "logs/2"])
    with pytest.raises(FileNotFoundError):
        local.get("logs/1")
    assert asyncio.run(awaited(local)) == b"awaited"


async def awaited(store):
    await store.put_async("k", b"awaited")
    return await (await store.get_async("k")).bytes_async()


def test_files(local):
    content = bytes(range(256)) * 100_000
    with local.open_writer("large", buffer_size=1 << 20) as file:
        file.write(content)
    with local.open_reader("large", buffer_size=1 << 20) as file:
        assert file.size == len(content) and file.read(5) == content[:5] and file.read() == content[5:]


def test_a_file_may_have_another_size(local):
    local.put("k", b"one\ntwo\n")
    with local.open_reader("k", size=6) as file:
        assert file.size == 6 and file.readlines() == [b"one\n", b"tw"] and file.read() == b""
    with local.open_reader("k", size=20) as file:
        assert file.read(8) == b"one\ntwo\n"
        with pytest.raises(OSError, match="range 8..20 reaches beyond the object's 8 bytes"):
            file.read()


def test_jobs(local, tmp_path):
    local.put("tree/a", b"a")
    local.put("tree/b/c", b"c")
    assert laneway.copy(local / "tree", tmp_path / "out", recursive=True)["files"] == 2
    assert (tmp_path / "out/b/c").read_bytes() == b"c"
    assert laneway.sync(tmp_path / "out", (local, "again"))["files"] == 2
    assert [meta["path"] for meta in (local / "again").list().collect()] == ["a", "b/c"]
    assert laneway.remove((local, "again/"), recursive=True)["files"] == 2


def test_a_folder_of_a_store_has_its_objects(local):
    below = local / "a" / "b"
    below.put("k", b"bytes")
    assert local.get("a/b/k").bytes() == b"bytes" and type(below) is type(local)
    assert [meta["path"] for meta in below.list().collect()] == ["k"] and below == local / "a/b"


def test_a_memory_store_is_only_itself():
    store = laneway.MemoryStore()
    assert store == store and store / "a" == store / "a" and store != laneway.MemoryStore()
    assert repr(store / "a") == "MemoryStore('a/')"
    with pytest.raises(TypeError, match="can't be pickled"):
        pickle.dumps(store)
    store.put("k", b"bytes", attributes={"Content-Type": "text/x", "colour": "red"})
    assert store.get("k").attributes == {"Content-Type": "text/x", "colour": "red"}


def test_a_folder_is_a_store(tmp_path):
    with pytest.raises(FileNotFoundError, match="mkdir=True"):
        laneway.LocalStore(tmp_path / "lake")
    store = laneway.LocalStore(tmp_path / "lake", mkdir=True, automatic_cleanup=True)
    assert store.prefix == tmp_path / "lake" and isinstance(store.prefix, Path) and store.url == (tmp_path / "lake").as_uri()
    assert pickle.loads(pickle.dumps(store)) == store and store != laneway.LocalStore(tmp_path / "lake")
    store.put("a/b/k", b"bytes")
    assert (tmp_path / "lake/a/b/k").read_bytes() == b"bytes"
    store.delete("a/b/k")
    assert list((tmp_path / "lake").iterdir()) == []
    (tmp_path / "lake/with space%20").write_bytes(b"x")
    assert store.get("with space%20").bytes() == b"x"
    with pytest.raises(NotSupportedError, match="only bytes"):
        store.put("k", b"bytes", attributes={"colour": "red"})
    for key in ("../out", "a//b", "a/"):
        with pytest.raises(BaseError):
            store.put(key, b"bytes")
    with pytest.raises(BaseError, match="empty"):
        laneway.LocalStore("")


def test_a_folder_below_a_store_is_the_same_after_pickling(tmp_path):
    store = laneway.LocalStore(tmp_path / "lake", mkdir=True)
    below = pickle.loads(pickle.dumps(store / "a/b/"))
    below.put("k", b"bytes")
    assert below.prefix == tmp_path / "lake/a/b" and (tmp_path / "lake/a/b/k").read_bytes() == b"bytes"
    for folder in ("/etc", "..", "a/../..", "a//b", "."):
        with pytest.raises(InvalidPathError, match="is not below"):
            store / folder


def test_urls(tmp_path):
    folder = tmp_path / "with space"
    folder.mkdir()
    store = laneway.from_url(folder.as_uri())
    assert isinstance(store, laneway.LocalStore) and store.prefix == folder
    assert laneway.LocalStore.from_url("file://").prefix == Path("/")
    assert isinstance(laneway.from_url("memory:///"), laneway.MemoryStore)
    for arguments in ({"access_key_id": "id"}, {"config": {"region": "r"}}, {"client_options": {"timeout": "1s"}}):
        for url in (folder.as_uri(), "memory:///"):
            with pytest.raises(ValueError, match="configuration|no key"):
                laneway.from_url(url, **arguments)
    with pytest.raises(InvalidPathError, match="names no host"):
        laneway.LocalStore.from_url("file://host/folder")
