"""Functions for the clients' scripts. Each check prints a line. A script exits with 1 if a check failed."""

import sys

MIB = 1 << 20
failures = 0


def check(client, name, condition, detail=""):
    global failures
    failures += not condition
    print(f"{'ok  ' if condition else 'FAIL'} {client}: {name}{' - ' + str(detail) if detail and not condition else ''}")


def raises(call, *errors):
    """Returns whether the call raises one of these errors."""
    try:
        call()
    except errors:
        return True
    return False


def finish(client):
    print(f"{client}: {failures} failed" if failures else f"{client}: all passed")
    sys.exit(1 if failures else 0)
