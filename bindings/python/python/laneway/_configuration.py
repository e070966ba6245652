"""Configuration keys, and the setting of the library's client for each.

A key without a meaning here is refused. Ignoring it silently would mislead its user.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from laneway.exceptions import UnknownConfigurationKeyError, UsageError
from laneway.types import Config


class _Setting(NamedTuple):
    """A setting of the library's client."""

    name: str
    of: Callable[[Any], Any]


class _Variable(NamedTuple):
    """A variable that overrides the environment's."""

    name: str


class _Refused(NamedTuple):
    """The reason why a key has no meaning here."""

    why: str


def _is(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("1", "true", "on", "yes", "y"):
        return True
    if text in ("0", "false", "off", "no", "n", ""):
        return False
    raise UsageError(f"{value!r} is neither true nor false")


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: timedelta | float | str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        return float(number) * _UNITS[text[len(number) :].strip() or "s"]
    except (KeyError, ValueError):
        raise UsageError(f"{value!r} is not a time: a timedelta, seconds, or a number with ms, s, m or h") from None


def _hosts(value: str | list[str]) -> list[str]:
    return [host.strip() for host in (value.split(",") if isinstance(value, str) else value) if host.strip()]


def _headers(value: dict[str, str]) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()}


_text: Callable[[Any], str] = os.fspath
_Known: TypeAlias = "dict[str, _Setting | _Variable | _Refused | None]"

_ENGINE = _Refused("the engine chooses connections and protocols for each request")
_S3: _Known = {
    "access_key_id": _Setting("access_key_id", str),
    "secret_access_key": _Setting("secret_access_key", str),
    "session_token": _Setting("session_token", str),
    "token": _Setting("session_token", str),
    "region": _Setting("region", str),
    "default_region": _Variable("AWS_DEFAULT_REGION"),
    "endpoint": _Setting("s3_endpoint", str),
    "endpoint_url": _Setting("s3_endpoint", str),
    "profile": _Setting("profile", str),
    "skip_signature": _Setting("anonymous", _is),
    "virtual_hosted_style_request": _Setting("s3_path_style", lambda value: not _is(value)),
    "request_payer": _Setting("request_payer", _is),
    "server_side_encryption": _Setting("sse", str),
    "sse_kms_key_id": _Setting("kms_key", str),
    "sse_bucket_key_enabled": _Setting("kms_bucket_key", _is),
    "sse_customer_key_base64": _Setting("customer_key", str),
    "role_arn": _Variable("AWS_ROLE_ARN"),
    "role_session_name": _Variable("AWS_ROLE_SESSION_NAME"),
    "web_identity_token_file": _Variable("AWS_WEB_IDENTITY_TOKEN_FILE"),
    "container_credentials_relative_uri": _Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
    "container_credentials_full_uri": _Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    "container_authorization_token_file": _Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
    "metadata_endpoint": _Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
    "accelerate": _Setting("s3_accelerate", _is),
    "dualstack": _Setting("s3_dualstack", _is),
    "fips": _Setting("s3_fips", _is),
    "checksum_algorithm": _Refused("every write carries its CRC32C, and a store that lacks it another checksum"),
    "conditional_put": _Refused("writes with a condition are S3's own"),
    "copy_if_not_exists": _Refused("use `copy(..., overwrite=False)`"),
    "disable_tagging": _Refused("tags are sent if they are given"),
    "disable_bulk_delete": _Refused("objects are removed in batches"),
    "imdsv1_fallback": _Refused("the metadata service is always asked with a token, as AWS recommends"),
    "s3_express": _Refused("directory buckets are recognized by their names"),
    "sts_endpoint": _Refused("AWS's own variables and profiles set the endpoint of STS"),
    "unsigned_payload": _Refused("over TLS payloads are not signed, and carry a checksum"),
}
_GCS: _Known = {
    "base_url": _Setting("gcs_endpoint", str),
    "application_credentials": _Variable("GOOGLE_APPLICATION_CREDENTIALS"),
    "service_account": _Variable("GOOGLE_APPLICATION_CREDENTIALS"),
    "service_account_path": _Variable("GOOGLE_APPLICATION_CREDENTIALS"),
    "skip_signature": _Setting("anonymous", _is),
    "bearer_token": _Setting("bearer_token", str),
    "user_project": _Setting("user_project", str),
    "kms_key": _Setting("kms_key", str),
    "project": _Setting("project", str),
    "service_account_key": _Setting("service_account_key", str),
}
_CLIENT: _Known = {
    "default_headers": _Setting("headers", _headers),
    "no_proxy": _Setting("no_proxy", _hosts),
    "proxy_excludes": _Setting("no_proxy", _hosts),
    "proxy_url": _Setting("https_proxy", str),
    "root_certificate": _Setting("ca_file", _text),
    "read_timeout": _Setting("stall_timeout", _seconds),
    "user_agent": _Setting("user_agent_suffix", str),
    "bandwidth_limit": _Setting("bandwidth_limit", int),
    "connections_max": _Setting("connections_max", int),
    "memory": _Setting("memory", int),
    # An endpoint of http:// already means plain HTTP.
    "allow_http": None,
    "allow_invalid_certificates": _Refused("`root_certificate` trusts your own certificate"),
    "connect_timeout": _Refused("addresses are dialled at the same time; `read_timeout` limits silence"),
    "default_content_type": _Refused("a content type is guessed from the name, or given as an attribute"),
    "http1_only": _ENGINE,
    "http2_keep_alive_interval": _ENGINE,
    "http2_keep_alive_timeout": _ENGINE,
    "http2_keep_alive_while_idle": _ENGINE,
    "http2_only": _ENGINE,
    "pool_idle_timeout": _ENGINE,
    "pool_max_idle_per_host": _ENGINE,
    "proxy_ca_certificate": _Refused("a proxy's certificate is judged by the platform's and `root_certificate`"),
    "randomize_addresses": _ENGINE,
    "timeout": _Refused("a transfer that makes progress is never ended; `asyncio.timeout` limits a call"),
}
_RETRY: _Known = {
    "retry_timeout": _Setting("retry_for", _seconds),
    "max_retries": _Refused("the time for attempts is limited: `retry_timeout`"),
    "backoff": _Refused("the engine chooses pauses, and follows the store's `Retry-After`"),
}
_OWN: dict[str, tuple[_Known, tuple[str, ...]]] = {
    "s3": (_S3, ("aws_", "s3_")),
    "gs": (_GCS, ("google_", "gcs_", "gs_")),
    # A job may move between both stores.
    "": (_GCS | _S3, ("aws_", "s3_", "google_", "gcs_", "gs_")),
}
_BUCKET = ("bucket", "bucket_name")


def settings(
    scheme: str,
    config: Config | None,
    client_options: Config | None,
    retry_config: Config | None,
    kwargs: Config,
) -> tuple[str | None, dict[str, Any]]:
    """Returns the bucket, if a key names it, and the settings of the library's client."""
    keys, own = _OWN[scheme]
    bucket: str | None = None
    chosen: dict[str, Any] = {}
    variables: dict[str, str] = {}
    none: tuple[str, ...] = ()
    # The values that were set, with the name of the key that did it.
    by: dict[str, tuple[str, Any]] = {}

    def check(target: str, name: str, value: Any) -> None:
        other, before = by.setdefault(target, (name, value))
        if before != value:
            both = f"{other!r} and {name!r}" if other != name else f"{name!r} is given twice, and the values"
            raise UsageError(f"duplicate key: {both} contradict each other")

    for given, known, prefixes, what in (
        (config, keys, own, "key"),
        (kwargs, keys | {name: key for name, key in _CLIENT.items() if name not in keys}, own, "key"),
        (client_options, _CLIENT, none, "client option"),
        (retry_config, _RETRY, none, "retry option"),
    ):
        for name, value in (given or {}).items():
            bare = _bare(name, prefixes)
            if scheme and what == "key" and bare in _BUCKET:
                check("bucket", name, value)
                bucket = value
                continue
            if bare not in known:
                raise UnknownConfigurationKeyError(f"there is no {what} {name!r}")
            match known[bare]:
                case _Refused(why):
                    raise UnknownConfigurationKeyError(f"the {what} {name!r} means nothing here: {why}")
                case _Variable(variable) if value is not None:
                    variables[variable] = _text(value)
                    check(variable, name, variables[variable])
                case _Setting(setting, of) if value is not None:
                    chosen[setting] = of(value)
                    check(setting, name, chosen[setting])
    if variables:
        chosen["variables"] = {**os.environ, **variables}
    if "https_proxy" in chosen:
        chosen["http_proxy"] = chosen["https_proxy"]
    return bucket, chosen


def is_bucket(scheme: str, name: str) -> bool:
    """Returns whether a key names the bucket."""
    return _bare(name, _OWN[scheme][1]) in _BUCKET


def _bare(name: str, prefixes: tuple[str, ...]) -> str:
    """Returns a key without the prefix of its variable: `AWS_REGION` becomes `region`."""
    name = name.lower()
    for prefix in prefixes:
        if name.startswith(prefix) and name != "s3_express":
            return name.removeprefix(prefix)
    return name
