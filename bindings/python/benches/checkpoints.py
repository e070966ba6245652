"""Measures checkpoints of PyTorch with Laneway and with s3torchconnector, in seconds, on any S3 store.

    laneway serve --bucket lake --rtt 10ms &
    AWS_ACCESS_KEY_ID=laneway AWS_SECRET_ACCESS_KEY=lanewaysecret python checkpoints.py http://127.0.0.1:9010 lake

A checkpoint has `--size` bytes, in tensors of 64 MiB and a few small ones. `torch` is `torch.save` and `torch.load`, and `dcp` is
`torch.distributed.checkpoint`. Each measurement runs in a new process, and the two packages take turns. The script prints the medians of
all rounds. The tensors are loaded into memory and compared. s3torchconnector needs its extra `dcp`, and its reader and writer of
checkpoints take the endpoint from AWS_ENDPOINT_URL, which the script sets.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import laneway
import torch
import torch.distributed.checkpoint as dcp
from rounds import in_turns, show

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from checkpoints import CheckpointReader, CheckpointWriter, load, save  # noqa: E402

PREFIX = "checkpoint-bench"
REGION = "us-east-1"
TENSOR = 64 << 20

Step = Callable[[], Any]


def of_laneway(kind: str, chosen: argparse.Namespace, state: dict[str, Any], blank: dict[str, Any]) -> tuple[Step, Step]:
    store = laneway.S3Store(chosen.bucket, endpoint=chosen.endpoint, region=REGION, prefix=PREFIX)
    if kind == "torch":
        return lambda: save(state, store, "model.pt"), lambda: load(store, "model.pt")
    return (
        lambda: dcp.save(state, storage_writer=CheckpointWriter(store, "laneway")),
        lambda: loaded(blank, CheckpointReader(store, "laneway")),
    )


def of_s3torchconnector(
    kind: str, chosen: argparse.Namespace, state: dict[str, Any], blank: dict[str, Any]
) -> tuple[Step, Step]:
    from s3torchconnector import S3Checkpoint, S3ClientConfig
    from s3torchconnector.dcp import S3StorageReader, S3StorageWriter

    config, url = S3ClientConfig(force_path_style=True), f"s3://{chosen.bucket}/{PREFIX}/s3torchconnector"
    if kind == "torch":
        checkpoint = S3Checkpoint(region=REGION, endpoint=chosen.endpoint, s3client_config=config)

        def write() -> None:
            with checkpoint.writer(f"{url}.pt") as file:
                torch.save(state, file)

        def read() -> Any:
            with checkpoint.reader(f"{url}.pt") as file:
                return torch.load(file, weights_only=True)

        return write, read
    return (
        lambda: dcp.save(state, storage_writer=S3StorageWriter(region=REGION, path=f"{url}/", s3client_config=config)),
        lambda: loaded(blank, S3StorageReader(region=REGION, path=f"{url}/", s3client_config=config)),
    )


def loaded(state: dict[str, Any], reader: Any) -> dict[str, Any]:
    dcp.load(state, storage_reader=reader)
    return state


CLIENTS = {"laneway": of_laneway, "s3torchconnector": of_s3torchconnector}


def measure(name: str, kind: str, chosen: argparse.Namespace, results: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    state = {f"layer-{number}": torch.rand(TENSOR // 4, generator=generator) for number in range(chosen.size // TENSOR)}
    state |= {f"bias-{number}": torch.rand(1000, generator=generator) for number in range(16)}
    blank = {key: torch.zeros_like(tensor) for key, tensor in state.items()} if kind == "dcp" else {}
    write, read = CLIENTS[name](kind, chosen, state, blank)
    began = time.monotonic()
    write()
    written = time.monotonic()
    found = read()
    ended = time.monotonic()
    assert all(torch.equal(found[key], tensor) for key, tensor in state.items()), f"{name}: another checkpoint was read"
    results.put((written - began, ended - written))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("endpoint")
    arguments.add_argument("bucket")
    arguments.add_argument("--size", type=int, default=2 << 30, help="the size of the checkpoint in bytes")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--kinds", nargs="+", default=["torch", "dcp"], choices=["torch", "dcp"])
    chosen = arguments.parse_args()
    os.environ["AWS_ENDPOINT_URL"] = chosen.endpoint

    for kind in chosen.kinds:
        seconds = in_turns(measure, {name: (name, kind, chosen) for name in CLIENTS}, chosen.rounds, "spawn")
        for name, rounds in seconds.items():
            for step, values in zip(("save", "load"), zip(*rounds, strict=True), strict=False):
                show(f"{kind} {step} {name}", list(values), "s", 2)


if __name__ == "__main__":
    main()
