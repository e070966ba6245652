"""Listings as Arrow tables of arro3 and of pyarrow."""

import sys

import laneway
import pytest


@pytest.fixture(params=["memory", "local"])
def local(request, tmp_path):
    return laneway.MemoryStore() if request.param == "memory" else laneway.LocalStore(tmp_path)


@pytest.mark.parametrize("library", ["arro3.core", "pyarrow"])
def test_lists_as_arrow(local, library, monkeypatch):
    arrow = pytest.importorskip(library)
    if library == "pyarrow":
        monkeypatch.setitem(sys.modules, "arro3.core", None)
    for number in range(25):
        local.put(f"f/{number:02}", b"x" * number)
    batches = list(local.list(return_arrow=True, chunk_size=10))
    assert [batch.num_rows for batch in batches] == [10, 10, 5] and isinstance(batches[0], arrow.RecordBatch)
    below = local.list_with_delimiter("f", return_arrow=True)
    assert below["common_prefixes"] == [] and isinstance(below["objects"], arrow.Table)
    assert [size.as_py() for size in below["objects"]["size"]] == list(range(25))
    meta = local.head("f/07")
    row = {name: batches[0][name][7].as_py() for name in ("path", "last_modified", "size", "e_tag", "version")}
    assert row == {name: meta[name] for name in row}
