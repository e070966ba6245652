"""The matrix's cells, and the code that runs a cell."""

import itertools
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from laneway.exceptions import BaseError

from fault_matrix.expectations import expected
from fault_matrix.faults import FAULTS, OF_H2, Fault
from fault_matrix.operations import OPERATIONS, READ, About, Scene, Strike, strikes
from fault_matrix.served import Served

# The client's retry time in seconds, which is long enough for temporary failures to end.
RETRY_FOR = 20
# The client's time limit for a silent connection in seconds, for faults that make a connection silent.
STALL_TIMEOUT = 0.7
# Laneway repeats a request that the server didn't accept at once, up to ten times. It repeats other requests a few
# times.
REQUESTS_MORE_MAX = 30


class Cell(NamedTuple):
    strike: Strike
    # Every other cell awaits its calls.
    is_awaited: bool


class Row(NamedTuple):
    """The cells of one fault, which share a store. The fault hits the first request of each cell, or all requests."""

    fault: Fault
    scheme: str
    is_once: bool
    tls: bool
    cells: list[Cell]

    @property
    def name(self) -> str:
        how_often, protocol = "once" if self.is_once else "always", "h2" if self.tls else "h1"
        return f"{self.fault.action}/{how_often}/{self.scheme}-{protocol}"

    def rules(self) -> list[str]:
        which = "1" if self.is_once else "1-999999"
        # A batch has no key, so its rule can't name one. It needs none, because only one operation sends batches.
        return [
            f"{verb}:{which} {'' if verb in ('delete-many', 'batch') else f'key={cell.strike.folder}* '}{self.fault.action}"
            for cell in self.cells
            for verb in [cell.strike.verb]
        ]


def rows() -> Iterator[Row]:
    """Yields the rows. In each dialect, a fault hits one half of the requests once, and it hits the other half always.
    The dialects swap the halves."""
    for (place, fault), scheme, is_once in itertools.product(enumerate(FAULTS), ("s3", "gs"), (True, False)):
        tls = fault.kind in OF_H2 or place % 2 == 1
        cells = [
            Cell(strike, (place + turn) // 2 % 2 == 1)
            for turn, strike in enumerate(strikes(scheme))
            if ((place + turn) % 2 == 0) == (is_once == (scheme == "s3")) and skipped(strike, fault) is None
        ]
        if cells:
            yield Row(fault, scheme, is_once, tls, cells)


def skipped(strike: Strike, fault: Fault) -> str | None:
    """Returns the reason why the fault can't hit the request."""
    about, kind = strike.about, fault.kind
    is_sent = strike.verb in ("put", "part")
    if fault.action == "slow 40KB/s" and strike.verb == "part":
        return "so many bytes would take minutes"
    if fault.action.startswith("stall") and strike.verb in ("copy", "complete"):
        return "a copy or completion may take minutes, so the client waits"
    if kind in ("long length", "short length", "no length") and about is About.HEADERS:
        return "nothing contradicts a wrong length in a HEAD's answer"
    if kind in ("range ignored", "range shifted") and about is not About.RANGE:
        return "the request has no range"
    if kind == "replacement" and about not in (About.CONTENT, About.RANGE):
        return "the request reads no object that could be replaced"
    if kind == "unreadable" and about in (About.CONTENT, About.RANGE, About.HEADERS):
        return "the answer has no document"
    if kind == "wrong checksum" and about not in (About.CONTENT, About.HEADERS) and not is_sent:
        return "the answer has no checksum"
    if kind == "corruption" and about is not About.CONTENT and not is_sent:
        return "the answer has no checksum of a range or a document"
    return None


def run(row: Row) -> list[tuple[str, str | None]]:
    """Runs the cells of a row. Returns each cell's name, and the mistake in its outcome, if there is one."""
    with Served(row.scheme, row.tls, row.rules()) as served, tempfile.TemporaryDirectory() as folder:
        return [(f"{cell.strike.folder}{row.name}", wrong(row, cell, served, Path(folder))) for cell in row.cells]


def wrong(row: Row, cell: Cell, served: Served, top: Path) -> str | None:
    """Returns the mistake in a cell's outcome, if there is one."""
    strike, operation = cell.strike, OPERATIONS[cell.strike.operation]
    folder = top / strike.folder.rstrip("/")
    folder.mkdir()
    for name, content in operation.files.items():
        (folder / name).write_bytes(content)
    for key, content in operation.objects.items():
        served.lay(strike.folder + key, content, by_copy=strike.verb == "put")
    options = {"root_certificate": served.ca} if served.ca else {}
    options |= {"read_timeout": STALL_TIMEOUT} if row.fault.action.startswith("stall") else {}
    reached = {"client_options": options, "retry_config": {"retry_timeout": RETRY_FOR if row.is_once else 0}}
    scene = Scene(served, folder, strike, reached, cell.is_awaited)
    before, uploads = scene.store.counters(), served.uploads()
    error, given = None, None
    try:
        given = operation.run(scene)
    except BaseError as raised:
        error = raised
    except Exception:
        return f"it raised something else:\n{traceback.format_exc()}"
    requests, retries = (scene.store.counters()[name] - before[name] for name in ("requests", "retries"))
    how = f"{'success' if error is None else repr(error)}, {requests} requests"
    may_succeed, errors = expected(strike, row.fault, row.is_once, row.scheme)
    if error is None and not may_succeed or error is not None and type(error) not in errors:
        return f"{'success or ' if may_succeed else ''}{[one.__name__ for one in errors]} expected: {how}"
    # The error of a listing names only the bucket.
    about = f"{row.scheme}://lake{'' if strike.verb in ('list', 'batch', 'delete-many') else f'/{strike.folder}'}"
    if error is not None and (about not in str(error) or about not in str(error.url)):
        return f"the error doesn't name its object: {how}, {error.url}"
    if row.fault.kind in ("throttle", "failure") and row.is_once and retries == 0 and strike.operation != "delete-many":
        return f"the fault has hit no request: {how}"
    if error is None and given not in operation.gives:
        return f"other bytes or names: {how}: {str(given)[:200]}"
    if requests > operation.requests_max + REQUESTS_MORE_MAX:
        return f"{operation.requests_max} requests are enough: {how}"
    return left(scene, error is None) or uploads_left(strike, row, served.uploads() - uploads, how)


def left(scene: Scene, has_succeeded: bool) -> str | None:
    """Returns the mistake in the objects and files after an operation, if there is one."""
    operation = OPERATIONS[scene.operation]
    for key, (done, before) in operation.writes.items():
        there = scene.stored(key)
        if there != done and (has_succeeded or there != before):
            return f"{key} holds {None if there is None else there[:20]}, where it has {'succeeded' if has_succeeded else 'failed'}"
    names = {path.name for path in scene.folder.rglob("*")}
    if names - {*operation.files, *operation.brings}:
        return f"{names} are in the folder"
    for name in operation.brings:
        if (there := scene.file(name)) not in READ and (has_succeeded or there is not None):
            return f"the file {name} is wrong"
    return None


def uploads_left(strike: Strike, row: Row, uploads: int, how: str) -> str | None:
    """Returns a message if too many uploads are still open. If the answer to the beginning of an upload was lost,
    Laneway doesn't know the upload's name. If the answer can't be read, Laneway begins the upload up to three times.
    Without retries, an upload may also stay open because the connection of its abort broke."""
    breaks_all = row.tls and row.fault.kind in ("break", "loss") and not row.is_once
    begun = 0 if strike.about is not About.BEGIN else 1 if row.is_once else 3
    if uploads > max(begun, int(breaks_all)):
        return f"{uploads} uploads are left: {how}"
    return None
