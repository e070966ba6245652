"""Converts fsspec's storage options: configuration keys of stores, or the names of s3fs, gcsfs and adlfs for them."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import Any

from laneway._configuration import azure_credential, given_keys
from laneway.exceptions import UnknownConfigurationKeyError

_LOGGER = logging.getLogger("laneway")

_S3FS = {
    "key": "access_key_id",
    "username": "access_key_id",
    "secret": "secret_access_key",
    "password": "secret_access_key",
    "anon": "skip_signature",
    "requester_pays": "request_payer",
}
_CLIENT_KWARGS = {"endpoint_url": "endpoint", "region_name": "region", "verify": "root_certificate"}
_ADDITIONAL = {
    "RequestPayer": "request_payer",
    "ServerSideEncryption": "server_side_encryption",
    "SSEKMSKeyId": "sse_kms_key_id",
    "BucketKeyEnabled": "sse_bucket_key_enabled",
}
# Arguments of botocore's `Config`, including the keys of its dictionary `s3`.
_CONFIG = {
    "region_name": "region",
    "read_timeout": "read_timeout",
    "user_agent_extra": "user_agent",
    "use_dualstack_endpoint": "dualstack",
    "use_fips_endpoint": "fips",
    "use_accelerate_endpoint": "accelerate",
}
# Ignored options. They set sizes, times and counts that the engine chooses itself, or caches that Laneway doesn't have.
_CONFIG_IGNORED = ("connect_timeout", "max_pool_connections", "payload_signing_enabled", "retries", "tcp_keepalive")
_S3FS_IGNORED = ("cache_regions", "default_cache_type", "default_fill_cache", "fixed_upload_size", "max_concurrency")
_GCSFS = {"endpoint_url": "base_url", "block_size": "default_block_size", "cache_timeout": "listings_expiry_time"}
_GCSFS_IGNORED = (
    "check_connection",
    "consistency",
    "default_location",
    "requests_timeout",
    "secure_serialize",
)
# Names of adlfs. The other ones are keys of `AzureStore`.
_ADLFS = {"blocksize": "default_block_size"}
_ADLFS_IGNORED = (
    "assume_container_exists",
    "connection_timeout",
    "default_cache_type",
    "default_fill_cache",
    "max_concurrency",
    "request_session",
    "socket_timeout",
    "timeout",
)
# Credentials of adlfs, in the order in which it prefers them. `AzureStore` refuses any other two credentials.
_AZURE_CREDENTIALS = ("connection_string", "credential_provider", "account_key", "sas_token", "client_secret")
# The option with the host of a URL. fsspec refuses a URL whose options differ from those of the caller, so it isn't
# `account_host`.
HOST_OF_URL = "_host_of_url"
# The scope of tokens for the Blob service.
_AZURE_SCOPE = "https://storage.azure.com/.default"


def of_s3(options: dict[str, Any]) -> dict[str, Any]:
    """Converts options of s3fs to options of `S3Store`. Raises an exception for keys of `client_kwargs`,
    `config_kwargs` and `s3_additional_kwargs` that have no meaning here.
    """
    options = dict(options)
    _leave_out(options, _S3FS_IGNORED)
    _refuse_versions(options)
    client = dict(options.pop("client_kwargs", None) or {})
    uses_tls = client.pop("use_ssl", options.pop("use_ssl", True))
    if client.get("verify") is True:
        del client["verify"]
    if client.get("verify") is False:
        raise UnknownConfigurationKeyError("client_kwargs: 'verify' can't be False; give the path of the certificate to trust")
    config = _of_botocore(dict(options.pop("config_kwargs", None) or {}))
    additional = dict(options.pop("s3_additional_kwargs", None) or {})
    if additional.get("RequestPayer") is not None:
        additional["RequestPayer"] = additional["RequestPayer"] == "requester"
    additional = _known("s3_additional_kwargs", additional, _ADDITIONAL)
    options = config | additional | _renamed(client, _CLIENT_KWARGS) | _renamed(options, _S3FS)
    if not uses_tls:
        _without_tls(options)
    return options


def _of_botocore(config: dict[str, Any]) -> dict[str, Any]:
    """Converts arguments of botocore's `Config` to options of `S3Store`."""
    config |= dict(config.pop("s3", None) or {})
    _leave_out(config, _CONFIG_IGNORED, "config_kwargs: ")
    options: dict[str, Any] = {}
    style = config.pop("addressing_style", "auto")
    if style in ("path", "virtual"):
        options["virtual_hosted_style_request"] = style == "virtual"
    signature = config.pop("signature_version", None)
    # `botocore.UNSIGNED` is an object, not text.
    if signature == "unsigned" or signature is not None and not isinstance(signature, str):
        options["skip_signature"] = True
    elif signature not in (None, "s3v4", "v4"):
        raise UnknownConfigurationKeyError(f"config_kwargs: Laneway signs requests only with s3v4, not with {signature!r}")
    proxies = config.pop("proxies", None) or {}
    if proxy := proxies.get("https") or proxies.get("http"):
        options["proxy_url"] = proxy
    return options | _known("config_kwargs", config, _CONFIG)


def _without_tls(options: dict[str, Any]) -> None:
    """Adds http:// to the endpoint, unless its URL has a scheme."""
    name = next((name for name in ("endpoint", "endpoint_url", "aws_endpoint_url") if options.get(name)), None)
    if name is None:
        raise UnknownConfigurationKeyError("use_ssl=False needs an `endpoint_url`, such as http://localhost:9000")
    if "://" not in options[name]:
        options[name] = f"http://{options[name]}"


def of_gcs(options: dict[str, Any]) -> dict[str, Any]:
    """Converts options of gcsfs to options of `GCSStore`. `token` is `"anon"`, the path of a credentials file, the key
    of a service account as a dictionary, or the name of a default source. `requester_pays` names the project to bill,
    or is `True` for `project`.
    """
    options = _renamed(options, _GCSFS)
    _leave_out(options, _GCSFS_IGNORED)
    _refuse_versions(options)
    access = options.pop("access", "full_control")
    if access not in ("read_only", "read_write", "full_control"):
        raise UnknownConfigurationKeyError(f"access is {access!r}, but must be 'read_only', 'read_write' or 'full_control'")
    if access == "read_only":
        options["is_read_only"] = True
    project, payer = options.get("project"), options.pop("requester_pays", False)
    if payer:
        payer = project if payer is True else payer
        if not payer:
            raise UnknownConfigurationKeyError("requester_pays=True needs the `project` that pays")
        options["user_project"] = payer
    token = options.pop("token", None)
    if token == "anon":
        options["skip_signature"] = True
    elif isinstance(token, dict):
        options["service_account_key"] = json.dumps(token)
    elif isinstance(token, str | os.PathLike) and token not in ("google_default", "cloud"):
        options["application_credentials"] = token
    elif token is not None and not isinstance(token, str):
        raise TypeError("token must be 'anon', the path of a credentials file, or a service account's key; to pass a token, use `credential_provider`")
    return options


def of_azure(options: dict[str, Any]) -> dict[str, Any]:
    """Converts options of adlfs to options of `AzureStore`. `credential` is an object of azure-identity, an account key or
    a SAS token. As in adlfs, the first of several credentials is used, and `anon=True` has a meaning only without any
    credentials, including those in `config`. A connection string goes before `account_host`, which
    goes before the host of a URL.
    """
    options = _renamed(options, _ADLFS)
    _leave_out(options, _ADLFS_IGNORED)
    _refuse_versions(options)
    if (mode := options.pop("location_mode", "primary")) != "primary":
        raise UnknownConfigurationKeyError(f"location_mode is {mode!r}, but Laneway reads only the primary location; set `account_host` to the host of the secondary one")
    if (credential := options.pop("credential", None)) is not None:
        options |= _of_credential(credential)
    of_url = options.pop(HOST_OF_URL, None)
    host = options.pop("account_host", None) or of_url
    given = {name: value for name, value in ((options.get("config") or {}) | options).items() if value}
    if host and not given_keys("az", given) & {"connection_string", "endpoint", "endpoint_url", "use_emulator"}:
        options["endpoint"] = f"https://{host}"
    anonymous = options.pop("anon", None)
    parts = {name: azure_credential(name, value) for name, value in options.items()}
    if options.get("credential_provider") is not None:
        parts["credential_provider"] = "credential_provider"
    passed = {*parts.values(), *(azure_credential(name, value) for name, value in (options.get("config") or {}).items())}
    dropped = [name for name in _AZURE_CREDENTIALS if name in passed][1:]
    options = {name: value for name, value in options.items() if parts[name] not in dropped}
    # The authority and the tenant only describe an identity.
    if anonymous and not passed - {None, "authority_host", "tenant_id"}:
        options["skip_signature"] = True
    return options


def _of_credential(credential: Any) -> dict[str, Any]:
    """Converts a credential of Azure's SDK to options of `AzureStore`."""
    if hasattr(credential, "get_token"):
        return {"credential_provider": _TokenProvider(credential)}
    if (named := getattr(credential, "named_key", None)) is not None:
        return {"account_name": named.name, "account_key": named.key}
    text = getattr(credential, "signature", credential)
    if isinstance(text, str):
        # A SAS token is a query with a signature. An account key is base64, which may end in `sig==`.
        is_sas = "&" in text or text.removeprefix("?").startswith("sig=")
        return {"sas_token" if is_sas else "account_key": text}
    raise TypeError("credential must be an object of azure-identity with get_token, an account key or a SAS token")


class _TokenProvider:
    """A credential provider that gets tokens from a credential of azure-identity."""

    def __init__(self, credential: Any) -> None:
        self._credential = credential

    def __call__(self) -> Any:
        token = self._credential.get_token(_AZURE_SCOPE)
        return _described_later(token) if hasattr(token, "__await__") else _described(token)


def _described(token: Any) -> dict[str, Any]:
    return {"token": token.token, "expires_at": datetime.fromtimestamp(token.expires_on, UTC)}


async def _described_later(token: Any) -> dict[str, Any]:
    return _described(await token)


def _refuse_versions(options: dict[str, Any]) -> None:
    """Raises an exception for `version_aware=True`, because this filesystem can't open older versions."""
    if options.pop("version_aware", False):
        raise UnknownConfigurationKeyError("version_aware=True is not supported: older versions can't be opened; all reads of a file get the same version even without it")


def _leave_out(options: dict[str, Any], names: tuple[str, ...], where: str = "") -> None:
    """Removes options that have no meaning here, and logs their names in one line."""
    ignored = [name for name in names if options.pop(name, None) is not None]
    if ignored:
        _LOGGER.warning("%signored, because the engine chooses these itself or doesn't need them: %s", where, ", ".join(ignored))


def _known(where: str, options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    for name in options:
        if name not in names:
            raise UnknownConfigurationKeyError(f"{where}: {name!r} has no meaning here")
    return _renamed(options, names)


def _renamed(options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for name, value in options.items():
        target = names.get(name, name)
        if target in renamed and renamed[target] != value:
            raise UnknownConfigurationKeyError(f"duplicate key: {name!r} contradicts another name of {target!r}")
        renamed[target] = value
    return renamed
