import laneway
import pytest


def test_copy(store, awaited):
    store.put("a", b"bytes")
    store.put("b", b"other")
    with pytest.raises((laneway.exceptions.AlreadyExistsError, laneway.exceptions.PreconditionError)):
        store.copy("a", "b", overwrite=False)
    assert store.get("b").bytes() == b"other"
    written = store.copy("a", "b")
    assert store.get("b").bytes() == b"bytes" and written["size"] == 5
    awaited(store.copy_async, "a", "c")
    assert [meta["path"] for meta in store.list().collect()] == ["a", "b", "c"]
