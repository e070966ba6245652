"""Reads columns of an open Parquet file ahead, as `_columns.py` decides, and hands them to the file's reader."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from laneway.fsspec._columns import MAGIC, TAIL, WINDOW_MAX, Columns, Folders, Layout, Range, folder_of

if TYPE_CHECKING:
    from laneway._laneway import Fetched, ReadableFile


class _Group:
    """The columns of a row group that were fetched together."""

    def __init__(self, fetched: Fetched) -> None:
        self._fetched, self._lock = fetched, threading.Lock()
        self._columns: list[bytes] | None = None

    def column(self, at: int) -> bytes:
        with self._lock:
            if self._columns is None:
                self._columns = [column.to_bytes() for column in self._fetched.result()]
            return self._columns[at]


class Ahead:
    """The columns of one file that are read ahead. Any thread may use it."""

    def __init__(self, file: ReadableFile, folders: Folders, path: str, footer: int) -> None:
        """Prepares to read ahead. The request that opened the file has also read its last `footer` bytes."""
        self._file, self._folders, self._footer_len = file, folders, footer
        self._folder = folder_of(path)
        meta = file.meta
        self._name = (path, meta["e_tag"], meta["version"])
        self._columns: Columns | None = None
        self._groups = 0
        self._is_new = True
        self._begun: frozenset[str] | None = None
        self._said: frozenset[str] = frozenset()
        # Set if the footer is longer than the bytes read so far: the range of the missing bytes, and the bytes after
        # them.
        self._footer: tuple[Range, bytes] | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        # The fetched columns by their first byte, the oldest first. If there are too many, the oldest are dropped.
        self._coming: OrderedDict[int, tuple[Range, _Group, int]] = OrderedDict()
        self._bytes = 0

    def _look(self) -> None:
        """Looks once for the file's layout: among the remembered layouts, and in the file's last bytes, which have
        been read already.
        """
        self._is_new = False
        layout = self._folders.layout(self._name)
        if layout is not None:
            self._columns = self._columns_of(layout)
        elif Layout.can_be_told():
            last = Range(max(self._file.size - self._footer_len, 0), self._file.size)
            self.saw(last, self._file.read_ranges(starts=[last.start], ends=[last.end])[0].to_bytes())

    def saw(self, read: Range, content: bytes) -> None:
        """Takes the layout from bytes that were read, if they are the file's footer."""
        if self._columns is not None:
            return
        if read.end == self._file.size and content.endswith(MAGIC):
            tail = content[-TAIL:]
            length = int.from_bytes(tail[:4], "little")
            if length + TAIL <= len(content):
                self._learn(content[-length - TAIL :])
            else:
                end = self._file.size - TAIL
                self._footer = (Range(end - length, end), tail)
        elif self._footer is not None and read == self._footer[0]:
            self._learn(content + self._footer[1])

    def _learn(self, footer: bytes) -> None:
        layout = Layout.of_footer(footer)
        if layout is not None:
            self._folders.remember_layout(self._name, layout)
            self._columns = self._columns_of(layout)

    def _columns_of(self, layout: Layout) -> Columns:
        self._groups = layout.groups
        return Columns(layout, self._folders.columns(self._folder), self._folders.reads_all(self._folder))

    def begin(self, room: int) -> int:
        """Fetches columns before the program opens the file. Returns how many bytes are being fetched."""
        known = self._folders.certain(self._folder)
        with self._lock:
            if known is self._begun or not known or room <= 0:
                return self._bytes
            if self._is_new:
                self._look()
            if self._columns is not None:
                for chunks in self._columns.begin(known, room):
                    self._fetch(chunks)
                self._begun = known
            return self._bytes

    def read(self, asked: Range) -> list[tuple[_Group, int]]:
        """Returns the fetched columns that together contain these bytes, or nothing if some are missing. `content`
        waits for them.
        """
        if self._process != os.getpid():
            # In a forked child, fetches of the parent never complete.
            self._begin_anew()
        with self._lock:
            if self._is_new and asked.end < self._file.size:
                self._look()
            if self._columns is None:
                return []
            for chunks in self._columns.read(asked):
                self._fetch(chunks)
            if (names := self._columns.names) is not self._said:
                self._folders.remember(self._folder, names, is_all=False)
                self._said = names
            parts, at = [], asked.start
            while at < asked.end and at in self._coming:
                chunk, group, place = self._coming[at]
                parts.append((group, place))
                at = chunk.end
            if at != asked.end:
                return []
            at = asked.start
            while at < asked.end:
                at = self._drop(at).end
            return parts

    @staticmethod
    def content(parts: list[tuple[_Group, int]]) -> bytes | None:
        """Waits for the bytes. Returns `None` if they could not be fetched."""
        try:
            columns = [group.column(place) for group, place in parts]
        except Exception:  # noqa: BLE001 - the caller then reads by itself, and reports it
            return None
        return columns[0] if len(columns) == 1 else b"".join(columns)

    def close(self) -> None:
        """Stops reading ahead, because the file is closed."""
        if self._columns is not None and (names := self._columns.names):
            self._folders.remember(self._folder, names, is_all=True)
            self._folders.remember_groups(self._folder, self._columns.groups_read, self._groups)
        self._begin_anew()

    def _fetch(self, chunks: list[Range]) -> None:
        chunks = [chunk for chunk in chunks if chunk.start not in self._coming]
        if not chunks:
            return
        group = _Group(self._file.fetch(starts=[chunk.start for chunk in chunks], ends=[chunk.end for chunk in chunks]))
        for place, chunk in enumerate(chunks):
            self._coming[chunk.start] = (chunk, group, place)
            self._bytes += chunk.end - chunk.start
        while self._bytes > 2 * WINDOW_MAX and len(self._coming) > len(chunks):
            self._drop(next(iter(self._coming)))

    def _drop(self, start: int) -> Range:
        chunk, _, _ = self._coming.pop(start)
        self._bytes -= chunk.end - chunk.start
        return chunk
