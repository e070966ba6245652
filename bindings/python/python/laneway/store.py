"""Stores. Their configuration keys have the same names as in obstore. For S3 and Azure, the key `endpoint` is the URL of
another server. For GCS it is `base_url`, or the variable `STORAGE_EMULATOR_HOST`.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from laneway._azure import named_account
from laneway._configuration import given_keys, is_bucket, settings
from laneway._laneway import ListStream, LocalObjects, ObjectStore, url_parts
from laneway.exceptions import InvalidError, InvalidPathError, NotFoundError, UnknownConfigurationKeyError, UsageError
from laneway.types import Config, Key


class _BaseStore(ObjectStore):
    def list_async(
        self,
        prefix: Key | None = None,
        *,
        offset: Key | None = None,
        limit: int | None = None,
        chunk_size: int = 50,
        return_arrow: bool = False,
    ) -> ListStream[Any]:
        """Does the same as `list`, whose result supports both `for` and `async for`."""
        return self.list(prefix, offset=offset, limit=limit, chunk_size=chunk_size, return_arrow=return_arrow)


class _Store(_BaseStore):
    _scheme: ClassVar[str] = ""
    _bucket_key: ClassVar[str] = "bucket"
    _arguments: tuple[str, dict[str, Any]]

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
        return cls._create(bucket, prefix, config, client_options, retry_config, credential_provider, kwargs)

    @classmethod
    def _create(
        cls,
        bucket: str | None,
        prefix: str | None,
        config: Config | None,
        client_options: Config | None,
        retry_config: Config | None,
        credential_provider: Callable[[], dict[str, Any]] | None,
        kwargs: dict[str, Any],
    ) -> Self:
        arguments = {
            "prefix": prefix,
            "config": config,
            "client_options": client_options,
            "retry_config": retry_config,
            "credential_provider": credential_provider,
            **kwargs,
        }
        arguments = {name: value for name, value in arguments.items() if value is not None}
        bucket_of_config, chosen = settings(cls._scheme, config, client_options, retry_config, kwargs, credential_provider)
        what = cls._bucket_key.removesuffix("_name")
        if bucket and bucket_of_config and bucket != bucket_of_config:
            raise UsageError(f"Duplicate key: the {what} is given as {bucket!r} and as {bucket_of_config!r}")
        bucket = bucket or bucket_of_config
        if not bucket:
            raise UsageError(f"{cls.__name__} needs the name of a {what}")
        if "://" in bucket:
            raise UsageError(f"{bucket!r} is a URL, and not the name of a {what}: use laneway.from_url, or {cls.__name__}.from_url")
        # A prefix stands for a folder here, as in obstore, so it gets a slash at its end.
        store = super().__new__(cls, f"{cls._scheme}://{bucket}/{_folder(prefix or '')}", chosen)
        store._arguments = (bucket, arguments)
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
        bucket, arguments = self._arguments
        others = ("prefix", "config", "client_options", "retry_config", "credential_provider")
        passed = {
            **arguments.get("config", {}),
            **{name: value for name, value in arguments.items() if name not in others},
        }
        return {self._bucket_key: bucket, **{name: value for name, value in passed.items() if not is_bucket(self._scheme, name)}}

    @property
    def client_options(self) -> Config | None:
        return self._arguments[1].get("client_options")

    @property
    def retry_config(self) -> Config | None:
        return self._arguments[1].get("retry_config")

    @property
    def credential_provider(self) -> Callable[[], dict[str, Any]] | None:
        return self._arguments[1].get("credential_provider")

    def __truediv__(self, folder: str | PurePosixPath) -> Self:
        """Returns the store of a folder below this one, with the same configuration."""
        bucket, arguments = self._arguments
        prefix = f"{(self.prefix or '').rstrip('/')}/{folder}".strip("/")
        return type(self)(bucket, **{**arguments, "prefix": prefix or None})

    def _settings(self) -> dict[str, Any]:
        """Returns the settings of the store's client, for a job that uses this store."""
        others = dict(self._arguments[1])
        others.pop("prefix", None)
        provider = others.pop("credential_provider", None)
        config, client, retry = (others.pop(name, None) for name in ("config", "client_options", "retry_config"))
        _, chosen = settings(self._scheme, config, client, retry, others, provider)
        return chosen

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and type(other) is type(self) and other._arguments == self._arguments

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Settings from the environment aren't pickled. The process that unpickles the store uses its own environment.
        return _again, (type(self), *self._arguments)


class S3Store(_Store):
    """A bucket of S3, or of a server that speaks its protocol.

    The usual keys are `region`, `endpoint` (the URL of another server than AWS's), `access_key_id`,
    `secret_access_key`, `session_token`, `profile`, `skip_signature=True` (no credentials),
    `virtual_hosted_style_request`, `request_payer`, `server_side_encryption` and `sse_kms_key_id`. They are keyword
    arguments, or keys of `config`, where they may have the prefix `aws_`.

    The usual client options are `read_timeout`, `proxy_url`, `root_certificate`, `default_headers` and `user_agent`.
    They are keyword arguments too, or keys of `client_options`. `retry_config={"retry_timeout": 30}` limits the time
    for retries. Times are seconds, a `timedelta`, or text such as `"2m"`. The environment sets all other values, as for
    AWS's own tools. An unknown key raises `UnknownConfigurationKeyError`.
    """

    _scheme = "s3"


class GCSStore(_Store):
    """A bucket of Google Cloud Storage.

    The usual keys are `service_account`, `service_account_key`, `application_credentials`, `bearer_token`,
    `skip_signature=True` (no credentials), `user_project`, `project`, `kms_key` and `base_url`. `service_account` is the
    path of a key file, and `service_account_key` is its content, as JSON or a dictionary. `base_url` is the URL of
    another server than Google's. It may also be called `endpoint`. The keys are keyword arguments, or keys of `config`,
    where they may have the prefix `google_`. Client options and `retry_config` are those of `S3Store`. Without
    credentials among the keys, the store uses Google's application default credentials.

    Laneway sends Google's tokens only over TLS and to hosts of Google's cloud. If `base_url` names another server, its
    requests have no credentials. If you passed credentials, Laneway logs a warning. `bearer_token` and the tokens of a
    `credential_provider` are different: Laneway sends them to any server with https://.
    """

    _scheme = "gs"


class AzureStore(_Store):
    """A container of Azure Blob Storage, or of a server that speaks its protocol, such as Azurite.

    The usual keys are `account_name`, and one of `account_key`, `sas_token`, `connection_string`, `token`,
    `use_azure_cli=True`, `use_managed_identity=True` and `skip_signature=True` (no credentials). An identity of Entra ID
    has `tenant_id`, `client_id`, and `client_secret` or `federated_token_file`. A `client_id` without these two is the
    managed identity with this id. `endpoint` is the URL of the account's Blob service, if it isn't Azure's.
    `use_emulator=True` is Azurite on this machine. The keys are keyword arguments, or keys of `config`, where they may
    have the prefix `azure_storage_` or `azure_`. Client options and `retry_config` are those of `S3Store`.

    Credentials among the keys replace all of the environment's. Without them, the store uses the same variables as
    Azure's own tools, the identity of the machine, or the login of the Azure CLI. A `credential_provider` returns tokens
    of Entra ID, and can't be combined with credentials among the keys.
    """

    _scheme = "az"
    _bucket_key = "container_name"

    def __new__(
        cls,
        container_name: str | None = None,
        *,
        prefix: str | None = None,
        config: Config | None = None,
        client_options: Config | None = None,
        retry_config: Config | None = None,
        credential_provider: Callable[[], dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> Self:
        return cls._create(container_name, prefix, config, client_options, retry_config, credential_provider, kwargs)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """Returns the store of a URL, as the function `from_url` does. If the URL names the account, as in
        `abfss://container@account.dfs.core.windows.net/folder`, then `endpoint` may still name another server.
        """
        scheme, container, folder = url_parts(url)
        if scheme != cls._scheme:
            raise InvalidPathError(f"{url}: {cls.__name__} has no URLs with {urlsplit(url).scheme}://")
        container, account = named_account(container)
        given = given_keys(scheme, options.get("config"), options)
        if given & {"connection_string", "endpoint", "endpoint_url", "use_emulator"}:
            account.pop("endpoint", None)
        name = account.get("account_name")
        if name != options.get("account_name", name):
            raise UsageError(f"Duplicate key: the URL names the account {name}, and account_name is {options['account_name']!r}")
        return cls(container, prefix=folder or None, **(account | options))


class MemoryStore(_BaseStore):
    """A store in the memory of this process, for tests. Its objects disappear with it."""

    _objects: LocalObjects

    def __new__(cls) -> Self:
        return cls._below(LocalObjects.in_memory(), "")

    @classmethod
    def _below(cls, objects: LocalObjects, prefix: str) -> Self:
        store = ObjectStore.__new__(cls, f"{objects.url}{prefix}", {"dialect": objects})
        store._objects = objects
        return store

    def __truediv__(self, folder: str | PurePosixPath) -> Self:
        """Returns the store of a folder below this one. Both stores share their objects."""
        return self._below(self._objects, _folder(f"{self.prefix or ''}{folder}"))

    def _settings(self) -> dict[str, Any]:
        return {"dialect": self._objects}

    def __repr__(self) -> str:
        return f"MemoryStore({self.prefix or ''!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryStore) and other._objects is self._objects and other.prefix == self.prefix

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a MemoryStore can't be pickled, because its objects are in the memory of this process")


class LocalStore(_BaseStore):
    """The files of a folder as a store. By default, the folder is the root of the file system.

    A key is the path of a file below the folder. The folder keeps no metadata, tags or versions, so writes with them
    raise `NotSupportedError`. Reads follow symbolic links, and writes don't.
    """

    _arguments: tuple[Path, bool]
    _objects: LocalObjects

    def __new__(
        cls, prefix: str | PathLike[str] | None = None, *, automatic_cleanup: bool = False, mkdir: bool = False
    ) -> Self:
        """Makes the store of an existing folder. `mkdir` creates the folder. `automatic_cleanup` also removes the
        directories that a delete leaves empty.
        """
        if prefix == "":
            raise InvalidError("the folder's path is empty; without a path, the store is the root of the file system")
        folder = Path("/" if prefix is None else prefix).expanduser().absolute()
        if mkdir:
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise NotFoundError(f"{folder} is not a folder (mkdir=True creates it)")
        objects = LocalObjects.in_folder(folder, automatic_cleanup)
        return cls._below(objects, "", folder, automatic_cleanup)

    @classmethod
    def _below(cls, objects: LocalObjects, prefix: str, folder: Path, automatic_cleanup: bool) -> Self:
        store = super().__new__(cls, f"{objects.url}{prefix}", {"dialect": objects})
        store._objects, store._arguments = objects, (folder, automatic_cleanup)
        return store

    @classmethod
    def from_url(cls, url: str, *, automatic_cleanup: bool = False, mkdir: bool = False) -> Self:
        """Returns the store of a URL such as `file:///srv/lake`."""
        parts = urlsplit(url)
        if parts.scheme != "file":
            raise InvalidPathError(f"{url!r} is not a file:// URL: it may be a relative URL without a base")
        if parts.netloc not in ("", "localhost"):
            raise InvalidPathError(f"{url}: a file:// URL has three slashes, because it names no host")
        if "//" in parts.path:
            raise InvalidError(f"{url}: the path has an empty component")
        return cls(unquote(parts.path) or None, automatic_cleanup=automatic_cleanup, mkdir=mkdir)

    @property
    def prefix(self) -> Path:  # type: ignore[override]
        """Returns the folder."""
        return self._arguments[0]

    @property
    def url(self) -> str:
        return self.prefix.as_uri()

    def __truediv__(self, folder: str | PurePosixPath) -> Self:
        """Returns the store of a folder below this one. The first write creates the folder."""
        path, automatic_cleanup = self._arguments
        names = str(folder).rstrip("/").split("/")
        if any(name in ("", ".", "..") for name in names):
            raise InvalidPathError(f"{folder} is not below {path}: a name in it is empty, '.' or '..'")
        below = _folder(f"{super().prefix or ''}{folder}")
        return self._below(self._objects, below, path.joinpath(*names), automatic_cleanup)

    @property
    def _location(self) -> str:
        """Returns the URL in the store's dialect."""
        return super().url

    def _settings(self) -> dict[str, Any]:
        return {"dialect": self._objects}

    def __repr__(self) -> str:
        return f"LocalStore({str(self.prefix)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and other._arguments == self._arguments

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _local, (type(self), *self._arguments)


def _local(cls: type[LocalStore], folder: Path, automatic_cleanup: bool) -> LocalStore:
    # The folder of `store / "folder"` may not exist yet.
    return cls._below(LocalObjects.in_folder(folder, automatic_cleanup), "", folder, automatic_cleanup)


def _folder(prefix: str) -> str:
    """Returns a prefix that stands for a folder, with a slash at its end."""
    return f"{prefix.strip('/')}/" if prefix.strip("/") else ""


def _again(cls: type[_Store], bucket: str, arguments: dict[str, Any]) -> _Store:
    return cls(bucket, **arguments)


_STORES: dict[str, type[AzureStore | GCSStore | S3Store]] = {
    "gs": GCSStore,
    "gcs": GCSStore,
    "s3": S3Store,
    "s3a": S3Store,
    "az": AzureStore,
    "abfs": AzureStore,
    "abfss": AzureStore,
    # The library refuses URLs of other hosts than Azure's.
    "https": AzureStore,
}


def from_url(
    url: str,
    *,
    config: Config | None = None,
    client_options: Config | None = None,
    retry_config: Config | None = None,
    credential_provider: Callable[[], dict[str, Any]] | None = None,
    **kwargs: Any,
) -> AzureStore | GCSStore | S3Store | LocalStore | MemoryStore:
    """Returns the store of a URL such as `gs://bucket`, `s3://bucket/folder`, `az://container`, `file:///folder` or
    `memory:///`.

    The URLs of Azure may also begin with `abfs://` or `abfss://`, and may name the account:
    `abfss://container@account.dfs.core.windows.net/folder`, `https://account.blob.core.windows.net/container/folder`.
    """
    parts = urlsplit(url)
    if parts.scheme in ("file", "memory"):
        if config or client_options or retry_config or credential_provider is not None:
            raise UsageError(f"{url}: a store of this machine has no configuration of a cloud")
        if parts.scheme == "file":
            return LocalStore.from_url(url, **_accepted(url, kwargs, "automatic_cleanup", "mkdir"))
        _accepted(url, kwargs)
        return MemoryStore()
    store = _STORES.get(parts.scheme)
    if store is None:
        known = ", ".join(f"{scheme}://" for scheme in [*_STORES, "file", "memory"] if scheme != "https")
        raise InvalidPathError(f"{url}: unknown scheme {parts.scheme}:// (use one of {known})")
    return store.from_url(
        url,
        config=config,
        client_options=client_options,
        retry_config=retry_config,
        credential_provider=credential_provider,
        **kwargs,
    )


def _accepted(url: str, options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Returns the options, if all have one of these names."""
    for name in options:
        if name not in names:
            raise UnknownConfigurationKeyError(f"{url}: there is no key {name!r}")
    return options
