"""The program `laneway`."""

import signal
import sys

from laneway._laneway import program


def main() -> int:
    # The program has its own signal handlers. Python's handler would raise a KeyboardInterrupt after the program has
    # ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return program(["laneway", *sys.argv[1:]])
