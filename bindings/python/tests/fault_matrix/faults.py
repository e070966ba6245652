"""The faults of the matrix, as the embedded store's grammar writes them, and what each of them does as far as what has to follow depends on it."""

from typing import NamedTuple


class Fault(NamedTuple):
    action: str
    kind: str


FAULTS = [
    Fault(action, kind)
    for kind, actions in {
        # The store asks for a pause, fails, or refuses.
        "throttle": ["status 429", "status 429 retry-after 1s", "status 503", "status 503 retry-after 1s"],
        "failure": ["status 500", "status 502"],
        "refusal": ["status 403"],
        # There is no answer, or the request broke off: nothing has been done.
        "break": ["reset", "drop", "cut"],
        # The answer ends before its end, or doesn't come: what was asked for may have been done.
        "loss": ["stall", "reset@100", "drop@100", "cut@100", "stall@100", "truncate@0", "truncate", "lose-answer"],
        "slowness": ["slow 40KB/s", "delay 50ms"],
        # A bit of the bytes is wrong, or the checksum in the answer's headers.
        "corruption": ["corrupt"],
        "wrong checksum": ["wrong-checksum"],
        # The answer says another length than it has, or none.
        "no length": ["length none"],
        "long length": ["length +7"],
        "short length": ["length -1"],
        # Other bytes come than were asked for, or another writer's.
        "range ignored": ["range ignored"],
        "range shifted": ["range shifted"],
        "replacement": ["replace"],
        # An error in an answer whose status is 200, or one that can't be read.
        "error in 200": ["error-in-200"],
        "unreadable": ["garble", "malformed"],
        # The connection takes no more requests, or not this one.
        "goaway": ["goaway"],
        "not taken": ["refuse-stream"],
    }.items()
    for action in actions
]

# What there is on HTTP/2 alone.
OF_H2 = ("goaway", "not taken")
