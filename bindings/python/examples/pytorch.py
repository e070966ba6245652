"""Reads training data in a bucket with the workers of PyTorch's DataLoader. Each object is a sample, or a tar file of samples.

    python pytorch.py s3://lake/samples/ --workers 4          # or gs://
    python pytorch.py s3://lake/shards/ --tar --workers 4

The script prints the samples and megabytes per second. Workers may be forked or spawned: each gets a copy of the dataset with its
store, and starts its own engine. Laneway finds credentials and the endpoint where AWS's and Google's own tools find them.
"""

import argparse
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import laneway
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

Decode = Callable[[str, bytes], Any]

# The number of objects that a worker reads at once. The reads mostly wait for the network, so there may be more of them than processors.
READS = 16


def raw(name: str, content: bytes) -> tuple[str, bytes]:
    """Returns the name and the bytes of a sample unchanged. Replace this with your own decoder, which runs in the workers."""
    return name, content


class Objects(Dataset[Any]):
    """A map-style dataset, in which each object is a sample. DataLoader requests whole batches, and a worker reads the
    objects of a batch at once."""

    def __init__(self, store: laneway.ObjectStore, keys: Sequence[str], decode: Decode = raw) -> None:
        self.store, self.keys, self.decode = store, keys, decode

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> Any:
        key = self.keys[index]
        return self.decode(key, self.store.get(key).bytes().to_bytes())

    def __getitems__(self, indices: list[int]) -> list[Any]:
        with ThreadPoolExecutor(READS) as threads:
            return list(threads.map(self.__getitem__, indices))


class Shards(IterableDataset[Any]):
    """An iterable dataset of the samples in tar files, in their order. The files are divided among the `ranks` processes
    of distributed training, and then among the workers of each process."""

    def __init__(
        self, store: laneway.ObjectStore, keys: Sequence[str], decode: Decode = raw, rank: int = 0, ranks: int = 1
    ) -> None:
        self.store, self.keys, self.decode = store, keys, decode
        self.rank, self.ranks = rank, ranks

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for key in self.keys[self.rank :: self.ranks][first::step]:
            # The mode `r|` never seeks, so the engine sees a sequential read, and reads ahead.
            with self.store.open_reader(key) as file, tarfile.open(fileobj=file, mode="r|") as tar:
                for member in tar:
                    content = tar.extractfile(member)
                    if content is not None:
                        yield self.decode(member.name, content.read())


class Shuffled(Sampler[int]):
    """Yields the indices of samples in a random order that depends only on `seed` and `epoch`, from position `start`. To
    continue after an interruption, store these three numbers in the checkpoint."""

    def __init__(self, size: int, seed: int, epoch: int = 0, start: int = 0) -> None:
        self.size, self.seed, self.epoch, self.start = size, seed, epoch, start

    def __len__(self) -> int:
        return self.size - self.start

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(self.size, generator=torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch))
        return iter(order[self.start :].tolist())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("url")
    arguments.add_argument("--tar", action="store_true", help="read each object as a tar file of samples")
    arguments.add_argument("--workers", type=int, default=4)
    arguments.add_argument("--batch", type=int, default=64)
    chosen = arguments.parse_args()

    store = laneway.from_url(chosen.url)
    keys = [meta["path"] for meta in store.list().collect()]
    options: dict[str, Any] = {"batch_size": chosen.batch, "num_workers": chosen.workers, "collate_fn": list}
    if chosen.tar:
        loader = DataLoader(Shards(store, keys), **options)
    else:
        loader = DataLoader(Objects(store, keys), sampler=Shuffled(len(keys), seed=1), **options)
    began, samples, size = time.monotonic(), 0, 0
    for batch in loader:
        samples += len(batch)
        size += sum(len(content) for _, content in batch)
    seconds = time.monotonic() - began
    print(f"{samples} samples, {size / 1e6:.1f} MB, {samples / seconds:.0f} samples/s, {size / seconds / 1e6:.1f} MB/s")


if __name__ == "__main__":
    main()
