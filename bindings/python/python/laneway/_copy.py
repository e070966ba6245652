"""Copies an object, or runs a copy job."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any, get_overloads, overload

from laneway._jobs import copy_job, run, run_async
from laneway._laneway import ObjectStore
from laneway.types import Attributes, Config, JobSummary, LocalPath, Place, ProgressReport, PutResult


@overload
def copy(store: ObjectStore, from_: str, to: str, /, *, overwrite: bool = True) -> PutResult: ...
@overload
def copy(
    sources: Place | Sequence[Place],
    destination: Place,
    /,
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
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> JobSummary: ...
def copy(first: Any, second: Any, /, *rest: Any, **options: Any) -> Any:
    """Copies an object within a store, or runs a job that copies any sources to a destination.

    A job copies files, folders, prefixes and patterns to a store, from a store, or between two stores. Folders and
    prefixes need `recursive`. If `destination` ends in `/`, or is `.` or `..`, a folder is copied into it under the
    folder's own name. Otherwise `destination` is the name of the copy, whether it exists or not. `contents` copies the
    contents of a folder without the folder's name.

    The job compares all bytes with the stores' checksums, and returns its summary. With `dry_run`, `planned` in the
    summary lists the items that would be copied. If items fail, the job raises the first failure. The exception's
    `failures` has all failures, and its `summary` the summary. With `remove_source`, a source is removed once its
    copy is verified. If only the size could be compared, the source is kept, unless `allow_unverified` is true.

    `filters`, `min_size`, `max_size`, `newer` and `older` work as in `sync`, and apply to names below folders and
    prefixes and to matches of patterns. `files_from` is a file of names below the only source. `files_from` can't
    be combined with filters. `progress` is `True` for tqdm's bar, one of fsspec's callbacks, or a callable that
    receives a `Progress` at most ten times a second, and once at the end.

    `no_clobber` skips destinations that exist. `follow_symlinks` follows symbolic links to directories. `preserve`
    keeps the times, modes and owners of files as metadata of objects, and restores them on download. `gzip` is a list
    of extensions. Files with these extensions are compressed when they are uploaded. `attributes` are headers of new
    objects, such as `Content-Type`. Other names become user metadata. `tags` are tags of new objects, on S3 and Azure.

    `durable` flushes each file and its directory to disk before it counts as done. `keep_partial` keeps the finished
    parts of large objects if the job is cancelled, so that the same call can continue from there. If the network or
    the store fails, or the disk is full, these parts are kept anyway.

    A store as the destination is a folder. So a copy of the folder `photos` to `store / "old"` creates
    `old/photos/...`. A tuple of a store and a key works like a string: a copy to `(store, "old")` creates `old/...`.
    """
    if isinstance(first, ObjectStore) and rest:
        return first.copy(second, *rest, **options)
    return _copy(first, second, *rest, **options)


# `copy_job` declares the options with their defaults, and raises a `TypeError` for other options. The overloads above
# repeat the declarations.
def _copy(
    sources: Place | Sequence[Place], destination: Place, *, progress: ProgressReport = None, **options: Any
) -> JobSummary:
    return run(copy_job(sources, destination, **options), progress)


@overload
def copy_async(store: ObjectStore, from_: str, to: str, /, *, overwrite: bool = True) -> Awaitable[PutResult]: ...
@overload
def copy_async(
    sources: Place | Sequence[Place],
    destination: Place,
    /,
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
    progress: ProgressReport = None,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
) -> Awaitable[JobSummary]: ...
def copy_async(first: Any, second: Any, /, *rest: Any, **options: Any) -> Any:
    """The awaitable form of `copy`."""
    if isinstance(first, ObjectStore) and rest:
        return first.copy_async(second, *rest, **options)
    return _copy_async(first, second, *rest, **options)


async def _copy_async(
    sources: Place | Sequence[Place], destination: Place, *, progress: ProgressReport = None, **options: Any
) -> JobSummary:
    return await run_async(copy_job(sources, destination, **options), progress)


# Show the signature of the job, because this overload has more options.
for _function in (copy, copy_async):
    setattr(_function, "__signature__", inspect.signature(get_overloads(_function)[-1]))
