"""Tests pandas with URLs."""

import pytest

pandas = pytest.importorskip("pandas")


def test_parquet_in_folders(table, total, scheme, folder, storage, by_laneway):
    url = f"{scheme}://{folder}/table"
    with by_laneway():
        table.to_pandas().to_parquet(url, partition_cols=["year"], storage_options=storage)
    with by_laneway():
        read = pandas.read_parquet(url, storage_options=storage, columns=["row", "year"], filters=[("year", "=", 2025)])
    assert read["row"].sum() == total and set(read["year"]) == {2025}


def test_one_parquet_file_and_csv(table, scheme, folder, storage, by_laneway):
    frame = table.to_pandas()
    with by_laneway():
        frame.to_parquet(f"{scheme}://{folder}/one.parquet", storage_options=storage)
    with by_laneway():
        assert pandas.read_parquet(f"{scheme}://{folder}/one.parquet", storage_options=storage).equals(frame)
    with by_laneway():
        frame.to_csv(f"{scheme}://{folder}/one.csv.gz", index=False, storage_options=storage)
    with by_laneway():
        assert pandas.read_csv(f"{scheme}://{folder}/one.csv.gz", storage_options=storage).equals(frame)
    with pytest.raises(FileNotFoundError):
        pandas.read_csv(f"{scheme}://{folder}/nothing.csv", storage_options=storage)


def test_without_options_its_requests_are_laneways(table, scheme, folder, storage, fs, monkeypatch):
    """If a call has no `storage_options`, not even empty ones, pandas opens Parquet URLs with Arrow's own clients."""
    where = {
        "s3": {"AWS_ENDPOINT_URL": storage.get("endpoint"), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "laneway"}
        | {"AWS_SECRET_ACCESS_KEY": "lanewaysecret"},
        "gs": {"STORAGE_EMULATOR_HOST": storage.get("base_url")},
    }
    for name, value in where[scheme].items():
        monkeypatch.setenv(name, value)
    of_environment = type(fs)()
    frame, url = table.to_pandas(), f"{scheme}://{folder}/one.parquet"
    counters = of_environment._at(folder)[0].counters
    before = counters()["requests"]
    frame.to_parquet(url, storage_options={})
    written = counters()["requests"]
    assert written > before
    assert pandas.read_parquet(url, storage_options={}).equals(frame)
    assert counters()["requests"] > written
    assert pandas.read_parquet(f"{folder}/one.parquet", filesystem=of_environment).equals(frame)
