"""Reports the progress of a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laneway.types import Progress, ProgressReport

_Report = Callable[[tuple[int, int, int, int, bool]], object]
# A job of small files has thousands of events a second. A report for each would cost more than the job.
_SECONDS_BETWEEN_REPORTS = 0.1


class Throttled:
    """Passes on at most ten reports a second, and always the last one."""

    def __init__(self, report: _Report) -> None:
        self._report = report
        self._next = 0.0

    def __call__(self, counters: tuple[int, int, int, int, bool], is_last: bool) -> None:
        now = time.monotonic()
        if is_last or now >= self._next:
            self._next = now + _SECONDS_BETWEEN_REPORTS
            self._report(counters)


@contextmanager
def reporter(progress: ProgressReport) -> Iterator[Throttled]:
    """Returns a function that passes a job's counters on: to tqdm, to a callback of fsspec, or to the caller's
    function.
    """
    if progress is None or progress is False:
        yield Throttled(lambda counters: None)
    elif progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise ImportError("progress=True needs tqdm, which is not installed: pip install tqdm") from None
        with tqdm(unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield Throttled(lambda counters: _show(bar, counters))
    elif callable(progress):
        yield Throttled(lambda counters: progress(Progress(*counters)))
    else:
        yield Throttled(lambda counters: _update(progress, counters))


def _show(bar: Any, counters: tuple[int, int, int, int, bool]) -> None:
    done, found, items_done, items_found, _ = counters
    bar.total = found
    bar.n = done
    bar.set_postfix_str(f"{items_done}/{items_found} objects", refresh=False)
    bar.refresh()


def _update(callback: Any, counters: tuple[int, int, int, int, bool]) -> None:
    callback.set_size(counters[1])
    callback.absolute_update(counters[0])
