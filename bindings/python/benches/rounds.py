"""Runs several measurements in turns, each time in a new process, and prints their medians."""

import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Reading = Callable[[], Callable[[], object]]
"""A function that prepares a measurement, and returns the function to time. If the timed function returns a function in turn, the
benchmark calls this function afterwards to check the result. The preparation and the check are not timed."""


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


def in_turns(
    measure: Callable[..., None], arguments: Mapping[str, tuple[Any, ...]], rounds: int, method: str
) -> dict[str, list[Any]]:
    """Calls `measure` `rounds` times for each name, each time in a new process that `method` starts. The arguments of `measure` are those
    of the name, and a queue for its result. The names take turns. Returns the results of each name, without those of processes that
    failed."""
    context = multiprocessing.get_context(method)
    found: dict[str, list[Any]] = {name: [] for name in arguments}
    for _ in range(rounds):
        for name, values in arguments.items():
            results = context.Queue()
            process = context.Process(target=measure, args=(*values, results))
            process.start()
            process.join()
            if process.exitcode:
                print(f"{name} failed", file=sys.stderr)
            else:
                found[name].append(results.get())
    return found


def show(name: str, values: list[float], unit: str, digits: int) -> None:
    """Prints a line with the median of the values, and with all of them."""
    if values:
        every = ", ".join(f"{value:.{digits}f}" for value in values)
        print(f"{name:30} {statistics.median(values):8.{digits}f} {unit}   ({every})")


def compare(title: str, readings: Mapping[str, Reading], rounds: int) -> None:
    """Runs each reading `rounds` times. Prints a line for each reading: seconds (median, minimum, maximum), CPU seconds, opened
    connections, and peak memory of the process."""
    rows = in_turns(measured, {name: (reading,) for name, reading in readings.items()}, rounds, "fork")
    print(f"{title}\n{'':18} {'median s':>9} {'min':>9} {'max':>9} {'CPU s':>7} {'conns':>6} {'MiB':>6}")
    for name, row in rows.items():
        if row:
            seconds, processor, opened, peak = zip(*row, strict=True)
            middle = statistics.median
            print(
                f"{name:18} {middle(seconds):9.4f} {min(seconds):9.4f} {max(seconds):9.4f} "
                f"{middle(processor):7.2f} {middle(opened):6.0f} {middle(peak):6.0f}"
            )
