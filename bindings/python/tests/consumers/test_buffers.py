"""Passes a `Bytes` to libraries that accept `bytes`. If a library accepts only files, the test wraps the
`Bytes` in a file."""

import io
import json

import laneway
import pytest

CSV = b"a,b\n1,2\n"


def test_json():
    assert json.loads(laneway.Bytes(b'{"a": [1]}')) == {"a": [1]}


def test_yaml():
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(laneway.Bytes("a: [ä]".encode())) == {"a": ["ä"]}


def test_polars_takes_bytes_of_other_kinds_in_a_file_alone(table):
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table)
    content = io.BytesIO()
    frame.write_parquet(content)
    got = laneway.Bytes(content.getvalue())
    assert polars.read_parquet(io.BytesIO(got)).equals(frame)
    assert polars.read_csv(io.BytesIO(laneway.Bytes(CSV)))["b"].to_list() == [2]
    # Polars itself accepts only Python's own `bytes` and files, and no other buffer.
    for read, buffer in ((polars.read_parquet, got), (polars.read_parquet, memoryview(got)), (polars.read_csv, laneway.Bytes(CSV))):
        with pytest.raises(TypeError):
            read(buffer)


def test_pyarrow_and_pandas_take_bytes_of_any_kind_in_a_file_alone(table):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    pandas = pytest.importorskip("pandas")
    content = io.BytesIO()
    parquet.write_table(table, content)
    got = laneway.Bytes(content.getvalue())
    assert parquet.read_table(pyarrow.BufferReader(got)).equals(table)
    assert pandas.read_csv(io.BytesIO(laneway.Bytes(CSV)))["b"].tolist() == [2]
    # pyarrow doesn't accept Python's own `bytes` either.
    for buffer in (got, content.getvalue()):
        with pytest.raises(TypeError):
            parquet.read_table(buffer)
