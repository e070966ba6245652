def test_head(store, awaited):
    store.put("k", b"bytes")
    meta = store.head("k")
    assert (meta["size"], meta["path"]) == (5, "k") and (meta["e_tag"] or meta["version"])
    assert awaited(store.head_async, "k")["size"] == 5
