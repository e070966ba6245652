"""Runs several measurements in turns, each time in a new process, and prints their medians."""

import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Reading = Callable[[], Callable[[], object]]
"""A function that prepares a measurement, and returns the function to time. If the timed function returns a function, that one is called
afterwards to check the result. The preparation and the check are not timed."""


def connections_opened() -> int:
    """Returns the number of TCP connections that this network namespace has opened so far, or 0 if the kernel doesn't count them."""
    try:
        names, values = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Tcp:"))
    except OSError:
        return 0
    return int(values[names.index("ActiveOpens")])


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(reading: Reading, results: multiprocessing.Queue) -> None:
    timed = reading()
    opened, processor, began = connections_opened(), processor_seconds(), time.monotonic()
    check = timed()
    seconds, processor = time.monotonic() - began, processor_seconds() - processor
    opened = connections_opened() - opened
    if callable(check):
        check()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results.put((seconds, processor, opened, peak_mib))


def compare(title: str, readings: Mapping[str, Reading], rounds: int) -> None:
    """Runs each reading `rounds` times. Prints a line for each: seconds (median, minimum, maximum), CPU seconds, opened connections, and
    peak memory of the process."""
    context = multiprocessing.get_context("fork")
    rows: dict[str, list[tuple[float, float, int, float]]] = {name: [] for name in readings}
    for _ in range(rounds):
        for name, reading in readings.items():
            results = context.Queue()
            process = context.Process(target=measured, args=(reading, results))
            process.start()
            process.join()
            if process.exitcode:
                print(f"{title}: {name} failed", file=sys.stderr)
            else:
                rows[name].append(results.get())
    print(f"{title}\n{'':18} {'median s':>9} {'min':>9} {'max':>9} {'CPU s':>7} {'conns':>6} {'MiB':>6}")
    for name, row in rows.items():
        if row:
            seconds, processor, opened, peak = zip(*row, strict=True)
            middle = statistics.median
            print(
                f"{name:18} {middle(seconds):9.4f} {min(seconds):9.4f} {max(seconds):9.4f} "
                f"{middle(processor):7.2f} {middle(opened):6.0f} {middle(peak):6.0f}"
            )
