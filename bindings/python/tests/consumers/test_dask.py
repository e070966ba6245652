"""Dask, in threads and in processes."""

from contextlib import nullcontext

import pytest

dataframe = pytest.importorskip("dask.dataframe")


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_parquet_in_folders(table, total, scheme, folder, storage, by_laneway, scheduler):
    import dask

    # Worker processes count their requests themselves, so this process can't check the count.
    counted = by_laneway if scheduler == "threads" else nullcontext
    url = f"{scheme}://{folder}/table"
    with dask.config.set(scheduler=scheduler):
        frame = dataframe.from_pandas(table.to_pandas(), npartitions=4)
        with counted():
            frame.to_parquet(url, partition_on=["year"], storage_options=storage)
        with counted():
            read = dataframe.read_parquet(url, filters=[("year", "==", 2025)], columns=["row"], storage_options=storage)
        with counted():
            assert read["row"].sum().compute() == total


def test_bytes(scheme, fs, folder, storage, by_laneway):
    from dask.bytes import read_bytes

    fs.pipe({f"{folder}/{n}.txt": b"line\n" * 1000 for n in range(3)})
    _, blocks = read_bytes(f"{scheme}://{folder}/*.txt", blocksize=2000, delimiter=b"\n", **storage)
    with by_laneway():
        assert b"".join(block.compute() for file in blocks for block in file) == b"line\n" * 3000
