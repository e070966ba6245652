def test_list_with_delimiter(store, awaited):
    for path in ("a/1", "a/b/2", "a/b/3", "c"):
        store.put(path, b"")
    below = store.list_with_delimiter("a")
    assert store.list_with_delimiter("a/") == below
    assert below["common_prefixes"] == ["a/b"]
    assert [meta["path"] for meta in below["objects"]] == ["a/1"]
    assert awaited(store.list_with_delimiter_async)["common_prefixes"] == ["a"]


def test_only_names_that_begin_with_a_text(store):
    for path in ("a/logs-1/x", "a/logs-2", "a/other"):
        store.put(path, b"")
    below = store.list_with_delimiter("a", name_prefix="logs")
    assert below["common_prefixes"] == ["a/logs-1"] and [meta["path"] for meta in below["objects"]] == ["a/logs-2"]
