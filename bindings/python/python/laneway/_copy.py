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

    If `destination` ends in `/`, or is `.` or `..`, a tree is copied into it under the tree's own name. Any other
    destination becomes the copy of the tree itself, whether it exists or not. A job copies files, trees and patterns
    to a store, from a store, or between
    two. Trees need `recursive`; `contents` leaves out their own names. The job compares all bytes with the stores'
    checksums, and returns its summary; with `dry_run`, its `planned` lists what would be done. It raises the first failure, which has all of them as `failures`, and the
    `summary`.

    `remove_source` keeps a source if only the size of its copy could be compared, unless `allow_unverified`.

    `filters` and the options beside them are those of `sync`, and choose names of trees and patterns. `files_from`
    names files below one source, and takes no filters. `progress` is `True` for tqdm's bar, one of fsspec's callbacks,
    or a callable that receives a `Progress` ten times a second.
    """
    if isinstance(first, ObjectStore) and rest:
        return first.copy(second, *rest, **options)
    return _copy(first, second, *rest, **options)


# The job's options are in the overloads, and with their defaults in `copy_job`, which refuses all others.
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
    """As `copy`, to be awaited."""
    if isinstance(first, ObjectStore) and rest:
        return first.copy_async(second, *rest, **options)
    return _copy_async(first, second, *rest, **options)


async def _copy_async(
    sources: Place | Sequence[Place], destination: Place, *, progress: ProgressReport = None, **options: Any
) -> JobSummary:
    return await run_async(copy_job(sources, destination, **options), progress)


# The job's form is the one with options to look up.
for _function in (copy, copy_async):
    setattr(_function, "__signature__", inspect.signature(get_overloads(_function)[-1]))
