"""Runs jobs, which copy, sync or remove many files and objects."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from laneway._configuration import settings
from laneway._laneway import Job, ObjectStore
from laneway._progress import Throttled, reporter
from laneway.exceptions import UsageError, in_python
from laneway.types import Attributes, Config, JobSummary, Key, LocalPath, Place, ProgressReport

_LOGGER = logging.getLogger("laneway")


def copy_job(
    sources: Place | Sequence[Place],
    destination: Place,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    remove_source: bool = False,
    allow_unverified: bool = False,
    dry_run: bool = False,
    durable: bool = False,
    keep_partial: bool = False,
    preserve: bool = False,
    follow_symlinks: bool = False,
    contents: bool = False,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    files_from: LocalPath | None = None,
    gzip: Sequence[str] | None = None,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> Job:
    _, chosen = settings("", config, client_options, retry_config, {})
    wishes = {
        "recursive": recursive,
        "no_clobber": no_clobber,
        "remove_source": remove_source,
        "allow_unverified": allow_unverified,
        "dry_run": dry_run,
        "durable": durable,
        "keep_partial": keep_partial,
        "preserve": preserve,
        "follow_symlinks": follow_symlinks,
        "contents": contents,
        **filter_wishes(filters, min_size, max_size, newer, older),
        "files_from": None if files_from is None else os.fspath(files_from),
        "gzip": gzip,
        "attributes": attributes,
        "tags": tags,
    }
    wished = {name: value for name, value in wishes.items() if value is not None}
    return Job.begin("copy", chosen, _places(sources, chosen), place(destination, chosen), wished)


# The user calls `copy`, so a `TypeError` for wrong arguments must show that name.
copy_job.__qualname__ = "copy"


def sync_job(
    source: Place,
    destination: Place,
    *,
    delete: bool = False,
    allow_empty: bool = False,
    force: bool = False,
    max_delete: int | None = None,
    dry_run: bool = False,
    checksum: bool = False,
    size_only: bool = False,
    update: bool = False,
    existing: bool = False,
    ignore_existing: bool = False,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    files_from: LocalPath | None = None,
    preserve: bool = False,
    follow_symlinks: bool = False,
    ignore_symlinks: bool = False,
    durable: bool = False,
    keep_partial: bool = False,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> Job:
    _, chosen = settings("", config, client_options, retry_config, {})
    wishes = {
        "delete": delete,
        "allow_empty": allow_empty,
        "force": force,
        "max_delete": max_delete,
        "dry_run": dry_run,
        "checksum": checksum,
        "size_only": size_only,
        "update": update,
        "existing": existing,
        "ignore_existing": ignore_existing,
        **filter_wishes(filters, min_size, max_size, newer, older),
        "files_from": None if files_from is None else os.fspath(files_from),
        "preserve": preserve,
        "follow_symlinks": follow_symlinks,
        "ignore_symlinks": ignore_symlinks,
        "durable": durable,
        "keep_partial": keep_partial,
        "attributes": attributes,
        "tags": tags,
    }
    wished = {name: value for name, value in wishes.items() if value is not None}
    return Job.begin("sync", chosen, [place(source, chosen)], place(destination, chosen), wished)


def remove_job(
    targets: Place | Sequence[Place],
    *,
    config: Config | None,
    client_options: Config | None,
    retry_config: Config | None,
    recursive: bool,
    dry_run: bool,
    filters: Sequence[str] | None,
    min_size: int | None,
    max_size: int | None,
    newer: datetime | None,
    older: datetime | None,
    files_from: LocalPath | None,
) -> Job:
    _, chosen = settings("", config, client_options, retry_config, {})
    wishes = {
        "recursive": recursive,
        "dry_run": dry_run,
        **filter_wishes(filters, min_size, max_size, newer, older),
        "files_from": None if files_from is None else os.fspath(files_from),
    }
    wished = {name: value for name, value in wishes.items() if value is not None}
    return Job.begin("remove", chosen, _places(targets, chosen), None, wished)


def filter_wishes(
    filters: Sequence[str] | None,
    min_size: int | None,
    max_size: int | None,
    newer: datetime | None,
    older: datetime | None,
) -> dict[str, Any]:
    return {
        "filters": [filters] if isinstance(filters, str) else filters,
        "min_size": min_size,
        "max_size": max_size,
        "newer": newer,
        "older": older,
    }


def _places(places: Place | Sequence[Place], chosen: dict[str, Any]) -> list[str]:
    if isinstance(places, str | os.PathLike | ObjectStore) or _is_in_store(places):
        return [place(cast("Place", places), chosen)]
    return [place(one, chosen) for one in places]


def place(where: Place, chosen: dict[str, Any]) -> str:
    """Returns a location as text. If it is a store, its settings are added to those of the job."""
    if _is_in_store(where):
        store, key = cast("tuple[ObjectStore, Key]", where)
        return place(store, chosen) + os.fspath(key)
    if not isinstance(where, ObjectStore):
        return os.fspath(cast("str | os.PathLike[str]", where))
    for name, value in getattr(where, "_settings", dict)().items():
        if chosen.setdefault(name, value) != value:
            raise UsageError(f"all stores of a job must have the same settings, but {name} differs for {where!r}")
    return getattr(where, "_location", None) or where.url


def _is_in_store(place: object) -> bool:
    return isinstance(place, tuple) and len(place) == 2 and isinstance(place[0], ObjectStore) and not isinstance(place[1], ObjectStore)


def run(job: Job, progress: ProgressReport) -> JobSummary:
    """Waits for a job to end. A `KeyboardInterrupt` cancels the job, and is raised once the job has cleaned up."""
    failures: list[BaseException] = []
    planned: list[Any] = []
    with reporter(progress) as report:
        try:
            while True:
                summary = _taken(job, job.wait(), failures, planned, report)
                if summary is not None:
                    return _ended(summary, failures)
        except BaseException:
            job.cancel()
            while job.wait()[3] is None:
                pass
            raise


async def run_async(job: Job, progress: ProgressReport) -> JobSummary:
    """The awaitable form of `run`. If the task is cancelled, it doesn't wait until the job has cleaned up."""
    failures: list[BaseException] = []
    planned: list[Any] = []
    with reporter(progress) as report:
        try:
            while True:
                summary = _taken(job, await job.wait_async(), failures, planned, report)
                if summary is not None:
                    return _ended(summary, failures)
        except BaseException:
            job.cancel()
            raise


def _taken(
    job: Job,
    happened: tuple[list[BaseException], list[str], list[dict[str, Any]], dict[str, Any] | None],
    failures: list[BaseException],
    planned: list[Any],
    report: Throttled,
) -> JobSummary | None:
    failed, warnings, would, summary = happened
    failures += failed
    planned += would
    for warning in warnings:
        _LOGGER.warning("%s", in_python(warning))
    report(job.progress(), summary is not None)
    return None if summary is None else cast("JobSummary", {**summary, "planned": planned})


def _ended(summary: JobSummary, failures: list[BaseException]) -> JobSummary:
    """Returns the summary of a job if it succeeded. Otherwise raises the first failure, with all others attached."""
    if not failures:
        return summary
    first = failures[0]
    if len(failures) > 1:
        first.add_note(f"and {len(failures) - 1} more; {summary['files']} items were done")
    first.failures, first.summary = failures, summary  # type: ignore[attr-defined]
    raise first
