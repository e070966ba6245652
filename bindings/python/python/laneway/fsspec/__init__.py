"""Laneway as a filesystem for libraries that use fsspec: pandas, pyarrow, Dask, DuckDB, zarr.

`register()` makes it the filesystem of `gs://`, `gcs://`, `s3://`, `s3a://`, `az://`, `abfs://` and `abfss://` in this
process, instead of gcsfs, s3fs and adlfs.
"""

import importlib.util
import logging
from collections.abc import Iterable

from fsspec import register_implementation  # type: ignore[import-untyped, unused-ignore]

from laneway.fsspec._filesystem import AzureFileSystem, GCSFileSystem, LanewayFileSystem, S3FileSystem

_LOGGER = logging.getLogger("laneway")
_is_warned = False

PROTOCOLS: dict[str, type[LanewayFileSystem]] = {
    protocol: kind for kind in (GCSFileSystem, S3FileSystem, AzureFileSystem) for protocol in kind.protocol
}


def register(protocols: str | Iterable[str] = tuple(PROTOCOLS)) -> None:
    """Makes fsspec open URLs of these protocols with Laneway, from now on and in this process."""
    for protocol in [protocols] if isinstance(protocols, str) else protocols:
        if protocol not in PROTOCOLS:
            raise ValueError(f"unknown protocol {protocol!r}: use one of {', '.join(PROTOCOLS)}")
        register_implementation(protocol, PROTOCOLS[protocol], clobber=True)
    _warn_once()


def _warn_once() -> None:
    """Warns once that pandas opens URLs of Parquet files with pyarrow's own clients, unless it gets `storage_options`.
    """
    global _is_warned
    if not _is_warned and all(importlib.util.find_spec(name) is not None for name in ("pandas", "pyarrow")):
        _is_warned = True
        _LOGGER.warning(
            "pandas opens URLs of Parquet files with pyarrow's own clients, not with Laneway, unless you pass storage_options={} or filesystem="
        )


__all__ = ["PROTOCOLS", "AzureFileSystem", "GCSFileSystem", "LanewayFileSystem", "S3FileSystem", "register"]
