"""The operations of the matrix: the objects that each needs, its calls, and its expected results."""

import asyncio
import inspect
import random
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple

import laneway

SMALL = random.Random(1).randbytes(5000)
# An upload of this size has several parts.
LARGE = random.Random(2).randbytes((16 << 20) + 5)
OLD = b"old"


def inverted(content: bytes) -> bytes:
    """Returns the bytes that another writer stores instead."""
    return bytes(byte ^ 0xFF for byte in content)


# The contents that a read may find, since another writer may have replaced the object.
READ = (SMALL, inverted(SMALL))


class About(Enum):
    """The content of a request or of its answer."""

    # Reads: the bytes of a whole object, the bytes of a range, a document to parse, headers.
    CONTENT = auto()
    RANGE = auto()
    DOCUMENT = auto()
    HEADERS = auto()
    # Writes: a write whose answer describes the object, the beginning of an upload (its answer names the upload),
    # and a removal.
    WRITE = auto()
    BEGIN = auto()
    REMOVAL = auto()


class Strike(NamedTuple):
    """An operation and the request that a fault hits, which is the operation's first request of this verb."""

    operation: str
    verb: str
    about: About

    @property
    def folder(self) -> str:
        return f"{self.operation}-{self.verb}/"


class Scene:
    """The surroundings of an operation: a store, a local folder, and a flag that is true if calls
    are awaited."""

    def __init__(self, served: Any, folder: Path, strike: Strike, reached: dict[str, Any], is_awaited: bool) -> None:
        prefix = strike.folder
        kind = laneway.S3Store if served.scheme == "s3" else laneway.GCSStore
        self.store = kind("lake", prefix=prefix, **served.where(kind), **reached)
        self.url = f"{served.scheme}://lake/{prefix}"
        self.served, self.folder, self.prefix, self.reached, self.is_awaited = served, folder, prefix, reached, is_awaited
        self.operation = strike.operation

    def call(self, of: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a verb and blocks, or awaits it."""
        if not self.is_awaited:
            return getattr(of, name)(*args, **kwargs)

        async def awaited() -> Any:
            done = getattr(of, f"{name}_async" if hasattr(of, f"{name}_async") else name)(*args, **kwargs)
            return await done if inspect.isawaitable(done) else done

        return asyncio.run(awaited())

    def job(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.call(laneway, name, *args, config=self.served.anywhere(), **self.reached, **kwargs)

    def filesystem(self) -> Any:
        from laneway.fsspec import PROTOCOLS

        of = PROTOCOLS[self.served.scheme]
        return of(**self.served.where(type(self.store)), **self.reached, skip_instance_cache=True)

    def file(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None

    def stored(self, key: str) -> bytes | None:
        return self.served.read(self.prefix + key)


class Operation(NamedTuple):
    """A function that runs an operation, and its expected results."""

    run: Callable[[Scene], Any]
    # The possible results of `run`.
    gives: tuple[Any, ...] = (None,)
    objects: dict[str, bytes] = {}
    files: dict[str, bytes] = {}
    # The content of each key or local file after success, and the content that it may have after a failure. `None`
    # means that it doesn't exist.
    writes: dict[str, tuple[bytes | None, bytes | None]] = {}
    brings: tuple[str, ...] = ()
    # The maximum number of requests if no request fails.
    requests_max: int = 1


def get(scene: Scene) -> bytes:
    return bytes(scene.call(scene.call(scene.store, "get", "k"), "bytes"))


def get_into(scene: Scene) -> bytes:
    # The buffer has room for a longer answer, because some faults increase the length in the answer's header.
    buffer = bytearray(len(SMALL) + 100)
    return bytes(buffer[: scene.call(scene.store, "get", "k", into=buffer)])


def stream(scene: Scene) -> bytes:
    """Reads a stream. The chunks that it returns may be wrong only if an error follows."""
    result, chunks = scene.call(scene.store, "get", "k"), []

    async def all_awaited() -> None:
        async for chunk in result.stream(1000):
            chunks.append(bytes(chunk))

    if scene.is_awaited:
        asyncio.run(all_awaited())
    else:
        for chunk in result.stream(1000):
            chunks.append(bytes(chunk))
    return b"".join(chunks)


def get_ranges(scene: Scene) -> list[bytes]:
    return [bytes(part) for part in scene.call(scene.store, "get_ranges", "k", starts=[10, 4000], ends=[900, 5000])]


def put(content: bytes) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        done = scene.call(scene.store, "put", "k", content)
        assert done["size"] == len(content)

    return run


def write(content: bytes) -> Callable[[Scene], None]:
    def run(scene: Scene) -> None:
        async def awaited() -> None:
            async with scene.store.open_writer_async("k") as file:
                await file.write(content)

        if scene.is_awaited:
            asyncio.run(awaited())
        else:
            with scene.store.open_writer("k") as file:
                file.write(content)

    return run


def read_file(scene: Scene) -> bytes:
    file = scene.call(scene.store, "open_reader", "k")
    try:
        scene.call(file, "seek", 1000)
        return bytes(scene.call(file, "read"))
    finally:
        file.close()


def listed(scene: Scene) -> list[tuple[str, int]]:
    return [(meta["path"].rpartition("/")[2], meta["size"]) for meta in scene.call(scene.store.list(), "collect")]


def listed_with_delimiter(scene: Scene) -> list[tuple[str, int]]:
    found = scene.call(scene.store, "list_with_delimiter")
    return [(meta["path"].rpartition("/")[2], meta["size"]) for meta in found["objects"]]


def delete_many(scene: Scene) -> None:
    scene.call(scene.store, "delete", ["a", "b", "c"])


def directory_get(scene: Scene) -> None:
    scene.filesystem().get(f"{scene.url.partition('://')[2]}", f"{scene.folder}/", recursive=True)


def directory_put(scene: Scene) -> None:
    scene.filesystem().put(f"{scene.folder}/", f"{scene.url.partition('://')[2]}", recursive=True)


def sync_down(scene: Scene) -> None:
    scene.job("sync", scene.url, scene.folder)


def sync_up(scene: Scene) -> None:
    scene.job("sync", scene.folder, scene.url)


THREE = {"a": SMALL, "b": SMALL, "c": SMALL}
LISTED = [(name, len(SMALL)) for name in THREE]
RANGES = tuple([content[10:900], content[4000:5000]] for content in READ)
PUT: dict[str, Any] = {"objects": {"k": OLD}, "writes": {"k": (SMALL, OLD)}}
PARTS: dict[str, Any] = {"objects": {"k": OLD}, "writes": {"k": (LARGE, OLD)}, "requests_max": 6}
GONE: dict[str, tuple[bytes | None, bytes | None]] = {name: (None, SMALL) for name in THREE}
WRITTEN: dict[str, tuple[bytes | None, bytes | None]] = {name: (SMALL, None) for name in THREE}

OPERATIONS = {
    "get": Operation(get, READ, {"k": SMALL}),
    "get-into": Operation(get_into, READ, {"k": SMALL}),
    "stream": Operation(stream, READ, {"k": SMALL}),
    "get-range": Operation(
        lambda scene: bytes(scene.call(scene.store, "get_range", "k", start=1000, end=1900)),
        tuple(content[1000:1900] for content in READ),
        {"k": SMALL},
    ),
    "get-ranges": Operation(get_ranges, RANGES, {"k": SMALL}, requests_max=2),
    "read-file": Operation(read_file, tuple(content[1000:] for content in READ), {"k": SMALL}, requests_max=2),
    "put": Operation(put(SMALL), **PUT),
    "put-parts": Operation(put(LARGE), **PARTS),
    "write-file": Operation(write(SMALL), **PUT),
    "write-parts": Operation(write(LARGE), **PARTS),
    "head": Operation(lambda scene: scene.call(scene.store, "head", "k")["size"], (len(SMALL),), {"k": SMALL}),
    "list": Operation(listed, (LISTED,), THREE),
    "list-with-delimiter": Operation(listed_with_delimiter, (LISTED,), THREE),
    "delete": Operation(lambda scene: scene.call(scene.store, "delete", "k"), objects={"k": SMALL}, writes={"k": (None, SMALL)}),
    "delete-many": Operation(delete_many, objects=THREE, writes=GONE),
    "copy": Operation(
        lambda scene: scene.call(scene.store, "copy", "k", "to") and None,
        objects={"k": SMALL, "to": OLD},
        writes={"k": (SMALL, SMALL), "to": (SMALL, OLD)},
    ),
    "rename": Operation(
        lambda scene: scene.call(scene.store, "rename", "k", "to") and None,
        objects={"k": SMALL, "to": OLD},
        writes={"k": (None, SMALL), "to": (SMALL, OLD)},
        requests_max=3,
    ),
    "directory-get": Operation(directory_get, objects=THREE, brings=tuple(THREE), requests_max=12),
    "directory-put": Operation(directory_put, files=THREE, writes=WRITTEN, requests_max=12),
    "sync-down": Operation(sync_down, objects=THREE, brings=tuple(THREE), requests_max=6),
    "sync-up": Operation(sync_up, files=THREE, writes=WRITTEN, requests_max=6),
}


def strikes(scheme: str) -> list[Strike]:
    return [
        Strike("get", "get", About.CONTENT),
        Strike("get-into", "get", About.CONTENT),
        Strike("stream", "get", About.CONTENT),
        Strike("get-range", "get", About.RANGE),
        Strike("get-ranges", "get", About.RANGE),
        Strike("read-file", "head", About.HEADERS),
        Strike("read-file", "get", About.RANGE),
        Strike("put", "put", About.WRITE),
        Strike("put-parts", "begin", About.BEGIN),
        Strike("put-parts", "complete", About.WRITE),
        Strike("write-file", "put", About.WRITE),
        Strike("write-parts", "part", About.WRITE),
        Strike("head", "head", About.HEADERS),
        Strike("list", "list", About.DOCUMENT),
        Strike("list-with-delimiter", "list", About.DOCUMENT),
        Strike("delete", "delete", About.REMOVAL),
        Strike("delete-many", "delete-many" if scheme == "s3" else "batch", About.REMOVAL),
        Strike("copy", "copy", About.WRITE),
        Strike("rename", "copy", About.WRITE),
        # GCS moves an object by one request, and Laneway looks the object up before it.
        Strike("rename", "delete", About.REMOVAL) if scheme == "s3" else Strike("rename", "head", About.HEADERS),
        Strike("directory-get", "list", About.DOCUMENT),
        Strike("directory-get", "get", About.CONTENT),
        Strike("directory-put", "put", About.WRITE),
        Strike("sync-down", "list", About.DOCUMENT),
        Strike("sync-down", "get", About.CONTENT),
        Strike("sync-up", "list", About.DOCUMENT),
        Strike("sync-up", "put", About.WRITE),
    ]
