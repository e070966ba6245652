"""Opens files ahead, before the program asks for them, and fetches columns of the opened ones. `_order.py` decides
which.
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

# Parquet files are read from their footer on, so the request that opens such a file also reads its last bytes.
_PARQUET = (".parquet", ".parq", ".pq")
_FOOTER = 1 << 16

# The `Openings` of all filesystems in this process, by their ids.
_ALL: WeakValueDictionary[int, Openings] = WeakValueDictionary()


class Opened(NamedTuple):
    """An open file, and the columns that are read ahead. `is_early` is true if it was opened ahead."""

    file: ReadableFile
    ahead: Ahead | None
    is_early: bool = False


class _Coming:
    """A file that is being opened ahead."""

    def __init__(self, opening: Opening, opened: Callable[[ReadableFile], Opened]) -> None:
        self._opening: Opening | None = opening
        self._lock = threading.Lock()
        self._opened_of = opened
        self._opened: Opened | None = None

    def begin(self, room: int) -> int:
        """Starts to fetch columns, at most `room` bytes, if the file is open. Returns how many bytes are being fetched.
        """
        if self._opening is not None and self._opening.is_done():
            self.result()
        ahead = self._opened and self._opened.ahead
        return ahead.begin(room) if ahead else 0

    def result(self) -> Opened | None:
        """Waits until the file is open. Returns `None` if it could not be opened."""
        with self._lock:
            opening, self._opening = self._opening, None
            if opening is not None:
                try:
                    self._opened = self._opened_of(opening.result())
                except Exception:  # noqa: BLE001 - the program then opens the file itself, and gets the error
                    return None
            return self._opened


class Openings:
    """The files of a filesystem that are opened ahead. Any thread may use this object."""

    def __init__(self, listed: Callable[[str], Listing | None], place: Callable[[str], tuple[ObjectStore, str]]) -> None:
        """Takes two functions. `listed` returns the cached listing of a folder, and `place` the store and key of a
        path.
        """
        self._listed, self._place = listed, place
        self._folders = Folders()
        self._begin_anew()
        _ALL[id(self)] = self

    def _begin_anew(self) -> None:
        # Reentrant, because a logging handler that runs under this lock may open files on the same thread.
        self._process, self._lock = os.getpid(), threading.RLock()
        self._order = Order(lambda name: following(self._listed, name))
        self._coming: dict[str, _Coming] = {}
        # Files that were written recently. They wait in this list until a thread has the lock. The garbage collector
        # may close a file on a thread that already holds a lock, and closing writes the file.
        self._written: deque[str] = deque()
        self._timer: Timer | None = None

    def open(self, path: str) -> Opened:
        """Returns an open file, which may have been opened ahead. Starts to open the next ones."""
        if self._process != os.getpid():
            # In a forked child, files that the parent was opening never complete.
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
        # Parse footers without holding the lock. A problem with another file must not fail this call.
        room = WINDOW_MAX
        for other, one in ahead:
            try:
                room -= one.begin(room)
            except Exception:  # noqa: BLE001 - the program then opens the file itself, and gets the error
                self._give_up(other, one)
        opened = coming.result() if coming is not None and asked.is_ahead else None
        return self.open_now(path) if opened is None else opened._replace(is_early=True)

    def open_now(self, path: str) -> Opened:
        """Opens the current version of a file."""
        store, key = self._place(path)
        return self._opened(path, store.open_reader(key, footer=_footer(path)))

    def _begin(self, path: str) -> None:
        try:
            store, key = self._place(path)
            opening = store.begin_reader(key, footer=_footer(path))
        except Exception:  # noqa: BLE001 - the program then opens the file itself, and gets the error
            self._order.forget(path)
        else:
            self._coming[path] = _Coming(opening, lambda file: self._opened(path, file))

    def _give_up(self, path: str, one: _Coming) -> None:
        with self._lock:
            if self._coming.get(path) is one:
                del self._coming[path]
                self._order.forget(path)

    def _arm(self, now_s: float) -> None:
        """Starts a timer that drops files that were opened too long ago, in case the program opens no more files."""
        oldest_s = self._order.oldest_s
        if self._timer is not None or oldest_s is None:
            return
        timer = Timer(max(oldest_s + AGE_MAX_S - now_s, 0), _let_go_of_old, [ref(self)])
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:
            # While the process ends, no thread can start. The end of the process closes the files.
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
        """Records that a file, or a file in a folder, was written. Every filesystem of this process then opens the
        file again.
        """
        for one in _ALL.valuerefs():
            openings = one()
            # `_order` adds a file before Laneway sends the request that opens it. So if `_order` has no file now, all
            # later requests see the new content.
            if openings is not None and openings._process == os.getpid() and openings._order.is_any_begun:
                openings._written.append(name)


def _let_go_of_old(openings: ref[Openings]) -> None:
    if (one := openings()) is not None:
        one._let_go_of_old()


def _is_parquet(path: str) -> bool:
    return path.endswith(_PARQUET)


def _footer(path: str) -> int | None:
    return _FOOTER if _is_parquet(path) else None
