"""Compares reads and writes of this package and of other packages, on any S3 store.

    laneway serve --bucket lake --rtt 10ms &
    AWS_ACCESS_KEY_ID=laneway AWS_SECRET_ACCESS_KEY=lanewaysecret python objects.py http://127.0.0.1:9010 lake gets puts ranges

The jobs are:
- `gets` reads 1000 objects of 4000 bytes at once under asyncio.
- `puts` writes 1000 objects of 4700 bytes in the same way.
- `ranges` reads 400 random ranges of 4 to 64 KiB of an object of 1 GiB.
- `warm` reads 2000 ranges of 4 KiB one after the other, over an open connection.
- `whole` reads the object of 1 GiB into the caller's buffer, and by `get().bytes()`. The last column, peak memory, shows that the process
  holds the content only once.

The script first uploads the objects. After each measurement, it checks the result.
"""

import argparse
import asyncio
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import laneway
import obstore
from obstore.store import S3Store as ObstoreS3
from rounds import Reading, compare

REGION = "us-east-1"
PREFIX = "objects-bench"
SMALL_BYTES, PUT_BYTES, WHOLE_BYTES = 4000, 4700, 1 << 30
SMALL = [f"{PREFIX}/small/{number:04}" for number in range(1000)]
WHOLE = f"{PREFIX}/whole"
BLOCK = random.Random(7).randbytes(1 << 20)


def ranges() -> list[tuple[int, int]]:
    chance = random.Random(11)
    lengths = [chance.randrange(4 << 10, 64 << 10) for _ in range(400)]
    return [(begin, begin + length) for length in lengths for begin in [chance.randrange(WHOLE_BYTES - length)]]


def expected(begin: int, end: int) -> bytes:
    """Returns a range of the object of 1 GiB. The object repeats one block, but the first 8 bytes of each copy are its number."""
    parts = []
    while begin < end:
        block, at = divmod(begin, len(BLOCK))
        take = min(end - begin, len(BLOCK) - at)
        parts.append((block.to_bytes(8, "big") + BLOCK[8:])[at : at + take])
        begin += take
    return b"".join(parts)


class Place:
    def __init__(self, endpoint: str, bucket: str) -> None:
        self.endpoint, self.bucket = endpoint, bucket

    def laneway(self) -> Any:
        return laneway.S3Store(self.bucket, endpoint=self.endpoint, region=REGION)

    def obstore(self) -> Any:
        options = {"allow_http": self.endpoint.startswith("http:")}
        return ObstoreS3(self.bucket, endpoint=self.endpoint, region=REGION, client_options=options)

    def boto3(self, connections: int) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(max_pool_connections=connections)
        return boto3.client("s3", endpoint_url=self.endpoint, region_name=REGION, config=config)

    def s3fs(self) -> Any:
        import s3fs

        return s3fs.S3FileSystem(endpoint_url=self.endpoint, client_kwargs={"region_name": REGION})

    def pyarrow(self, threads: int) -> Any:
        import pyarrow
        import pyarrow.fs

        pyarrow.set_io_thread_count(threads)
        scheme, _, address = self.endpoint.partition("://")
        options = {"tls_ca_file_path": os.environ["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in os.environ else {}
        keys = {"access_key": os.environ["AWS_ACCESS_KEY_ID"], "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
        return pyarrow.fs.S3FileSystem(scheme=scheme, endpoint_override=address, region=REGION, **keys, **options)


def fill(place: Place) -> None:
    store = place.laneway()

    async def put_small() -> None:
        await asyncio.gather(*(store.put_async(key, expected(0, SMALL_BYTES)) for key in SMALL))

    asyncio.run(put_small())
    store.put(WHOLE, (expected(at, at + len(BLOCK)) for at in range(0, WHOLE_BYTES, len(BLOCK))))


def gets(place: Place) -> dict[str, Reading]:
    def by(open_store: Callable[[], Any], content: Callable[[Any], Any]) -> Reading:
        def prepare() -> Callable[[], object]:
            store = open_store()

            async def one(key: str) -> Any:
                return await content(await store.get_async(key))

            async def everything() -> list[Any]:
                return await asyncio.gather(*map(one, SMALL))

            def timed() -> object:
                contents = asyncio.run(everything())

                def check() -> None:
                    assert all(bytes(content) == expected(0, SMALL_BYTES) for content in contents)

                return check

            return timed

        return prepare

    return {name: by(getattr(place, name), lambda result: result.bytes_async()) for name in ("laneway", "obstore")}


def puts(place: Place) -> dict[str, Reading]:
    content = expected(0, PUT_BYTES)

    def by(name: str) -> Reading:
        def prepare() -> Callable[[], object]:
            store = getattr(place, name)()
            run = f"{PREFIX}/puts/{name}-{os.getpid()}"

            async def everything() -> None:
                await asyncio.gather(*(store.put_async(f"{run}/{number:04}", content) for number in range(1000)))

            def timed() -> object:
                asyncio.run(everything())

                def check() -> None:
                    there = [meta["size"] for metas in place.laneway().list(run) for meta in metas]
                    assert there == [PUT_BYTES] * 1000

                return check

            return timed

        return prepare

    return {name: by(name) for name in ("laneway", "obstore")}


def ranges_at_once(place: Place) -> dict[str, Reading]:
    asked = ranges()
    begins, ends = [begin for begin, _ in asked], [end for _, end in asked]

    def by(prepare_reading: Callable[[], Callable[[], Any]]) -> Reading:
        def prepare() -> Callable[[], object]:
            read = prepare_reading()

            def timed() -> object:
                contents = read()

                def check() -> None:
                    assert all(bytes(content) == expected(*one) for content, one in zip(contents, asked, strict=True))

                return check

            return timed

        return prepare

    def of_store(open_store: Callable[[], Any]) -> Callable[[], Any]:
        store = open_store()
        return lambda: store.get_ranges(WHOLE, starts=begins, ends=ends)

    def of_obstore_each() -> Callable[[], Any]:
        store = place.obstore()

        async def everything() -> list[Any]:
            return await asyncio.gather(*(store.get_range_async(WHOLE, start=begin, end=end) for begin, end in asked))

        return lambda: asyncio.run(everything())

    def of_pyarrow() -> Callable[[], Any]:
        system = place.pyarrow(50)

        def read() -> list[Any]:
            with system.open_input_file(f"{place.bucket}/{WHOLE}") as file, ThreadPoolExecutor(50) as threads:
                return list(threads.map(lambda one: file.read_at(one[1] - one[0], one[0]), asked))

        return read

    def of_s3fs() -> Callable[[], Any]:
        system = place.s3fs()
        return lambda: system.cat_ranges([f"{place.bucket}/{WHOLE}"] * len(asked), begins, ends)

    def of_boto3() -> Callable[[], Any]:
        client = place.boto3(50)

        def one(asked: tuple[int, int]) -> bytes:
            answer = client.get_object(Bucket=place.bucket, Key=WHOLE, Range=f"bytes={asked[0]}-{asked[1] - 1}")
            return answer["Body"].read()

        def read() -> list[bytes]:
            with ThreadPoolExecutor(50) as threads:
                return list(threads.map(one, asked))

        return read

    return {
        "laneway": by(lambda: of_store(place.laneway)),
        "obstore": by(lambda: of_store(place.obstore)),
        "obstore, each": by(of_obstore_each),
        "pyarrow, 50": by(of_pyarrow),
        "s3fs": by(of_s3fs),
        "boto3, 50": by(of_boto3),
    }


def warm(place: Place) -> dict[str, Reading]:
    def by(open_store: Callable[[], Any]) -> Reading:
        def prepare() -> Callable[[], object]:
            store = open_store()
            store.get_range(WHOLE, start=0, length=4096)

            def timed() -> None:
                for number in range(2000):
                    content = store.get_range(WHOLE, start=number * 8192, length=4096)
                    assert len(content) == 4096

            return timed

        return prepare

    return {"laneway": by(place.laneway), "obstore": by(place.obstore)}


def whole(place: Place) -> dict[str, Reading]:
    def check_of(content: Any) -> Callable[[], None]:
        def check() -> None:
            for begin, end in ranges():
                assert bytes(memoryview(content)[begin:end]) == expected(begin, end)

        return check

    def into_a_buffer() -> Callable[[], object]:
        store, buffer = place.laneway(), bytearray(WHOLE_BYTES)

        def timed() -> object:
            assert store.get(WHOLE, into=buffer) == WHOLE_BYTES
            return check_of(buffer)

        return timed

    def bytes_of(open_store: Callable[[], Any]) -> Reading:
        def prepare() -> Callable[[], object]:
            store = open_store()
            return lambda: check_of(store.get(WHOLE).bytes())

        return prepare

    return {
        "laneway, into": into_a_buffer,
        "laneway, bytes": bytes_of(place.laneway),
        "obstore": bytes_of(place.obstore),
    }


JOBS = {"gets": gets, "puts": puts, "ranges": ranges_at_once, "warm": warm, "whole": whole}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("endpoint")
    arguments.add_argument("bucket")
    arguments.add_argument("jobs", nargs="*", metavar="job", help=f"any of {', '.join(JOBS)} (default: all)")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--filled", action="store_true", help="skip the upload, because an earlier run uploaded the objects")
    chosen = arguments.parse_args()
    place = Place(chosen.endpoint, chosen.bucket)
    if not chosen.filled:
        import multiprocessing

        filling = multiprocessing.get_context("spawn").Process(target=fill, args=(place,))
        filling.start()
        filling.join()
    for name in chosen.jobs or JOBS:
        compare(name, JOBS[name](place), chosen.rounds)


if __name__ == "__main__":
    main()
