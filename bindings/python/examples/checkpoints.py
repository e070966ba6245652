"""Stores PyTorch's checkpoints in a bucket: those of `torch.save`, and those of `torch.distributed.checkpoint`.

    python checkpoints.py s3://lake/run-7/           # or gs://

The script saves and loads a small model in both ways. `torch.save` and `torch.load` accept a file that Laneway opened.
`CheckpointWriter` and `CheckpointReader` are for `torch.distributed.checkpoint`, where each process of a group writes
its part.
"""

import argparse
import io
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import laneway
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import FileSystemBase, FileSystemReader, FileSystemWriter


def save(state: Any, store: laneway.ObjectStore, key: str) -> None:
    """Does what `torch.save` does. The object appears when it is complete."""
    with store.open_writer(key) as file:
        torch.save(state, file)


def load(store: laneway.ObjectStore, key: str) -> Any:
    """Does what `torch.load` does. It first reads the whole object, so that Laneway can compare its checksum. On Linux, it
    reads into a file in memory, and the tensors use this memory. On other systems, the tensors are copied, which takes
    the same memory twice."""
    result = store.get(key)
    if sys.platform != "linux":
        return torch.load(ContentFile(result.bytes()), weights_only=True)
    size = result.meta["size"]
    file = os.memfd_create("checkpoint")
    try:
        os.ftruncate(file, size)
        result.readinto(mmap.mmap(file, size))
        return torch.load(f"/proc/self/fd/{file}", mmap=True, weights_only=True)
    finally:
        os.close(file)


class ContentFile(io.RawIOBase):
    """A file that reads from a buffer. `io.BytesIO` would copy the whole buffer first."""

    def __init__(self, content: Any) -> None:
        self.content, self.position = memoryview(content), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: len(self.content)}[whence]
        self.position = max(0, start + offset)
        return self.position

    def readinto(self, buffer: Any) -> int:
        part = self.content[self.position : self.position + len(buffer)]
        buffer[: len(part)] = part
        self.position += len(part)
        return len(part)

    def readall(self) -> bytes:
        part = bytes(self.content[self.position :])
        self.position += len(part)
        return part


class CheckpointFiles(FileSystemBase):
    """The operations on files that PyTorch's own writer and reader of checkpoints need. A path is a key."""

    def __init__(self, store: laneway.ObjectStore) -> None:
        self.store = store

    @contextmanager
    def create_stream(self, path: Any, mode: str) -> Iterator[Any]:
        # An exception in the block aborts the upload.
        with self.store.open_writer(path) if mode == "wb" else self.store.open_reader(path) as file:
            yield file

    def concat_path(self, path: Any, suffix: str) -> str:
        return f"{path}/{suffix}"

    def init_path(self, path: Any) -> str:
        return str(path).strip("/")

    def rename(self, path: Any, new_path: Any) -> None:
        self.store.rename(path, new_path)

    def mkdir(self, path: Any) -> None:
        """Does nothing, because a store has no folders."""

    def exists(self, path: Any) -> bool:
        try:
            self.store.head(path)
        except FileNotFoundError:
            return False
        return True

    def rm_file(self, path: Any) -> None:
        self.store.delete(path)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return isinstance(checkpoint_id, str)


class CheckpointWriter(FileSystemWriter):
    """Writes a checkpoint below the folder `path` of a store."""

    def __init__(self, store: laneway.ObjectStore, path: str, **options: Any) -> None:
        super().__init__(path, sync_files=False, **options)
        self.fs = CheckpointFiles(store)
        self.path = self.fs.init_path(path)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return CheckpointFiles.validate_checkpoint_id(checkpoint_id)


class CheckpointReader(FileSystemReader):
    """Reads a checkpoint below the folder `path` of a store. While PyTorch unpacks a tensor, the engine fetches the next
    one of the same file."""

    def __init__(self, store: laneway.ObjectStore, path: str) -> None:
        super().__init__(path)
        self.fs = CheckpointFiles(store)
        self.path = self.fs.init_path(path)
        self._next: dict[tuple[str, int], Any] = {}
        self._fetched: tuple[Any, Any] = (None, None)

    def prepare_local_plan(self, plan: Any) -> Any:
        items = {item.storage_index: self.storage_data[item.storage_index] for item in plan.items}
        plan.items.sort(key=lambda item: (items[item.storage_index].relative_path, items[item.storage_index].offset))
        ordered = [items[item.storage_index] for item in plan.items]
        for item, following in zip(ordered, ordered[1:], strict=False):
            if (item.relative_path, item.offset) < (following.relative_path, following.offset):
                self._next[item.relative_path, item.offset] = following
        return plan

    def _slice_file(self, file: Any, sinfo: Any) -> Any:
        place, fetch = self._fetched
        if place != (sinfo.relative_path, sinfo.offset):
            fetch = self._fetch(file, sinfo)
        following = self._next.get((sinfo.relative_path, sinfo.offset))
        self._fetched = (None, None)
        if following is not None and following.relative_path == sinfo.relative_path:
            self._fetched = (following.relative_path, following.offset), self._fetch(file, following)
        [content] = fetch.result()
        return ContentFile(content)

    @staticmethod
    def _fetch(file: Any, sinfo: Any) -> Any:
        return file.fetch(starts=[sinfo.offset], ends=[sinfo.offset + sinfo.length])

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return CheckpointFiles.validate_checkpoint_id(checkpoint_id)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("url")
    chosen = arguments.parse_args()

    store = laneway.from_url(chosen.url)
    model = torch.nn.Linear(1000, 1000)
    save(model.state_dict(), store, "model.pt")
    model.load_state_dict(load(store, "model.pt"))

    dcp.save(model.state_dict(), storage_writer=CheckpointWriter(store, "step-1"))
    state = model.state_dict()
    dcp.load(state, storage_reader=CheckpointReader(store, "step-1"))
    print("saved and loaded", ", ".join(sorted(meta["path"] for meta in store.list().collect())))


if __name__ == "__main__":
    main()
