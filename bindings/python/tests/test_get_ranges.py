import laneway
import pytest


def test_get_ranges(store, awaited):
    store.put("k", b"0123456789")
    assert store.get_ranges("k", starts=[7, 0, 3], ends=[9, 2, 3]) == [b"78", b"01", b""]
    assert awaited(laneway.get_ranges_async, store, "k", starts=[1], lengths=[2]) == [b"12"]
    with pytest.raises(ValueError, match="2 starts and 1 ends"):
        store.get_ranges("k", starts=[1, 2], ends=[3])
