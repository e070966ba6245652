"""Predicts the next reads of a Parquet file. It expects the same columns as before, in the next row groups.

Arrow reads the columns of a file object of Python one after the other, because it locks the file for each read. Each
read takes a round trip. The next columns can be predicted from the previous row group, or from the previous file in the
folder. This module only makes the decisions, without using files or threads. `_ahead.py` does the reads.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable
from functools import cached_property
from typing import Any, NamedTuple

# The end of a Parquet file has three parts: the footer, the footer's length in four bytes, and these bytes.
MAGIC = b"PAR1"
TAIL = 8
# The number of bytes to read ahead is `WINDOW_GUESSED` until a second row group is read. It is then `WINDOW_FIRST`, and
# grows up to `WINDOW_MAX`. Bytes that the program doesn't need cost time and memory.
WINDOW_GUESSED = 8 << 20
WINDOW_FIRST = 16 << 20
WINDOW_MAX = 32 << 20
# The maximum number of row groups that Arrow's threads read at a time, in any order.
TOGETHER = 16
# The maximum number of row groups of a file that this module examines. Each takes some microseconds.
GROUPS_MAX = 10_000
# This module remembers the columns of at most this many folders, and the layouts of at most this many files.
FOLDERS_MAX = 64
LAYOUTS_MAX = 16


class Range(NamedTuple):
    start: int
    end: int


class Layout:
    """The byte ranges of a Parquet file's columns in each row group. They are computed when needed, from pyarrow's
    metadata of the file.
    """

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata
        self.groups = min(metadata.num_row_groups, GROUPS_MAX)
        self.columns = metadata.num_columns
        self._starts = [self.chunk(group, 0).start for group in range(self.groups)] if self.columns else []
        # Maps each of the row groups that were used last to its columns, which are found by their first bytes.
        self._places: OrderedDict[Hashable, dict[int, int]] = OrderedDict()

    @staticmethod
    def can_be_told() -> bool:
        """Returns whether layouts can be read. Reading them needs pyarrow, which the program must have imported."""
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
            # The program that reads the file will report the problem.
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
        """Returns the indices of the columns with these names."""
        return {column for column, name in enumerate(self._names) if name in names} if names else set()

    @cached_property
    def _names(self) -> list[str]:
        group = self._metadata.row_group(0)
        return [str(group.column(column).path_in_schema) for column in range(self.columns)]

    def locate(self, asked: Range) -> tuple[int, list[int]] | None:
        """Returns the row group that contains these bytes, and the columns in it, if the bytes are exactly some whole
        columns.
        """
        group = bisect_right(self._starts, asked.start) - 1
        if group < 0:
            return None
        places = self._places.get(group)
        if places is None:
            chunks = ((self.chunk(group, column), column) for column in range(self.columns))
            # Ignore empty columns. A wrong footer could contain many, and the loop below would never end.
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
    """Returns the folder of the table that a file belongs to. Partition folders such as `year=2024` are inside it."""
    folder = path.rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder


class Folders:
    """Remembers facts about files that were read, for later reads of these files and of others in the same folder.

    For each folder, this class remembers the columns that were read from the last file. It also remembers the layouts
    of files, because pyarrow opens a file twice but reads its footer only once.
    """

    def __init__(self) -> None:
        self._columns: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._layouts: OrderedDict[Hashable, Layout] = OrderedDict()
        self._doubted: str | None = None
        # For each folder: true if only a single row group of the last file was read.
        self._selective: OrderedDict[str, bool] = OrderedDict()

    def columns(self, folder: str) -> frozenset[str]:
        return self._columns.get(folder, frozenset())

    def doubt(self, folder: str) -> None:
        """Records that a program starts to read a folder again, possibly with other columns."""
        self._doubted = folder

    def certain(self, folder: str) -> frozenset[str]:
        """Returns the columns that the program currently reads from a folder's files, or none if they are unknown."""
        return frozenset() if folder == self._doubted else self.columns(folder)

    def remember(self, folder: str, columns: frozenset[str], is_all: bool) -> None:
        """Records which columns were read from a file. If `is_all` is false, the file is still being read and more may
        follow. Other files of the folder may be read at the same time.
        """
        if folder == self._doubted:
            self._doubted = None
        if is_all or not columns <= self.columns(folder):
            _remember(self._columns, folder, columns, FOLDERS_MAX)

    def reads_all(self, folder: str) -> bool:
        """Returns whether the program probably reads all row groups of a file, as it did with the last file."""
        return not self._selective.get(folder, False)

    def remember_groups(self, folder: str, read: int, of: int) -> None:
        """Records how many row groups a file has, and how many of them were read."""
        if read and of > 1:
            _remember(self._selective, folder, read == 1, FOLDERS_MAX)

    def layout(self, file: Hashable) -> Layout | None:
        return self._layouts.get(file)

    def remember_layout(self, file: Hashable, layout: Layout) -> None:
        _remember(self._layouts, file, layout, LAYOUTS_MAX)


def _remember(known: OrderedDict[Any, Any], name: Hashable, value: Any, most: int) -> None:
    known[name] = value
    if len(known) > most:
        # Drop the oldest entry. Another thread may drop it at the same time.
        known.pop(next(iter(known)), None)


class Columns:
    """Decides which columns of one file to fetch. `known` are the columns that were read from the previous file, and
    `names` are those that were read from this one.

    Threads may read a file's row groups in any order. So this class remembers each column of each row group that was
    fetched, and fetches it only once. If fetched columns aren't read, it fetches less ahead.
    """

    def __init__(self, layout: Layout, known: frozenset[str] = frozenset(), reads_all: bool = False) -> None:
        self._layout, self._reads_all = layout, reads_all
        self._known = layout.named(known)
        self._read: set[int] = set()
        self.names: frozenset[str] = frozenset()
        self._groups: set[int] = set()
        # The pairs of row group and column that were read or fetched, and the sizes of those that were fetched but not
        # read yet.
        self._seen: set[tuple[int, int]] = set()
        self._waiting: dict[tuple[int, int], int] = {}
        self._waiting_bytes = 0
        self._window = WINDOW_FIRST
        # The first row group from which nothing has been fetched yet.
        self._next = 0

    def begin(self, known: frozenset[str], room: int) -> list[list[Range]]:
        """Returns the columns to fetch before the file is read. These are the columns that were read from earlier
        files, in the row groups that fit into `room` bytes.
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
        """Returns the columns to fetch, for each row group, when the program reads these bytes. The columns that the
        program reads now may be among them.
        """
        located = self._layout.locate(asked)
        if located is None:
            return []
        group, columns = located
        # Each correct prediction increases the number of bytes to read ahead.
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
                # Begin a new prediction: this is the first one for this file, or the program skipped row groups.
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
