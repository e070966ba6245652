"""Predicts the next reads of a Parquet file: the columns that were read before, in the next row groups.

For a file in Python, Arrow reads the columns one after the other, because it holds the file's lock over each read. Each
takes a round trip. The next columns are predictable: those read of the previous row group, or of the previous file in
the folder. The decisions are made here, without a file or a thread; `_ahead.py` carries them out.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable
from functools import cached_property
from typing import Any, NamedTuple

# A footer ends with its own length, four bytes, and these bytes.
MAGIC = b"PAR1"
TAIL = 8
# Bytes that are read ahead: before a second row group is read, at first after that, and at most. Bytes that nobody asks
# for are wasted, and take memory meanwhile.
WINDOW_GUESSED = 8 << 20
WINDOW_FIRST = 16 << 20
WINDOW_MAX = 32 << 20
# Row groups that Arrow's threads read at a time, in any order.
TOGETHER = 16
# The most row groups that are inspected. Each costs some microseconds.
GROUPS_MAX = 10_000
# The most folders whose columns are remembered, and the most files whose layouts are.
FOLDERS_MAX = 64
LAYOUTS_MAX = 16


class Range(NamedTuple):
    start: int
    end: int


class Layout:
    """The places of a Parquet file's columns, by row group, as far as they were needed. Uses pyarrow's metadata of the
    file.
    """

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata
        self.groups = min(metadata.num_row_groups, GROUPS_MAX)
        self.columns = metadata.num_columns
        self._starts = [self.chunk(group, 0).start for group in range(self.groups)] if self.columns else []
        # The columns of the row groups inspected last, by their start.
        self._places: OrderedDict[Hashable, dict[int, int]] = OrderedDict()

    @staticmethod
    def can_be_told() -> bool:
        """Returns whether pyarrow is loaded."""
        return "pyarrow.parquet" in sys.modules

    @classmethod
    def of_footer(cls, footer: bytes) -> Layout | None:
        """Returns the layout from the last bytes of a file, if they are a whole footer."""
        if not cls.can_be_told():
            return None
        parquet, pyarrow = sys.modules["pyarrow.parquet"], sys.modules["pyarrow"]
        try:
            return cls(parquet.read_metadata(pyarrow.BufferReader(footer)))
        except (ValueError, OSError):
            # Its reader will report the problem.
            return None

    def chunk(self, group: int, column: int) -> Range:
        about = self._metadata.row_group(group).column(column)
        start = about.data_page_offset
        if about.has_dictionary_page and 0 < about.dictionary_page_offset < start:
            start = about.dictionary_page_offset
        return Range(start, start + about.total_compressed_size)

    def name(self, column: int) -> str:
        return self._names[column]

    def named(self, names: frozenset[str]) -> set[int]:
        """Returns the columns of these names."""
        return {column for column, name in enumerate(self._names) if name in names} if names else set()

    @cached_property
    def _names(self) -> list[str]:
        group = self._metadata.row_group(0)
        return [str(group.column(column).path_in_schema) for column in range(self.columns)]

    def locate(self, asked: Range) -> tuple[int, list[int]] | None:
        """Returns the row group, and its columns that are exactly these bytes."""
        group = bisect_right(self._starts, asked.start) - 1
        if group < 0:
            return None
        places = self._places.get(group)
        if places is None:
            chunks = ((self.chunk(group, column), column) for column in range(self.columns))
            # A footer may contain anything. Empty columns are ignored.
            places = {chunk.start: column for chunk, column in chunks if chunk.end > chunk.start}
            _remember(self._places, group, places, TOGETHER)
        column = places.get(asked.start)
        columns, end = [], asked.start
        while column is not None and end < asked.end:
            columns.append(column)
            end = self.chunk(group, column).end
            column = places.get(end)
        return (group, columns) if columns and end == asked.end else None


def folder_of(path: str) -> str:
    """Returns the folder of a file's table. Partition folders (`year=2024`) belong to one table."""
    folder = path.rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder


class Folders:
    """Facts about files for other files and later readers.

    They are the columns that were read of the last file in each folder, and layouts. pyarrow opens a file twice, and
    reads its footer once.
    """

    def __init__(self) -> None:
        self._columns: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._layouts: OrderedDict[Hashable, Layout] = OrderedDict()
        self._doubted: str | None = None
        # Folders whose files were read by single row groups.
        self._selective: OrderedDict[str, bool] = OrderedDict()

    def columns(self, folder: str) -> frozenset[str]:
        return self._columns.get(folder, frozenset())

    def doubt(self, folder: str) -> None:
        """Notes that a folder is read anew, maybe with other columns."""
        self._doubted = folder

    def certain(self, folder: str) -> frozenset[str]:
        """Returns columns that are being read now."""
        return frozenset() if folder == self._doubted else self.columns(folder)

    def remember(self, folder: str, columns: frozenset[str], is_all: bool) -> None:
        """Adds columns of a file, or sets all that were read of it. Other files of the folder may be read at the same
        time.
        """
        if folder == self._doubted:
            self._doubted = None
        if is_all or not columns <= self.columns(folder):
            _remember(self._columns, folder, columns, FOLDERS_MAX)

    def reads_all(self, folder: str) -> bool:
        """Returns whether files are expected to be read completely. The last file that was read decides."""
        return not self._selective.get(folder, False)

    def remember_groups(self, folder: str, read: int, of: int) -> None:
        """Notes how many row groups of a file were read."""
        if read and of > 1:
            _remember(self._selective, folder, read == 1, FOLDERS_MAX)

    def layout(self, file: Hashable) -> Layout | None:
        return self._layouts.get(file)

    def remember_layout(self, file: Hashable, layout: Layout) -> None:
        _remember(self._layouts, file, layout, LAYOUTS_MAX)


def _remember(known: OrderedDict[Any, Any], name: Hashable, value: Any, most: int) -> None:
    known[name] = value
    if len(known) > most:
        # Drop the oldest. Another thread may do the same at the same time.
        known.pop(next(iter(known)), None)


class Columns:
    """Decides which columns to fetch of one file. `known` are the columns that were read of the previous file,
    and `names` those read of this one.

    Threads read a file's row groups in any order. So each column of each row group is fetched once. Fetched columns
    that nobody asks for hold back further fetches.
    """

    def __init__(self, layout: Layout, known: frozenset[str] = frozenset(), reads_all: bool = False) -> None:
        self._layout, self._reads_all = layout, reads_all
        self._known = layout.named(known)
        self._read: set[int] = set()
        self.names: frozenset[str] = frozenset()
        self._groups: set[int] = set()
        # The columns that were asked for or fetched, by row group; and the sizes of those fetched and not asked for
        # yet.
        self._seen: set[tuple[int, int]] = set()
        self._waiting: dict[tuple[int, int], int] = {}
        self._waiting_bytes = 0
        self._window = WINDOW_FIRST
        # Row groups from here on have not been considered.
        self._next = 0

    def begin(self, known: frozenset[str], room: int) -> list[list[Range]]:
        """Returns the columns to fetch before any read: those read of earlier files, for as many row groups as fit into
        `room`.
        """
        if not self._reads_all and self._layout.groups > 1:
            return []
        self._known = self._layout.named(known)
        fetched = [self._fetch(group, self._known) for group in range(self._next)]
        while self._known and self._next < self._layout.groups and self._waiting_bytes < room:
            fetched.append(self._fetch(self._next, self._known))
            self._next += 1
        return [chunks for chunks in fetched if chunks]

    def read(self, asked: Range) -> list[list[Range]]:
        """Returns the columns to fetch now that these bytes are read, for each row group. The columns of these bytes may
        be among them.
        """
        located = self._layout.locate(asked)
        if located is None:
            return []
        group, columns = located
        # Correct predictions widen the window.
        self._window = min(self._window + self._take(group, columns), WINDOW_MAX)
        new = set(columns) - self._read
        self._read |= new
        if new:
            self.names |= {self._layout.name(column) for column in new}
        self._groups.add(group)
        foretold = self._known if self._known >= self._read else set()
        fetched = []
        if len(self._groups) > 1 or self._reads_all:
            window = self._window if len(self._groups) > 1 else WINDOW_GUESSED
            first = min(self._groups)
            if group > self._next + TOGETHER or self._next == 0:
                # Row groups were skipped, or these are the first consecutive ones.
                self._next = group if self._next else first
                self._waiting.clear()
                self._waiting_bytes = 0
            fetched += [self._fetch(before, new) for before in range(max(first, self._next - TOGETHER), self._next)]
            while self._next < self._layout.groups and self._waiting_bytes < window:
                fetched.append(self._fetch(self._next, self._read | foretold))
                self._next += 1
        elif foretold:
            fetched.append(self._fetch(group, foretold))
        self._seen.update((group, column) for column in columns)
        self._take(group, columns)
        return [chunks for chunks in fetched if chunks]

    @property
    def groups_read(self) -> int:
        return len(self._groups)

    def _take(self, group: int, columns: list[int]) -> int:
        taken = sum(self._waiting.pop((group, column), 0) for column in columns)
        self._waiting_bytes -= taken
        return taken

    def _fetch(self, group: int, columns: set[int]) -> list[Range]:
        chunks = []
        for column in sorted(columns):
            chunk = self._layout.chunk(group, column)
            size = chunk.end - chunk.start
            if size > 0 and (group, column) not in self._seen:
                chunks.append(chunk)
                self._seen.add((group, column))
                self._waiting[(group, column)] = size
                self._waiting_bytes += size
        return chunks
