"""Tests of `Bytes`, the type of received bytes."""

import copy
import json
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
    with pytest.raises(TypeError, match="bytes-like"):
        laneway.Bytes("text")


def test_slices_keep_what_they_show():
    part = laneway.Bytes(b"0123456789" * 1000)[5000:5005]
    assert part == b"01234"


def test_they_have_the_methods_of_bytes():
    got = laneway.Bytes(b"Key: value")
    assert got.decode() == "Key: value" and got.hex() == b"Key: value".hex() and got.startswith((b"Key", b"x"))
    assert got.removeprefix(b"Key: ") == b"value" and isinstance(got.upper(), laneway.Bytes)
    assert got.partition(b": ") == (b"Key", b": ", b"value") and got.split(b":") == [b"Key", b" value"]
    assert got + b"!" == b"Key: value!" and b">" + got == b">Key: value" and got + got[:0] == got
    assert b"A" < got < b"L" and got >= got and got <= laneway.Bytes(b"Z") and sorted([got, b"A"]) == [b"A", got]
    assert json.loads(laneway.Bytes(b"[1]")) == [1]
    with pytest.raises(TypeError):
        got < 5
    with pytest.raises(TypeError):
        got + "text"


def test_they_are_taken_for_bytes():
    got = laneway.Bytes(b"ab")
    assert isinstance(got, bytes) and isinstance(got, laneway.Bytes) and type(got) is laneway.Bytes
    for one in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got, 2))):
        assert type(one) is laneway.Bytes and one == got
