"""Decides which files to open before they are asked for: the next ones, if files are opened in the order of their
listing.

For a filesystem in Python, pyarrow opens the files of a dataset one after the other, and waits for each. The decisions
are made here, without a file or a clock; `_openings.py` carries them out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

# For this long, a file that was opened ahead counts as current. Others may write to it meanwhile.
AGE_MAX_S = 5.0
# Files that are opened ahead at first, and at most. At 20 ms each, sixteen are more than one reader of footers can use.
AHEAD_FIRST, AHEAD_MAX = 2, 16
# The most entries of a listing that are searched for them.
LOOK_MAX = 100

Listing = list[dict[str, Any]]


class Asked(NamedTuple):
    """The decision about files when one of them is asked for."""

    is_ahead: bool
    is_next: bool
    begin: list[str]
    drop: list[str]


class Order:
    """Decides which files to open ahead. `following` returns the names that come after one, in order."""

    def __init__(self, following: Callable[[str], Iterator[str]]) -> None:
        self._following = following
        self._last, self._last_at_s = "", 0.0
        self._width = AHEAD_FIRST
        # The files that began to open, with the time.
        self._begun: dict[str, float] = {}

    def asked(self, name: str, now_s: float) -> Asked:
        began_s = self._begun.pop(name, None)
        drop = self.expired(now_s)
        is_ahead = began_s is not None and now_s - began_s <= AGE_MAX_S
        if name == self._last:
            # pyarrow opens the first one twice.
            return Asked(is_ahead, True, [], drop)
        is_next = began_s is not None or name in islice(self._following(self._last), 1)
        gap_s = now_s - self._last_at_s
        self._last, self._last_at_s = name, now_s
        if not is_next:
            self._width = AHEAD_FIRST
            return Asked(is_ahead, False, [], drop)
        # A file that would be too old by its turn isn't opened.
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
        """Returns the time when the oldest file opened ahead began to open."""
        return min(self._begun.values(), default=None)

    def expired(self, now_s: float) -> list[str]:
        """Returns files that became too old, which are not ahead any more."""
        gone = [other for other, at_s in self._begun.items() if now_s - at_s > AGE_MAX_S]
        for other in gone:
            del self._begun[other]
        return gone

    def forget(self, name: str) -> list[str]:
        """Notes that a file, or those in a folder, may have changed. Returns those that are not ahead any more."""
        gone = [other for other in self._begun if not name or other == name or other.startswith(f"{name}/")]
        for other in gone:
            del self._begun[other]
        return gone


def following(listed: Callable[[str], Listing | None], name: str) -> Iterator[str]:
    """Returns the files that come after one, folder after folder, as far as listings are known. `listed` returns the
    listing of a folder.

    They have the same extension. Names that begin with a dot or an underscore are metadata of a table, not its data.
    """
    kind = _kind(name)
    for other in islice(_after(listed, name), LOOK_MAX):
        if other is None:
            return
        if _kind(other) == kind:
            yield other


def _after(listed: Callable[[str], Listing | None], name: str) -> Iterator[str | None]:
    """Returns the entries after a name: `None` if that isn't known, and nothing for entries that aren't a table's
    files.
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
