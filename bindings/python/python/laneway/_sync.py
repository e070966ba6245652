"""Making one place equal to another, as a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from laneway._jobs import run, run_async, sync_job
from laneway.types import Attributes, Config, JobSummary, Place, ProgressReport


def sync(
    source: Place,
    destination: Place,
    *,
    delete: bool = False,
    allow_empty: bool = False,
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
    files_from: Place | None = None,
    preserve: bool = False,
    follow_symlinks: bool = False,
    ignore_symlinks: bool = False,
    durable: bool = False,
    keep_partial: bool = False,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary:
    """Makes what lies below a folder or prefix equal to what lies below another, and gives the summary.

    What differs is copied: what isn't there, has another size, or passes for older; with `checksum` contents are compared instead of times,
    with `size_only` nothing but sizes; `update` leaves alone what is newer at the destination.
    With `delete` what the source doesn't have is removed, after all else and only if nothing failed; not where the source has
    nothing (`allow_empty`), nor where it would be more than `max_delete`. `filters` are rules in order, of which the first that matches a
    name or a folder that it lies in decides: `"+ GLOB"` takes, `"- GLOB"` or `"GLOB"` leaves out. `files_from` is a file with the names that are
    meant, one a line: nothing is listed then, each is looked at on both sides. Failures are raised as `copy` raises them.
    """
    job = sync_job(
        source,
        destination,
        delete=delete,
        allow_empty=allow_empty,
        max_delete=max_delete,
        dry_run=dry_run,
        checksum=checksum,
        size_only=size_only,
        update=update,
        existing=existing,
        ignore_existing=ignore_existing,
        filters=filters,
        min_size=min_size,
        max_size=max_size,
        newer=newer,
        older=older,
        files_from=files_from,
        preserve=preserve,
        follow_symlinks=follow_symlinks,
        ignore_symlinks=ignore_symlinks,
        durable=durable,
        keep_partial=keep_partial,
        attributes=attributes,
        tags=tags,
        config=config,
        client_options=client_options,
        retry_config=retry_config,
    )
    return run(job, progress)


async def sync_async(
    source: Place,
    destination: Place,
    *,
    delete: bool = False,
    allow_empty: bool = False,
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
    files_from: Place | None = None,
    preserve: bool = False,
    follow_symlinks: bool = False,
    ignore_symlinks: bool = False,
    durable: bool = False,
    keep_partial: bool = False,
    attributes: Attributes | None = None,
    tags: dict[str, str] | None = None,
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary:
    """As `sync`, to be awaited."""
    job = sync_job(
        source,
        destination,
        delete=delete,
        allow_empty=allow_empty,
        max_delete=max_delete,
        dry_run=dry_run,
        checksum=checksum,
        size_only=size_only,
        update=update,
        existing=existing,
        ignore_existing=ignore_existing,
        filters=filters,
        min_size=min_size,
        max_size=max_size,
        newer=newer,
        older=older,
        files_from=files_from,
        preserve=preserve,
        follow_symlinks=follow_symlinks,
        ignore_symlinks=ignore_symlinks,
        durable=durable,
        keep_partial=keep_partial,
        attributes=attributes,
        tags=tags,
        config=config,
        client_options=client_options,
        retry_config=retry_config,
    )
    return await run_async(job, progress)
