"""The base class of the filesystems. It keeps an `ObjectStore` for each bucket in use, converts paths, and keeps the
event loop.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, ClassVar

from fsspec.asyn import AsyncFileSystem, get_loop  # type: ignore[import-untyped, unused-ignore]

from laneway._configuration import settings
from laneway._laneway import ObjectStore
from laneway.types import Config


class Base(AsyncFileSystem):  # type: ignore[misc, unused-ignore]
    """A filesystem whose top-level folders are buckets."""

    _scheme: ClassVar[str]
    _store_of: ClassVar[type[Any]]
    _pid: int

    @staticmethod
    def _understood(options: dict[str, Any]) -> dict[str, Any]:
        """Converts fsspec's storage options to keyword arguments of stores, which include `config` and
        `credential_provider` if they are passed.
        """
        return options

    def __init__(
        self,
        *,
        config: Config | None = None,
        client_options: Config | None = None,
        retry_config: Config | None = None,
        credential_provider: Callable[[], dict[str, Any]] | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        batch_size: int | None = None,
        use_listings_cache: bool = True,
        listings_expiry_time: float | None = None,
        max_paths: int | None = None,
        **options: Any,
    ) -> None:
        shared = {"config": config, "credential_provider": credential_provider}
        options = self._understood({name: value for name, value in shared.items() if value is not None} | options)
        config, credential_provider = options.pop("config", None), options.pop("credential_provider", None)
        listings_expiry_time = options.pop("listings_expiry_time", listings_expiry_time)
        if listings_expiry_time is not None and listings_expiry_time <= 0:
            # gcsfs turns its cache off with `cache_timeout=0`.
            use_listings_cache = False
        self.is_read_only: bool = options.pop("is_read_only", False)
        if (block_size := options.pop("default_block_size", None)) is not None:
            self.blocksize = int(block_size)
        # Check the options here, so that a mistake is reported before the first file is opened.
        settings(self._scheme, config, client_options, retry_config, options, credential_provider)
        self._store_arguments = {
            "config": config,
            "client_options": client_options,
            "retry_config": retry_config,
            "credential_provider": credential_provider,
            **options,
        }
        self._stores: dict[str, ObjectStore] = {}
        super().__init__(
            asynchronous=asynchronous,
            loop=loop,
            batch_size=batch_size,
            use_listings_cache=use_listings_cache,
            listings_expiry_time=listings_expiry_time,
            max_paths=max_paths,
        )

    def _settings(self) -> dict[str, Any]:
        """Returns the settings of the client that this filesystem's stores use."""
        others = dict(self._store_arguments)
        provider = others.pop("credential_provider")
        config, client_options, retry_config = (others.pop(name) for name in ("config", "client_options", "retry_config"))
        _, chosen = settings(self._scheme, config, client_options, retry_config, others, provider)
        return chosen

    @property
    def loop(self) -> Any:
        """Returns the event loop that runs blocking calls. A forked child gets a new one, because the loop's thread
        doesn't run there.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._loop = None if self.asynchronous else get_loop()
        return self._loop

    @property
    def fsid(self) -> str:
        return f"laneway_{self._fs_token}"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(path)

    def _at(self, path: str) -> tuple[ObjectStore, str]:
        """Returns the store of a path's bucket, and the key in it. The key is empty if the path is the bucket."""
        bucket, _, key = self._strip_protocol(path).partition("/")
        if not bucket:
            raise ValueError("the path is empty: a path begins with the name of a bucket")
        store = self._stores.get(bucket)
        if store is None:
            store = self._stores.setdefault(bucket, self._store_of(bucket, **self._store_arguments))
        return store, key

    def _object(self, path: str) -> tuple[ObjectStore, str]:
        """Does the same as `_at`, but raises an exception if the path is a bucket."""
        store, key = self._at(path)
        if not key:
            raise IsADirectoryError(f"{path} is a bucket, not an object")
        return store, key

    def _to_write(self, path: str) -> tuple[ObjectStore, str]:
        """Does the same as `_object`, but raises an exception if the filesystem is read-only."""
        self._check_writable(path)
        return self._object(path)

    def _check_writable(self, path: str) -> None:
        if self.is_read_only:
            raise PermissionError(errno.EACCES, 'the filesystem has access="read_only"', path)
