"""Datasets of pyarrow."""

import pytest

pytest.importorskip("pyarrow")


def test_a_dataset(table, total, fs, folder, by_laneway):
    import pyarrow.compute
    import pyarrow.dataset

    where = pyarrow.dataset.partitioning(flavor="hive")
    with by_laneway():
        pyarrow.dataset.write_dataset(
            table, f"{folder}/table", filesystem=fs, format="parquet", partitioning=["year"], partitioning_flavor="hive"
        )
    dataset = pyarrow.dataset.dataset(f"{folder}/table", filesystem=fs, format="parquet", partitioning=where)
    assert len(dataset.files) == 2 and dataset.count_rows() == len(table)
    with by_laneway():
        later = dataset.to_table(columns=["row"], filter=pyarrow.compute.field("year") == 2025)
    assert sum(later["row"].to_pylist()) == total


def test_one_file(table, fs, folder, by_laneway):
    import pyarrow.parquet

    with by_laneway():
        pyarrow.parquet.write_table(table, f"{folder}/one.parquet", filesystem=fs)
    with by_laneway():
        assert pyarrow.parquet.read_table(f"{folder}/one.parquet", filesystem=fs).equals(table)


def test_what_is_written_replaces_what_was(table, fs, folder):
    import pyarrow.dataset

    for rows in (len(table), 10):
        pyarrow.dataset.write_dataset(
            table.slice(0, rows), f"{folder}/table", filesystem=fs, format="parquet", existing_data_behavior="delete_matching"
        )
    assert pyarrow.dataset.dataset(f"{folder}/table", filesystem=fs).count_rows() == 10


def test_columns_are_fetched_ahead(fs, folder, monkeypatch):
    import pyarrow
    import pyarrow.parquet
    from laneway.fsspec._ahead import Ahead

    # The columns are too far apart for pyarrow to read two of them in one request.
    rows = {f"c{number}": pyarrow.array(range(160_000)) for number in range(10)}
    written = pyarrow.table(rows)
    for name in ("first", "second"):
        pyarrow.parquet.write_table(
            written, f"{folder}/{name}.parquet", filesystem=fs, row_group_size=4000, use_dictionary=False, compression="none"
        )
    served = []
    content = Ahead.content
    monkeypatch.setattr(Ahead, "content", staticmethod(lambda parts: served.append(parts) or content(parts)))
    columns = ["c2", "c5", "c7"]
    read = pyarrow.parquet.read_table(f"{folder}/first.parquet", filesystem=fs, columns=columns)
    assert read.equals(written.select(columns))
    # The program reads 3 columns of 40 row groups. Threads read the first row groups in any order, so these row groups
    # aren't read ahead.
    assert len(served) > 60
    some = pyarrow.parquet.read_table(f"{folder}/second.parquet", filesystem=fs, columns=columns, filters=[("c1", ">=", 156_000)])
    assert some.equals(written.select(columns).slice(156_000))


def test_files_of_a_dataset_are_opened_ahead(table, fs, folder, monkeypatch):
    import pyarrow.dataset
    import pyarrow.parquet
    files = 12
    rows = len(table) // files
    for number in range(files):
        part = table.slice(number * rows, rows)
        pyarrow.parquet.write_table(part, f"{folder}/table/part={number:02}/0.parquet", filesystem=fs)
    begun = []
    begin = fs.openings._begin
    monkeypatch.setattr(fs.openings, "_begin", lambda path: begun.append(path) or begin(path))
    dataset = pyarrow.dataset.dataset(f"{folder}/table", filesystem=fs, partitioning="hive")
    before = fs._at(folder)[0].counters()["requests"]
    assert dataset.to_table(columns=["row"]).equals(table.select(["row"]).slice(0, files * rows))
    # The dataset opens its first file twice. The files are small, so the answer to the request for the footer contains
    # the whole file.
    assert fs._at(folder)[0].counters()["requests"] - before == files
    assert begun == [f"{folder}/table/part={number:02}/0.parquet" for number in range(2, files)]
