"""Tests PyTorch's checkpoints, written by `torch.save` and `torch.distributed.checkpoint`, with
`examples/checkpoints.py` and with fsspec."""

import io
import socket
import sys
import uuid
from pathlib import Path

import laneway
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import torch.distributed.checkpoint as dcp  # noqa: E402
import torch.multiprocessing  # noqa: E402
from checkpoints import CheckpointReader, CheckpointWriter, ContentFile, load, save  # noqa: E402
from torch.distributed.checkpoint.fsspec_filesystem import FsspecReader, FsspecWriter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
# The second tensor is larger than a part of an upload, and is read in several slices.
SIZES = {"small": 1000, "large": 12 << 20, "empty": 0, "odd": 33_333}


@pytest.fixture
def checkpoints(filesystem, request):
    """Makes a store in this test's own folder."""
    prefix = f"checkpoints-{uuid.uuid4().hex[:8]}"
    return lambda scheme: laneway.from_url(f"{scheme}://lake/{prefix}", **filesystem(scheme).storage_options)


def state():
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.rand(size, generator=generator) for name, size in SIZES.items()}
    return {"model": tensors, "step": 7}


def blank():
    return {"model": {name: torch.zeros(size) for name, size in SIZES.items()}, "step": 0}


def check(found, wanted):
    assert found["step"] == wanted["step"] and found["model"].keys() == wanted["model"].keys()
    for name, tensor in wanted["model"].items():
        assert torch.equal(found["model"][name], tensor), name


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_torch_saves_and_loads(checkpoints, scheme):
    store, saved = checkpoints(scheme), state()
    save(saved, store, "model.pt")
    loaded = load(store, "model.pt")
    check(loaded, saved)
    # The program can change the tensors, and the object stays as it is.
    loaded["model"]["large"].zero_()
    assert not loaded["model"]["large"].any()
    check(load(store, "model.pt"), saved)
    # `torch.load` also accepts an open file.
    with store.open_reader("model.pt") as file:
        check(torch.load(file, weights_only=True), saved)


def test_a_checkpoint_that_is_cut_or_missing_cannot_be_loaded(checkpoints):
    store = checkpoints("s3")
    save({"a": torch.ones(1000)}, store, "model.pt")
    store.put("cut.pt", store.get("model.pt").bytes()[:2000])
    with pytest.raises(RuntimeError, match="zip"):
        load(store, "cut.pt")
    with pytest.raises(FileNotFoundError):
        load(store, "none.pt")


def test_a_save_that_fails_leaves_no_object(checkpoints):
    store = checkpoints("s3")
    with pytest.raises(Exception, match="lambda|pickle"):
        save({"model": lambda: None}, store, "model.pt")
    assert store.list().collect() == []


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_distributed_checkpoints(checkpoints, scheme, threads):
    store, saved, loaded = checkpoints(scheme), state(), blank()
    before = store.counters()["requests"]
    dcp.save(saved, storage_writer=CheckpointWriter(store, "step-7", thread_count=threads))
    assert [meta["path"] for meta in store.list("step-7/").collect()][0] == "step-7/.metadata"
    dcp.load(loaded, storage_reader=CheckpointReader(store, "step-7"))
    check(loaded, saved)
    assert store.counters()["requests"] > before
    # A second save replaces the first.
    saved["step"] = 8
    dcp.save(saved, storage_writer=CheckpointWriter(store, "step-7", thread_count=threads))
    dcp.load(loaded, storage_reader=CheckpointReader(store, "step-7"))
    check(loaded, saved)


def test_a_part_of_a_distributed_checkpoint(checkpoints):
    store, saved = checkpoints("gs"), state()
    dcp.save(saved, storage_writer=CheckpointWriter(store, "step-7"))
    part = {"model": {"odd": torch.zeros(SIZES["odd"])}}
    dcp.load(part, storage_reader=CheckpointReader(store, "step-7"))
    assert torch.equal(part["model"]["odd"], saved["model"]["odd"])


def test_a_checkpoint_that_is_missing(checkpoints):
    with pytest.raises(dcp.api.CheckpointException, match="step-9"):
        dcp.load(blank(), storage_reader=CheckpointReader(checkpoints("s3"), "step-9"))


def test_pytorchs_own_reader_and_writer_by_fsspec(filesystem, scheme, by_laneway):
    url, options = f"{scheme}://lake/checkpoints-{uuid.uuid4().hex[:8]}", filesystem(scheme).storage_options
    saved, loaded = state(), blank()
    with by_laneway():
        dcp.save(saved, storage_writer=FsspecWriter(url, sync_files=False, **options))
        dcp.load(loaded, storage_reader=FsspecReader(url, **options))
    check(loaded, saved)


def of_rank(rank, options, prefix, port):
    """Saves and loads a checkpoint as one process of a group, whose processes have different tensors."""
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    store = laneway.from_url(f"s3://lake/{prefix}", **options)
    own = {f"tensor-{rank}": torch.full((100_000,), float(rank))}
    dcp.save(own, storage_writer=CheckpointWriter(store, "step-1"))
    other = {f"tensor-{1 - rank}": torch.zeros(100_000)}
    dcp.load(other, storage_reader=CheckpointReader(store, "step-1"))
    assert torch.equal(other[f"tensor-{1 - rank}"], torch.full((100_000,), float(1 - rank)))
    torch.distributed.destroy_process_group()


def of_group(method, options, prefix, port):
    """Starts a group of processes, after the engine has started in this process."""
    laneway.from_url(f"s3://lake/{prefix}", **options).put("before", b"")
    torch.multiprocessing.start_processes(of_rank, args=(options, prefix, port), nprocs=2, start_method=method)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_a_group_write_one_checkpoint(filesystem, method):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    prefix, options = f"checkpoints-{uuid.uuid4().hex[:8]}", filesystem("s3").storage_options
    # If a process has computed with large tensors, as this one has, PyTorch's own threads hang in its forked
    # children.
    group = torch.multiprocessing.get_context("spawn").Process(target=of_group, args=(method, options, prefix, port))
    group.start()
    group.join(60)
    assert group.exitcode == 0
    store = laneway.from_url(f"s3://lake/{prefix}", **options)
    assert len(store.list("step-1/").collect()) == 3


def test_bytes_of_an_object_are_a_file_for_torch(checkpoints):
    store = checkpoints("gs")
    save({"a": torch.ones(3)}, store, "model.pt")
    content = store.get("model.pt").bytes()
    for file in (io.BytesIO(content), ContentFile(content)):
        assert torch.equal(torch.load(file, weights_only=True)["a"], torch.ones(3))


def test_a_file_of_a_buffer_reads_as_pythons_own_does():
    content = bytes(range(100))
    own, other = io.BytesIO(content), ContentFile(content)
    assert other.readable() and other.seekable()
    for step in (
        lambda file: file.read(10),
        lambda file: file.seek(-5, io.SEEK_CUR),
        lambda file: file.read(0),
        lambda file: file.read(),
        lambda file: file.read(5),
        lambda file: file.seek(-20, io.SEEK_END),
        lambda file: file.read(1000),
        lambda file: file.tell(),
        lambda file: file.seek(200),
        lambda file: file.read(1),
        lambda file: file.readinto(bytearray(3)),
    ):
        assert step(own) == step(other)
