"""Laneway for libraries that open files by fsspec: pandas, pyarrow, Dask, DuckDB, zarr.

`register()` makes it the filesystem of `gs://`, `gcs://`, `s3://` and `s3a://` in this process, instead of gcsfs and
s3fs.
"""

from collections.abc import Iterable

from fsspec import register_implementation  # type: ignore[import-untyped, unused-ignore]

from laneway.fsspec._filesystem import GCSFileSystem, LanewayFileSystem, S3FileSystem

PROTOCOLS: dict[str, type[LanewayFileSystem]] = {
    protocol: kind for kind in (GCSFileSystem, S3FileSystem) for protocol in kind.protocol
}


def register(protocols: str | Iterable[str] = tuple(PROTOCOLS)) -> None:
    """Makes fsspec open URLs of these protocols with Laneway, in this process from now on."""
    for protocol in [protocols] if isinstance(protocols, str) else protocols:
        if protocol not in PROTOCOLS:
            raise ValueError(f"{protocol!r} is none of {', '.join(PROTOCOLS)}")
        register_implementation(protocol, PROTOCOLS[protocol], clobber=True)


__all__ = ["PROTOCOLS", "GCSFileSystem", "LanewayFileSystem", "S3FileSystem", "register"]
