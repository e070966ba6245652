import asyncio


def test_list(store, awaited):
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
    assert len(awaited(store.list("logs/0").collect_async)) == 100
