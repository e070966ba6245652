"""Decides which files to open ahead. If a program opens files in the order of their listing, these are the next files
of the listing.

With a filesystem that is written in Python, pyarrow opens the files of a dataset one after the other, and waits for
each. This module only makes the decisions, and uses no files or clocks. `_openings.py` opens the files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

# A file that was opened ahead is used only within this time, because another client may have written it since.
AGE_MAX_S = 5.0
# The initial and the maximum number of files that are opened ahead. Sixteen are enough for a program that reads footers
# one after another, even if it takes 20 ms to open a file.
AHEAD_FIRST, AHEAD_MAX = 2, 16
# The maximum number of entries of a listing in which the next files are searched.
LOOK_MAX = 100

Listing = list[dict[str, Any]]


class Asked(NamedTuple):
    """The decision that is made when the program opens a file. `is_ahead` is true if the file that was opened ahead is
    used, and `is_next` is true if the file follows the previous one. `begin` are the next files to open ahead, and
    `drop` are files to close.
    """

    is_ahead: bool
    is_next: bool
    begin: list[str]
    drop: list[str]


class Order:
    """Decides which files to open ahead. `following` returns the names of the files after a given one, in order."""

    def __init__(self, following: Callable[[str], Iterator[str]]) -> None:
        self._following = following
        self._last, self._last_at_s = "", 0.0
        self._width = AHEAD_FIRST
        # The files that are opened ahead, each with the time when this began.
        self._begun: dict[str, float] = {}

    def asked(self, name: str, now_s: float) -> Asked:
        began_s = self._begun.pop(name, None)
        drop = self.expired(now_s)
        is_ahead = began_s is not None and now_s - began_s <= AGE_MAX_S
        if name == self._last:
            # pyarrow opens the first file of a dataset twice.
            return Asked(is_ahead, True, [], drop)
        is_next = began_s is not None or name in islice(self._following(self._last), 1)
        gap_s = now_s - self._last_at_s
        self._last, self._last_at_s = name, now_s
        if not is_next:
            self._width = AHEAD_FIRST
            return Asked(is_ahead, False, [], drop)
        # Don't open files that would be too old when the program gets to them.
        width = int(min(self._width, AGE_MAX_S / 2 / max(gap_s, 1e-6)))
        self._width = min(2 * self._width, AHEAD_MAX)
        begin = [other for other in islice(self._following(name), width) if other not in self._begun]
        begin = begin[: AHEAD_MAX - len(self._begun)]
        self._begun.update(dict.fromkeys(begin, now_s))
        return Asked(is_ahead, True, begin, drop)

    @property
    def is_any_begun(self) -> bool:
        return bool(self._begun)

    @property
    def oldest_s(self) -> float | None:
        """Returns the earliest time at which one of the files started to open, or `None` if there is no such file."""
        return min(self._begun.values(), default=None)

    def expired(self, now_s: float) -> list[str]:
        """Removes and returns the files that were opened too long ago."""
        gone = [other for other, at_s in self._begun.items() if now_s - at_s > AGE_MAX_S]
        for other in gone:
            del self._begun[other]
        return gone

    def forget(self, name: str) -> list[str]:
        """Records that a file, or the files in a folder, may have changed. Removes and returns those of them that were
        opened ahead.
        """
        gone = [other for other in self._begun if not name or other == name or other.startswith(f"{name}/")]
        for other in gone:
            del self._begun[other]
        return gone


def following(listed: Callable[[str], Listing | None], name: str) -> Iterator[str]:
    """Returns the files after a given one, folder after folder, as far as listings are cached. `listed` returns the
    cached listing of a folder.

    Only files with the same extension are returned. Names that begin with a dot or an underscore are skipped, because
    they are metadata of a table.
    """
    kind = _kind(name)
    for other in islice(_after(listed, name), LOOK_MAX):
        if other is None:
            return
        if _kind(other) == kind:
            yield other


def _after(listed: Callable[[str], Listing | None], name: str) -> Iterator[str | None]:
    """Returns the names of the entries after a given one. For an entry that isn't a file of a table, it returns an
    empty name. If a listing isn't cached, it returns `None`.
    """
    folder = name.rpartition("/")[0]
    while folder and (entries := listed(folder)) is not None:
        for at in range(bisect_right(entries, name, key=_name), len(entries)):
            yield from _below(listed, entries[at])
        name, folder = folder, folder.rpartition("/")[0]


def _below(listed: Callable[[str], Listing | None], entry: dict[str, Any]) -> Iterator[str | None]:
    name = _name(entry)
    is_table = not name.rpartition("/")[2].startswith((".", "_"))
    if entry["type"] == "file":
        yield name if is_table else ""
        return
    yield ""
    if is_table:
        entries = listed(name)
        if entries is None:
            yield None
        for one in entries or ():
            yield from _below(listed, one)


def _name(entry: dict[str, Any]) -> str:
    return str(entry["name"])


def _kind(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[2]
