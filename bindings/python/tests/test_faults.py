"""Tests the package with the faults of the embedded store. Each fault hits each operation in either dialect, once
or always, blocking or awaited. The operation must succeed exactly or raise the right exception, after a bounded
number of requests, and leave nothing behind."""

from multiprocessing import get_context

import fault_matrix.cells as cells

# The counters of requests belong to a process, so each process runs its own cells. Cells spend most of their
# time in pauses.
PROCESSES = 6
# If no row of cells ends within this many seconds, some cell hangs, and the test fails.
ROW_MAX = 120
CELLS_MIN = 800


def test_every_fault_ends_in_exact_success_or_the_right_exception():
    rows = list(cells.rows())
    ended = []
    with get_context("spawn").Pool(PROCESSES) as pool:
        running = pool.imap_unordered(cells.run, rows)
        for _ in rows:
            ended += running.next(ROW_MAX)
    failures = sorted(f"{name}: {wrong}" for name, wrong in ended if wrong is not None)
    assert not failures, f"{len(failures)} of {len(ended)} cells:\n" + "\n".join(failures)
    assert len(ended) >= CELLS_MIN
