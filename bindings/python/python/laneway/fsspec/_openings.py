"""Carries out what `_order.py` decides: opens files before they are asked for, and fetches columns of those that have opened."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from laneway.fsspec._ahead import Ahead
from laneway.fsspec._columns import WINDOW_MAX, Folders, folder_of
from laneway.fsspec._order import Listing, Order, following

if TYPE_CHECKING:
    from laneway._laneway import ObjectStore, Opening, ReadableFile

# Readers of Parquet begin at its end: its footer comes with the file's size.
_PARQUET = (".parquet", ".parq", ".pq")
_FOOTER = 1 << 16


class Opened(NamedTuple):
    """A file that is open, and what is read ahead of it."""

    file: ReadableFile
    ahead: Ahead | None
    is_early: bool = False


class _Coming:
    """A file that is being opened."""

    def __init__(self, opening: Opening, opened: Callable[[ReadableFile], Opened]) -> None:
        self._opening: Opening | None = opening
        self._opened_of = opened
        self._opened: Opened | None = None

    def begin(self, room: int) -> int:
        """Fetches columns where it has opened, and says how many bytes are on their way."""
        if self._opening is not None and self._opening.is_done():
            self.result()
        ahead = self._opened and self._opened.ahead
        return ahead.begin(room) if ahead else 0

    def result(self) -> Opened | None:
        """Waits until it is open; `None` where it could not be opened."""
        opening, self._opening = self._opening, None
        if opening is not None:
            try:
                self._opened = self._opened_of(opening.result())
            except Exception:  # noqa: BLE001 - who opens it anew is told
                return None
        return self._opened


class Openings:
    """The files of a filesystem that are opened ahead. Any thread asks for them."""

    def __init__(self, listed: Callable[[str], Listing | None], place: Callable[[str], tuple[ObjectStore, str]]) -> None:
        """`listed` gives the listing of a folder, where it is kept, `place` the store and the key of a path."""
        self._listed, self._place = listed, place
        self._folders = Folders()
        self._begin_anew()

    def _begin_anew(self) -> None:
        # What logs, or is given up as garbage, may write meanwhile on the thread that has it.
        self._process, self._lock = os.getpid(), threading.RLock()
        self._order = Order(lambda name: following(self._listed, name))
        self._coming: dict[str, _Coming] = {}

    def open(self, path: str) -> Opened:
        """Opens a file, where that wasn't begun ahead, and begins those that come after it."""
        if self._process != os.getpid():
            # A child of a fork: what its parent began never comes here.
            self._begin_anew()
        with self._lock:
            asked = self._order.asked(path, time.monotonic())
            coming = self._coming.pop(path, None)
            for other in asked.drop:
                self._coming.pop(other, None)
            if not asked.is_next:
                self._folders.doubt(folder_of(path))
            self._coming |= {other: self._begin(other) for other in asked.begin}
            room = WINDOW_MAX
            for one in [*self._coming.values()]:
                room -= one.begin(room)
        opened = coming.result() if coming is not None and asked.is_ahead else None
        return self.open_now(path) if opened is None else opened._replace(is_early=True)

    def open_now(self, path: str) -> Opened:
        """Opens what is there at this moment."""
        store, key = self._place(path)
        return self._opened(path, store.open_reader(key, footer=_footer(path)))

    def _begin(self, path: str) -> _Coming:
        store, key = self._place(path)
        return _Coming(store.begin_reader(key, footer=_footer(path)), lambda file: self._opened(path, file))

    def _opened(self, path: str, file: ReadableFile) -> Opened:
        return Opened(file, Ahead(file, self._folders, path, _FOOTER) if _is_parquet(path) else None)

    def forget(self, name: str) -> None:
        """A file, or what is in a folder, was written: it is opened anew."""
        if self._process == os.getpid():
            with self._lock:
                for other in self._order.forget(name):
                    self._coming.pop(other, None)


def _is_parquet(path: str) -> bool:
    return path.endswith(_PARQUET)


def _footer(path: str) -> int | None:
    return _FOOTER if _is_parquet(path) else None
