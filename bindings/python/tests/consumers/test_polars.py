"""Tests Polars, which doesn't use fsspec for URLs, but accepts files and datasets of pyarrow."""

import pytest

polars = pytest.importorskip("polars")


def test_a_file_and_a_dataset(table, total, fs, folder):
    dataset = pytest.importorskip("pyarrow.dataset")
    with fs.open(f"{folder}/table.parquet", "wb") as file:
        polars.from_arrow(table).write_parquet(file)
    with fs.open(f"{folder}/table.parquet") as file:
        read = polars.read_parquet(file, columns=["row", "year"])
    assert read.filter(polars.col("year") == 2025)["row"].sum() == total
    lazy = polars.scan_pyarrow_dataset(dataset.dataset(f"{folder}/table.parquet", filesystem=fs))
    assert lazy.filter(polars.col("year") == 2025).select("row").collect()["row"].sum() == total
