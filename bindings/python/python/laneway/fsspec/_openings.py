"""Carries out the decisions of `_order.py`: opens files before they are asked for, and fetches columns of opened ones.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary, ref

from laneway.fsspec._ahead import Ahead
from laneway.fsspec._columns import WINDOW_MAX, Folders, folder_of
from laneway.fsspec._order import AGE_MAX_S, Listing, Order, following

if TYPE_CHECKING:
    from laneway._laneway import ObjectStore, Opening, ReadableFile

# Readers of Parquet begin at its end: its footer comes with the file's size.
_PARQUET = (".parquet", ".parq", ".pq")
_FOOTER = 1 << 16

# The openings of all filesystems in this process, by their ids.
_ALL: WeakValueDictionary[int, Openings] = WeakValueDictionary()


class Opened(NamedTuple):
    """An open file, and its reads ahead."""

    file: ReadableFile
    ahead: Ahead | None
    is_early: bool = False


class _Coming:
    """A file that is being opened."""

    def __init__(self, opening: Opening, opened: Callable[[ReadableFile], Opened]) -> None:
        self._opening: Opening | None = opening
        self._lock = threading.Lock()
        self._opened_of = opened
        self._opened: Opened | None = None

    def begin(self, room: int) -> int:
        """Fetches columns if the file is open. Returns how many bytes are on their way."""
        if self._opening is not None and self._opening.is_done():
            self.result()
        ahead = self._opened and self._opened.ahead
        return ahead.begin(room) if ahead else 0

    def result(self) -> Opened | None:
        """Waits until it is open. Returns `None` if it could not be opened."""
        with self._lock:
            opening, self._opening = self._opening, None
            if opening is not None:
                try:
                    self._opened = self._opened_of(opening.result())
                except Exception:  # noqa: BLE001 - opening it anew reports it
                    return None
            return self._opened


class Openings:
    """The files of a filesystem that are opened ahead. Any thread may use it."""

    def __init__(self, listed: Callable[[str], Listing | None], place: Callable[[str], tuple[ObjectStore, str]]) -> None:
        """Takes functions: `listed` returns the kept listing of a folder, and `place` the store and key of a path."""
        self._listed, self._place = listed, place
        self._folders = Folders()
        self._begin_anew()
        _ALL[id(self)] = self

    def _begin_anew(self) -> None:
        # Reentrant: logging under this lock may open files on the same thread.
        self._process, self._lock = os.getpid(), threading.RLock()
        self._order = Order(lambda name: following(self._listed, name))
        self._coming: dict[str, _Coming] = {}
        # Files that were written recently. They wait here until a thread has the lock. The garbage collector may close
        # a file, and so write it, on a thread that holds any lock.
        self._written: deque[str] = deque()
        self._timer: Timer | None = None

    def open(self, path: str) -> Opened:
        """Opens a file, unless that began ahead, and begins to open the next ones."""
        if self._process != os.getpid():
            # In the child of a fork, openings of its parent never complete.
            self._begin_anew()
        with self._lock:
            now_s = monotonic()
            self._let_go_of_written()
            asked = self._order.asked(path, now_s)
            coming = self._coming.pop(path, None)
            for other in asked.drop:
                self._coming.pop(other, None)
            if not asked.is_next:
                self._folders.doubt(folder_of(path))
            for other in asked.begin:
                self._begin(other)
            ahead = [*self._coming.items()]
            self._arm(now_s)
        # Parse footers outside the lock. Problems of other files don't concern this one.
        room = WINDOW_MAX
        for other, one in ahead:
            try:
                room -= one.begin(room)
            except Exception:  # noqa: BLE001 - opening it anew reports it
                self._give_up(other, one)
        opened = coming.result() if coming is not None and asked.is_ahead else None
        return self.open_now(path) if opened is None else opened._replace(is_early=True)

    def open_now(self, path: str) -> Opened:
        """Opens the current version."""
        store, key = self._place(path)
        return self._opened(path, store.open_reader(key, footer=_footer(path)))

    def _begin(self, path: str) -> None:
        try:
            store, key = self._place(path)
            opening = store.begin_reader(key, footer=_footer(path))
        except Exception:  # noqa: BLE001 - opening it anew reports it
            self._order.forget(path)
        else:
            self._coming[path] = _Coming(opening, lambda file: self._opened(path, file))

    def _give_up(self, path: str, one: _Coming) -> None:
        with self._lock:
            if self._coming.get(path) is one:
                del self._coming[path]
                self._order.forget(path)

    def _arm(self, now_s: float) -> None:
        """Makes sure that old openings are dropped, even if nobody opens a file any more."""
        oldest_s = self._order.oldest_s
        if self._timer is not None or oldest_s is None:
            return
        timer = Timer(max(oldest_s + AGE_MAX_S - now_s, 0), _let_go_of_old, [ref(self)])
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:
            # No thread can start while a process ends, and nothing is held for long then.
            return
        self._timer = timer

    def _let_go_of_old(self) -> None:
        with self._lock:
            now_s, self._timer = monotonic(), None
            self._let_go_of_written()
            for other in self._order.expired(now_s):
                self._coming.pop(other, None)
            self._arm(now_s)

    def _let_go_of_written(self) -> None:
        while self._written:
            for other in self._order.forget(self._written.popleft()):
                self._coming.pop(other, None)

    def _opened(self, path: str, file: ReadableFile) -> Opened:
        return Opened(file, Ahead(file, self._folders, path, _FOOTER) if _is_parquet(path) else None)

    def forget(self, name: str) -> None:
        """Notes that a file, or the content of a folder, was written. Every filesystem of this process then opens it
        anew.
        """
        for one in _ALL.valuerefs():
            openings = one()
            # A file is noted before its request is sent. If none is noted, later requests see the new content.
            if openings is not None and openings._process == os.getpid() and openings._order.is_any_begun:
                openings._written.append(name)


def _let_go_of_old(openings: ref[Openings]) -> None:
    if (one := openings()) is not None:
        one._let_go_of_old()


def _is_parquet(path: str) -> bool:
    return path.endswith(_PARQUET)


def _footer(path: str) -> int | None:
    return _FOOTER if _is_parquet(path) else None
