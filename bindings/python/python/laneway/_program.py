"""The program `laneway`."""

import signal
import sys

from laneway._laneway import program


def main() -> int:
    # The program has handlers of its own, behind which Python's would raise once it is over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return program(["laneway", *sys.argv[1:]])
