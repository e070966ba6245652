"""The faults of the matrix, in the embedded store's syntax. A fault's kind determines the expected
outcome."""

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
        # The connection breaks before the server has carried out the request.
        "break": ["reset", "drop", "cut"],
        # The answer is incomplete or missing. The request may have been carried out.
        "loss": ["stall", "reset@100", "drop@100", "cut@100", "stall@100", "truncate@0", "truncate", "lose-answer"],
        "slowness": ["slow 40KB/s", "delay 50ms"],
        # A bit of the bytes is wrong, or the checksum in the answer's headers is wrong.
        "corruption": ["corrupt"],
        "wrong checksum": ["wrong-checksum"],
        # The answer states a wrong length, or no length.
        "no length": ["length none"],
        "long length": ["length +7"],
        "short length": ["length -1"],
        # The answer contains bytes of another range, or bytes of another writer.
        "range ignored": ["range ignored"],
        "range shifted": ["range shifted"],
        "replacement": ["replace"],
        # An error in an answer with status 200, or an answer that can't be read.
        "error in 200": ["error-in-200"],
        "unreadable": ["garble", "malformed"],
        # The connection accepts no more requests, or doesn't accept this request.
        "goaway": ["goaway"],
        "not taken": ["refuse-stream"],
    }.items()
    for action in actions
]

# The kinds that exist only on HTTP/2.
OF_H2 = ("goaway", "not taken")
