"""Datasets of pyarrow."""

import pytest

pytest.importorskip("pyarrow")


def test_a_dataset(table, total, fs, folder):
    import pyarrow.compute
    import pyarrow.dataset

    where = pyarrow.dataset.partitioning(flavor="hive")
    pyarrow.dataset.write_dataset(
        table, f"{folder}/table", filesystem=fs, format="parquet", partitioning=["year"], partitioning_flavor="hive"
    )
    dataset = pyarrow.dataset.dataset(f"{folder}/table", filesystem=fs, format="parquet", partitioning=where)
    assert len(dataset.files) == 2 and dataset.count_rows() == len(table)
    later = dataset.to_table(columns=["row"], filter=pyarrow.compute.field("year") == 2025)
    assert sum(later["row"].to_pylist()) == total


def test_what_is_written_replaces_what_was(table, fs, folder):
    import pyarrow.dataset

    for rows in (len(table), 10):
        pyarrow.dataset.write_dataset(
            table.slice(0, rows), f"{folder}/table", filesystem=fs, format="parquet", existing_data_behavior="delete_matching"
        )
    assert pyarrow.dataset.dataset(f"{folder}/table", filesystem=fs).count_rows() == 10
