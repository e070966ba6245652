def test_delete(store, awaited):
    for n in range(10):
        store.put(f"{n}", b"")
    store.delete("0")
    store.delete(["1", "2", "3"])
    awaited(store.delete_async, ["4", "5"])
    assert [meta["path"] for meta in store.list().collect()] == ["6", "7", "8", "9"]
