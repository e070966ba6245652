"""Measures PyTorch's DataLoader with Laneway and with s3torchconnector, in samples per second, on any S3 store.

    laneway serve --bucket lake --rtt 10ms &
    AWS_ACCESS_KEY_ID=laneway AWS_SECRET_ACCESS_KEY=lanewaysecret python dataloader.py http://127.0.0.1:9010 lake

The script first uploads the samples. Each measurement runs in new processes, and the two packages take turns. The time runs from the
start of the first worker to the arrival of the last sample. The script prints the median of all rounds. `--method` is the start method of
Python's `multiprocessing`.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import laneway
from rounds import in_turns, show

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from pytorch import Objects, Shuffled  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

PREFIX = "pytorch-bench"
REGION = "us-east-1"


def content_of(reader: Any) -> tuple[str, bytes]:
    return reader.key, reader.read()


def of_laneway(chosen: argparse.Namespace, keys: list[str]) -> Any:
    return Objects(laneway.S3Store(chosen.bucket, endpoint=chosen.endpoint, region=REGION), keys)


def of_s3torchconnector(chosen: argparse.Namespace, keys: list[str]) -> Any:
    from s3torchconnector import S3ClientConfig, S3MapDataset

    uris = [f"s3://{chosen.bucket}/{key}" for key in keys]
    config = S3ClientConfig(force_path_style=True)
    return S3MapDataset.from_objects(
        uris, region=REGION, endpoint=chosen.endpoint, transform=content_of, s3client_config=config
    )


READERS = {"laneway": of_laneway, "s3torchconnector": of_s3torchconnector}


def reading(name: str, chosen: argparse.Namespace, keys: list[str], results: Any) -> None:
    dataset = READERS[name](chosen, keys)
    loader = DataLoader(
        dataset,
        batch_size=chosen.batch,
        num_workers=chosen.workers,
        sampler=Shuffled(len(keys), seed=1),
        multiprocessing_context=chosen.method,
        collate_fn=list,
    )
    began = time.monotonic()
    sizes = [len(content) for batch in loader for _, content in batch]
    seconds = time.monotonic() - began
    assert sizes == [chosen.size] * len(keys), f"{name}: samples are missing or cut"
    results.put(len(keys) / seconds)


async def put_samples(chosen: argparse.Namespace, keys: list[str]) -> None:
    store = laneway.S3Store(chosen.bucket, endpoint=chosen.endpoint, region=REGION)
    content = os.urandom(chosen.size)
    for begin in range(0, len(keys), 200):
        await asyncio.gather(*(store.put_async(key, content) for key in keys[begin : begin + 200]))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("endpoint")
    arguments.add_argument("bucket")
    arguments.add_argument("--samples", type=int, default=10_000)
    arguments.add_argument("--size", type=int, default=100_000, help="the size of a sample in bytes")
    arguments.add_argument("--workers", type=int, default=4)
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--method", default="fork", choices=["fork", "spawn", "forkserver"])
    chosen = arguments.parse_args()

    keys = [f"{PREFIX}/{number:05}" for number in range(chosen.samples)]
    asyncio.run(put_samples(chosen, keys))
    rates = in_turns(reading, {name: (name, chosen, keys) for name in READERS}, chosen.rounds, "spawn")
    for name, values in rates.items():
        show(name, values, "samples/s", 0)


if __name__ == "__main__":
    main()
