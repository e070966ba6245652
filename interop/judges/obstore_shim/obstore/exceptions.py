from laneway.exceptions import *  # noqa: F403
