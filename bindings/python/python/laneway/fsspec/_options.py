"""Converts fsspec's storage options: configuration keys of stores, or the names of s3fs and gcsfs for them."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

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
