"""Compares queries of Parquet tables through this package's fsspec layer and through other filesystems, on any S3 store.

    laneway serve --bucket lake --rtt 10ms &
    AWS_ACCESS_KEY_ID=laneway AWS_SECRET_ACCESS_KEY=lanewaysecret python tables.py http://127.0.0.1:9010 lake

The queries are:
- `pandas` reads 3 of 50 columns of one file.
- `duckdb` sums the same columns of the same file by SQL.
- `dataset` reads the same columns of 64 files, as a pyarrow dataset.

The script first writes the files locally and uploads them. `--mib` is the size of the single file, and also of the 64 files together. The
output also has the time of each query on the local files. Subtract it from the other times to compare the stores.
"""

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
from rounds import Reading, compare

REGION = "us-east-1"
PREFIX = "tables-bench"
COLUMNS, WANTED, FILES = 50, ["c07", "c23", "c41"], 64
ROW_BYTES = COLUMNS * 8


def write(folder: Path, mib: int) -> None:
    chance = numpy.random.default_rng(7)
    rows = (mib << 20) // ROW_BYTES

    def table(rows: int) -> pyarrow.Table:
        return pyarrow.table({f"c{number:02}": chance.random(rows) for number in range(COLUMNS)})

    options = {"compression": "none", "use_dictionary": False, "row_group_size": max(rows // 16, 1)}
    with pyarrow.parquet.ParquetWriter(folder / "one.parquet", table(1).schema, compression="none", use_dictionary=False) as file:
        for _ in range(16):
            file.write_table(table(rows // 16))
    (folder / "many").mkdir()
    for number in range(FILES):
        pyarrow.parquet.write_table(table(rows // FILES), folder / "many" / f"{number:02}.parquet", **options)


def put(folder: Path, endpoint: str, bucket: str) -> None:
    import laneway

    store = laneway.S3Store(bucket, endpoint=endpoint, region=REGION)
    for path in folder.rglob("*.parquet"):
        store.put(f"{PREFIX}/{path.relative_to(folder)}", path)


class Filesystems:
    """The filesystems to compare. Each method returns a filesystem, and the folder in it with the Parquet files."""

    def __init__(self, endpoint: str, bucket: str, folder: Path) -> None:
        self.endpoint, self.there, self.folder = endpoint, f"{bucket}/{PREFIX}", folder

    def local(self) -> tuple[Any, str]:
        import fsspec

        return fsspec.filesystem("file"), str(self.folder)

    def laneway(self) -> tuple[Any, str]:
        import laneway.fsspec

        return laneway.fsspec.S3FileSystem(endpoint_url=self.endpoint, client_kwargs={"region_name": REGION}), self.there

    def s3fs(self) -> tuple[Any, str]:
        import s3fs

        return s3fs.S3FileSystem(endpoint_url=self.endpoint, client_kwargs={"region_name": REGION}), self.there

    def pyarrow(self) -> tuple[Any, str]:
        import pyarrow.fs

        scheme, _, address = self.endpoint.partition("://")
        options = {"tls_ca_file_path": os.environ["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in os.environ else {}
        keys = {"access_key": os.environ["AWS_ACCESS_KEY_ID"], "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
        return pyarrow.fs.S3FileSystem(scheme=scheme, endpoint_override=address, region=REGION, **keys, **options), self.there

    def obstore(self) -> tuple[Any, str]:
        from obstore.fsspec import FsspecStore

        keys = {"access_key_id": os.environ["AWS_ACCESS_KEY_ID"], "secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
        options = {"allow_http": self.endpoint.startswith("http:")}
        return FsspecStore("s3", endpoint=self.endpoint, region=REGION, client_options=options, **keys), self.there


def pandas_query(system: Any, before: str) -> Any:
    import pandas

    return pandas.read_parquet(f"{before}/one.parquet", columns=WANTED, filesystem=system)


def duckdb_query(system: Any, before: str) -> Any:
    import duckdb

    connection = duckdb.connect()
    path = f"{before}/one.parquet"
    if not before.startswith("/"):
        connection.register_filesystem(system)
        path = f"{system.protocol if isinstance(system.protocol, str) else system.protocol[0]}://{path}"
    sums = ", ".join(f"sum({column})" for column in WANTED)
    return connection.sql(f"SELECT {sums} FROM '{path}'").fetchall()


def dataset_query(system: Any, before: str) -> Any:
    return pyarrow.dataset.dataset(f"{before}/many", filesystem=system).to_table(columns=WANTED)


QUERIES: dict[str, tuple[Callable[[Any, str], Any], list[str]]] = {
    "pandas": (pandas_query, ["local", "laneway", "s3fs", "pyarrow", "obstore"]),
    "duckdb": (duckdb_query, ["local", "laneway", "s3fs", "obstore"]),
    "dataset": (dataset_query, ["local", "laneway", "s3fs", "pyarrow", "obstore"]),
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("endpoint")
    arguments.add_argument("bucket")
    arguments.add_argument("queries", nargs="*", metavar="query", help=f"any of {', '.join(QUERIES)} (default: all)")
    arguments.add_argument("--mib", type=int, default=1024)
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        spawned = multiprocessing.get_context("spawn")
        for work, given in ((write, (folder, chosen.mib)), (put, (folder, chosen.endpoint, chosen.bucket))):
            process = spawned.Process(target=work, args=given)
            process.start()
            process.join()
        systems = Filesystems(chosen.endpoint, chosen.bucket, folder)
        for query_name in chosen.queries or QUERIES:
            query, names = QUERIES[query_name]

            def reading(of: str, query: Callable[[Any, str], Any] = query) -> Reading:
                def prepare() -> Callable[[], object]:
                    system, before = getattr(systems, of)()

                    def timed() -> object:
                        result = query(system, before)

                        def check() -> None:
                            expected = query(*systems.local())
                            assert result.equals(expected) if hasattr(result, "equals") else len(result) == len(expected)

                        return check

                    return timed

                return prepare

            compare(query_name, {of: reading(of) for of in names}, chosen.rounds)


if __name__ == "__main__":
    main()
