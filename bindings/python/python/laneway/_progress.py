"""Reports the progress of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laneway.types import Progress, ProgressReport

_Report = Callable[[tuple[int, int, int, int, bool]], object]


@contextmanager
def reporter(progress: ProgressReport) -> Iterator[_Report]:
    """Returns a function that passes a job's counters on: to tqdm, to a callback of fsspec, or to the caller's
    function.
    """
    if progress is None or progress is False:
        yield lambda counters: None
    elif progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise ImportError("progress=True needs tqdm, which is not installed: pip install tqdm") from None
        with tqdm(unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield lambda counters: _show(bar, counters)
    elif callable(progress):
        yield lambda counters: progress(Progress(*counters))
    else:
        yield lambda counters: _update(progress, counters)


def _show(bar: Any, counters: tuple[int, int, int, int, bool]) -> None:
    done, found, items_done, items_found, _ = counters
    bar.total = found
    bar.n = done
    bar.set_postfix_str(f"{items_done}/{items_found} objects", refresh=False)
    bar.refresh()


def _update(callback: Any, counters: tuple[int, int, int, int, bool]) -> None:
    callback.set_size(counters[1])
    callback.absolute_update(counters[0])
