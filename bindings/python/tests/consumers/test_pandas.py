"""pandas, by URLs."""

import pytest

pandas = pytest.importorskip("pandas")


def test_parquet_in_folders(table, total, scheme, folder, storage):
    url = f"{scheme}://{folder}/table"
    table.to_pandas().to_parquet(url, partition_cols=["year"], storage_options=storage)
    read = pandas.read_parquet(url, storage_options=storage, columns=["row", "year"], filters=[("year", "=", 2025)])
    assert read["row"].sum() == total and set(read["year"]) == {2025}


def test_one_parquet_file_and_csv(table, scheme, folder, storage):
    frame = table.to_pandas()
    frame.to_parquet(f"{scheme}://{folder}/one.parquet", storage_options=storage)
    assert pandas.read_parquet(f"{scheme}://{folder}/one.parquet", storage_options=storage).equals(frame)
    frame.to_csv(f"{scheme}://{folder}/one.csv.gz", index=False, storage_options=storage)
    assert pandas.read_csv(f"{scheme}://{folder}/one.csv.gz", storage_options=storage).equals(frame)
    with pytest.raises(FileNotFoundError):
        pandas.read_csv(f"{scheme}://{folder}/nothing.csv", storage_options=storage)
