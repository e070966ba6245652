"""Objects as files, for programs that check a file's type."""

import csv
import gzip
import io
import sys

import pytest


def test_they_count_as_files(store):
    with store.open_writer("k") as writer:
        writer.writelines([b"a\n", b"b\n"])
        assert isinstance(writer, io.IOBase) and (writer.name, writer.mode) == ("k", "wb")
    reader = store.open_reader("k")
    assert isinstance(reader, io.IOBase) and (reader.name, reader.mode) == ("k", "rb")
    assert reader.read1(1) == b"a" and reader.readinto1(bytearray(1)) == 1 and reader.read1() == b"b\n"
    assert "name=\"k\" mode='rb'" in repr(reader)
    reader.close()
    assert reader.closed


@pytest.mark.parametrize("method", ["fileno", "truncate", "detach"])
def test_what_objects_lack_is_refused_as_python_does(store, method):
    with store.open_writer("k") as writer, pytest.raises(io.UnsupportedOperation, match=method):
        getattr(writer, method)()
    with store.open_reader("k") as reader, pytest.raises(io.UnsupportedOperation, match=method):
        getattr(reader, method)()


def test_pythons_own_wrappers_take_them(store):
    with io.TextIOWrapper(store.open_writer("t"), encoding="utf-8", newline="") as text:
        csv.writer(text).writerows([["ä", 1], ["b", 2]])
    with io.TextIOWrapper(store.open_reader("t"), encoding="utf-8", newline="") as text:
        assert [*csv.reader(text)] == [["ä", "1"], ["b", "2"]]
    assert io.BufferedReader(store.open_reader("t")).readline() == "ä,1\r\n".encode()
    with store.open_writer("z") as below, gzip.open(below, "wb") as packed:
        packed.write(b"bytes")
    with store.open_reader("z") as below, gzip.open(below) as packed:
        assert packed.read() == b"bytes"


def test_pandas_writes_to_one(store):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2]})
    with store.open_writer("k.csv") as writer:
        frame.to_csv(writer, index=False)
    assert pandas.read_csv(store.open_reader("k.csv")).equals(frame)
    assert "pandas" in sys.modules
