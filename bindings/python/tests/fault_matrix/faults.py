"""The faults of the matrix, in the embedded store's syntax, with the kinds by which outcomes are expected."""

from typing import NamedTuple


class Fault(NamedTuple):
    action: str
    kind: str


FAULTS = [
    Fault(action, kind)
    for kind, actions in {
        # The store asks to slow down, fails, or refuses.
        "throttle": ["status 429", "status 429 retry-after 1s", "status 503", "status 503 retry-after 1s"],
        "failure": ["status 500", "status 502"],
        "refusal": ["status 403"],
        # There is no answer, or the request broke off. The request wasn't carried out.
        "break": ["reset", "drop", "cut"],
        # The answer is incomplete or missing. The request may have been carried out.
        "loss": ["stall", "reset@100", "drop@100", "cut@100", "stall@100", "truncate@0", "truncate", "lose-answer"],
        "slowness": ["slow 40KB/s", "delay 50ms"],
        # A bit of the bytes is wrong, or the checksum in the answer's headers.
        "corruption": ["corrupt"],
        "wrong checksum": ["wrong-checksum"],
        # The answer announces a wrong length, or none.
        "no length": ["length none"],
        "long length": ["length +7"],
        "short length": ["length -1"],
        # Other bytes come than those requested, or another writer's.
        "range ignored": ["range ignored"],
        "range shifted": ["range shifted"],
        "replacement": ["replace"],
        # An error in an answer with status 200, or an answer that can't be read.
        "error in 200": ["error-in-200"],
        "unreadable": ["garble", "malformed"],
        # The connection accepts no more requests, or not this one.
        "goaway": ["goaway"],
        "not taken": ["refuse-stream"],
    }.items()
    for action in actions
]

# The kinds that exist only on HTTP/2.
OF_H2 = ("goaway", "not taken")
