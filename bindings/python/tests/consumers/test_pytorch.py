"""Tests the datasets of `examples/pytorch.py` with PyTorch's DataLoader, whose workers are forked, spawned or
started by a fork server."""

import asyncio
import io
import sys
import tarfile
import uuid
from pathlib import Path

import laneway
import pytest

pytest.importorskip("torch")
# Spawned workers import this module by its name, and find it on the module path that they inherit.
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from pytorch import Objects, Shards, Shuffled  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

SAMPLES = 10_000
SHARDS = 7
BATCH = 100

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


def content(number):
    return b"%d " % number * 20


def key(number):
    return f"{number:05}.bin"


async def put_all(store):
    """Stores an object for each sample, and the same samples in tar files."""
    for begin in range(0, SAMPLES, 500):
        numbers = range(begin, begin + 500)
        await asyncio.gather(*(store.put_async(f"objects/{key(number)}", content(number)) for number in numbers))
    for shard in range(SHARDS):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for number in range(shard, SAMPLES, SHARDS):
                member = tarfile.TarInfo(key(number))
                member.size = len(content(number))
                tar.addfile(member, io.BytesIO(content(number)))
        await store.put_async(f"shards/{shard}.tar", packed.getbuffer())


@pytest.fixture(scope="session")
def samples(filesystem):
    """Makes stores of the training data, in either dialect. In both dialects the server has the same
    objects."""
    prefix = f"training-{uuid.uuid4().hex[:8]}"

    def made(scheme, folder):
        return laneway.from_url(f"{scheme}://lake/{prefix}/{folder}", **filesystem(scheme).storage_options)

    asyncio.run(put_all(made("s3", "")))
    return made


def keys(store):
    return [meta["path"] for meta in store.list().collect()]


def loaded(dataset, method, **how):
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=2, multiprocessing_context=method, collate_fn=list, **how)
    return [sample for batch in loader for sample in batch]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_an_object_for_each_sample(samples, scheme, method):
    store = samples(scheme, "objects")
    dataset = Objects(store, keys(store))
    assert len(dataset) == SAMPLES and dataset[7] == (key(7), content(7))
    read = loaded(dataset, method, sampler=Shuffled(SAMPLES, seed=1))
    assert [name for name, _ in read] != sorted(name for name, _ in read)
    assert dict(read) == {key(number): content(number) for number in range(SAMPLES)} and len(read) == SAMPLES


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_tar_files_of_samples(samples, scheme, method):
    store = samples(scheme, "shards")
    # Two processes of a group, with two workers each, share the files.
    read = [sample for rank in (0, 1) for sample in loaded(Shards(store, keys(store), rank=rank, ranks=2), method)]
    assert dict(read) == {key(number): content(number) for number in range(SAMPLES)} and len(read) == SAMPLES


def test_an_epoch_goes_on_where_it_was_left(samples):
    store = samples("gs", "objects")
    dataset = Objects(store, keys(store))
    whole = loaded(dataset, "fork", sampler=Shuffled(SAMPLES, seed=3, epoch=2))
    done = 12 * BATCH
    assert loaded(dataset, "fork", sampler=Shuffled(SAMPLES, seed=3, epoch=2, start=done)) == whole[done:]
    assert [*Shuffled(SAMPLES, seed=3, epoch=3)] != [*Shuffled(SAMPLES, seed=3, epoch=2)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_sample_that_is_missing_is_a_file_not_found(samples, method):
    with pytest.raises(FileNotFoundError, match="nothing.bin"):
        loaded(Objects(samples("s3", "objects"), ["nothing.bin"]), method)
