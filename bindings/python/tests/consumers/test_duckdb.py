"""Tests DuckDB with a registered filesystem."""

import pytest

duckdb = pytest.importorskip("duckdb")


def test_parquet_in_folders(table, total, scheme, fs, folder, by_laneway):
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    connection.register("rows", table)
    url = f"{scheme}://{folder}/table"
    with by_laneway():
        connection.execute(f"COPY rows TO '{url}' (FORMAT parquet, PARTITION_BY (year))")
    with by_laneway():
        found = connection.execute(
            f"SELECT sum(row), any_value(year) FROM read_parquet('{url}/*/*.parquet', hive_partitioning = true) WHERE year = 2025"
        )
        assert found.fetchone() == (total, 2025)


def test_csv_and_what_is_missing(table, scheme, fs, folder, by_laneway):
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    connection.register("rows", table)
    with by_laneway():
        connection.execute(f"COPY rows TO '{scheme}://{folder}/rows.csv' (HEADER)")
    with by_laneway():
        assert connection.execute(f"SELECT count(*) FROM '{scheme}://{folder}/rows.csv'").fetchone() == (len(table),)
    with pytest.raises(duckdb.Error):
        connection.execute(f"SELECT * FROM '{scheme}://{folder}/nothing.parquet'")
