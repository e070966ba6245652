"""Stands for the package obstore in its own tests: the names are Laneway's.

The modules that obstore builds in Python on top of its stores (`obstore.fsspec`, `obstore.auth`) are obstore's own, from
the checkout in the variable LANEWAY_OBSTORE.
"""

import os

from laneway import *  # noqa: F403
from laneway import __version__  # noqa: F401

__path__.append(f"{os.environ['LANEWAY_OBSTORE']}/obstore/python/obstore")
