"""A program for type checkers, which is never run. `test_types.py` checks it with mypy and pyright."""

import io
from pathlib import Path

import laneway
from laneway.types import ObjectMeta, PlanRow


def blocking(store: laneway.ObjectStore) -> bytes:
    written = store.put("k", b"x", mode="create")
    assert written is not None and written["size"] == 1
    meta: ObjectMeta = laneway.head(store, "k")
    for chunk in store.list("logs/"):
        for one in chunk:
            meta = one
    bytes_of_all: laneway.Bytes = store.get(meta["path"], options={"range": {"suffix": 5}}).bytes()
    parts: list[laneway.Bytes] = laneway.get_ranges(store, "k", starts=[0], lengths=[1])
    buffer = bytearray(8)
    filled: int = store.get("k", into=buffer) + laneway.get_range(store, "k", start=0, into=memoryview(buffer))
    assert filled
    with store.open_reader("k", footer=8) as file:
        line: bytes = file.readline()
    with io.TextIOWrapper(store.open_writer("k")) as text:
        text.write("text")
    print(io.BufferedReader(store.open_reader("k")).read(), bytes_of_all.decode(), bytes_of_all + b"more")
    laneway.sync(laneway.S3Store("lake") / "prefix", Path("folder"))
    laneway.sync((store, "prefix"), "folder")
    return line + bytes(bytes_of_all) + memoryview(parts[0])


async def awaited(store: laneway.ObjectStore) -> None:
    filled: int = await store.get_range_async("k", start=0, into=bytearray(8)) + await laneway.get_async(store, "k", into=bytearray(8))
    print(filled)
    part: laneway.Bytes = await laneway.get_range_async(store, "k", start=0, end=1)
    async with store.open_writer_async("k") as file:
        await file.write(part)
    writer = await store.open_writer_async("k")
    await writer.close()
    async for metas in store.list():
        print(metas[0]["last_modified"])
    async for chunk in await store.get_async("k"):
        print(len(chunk))


def planned(store: laneway.S3Store) -> int:
    totals = laneway.plan.copy(store / "raw", (store, "copy"), store / "plan", no_clobber=True)
    opened = laneway.plan.Plan.open("s3://lake/plan")
    rows: list[PlanRow] = []
    while (result := opened.run_next(lease="30s", on_failure=rows.append)) is not None:
        print(result["done"], totals["objects"], opened.parts[result["number"]]["action"])
    return opened.status()["failed"] + opened.verify(0, on_fault=rows.append)["missing"]
