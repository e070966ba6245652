"""Runs the program: `python -m laneway`."""

import sys

from laneway._program import main

if __name__ == "__main__":
    sys.exit(main())
