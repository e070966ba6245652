"""Received bytes."""

import pickle

import laneway
import pytest


def test_they_are_looked_at_where_they_lie():
    content = bytes(range(100))
    got = laneway.Bytes(content)
    view = memoryview(got)
    assert view.readonly and view == content and bytes(got) == content and got.to_bytes() == content
    assert (len(got), got[3], got[-1]) == (100, 3, 99)
    assert got[10:20] == content[10:20] and got[::-7] == content[::-7] and isinstance(got[1:2], laneway.Bytes)
    assert got == content and content == got and got != b"other" and got != 5
    assert hash(got) == hash(content) and b"\x05\x06" in got
    assert pickle.loads(pickle.dumps(got)) == got
    assert repr(laneway.Bytes(b"ab")) == "Bytes(b'ab')"
    with pytest.raises(IndexError):
        got[100]
    with pytest.raises(TypeError, match="buffer"):
        laneway.Bytes("text")


def test_slices_keep_what_they_show():
    part = laneway.Bytes(b"0123456789" * 1000)[5000:5005]
    assert part == b"01234"
