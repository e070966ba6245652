"""Stores. Their configuration keys have the same names as in obstore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from laneway._configuration import is_bucket, settings
from laneway._laneway import ListStream, ObjectStore
from laneway.exceptions import InvalidPathError, UsageError
from laneway.types import Config


class _Store(ObjectStore):
    _scheme: ClassVar[str] = ""
    _given: tuple[str, dict[str, Any]]

    def __new__(
        cls,
        bucket: str | None = None,
        *,
        prefix: str | None = None,
        config: Config | None = None,
        client_options: Config | None = None,
        retry_config: Config | None = None,
        credential_provider: Callable[[], dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> Self:
        given = {
            "prefix": prefix,
            "config": config,
            "client_options": client_options,
            "retry_config": retry_config,
            "credential_provider": credential_provider,
            **kwargs,
        }
        given = {name: value for name, value in given.items() if value is not None}
        bucket_of_config, chosen = settings(cls._scheme, config, client_options, retry_config, kwargs)
        if credential_provider is not None:
            chosen["credential_provider"] = credential_provider
        if bucket and bucket_of_config and bucket != bucket_of_config:
            raise UsageError(f"duplicate key: the bucket is given as {bucket!r} and as {bucket_of_config!r}")
        bucket = bucket or bucket_of_config
        if not bucket:
            raise UsageError(f"{cls.__name__} needs the name of a bucket")
        # A prefix stands for a folder here, as in obstore, so it gets a slash at its end.
        folder = f"{prefix.strip('/')}/" if prefix and prefix.strip("/") else ""
        store = super().__new__(cls, f"{cls._scheme}://{bucket}/{folder}", chosen)
        store._given = (bucket, given)
        return store

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Returns the store of a URL, as the function `from_url` does. The URL must be of this class's service."""
        parts = urlsplit(url)
        if not issubclass(cls, _STORES.get(parts.scheme, ())):
            raise InvalidPathError(f"{url}: {cls.__name__} has no URLs with {parts.scheme}://")
        return cls(parts.netloc, prefix=parts.path.lstrip("/") or None, **options)

    @property
    def config(self) -> dict[str, Any]:
        """Returns the bucket, and the configuration that was passed, as `config` or as keyword arguments.

        `S3Store(config=store.config)` is a store of the same bucket, but without the prefix and the client options.
        """
        bucket, given = self._given
        others = ("prefix", "config", "client_options", "retry_config", "credential_provider")
        passed = {**given.get("config", {}), **{name: value for name, value in given.items() if name not in others}}
        return {"bucket": bucket, **{name: value for name, value in passed.items() if not is_bucket(self._scheme, name)}}

    @property
    def client_options(self) -> Config | None:
        return self._given[1].get("client_options")

    @property
    def retry_config(self) -> Config | None:
        return self._given[1].get("retry_config")

    @property
    def credential_provider(self) -> Callable[[], dict[str, Any]] | None:
        return self._given[1].get("credential_provider")

    def list_async(
        self, prefix: str | None = None, *, offset: str | None = None, limit: int | None = None, chunk_size: int = 50
    ) -> ListStream:
        """Does the same as `list`, whose result supports both `for` and `async for`."""
        return self.list(prefix, offset=offset, limit=limit, chunk_size=chunk_size)

    def __truediv__(self, folder: str | PurePosixPath) -> Self:
        """Returns the store of a folder below this one, with the same configuration."""
        bucket, given = self._given
        prefix = f"{(self.prefix or '').rstrip('/')}/{folder}".strip("/")
        return type(self)(bucket, **{**given, "prefix": prefix or None})

    def _settings(self) -> dict[str, Any]:
        """Returns the settings of the store's client, for a job that uses this store."""
        given = dict(self._given[1])
        given.pop("prefix", None)
        provider = given.pop("credential_provider", None)
        config, client, retry = (given.pop(name, None) for name in ("config", "client_options", "retry_config"))
        _, chosen = settings(self._scheme, config, client, retry, given)
        return chosen if provider is None else {**chosen, "credential_provider": provider}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and type(other) is type(self) and other._given == self._given

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Settings from the environment aren't pickled. The process that unpickles the store uses its own environment.
        return _again, (type(self), *self._given)


class S3Store(_Store):
    """A bucket of S3, or of a server that speaks its protocol."""

    _scheme = "s3"


class GCSStore(_Store):
    """A bucket of Google Cloud Storage."""

    _scheme = "gs"


def _again(cls: type[_Store], bucket: str, given: dict[str, Any]) -> _Store:
    return cls(bucket, **given)


_STORES: dict[str, type[GCSStore | S3Store]] = {"gs": GCSStore, "gcs": GCSStore, "s3": S3Store, "s3a": S3Store}


def from_url(
    url: str,
    *,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
    credential_provider: Callable[[], dict[str, Any]] | None = None,
    **kwargs: Any,
) -> GCSStore | S3Store:
    """Returns the store of a URL such as `gs://bucket` or `s3://bucket/folder`."""
    parts = urlsplit(url)
    store = _STORES.get(parts.scheme)
    if store is None:
        known = ", ".join(f"{scheme}://" for scheme in _STORES)
        raise InvalidPathError(f"{url}: unknown scheme {parts.scheme}:// (use one of {known})")
    return store(
        parts.netloc,
        prefix=parts.path.lstrip("/") or None,
        config=config,
        client_options=client_options,
        retry_config=retry_config,
        credential_provider=credential_provider,
        **kwargs,
    )
