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
    """Removes objects, patterns and whole prefixes (`recursive`), and returns the summary.

    `filters` and the options beside them are those of `sync`, and choose names of prefixes and patterns. `files_from`
    takes no filters. Without targets it names whole URLs. Failures are raised as in `copy`.
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
    """As `remove`, to be awaited."""
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
