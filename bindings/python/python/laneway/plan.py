"""Plans of very large transfers. A plan divides a copy, sync, removal or comparison into parts, which any number of
processes run on any number of machines.

    plan.copy("s3://lake/raw", "gs://copy/", "s3://lake/plans/1")
    opened = Plan.open("s3://lake/plans/1")
    while opened.run_next():
        pass

`copy`, `sync`, `remove` and `verify` make a plan in a folder, which is a local path or the URL of a prefix. The plan
names every object with its version and checksum. Each process opens the plan and runs parts until none is left. A
process may be killed at any time. Then another process repeats its part."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

from laneway._configuration import seconds, settings
from laneway._jobs import filter_wishes, place
from laneway._laneway import OpenedPlan, PlanTask
from laneway.exceptions import BaseError, in_python
from laneway.types import (
    Config,
    LocalPath,
    PartResult,
    Place,
    PlanCheck,
    PlanIndex,
    PlanPart,
    PlanProgress,
    PlanRow,
    PlanStatus,
    PlanTotals,
    Seconds,
)

__all__ = ["Plan", "copy", "remove", "sync", "verify"]

_LOGGER = logging.getLogger("laneway")


def copy(
    source: Place,
    destination: Place,
    folder: Place,
    *,
    no_clobber: bool = False,
    storage_class: str | None = None,
    bandwidth_limit: int | None = None,
    runners: int | None = None,
    dry_run: bool = False,
    inventory: Place | None = None,
    after: str | None = None,
    through: str | None = None,
    part_rows: int | None = None,
    part_bytes: int | None = None,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    progress: Callable[[PlanProgress], object] | None = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> PlanTotals:
    """Plans a copy of everything below a prefix, and returns the plan's totals. The copies go where `laneway.copy` with
    `recursive` puts them.

    A part ends after `part_rows` objects (by default 100,000), or after objects of `part_bytes` in total (by default
    256 GiB). `after` and `through` choose a range of names, relative to the prefix: those after one name, up to and
    including another. Other processes can plan the other ranges into the same folder. `inventory` is read instead of a
    listing. It is the manifest of S3 Inventory or of a Storage Insights report, or the output of `laneway ls -r --json`,
    and must be sorted by key. `filters`, `min_size`, `max_size`, `newer` and `older` work as in `laneway.sync`.

    `bandwidth_limit` is in bytes a second. So many `runners` share it, and further runners wait.

    `no_clobber` skips objects that exist at the destination when their part runs. With `dry_run`, nothing is written.
    `progress` is called with a `PlanProgress` from time to time.

    If a call is interrupted, the same call continues after the last part that it wrote. A folder has only one plan.
    """
    places = {"source": source, "destination": destination, "folder": folder, "inventory": inventory}
    wishes = {
        "no_clobber": no_clobber,
        "storage_class": storage_class,
        "bandwidth_limit": bandwidth_limit,
        "runners": runners,
        "dry_run": dry_run,
        "after": after,
        "through": through,
        "part_rows": part_rows,
        "part_bytes": part_bytes,
        **filter_wishes(filters, min_size, max_size, newer, older),
    }
    return _made("copy", places, wishes, progress, config, client_options, retry_config)


def sync(
    source: Place,
    destination: Place,
    folder: Place,
    *,
    delete: bool = False,
    max_delete: int | None = None,
    allow_empty: bool = False,
    checksum: bool = False,
    size_only: bool = False,
    storage_class: str | None = None,
    destination_inventory: Place | None = None,
    bandwidth_limit: int | None = None,
    runners: int | None = None,
    dry_run: bool = False,
    inventory: Place | None = None,
    after: str | None = None,
    through: str | None = None,
    part_rows: int | None = None,
    part_bytes: int | None = None,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    progress: Callable[[PlanProgress], object] | None = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> PlanTotals:
    """Plans a sync between two prefixes, and returns the plan's totals.

    The plan copies an object if the destination lacks it, if the sizes or checksums in the listings differ, or if the
    listings show neither. With `delete`, the parts that remove objects run only once every copy has succeeded. Nothing
    is planned if more than `max_delete` objects would be removed, or if the source is empty (unless `allow_empty`).
    `checksum` compares contents instead of times, and `size_only` only sizes. `destination_inventory` is read instead
    of a listing of the destination. The other options work as in `copy`.
    """
    places = {"source": source, "destination": destination, "folder": folder, "inventory": inventory, "destination_inventory": destination_inventory}
    wishes = {
        "delete": delete,
        "max_delete": max_delete,
        "allow_empty": allow_empty,
        "checksum": checksum,
        "size_only": size_only,
        "storage_class": storage_class,
        "bandwidth_limit": bandwidth_limit,
        "runners": runners,
        "dry_run": dry_run,
        "after": after,
        "through": through,
        "part_rows": part_rows,
        "part_bytes": part_bytes,
        **filter_wishes(filters, min_size, max_size, newer, older),
    }
    return _made("sync", places, wishes, progress, config, client_options, retry_config)


def remove(
    target: Place,
    folder: Place,
    *,
    dry_run: bool = False,
    inventory: Place | None = None,
    after: str | None = None,
    through: str | None = None,
    part_rows: int | None = None,
    part_bytes: int | None = None,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    progress: Callable[[PlanProgress], object] | None = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> PlanTotals:
    """Plans the removal of everything below a prefix, and returns the plan's totals. An object is only removed if it
    still has the version that was planned. The options work as in `copy`.
    """
    places = {"source": target, "folder": folder, "inventory": inventory}
    wishes = {
        "dry_run": dry_run,
        "after": after,
        "through": through,
        "part_rows": part_rows,
        "part_bytes": part_bytes,
        **filter_wishes(filters, min_size, max_size, newer, older),
    }
    return _made("remove", places, wishes, progress, config, client_options, retry_config)


def verify(
    source: Place,
    destination: Place,
    folder: Place,
    *,
    dry_run: bool = False,
    inventory: Place | None = None,
    after: str | None = None,
    through: str | None = None,
    part_rows: int | None = None,
    part_bytes: int | None = None,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    progress: Callable[[PlanProgress], object] | None = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> PlanTotals:
    """Plans a comparison of two prefixes, and returns the plan's totals. A row fails if its object is missing at the
    destination, or differs there. The options work as in `copy`.
    """
    places = {"source": source, "destination": destination, "folder": folder, "inventory": inventory}
    wishes = {
        "dry_run": dry_run,
        "after": after,
        "through": through,
        "part_rows": part_rows,
        "part_bytes": part_bytes,
        **filter_wishes(filters, min_size, max_size, newer, older),
    }
    return _made("verify", places, wishes, progress, config, client_options, retry_config)


class Plan:
    """A plan that was made. Threads and processes can run its parts at the same time."""

    def __init__(self, folder: str, index: PlanIndex, opened: OpenedPlan, chosen: dict[str, Any]) -> None:
        self._folder, self._index, self._opened, self._chosen = folder, index, opened, chosen

    @classmethod
    def open(
        cls,
        folder: Place,
        *,
        config: Config | None = None,
        client_options: Config | None = None,
        retry_config: Config | None = None,
    ) -> Plan:
        """Opens the plan in a folder. The configuration must reach the folder, the source and the destination."""
        _, chosen = settings("", config, client_options, retry_config, {})
        where = place(folder, chosen)
        index, opened = _run(PlanTask.begin("open", chosen, {"folder": where}))
        return cls(where, index, cast("OpenedPlan", opened), chosen)

    @property
    def folder(self) -> str:
        """The plan's folder."""
        return self._folder

    @property
    def index(self) -> PlanIndex:
        """The plan's index."""
        return self._index

    @property
    def parts(self) -> list[PlanPart]:
        """The parts. Their places in this list are their numbers."""
        return self._index["parts"]

    def run_next(
        self,
        *,
        lease: Seconds | None = None,
        single_runner: bool = False,
        on_failure: Callable[[PlanRow], object] | None = None,
    ) -> PartResult | None:
        """Runs a part that nobody else runs, and returns its result. Returns `None` if no part is left. While other
        runners hold all parts that are left, the call waits for them.

        If this process dies, another runner repeats the part once this process hasn't renewed its lease for the time
        `lease` (by default a minute). Ctrl-C stops the part and gives the lease up, and then raises
        `KeyboardInterrupt`. `on_failure` is called with each row that fails. Failed rows don't raise an exception.

        `single_runner` allows a folder in a store that ignores conditional writes. Then nobody else may run the plan.
        """
        return self._result(None, lease, single_runner, on_failure)

    def run_part(
        self,
        number: int,
        *,
        lease: Seconds | None = None,
        single_runner: bool = False,
        on_failure: Callable[[PlanRow], object] | None = None,
    ) -> PartResult:
        """Runs the part with a number, counted from 0, and returns its result. If the part has ended before, returns
        the result that it has. While another runner holds the part, the call waits for it. So two attempts of one task,
        as Spark's speculation makes them, both return the result. The options work as in `run_next`.
        """
        return cast("PartResult", self._result(number, lease, single_runner, on_failure))

    def _result(
        self, number: int | None, lease: Seconds | None, single_runner: bool, on_failure: Callable[[PlanRow], object] | None
    ) -> PartResult | None:
        wishes = {"part": number, "lease": None if lease is None else seconds(lease), "single_runner": single_runner}
        return cast("PartResult | None", self._done("run", wishes, on_row=on_failure, has_lease=True))

    def status(self) -> PlanStatus:
        """Reads the state of the plan."""
        return cast("PlanStatus", self._done("status", {}))

    def verify(
        self, part: int | None = None, *, extra: bool = False, on_fault: Callable[[PlanRow], object] | None = None
    ) -> PlanCheck:
        """Compares the plan, or only one part of it, with a fresh listing of the destination. `on_fault` is called with
        each row that is missing or differs, and with `extra` also with each object that the plan doesn't name. The
        row's `class` is `missing`, `different`, `left` or `extra`.
        """
        return cast("PlanCheck", self._done("check", {"part": part, "extra": extra}, on_row=on_fault))

    def retry(self, folder: Place) -> PlanTotals | None:
        """Makes a plan in another folder that repeats the failed rows of this one. Returns its totals, or `None` if
        nothing has failed. The new plan leaves out objects that are gone, and copies the present versions of the others.
        """
        return cast("PlanTotals | None", self._done("retry", {"folder": place(folder, self._chosen.copy())}))

    def report(self, path: LocalPath) -> int:
        """Writes the outcome of each row to a file, and returns the number of rows. The file is a completion report like
        that of S3 Batch Operations: CSV without a header, with the columns Bucket, Key, VersionId, TaskStatus,
        ErrorCode, HTTPStatusCode and ResultMessage.
        """
        return cast("int", self._done("report", {"file": os.fspath(path)}))

    def _done(
        self, verb: str, wishes: dict[str, Any], on_row: Callable[[PlanRow], object] | None = None, has_lease: bool = False
    ) -> Any:
        task = self._opened.begin(verb, _given(wishes))
        return _run(task, on_row=on_row, has_lease=has_lease)[0]

    def __repr__(self) -> str:
        return f"<laneway.plan.Plan {self._folder}: {len(self.parts)} parts>"


def _made(
    verb: str,
    places: dict[str, Place | None],
    wishes: dict[str, Any],
    progress: Callable[[PlanProgress], object] | None,
    config: Config | None,
    client_options: Config | None,
    retry_config: Config | None,
) -> PlanTotals:
    _, chosen = settings("", config, client_options, retry_config, {})
    located = {name: place(where, chosen) for name, where in places.items() if where is not None}
    task = PlanTask.begin(verb, chosen, located | _given(wishes))
    return cast("PlanTotals", _run(task, progress=progress)[0])


def _given(wishes: dict[str, Any]) -> dict[str, Any]:
    # An action refuses options that it doesn't have, so flags that are off are left out.
    return {name: value for name, value in wishes.items() if value is not None and value is not False}


def _run(
    task: PlanTask,
    *,
    on_row: Callable[[PlanRow], object] | None = None,
    progress: Callable[[PlanProgress], object] | None = None,
    has_lease: bool = False,
) -> tuple[Any, OpenedPlan | None]:
    """Waits for a task to end, and returns its result and the plan that it has opened. A `KeyboardInterrupt` stops the
    task. If the task has a lease, the exception is raised once the lease was given up.
    """
    try:
        while True:
            rows, warnings, progressed, failure, answer, opened = task.wait()
            for warning in warnings:
                _LOGGER.warning("%s", in_python(warning))
            if on_row is not None:
                for row in rows:
                    on_row(json.loads(row))
            if progress is not None and progressed is not None:
                progress(PlanProgress(*progressed))
            if failure is not None:
                raise failure
            if answer is not None:
                return json.loads(answer), opened
    except BaseException:
        task.stop()
        if has_lease:
            with suppress(BaseError):
                while (ended := task.wait())[3] is None and ended[4] is None:
                    pass
        raise
