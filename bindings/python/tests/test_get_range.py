import laneway
import pytest


def test_get_range(store, awaited):
    store.put("k", b"0123456789")
    assert store.get_range("k", start=2, end=5) == b"234"
    assert laneway.get_range(store, "k", start=8, length=50) == b"89"
    assert awaited(store.get_range_async, "k", start=0, length=1) == b"0"
    with pytest.raises(TypeError, match="either an end or a length"):
        store.get_range("k", start=2)
    with pytest.raises(ValueError):
        store.get_range("k", start=20, end=30)
