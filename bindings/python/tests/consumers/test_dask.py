"""Dask, in threads and in processes."""

import pytest

dataframe = pytest.importorskip("dask.dataframe")


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_parquet_in_folders(table, total, scheme, folder, storage, scheduler):
    import dask

    url = f"{scheme}://{folder}/table"
    with dask.config.set(scheduler=scheduler):
        frame = dataframe.from_pandas(table.to_pandas(), npartitions=4)
        frame.to_parquet(url, partition_on=["year"], storage_options=storage)
        read = dataframe.read_parquet(url, filters=[("year", "==", 2025)], columns=["row"], storage_options=storage)
        assert read["row"].sum().compute() == total


def test_bytes(scheme, fs, folder, storage):
    from dask.bytes import read_bytes

    fs.pipe({f"{folder}/{n}.txt": b"line\n" * 1000 for n in range(3)})
    _, blocks = read_bytes(f"{scheme}://{folder}/*.txt", blocksize=2000, delimiter=b"\n", **storage)
    assert b"".join(block.compute() for file in blocks for block in file) == b"line\n" * 3000
