def test_list_with_delimiter(store, awaited):
    for path in ("a/1", "a/b/2", "a/b/3", "c"):
        store.put(path, b"")
    below = store.list_with_delimiter("a/")
    assert below["common_prefixes"] == ["a/b/"]
    assert [meta["path"] for meta in below["objects"]] == ["a/1"]
    assert awaited(store.list_with_delimiter_async)["common_prefixes"] == ["a/"]
