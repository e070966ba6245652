"""Runs a removal job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from laneway._jobs import remove_job, run, run_async
from laneway.types import Config, JobSummary, LocalPath, Place, ProgressReport


def remove(
    targets: Place | Sequence[Place],
    *,
    recursive: bool = False,
    dry_run: bool = False,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    files_from: LocalPath | None = None,
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary:
    """Removes objects, the matches of patterns, and with `recursive` everything below prefixes. Returns the summary.

    `filters`, `min_size`, `max_size`, `newer` and `older` work as in `sync`, and apply to names below prefixes and to
    matches of patterns. `files_from` is a file of names below the only target, or of whole URLs if `targets` is empty.
    `files_from` can't be combined with filters. Failures are raised as in `copy`.
    """
    job = remove_job(
        targets,
        recursive=recursive,
        dry_run=dry_run,
        filters=filters,
        min_size=min_size,
        max_size=max_size,
        newer=newer,
        older=older,
        files_from=files_from,
        config=config,
        client_options=client_options,
        retry_config=retry_config,
    )
    return run(job, progress)


async def remove_async(
    targets: Place | Sequence[Place],
    *,
    recursive: bool = False,
    dry_run: bool = False,
    filters: Sequence[str] | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    newer: datetime | None = None,
    older: datetime | None = None,
    files_from: LocalPath | None = None,
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary:
    """The awaitable form of `remove`."""
    job = remove_job(
        targets,
        recursive=recursive,
        dry_run=dry_run,
        filters=filters,
        min_size=min_size,
        max_size=max_size,
        newer=newer,
        older=older,
        files_from=files_from,
        config=config,
        client_options=client_options,
        retry_config=retry_config,
    )
    return await run_async(job, progress)
