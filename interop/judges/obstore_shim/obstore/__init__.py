"""Takes the place of the package obstore in obstore's own tests. Its names come from Laneway.

obstore's own Python modules (`obstore.fsspec`, `obstore.auth`), which use its stores, come from the checkout that the
variable LANEWAY_OBSTORE names.
"""

import os

from laneway import *  # noqa: F403
from laneway import __version__  # noqa: F401

__path__.append(f"{os.environ['LANEWAY_OBSTORE']}/obstore/python/obstore")
