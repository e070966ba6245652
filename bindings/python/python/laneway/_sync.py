"""Runs a job that makes a folder or prefix equal to another one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from laneway._jobs import run, run_async, sync_job
from laneway.types import Attributes, Config, JobSummary, LocalPath, Place, ProgressReport


def sync(
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
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary:
    """Makes everything below a folder or prefix equal to everything below another, and returns the summary.

    The job copies objects that are missing at the destination, have another size there, or are older there.
    `checksum` compares contents instead of times, and `size_only` only sizes. `update` keeps objects that are newer
    at the destination. `delete` removes objects that the source doesn't have, after everything else and only if
    nothing failed. The job removes nothing if the source is empty (unless `allow_empty`), or if it would remove more
    than `max_delete`. It also refuses a destination whose only entry is a folder with the source's name (unless
    `force`). Such a folder is usually an earlier copy. The sync would copy everything again next to it, and then
    remove it.

    With `dry_run`, `planned` in the summary lists the items that would be copied or removed.

    `filters` is a list of rules. For each name, the first rule that matches it or a folder above it decides: `"+ GLOB"`
    includes the name, and `"- GLOB"` or `"GLOB"` skips it. `files_from` is a file of names, one per line. Each of these
    names is looked up on both sides, without a listing. Filters apply to these names too. Failures are raised as in
    `copy`.

    `existing` copies only items that the destination already has, and `ignore_existing` only items that it lacks.
    `ignore_symlinks` skips symbolic links. `preserve`, `follow_symlinks`, `durable`, `keep_partial`, `attributes`,
    `tags` and `progress` work as in `copy`.
    """
    job = sync_job(
        source,
        destination,
        delete=delete,
        allow_empty=allow_empty,
        force=force,
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
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary:
    """The awaitable form of `sync`."""
    job = sync_job(
        source,
        destination,
        delete=delete,
        allow_empty=allow_empty,
        force=force,
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
