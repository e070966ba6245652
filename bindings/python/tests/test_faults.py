"""The package on the faults of the embedded store: each meets each operation in either dialect, once or each time, blocking or awaited,
and ends in exact success or the right exception, after a bounded number of requests, and leaves nothing behind."""

from multiprocessing import get_context

import fault_matrix.cells as cells

# What counts requests is a process's, so each works through cells of its own. They mostly wait for pauses.
PROCESSES = 6
# Where no row has ended for so many seconds they hang.
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
