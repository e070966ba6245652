import laneway
import pytest


def test_rename(store, awaited):
    store.put("a", b"bytes")
    store.put("b", b"other")
    with pytest.raises((laneway.exceptions.AlreadyExistsError, laneway.exceptions.PreconditionError)):
        store.rename("a", "b", overwrite=False)
    assert [meta["path"] for meta in store.list().collect()] == ["a", "b"]
    store.rename("a", "b")
    awaited(laneway.rename_async, store, "b", "c")
    assert [meta["path"] for meta in store.list().collect()] == ["c"] and store.get("c").bytes() == b"bytes"
