"""Configuration keys of stores. Each key sets a setting of the Rust library's client.

A key of another library that has no meaning here raises an exception. If Laneway ignored the key, its user would
believe that it has an effect.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeAlias

from laneway._azure import choose_endpoint
from laneway._google import ACCOUNT_FILE, check_credentials, json_text
from laneway.exceptions import UnknownConfigurationKeyError, UsageError
from laneway.types import Config


class _Setting(NamedTuple):
    """A setting of the library's client."""

    name: str
    of: Callable[[Any], Any]


class _Variable(NamedTuple):
    """An environment variable. A value for the key replaces the variable's value."""

    name: str


class _Credential(NamedTuple):
    """A part of Azure's credentials, which replace those of the environment."""

    name: str
    of: Callable[[Any], Any]


class _Account(NamedTuple):
    """A switch that chooses the endpoint of Azure's storage account."""

    name: str


class _Refused(NamedTuple):
    """A key of another library that Laneway refuses, and the reason."""

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


_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
}


def seconds(value: timedelta | float | str) -> float:
    seconds = _seconds_of(value)
    if not seconds >= 0:
        raise UsageError(f"{value!r} is not a time: it must not be negative")
    return seconds


def _seconds_of(value: timedelta | float | str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        return float(number) * _UNITS[text[len(number) :].strip() or "s"]
    except (KeyError, ValueError):
        raise UsageError(f"{value!r} is not a time: give a timedelta, a number of seconds, or text such as '500ms', '30s', '2m' or '1h'") from None


def _hosts(value: str | list[str]) -> list[str]:
    return [host.strip() for host in (value.split(",") if isinstance(value, str) else value) if host.strip()]


def _headers(value: dict[str, str]) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()}


_text: Callable[[Any], str] = os.fspath
_Known: TypeAlias = "dict[str, _Setting | _Variable | _Credential | _Account | _Refused | None]"

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
    "checksum_algorithm": _Refused("every write is sent with its CRC32C, or with another checksum if the store doesn't support CRC32C"),
    "conditional_put": _Refused("conditional writes use S3's own If-Match and If-None-Match"),
    "copy_if_not_exists": _Refused("use `copy(..., overwrite=False)`"),
    "disable_tagging": _Refused("tags are sent only if you pass them"),
    "disable_bulk_delete": _Refused("many objects are always removed in batches"),
    "imdsv1_fallback": _Refused("the metadata service is always used with a session token (IMDSv2), as AWS recommends"),
    "s3_express": _Refused("directory buckets are recognized by their names"),
    "sts_endpoint": _Refused("set the endpoint of STS with AWS's environment variables or profiles"),
    "unsigned_payload": _Refused("over TLS, payloads are never signed; a checksum protects them"),
}
_GCS: _Known = {
    "base_url": _Setting("gcs_endpoint", str),
    "endpoint": _Setting("gcs_endpoint", str),
    "endpoint_url": _Setting("gcs_endpoint", str),
    "application_credentials": _Variable(ACCOUNT_FILE),
    "service_account": _Variable(ACCOUNT_FILE),
    "service_account_path": _Variable(ACCOUNT_FILE),
    "skip_signature": _Setting("anonymous", _is),
    "bearer_token": _Setting("bearer_token", str),
    "user_project": _Setting("user_project", str),
    "kms_key": _Setting("kms_key", str),
    "project": _Setting("project", str),
    "service_account_key": _Setting("service_account_key", json_text),
}
_FABRIC = _Refused("pass a `credential_provider` that returns the tokens")
_IDENTITY = _Refused("name a managed identity by its `client_id`")
_AZURE: _Known = {
    "account_name": _Setting("azure_account", str),
    "endpoint": _Setting("azure_endpoint", str),
    "endpoint_url": _Setting("azure_endpoint", str),
    "use_emulator": _Account("use_emulator"),
    "use_fabric_endpoint": _Account("use_fabric_endpoint"),
    "account_key": _Credential("account_key", str),
    "access_key": _Credential("account_key", str),
    "master_key": _Credential("account_key", str),
    "sas_token": _Credential("sas_token", str),
    "sas_key": _Credential("sas_token", str),
    "connection_string": _Credential("connection_string", str),
    "token": _Credential("token", str),
    "bearer_token": _Credential("token", str),
    "client_id": _Credential("client_id", str),
    "client_secret": _Credential("client_secret", str),
    "tenant_id": _Credential("tenant_id", str),
    "authority_id": _Credential("tenant_id", str),
    "authority_host": _Credential("authority_host", str),
    "federated_token_file": _Credential("federated_token_file", _text),
    "use_azure_cli": _Credential("use_azure_cli", lambda value: "true" if _is(value) else None),
    "use_managed_identity": _Credential("use_managed_identity", lambda value: "true" if _is(value) else None),
    "skip_signature": _Setting("anonymous", _is),
    "credential_type": _Refused("Laneway uses the credentials that you pass; pass only those"),
    "disable_tagging": _Refused("tags are sent only if you pass them"),
    "encryption_key": _Refused("Laneway doesn't support keys of the caller on Azure"),
    "identity_endpoint": _Refused("set the variables IDENTITY_ENDPOINT and IDENTITY_HEADER"),
    "msi_endpoint": _Refused("set the variables IDENTITY_ENDPOINT and IDENTITY_HEADER"),
    "object_id": _IDENTITY,
    "msi_resource_id": _IDENTITY,
    "fabric_token_service_url": _FABRIC,
    "fabric_workload_host": _FABRIC,
    "fabric_session_token": _FABRIC,
    "fabric_cluster_identifier": _FABRIC,
}
_CLIENT: _Known = {
    "default_headers": _Setting("headers", _headers),
    "no_proxy": _Setting("no_proxy", _hosts),
    "proxy_excludes": _Setting("no_proxy", _hosts),
    "proxy_url": _Setting("https_proxy", str),
    "root_certificate": _Setting("ca_file", _text),
    "read_timeout": _Setting("stall_timeout", seconds),
    # In obstore, this limits the time of a whole request. Here, a transfer that makes progress may take any time.
    "timeout": _Setting("stall_timeout", seconds),
    "user_agent": _Setting("user_agent_suffix", str),
    "bandwidth_limit": _Setting("bandwidth_limit", int),
    "connections_max": _Setting("connections_max", int),
    "memory": _Setting("memory", int),
    # An endpoint with http:// already allows plain HTTP.
    "allow_http": None,
    "allow_invalid_certificates": _Refused("use `root_certificate` to trust your own certificate"),
    "connect_timeout": _Refused("the addresses of a server are tried in parallel; `read_timeout` limits the wait for data"),
    "default_content_type": _Refused("the content type is guessed from the name; pass the attribute Content-Type to set it"),
    "http1_only": _ENGINE,
    "http2_keep_alive_interval": _ENGINE,
    "http2_keep_alive_timeout": _ENGINE,
    "http2_keep_alive_while_idle": _ENGINE,
    "http2_only": _ENGINE,
    "pool_idle_timeout": _ENGINE,
    "pool_max_idle_per_host": _ENGINE,
    "proxy_ca_certificate": _Refused("a proxy's certificate is verified with the platform's certificates and `root_certificate`"),
    "randomize_addresses": _ENGINE,
}
_RETRY: _Known = {
    "retry_timeout": _Setting("retry_for", seconds),
    "max_retries": _Refused("use `retry_timeout`, which limits the time for retries"),
    "backoff": _Refused("the engine chooses the pauses between retries, and follows the store's `Retry-After`"),
}
_AZURE_PREFIXES = ("azure_storage_", "azure_")
# Names of Azure's account key that users of S3 write for `access_key_id`. A job accepts them only with Azure's prefix.
_AMBIGUOUS = ("access_key", "master_key")
_OWN: dict[str, tuple[_Known, tuple[str, ...]]] = {
    "s3": (_S3, ("aws_", "s3_")),
    "gs": (_GCS, ("google_", "gcs_", "gs_")),
    "az": (_AZURE, _AZURE_PREFIXES),
    # A job may copy between stores of all clouds, so it accepts the keys of all. Names that several clouds use are those of
    # S3 and GCS, and the keys of Azure have the prefix `azure_` then.
    "": (
        {name: key for name, key in _AZURE.items() if name not in _AMBIGUOUS}
        | {f"{prefix}{name}": key for prefix in _AZURE_PREFIXES for name, key in _AZURE.items()}
        | _GCS
        | _S3,
        ("aws_", "s3_", "google_", "gcs_", "gs_"),
    ),
}
_BUCKET = {"s3": ("bucket", "bucket_name"), "gs": ("bucket", "bucket_name"), "az": ("container", "container_name"), "": ()}
_NAMES = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore", "": "a job"}
_ANONYMOUS = "skip_signature=True sends requests without credentials"
_S3_CREDENTIALS = "access_key_id and secret_access_key"
_GCS_CREDENTIALS = "service_account or service_account_key"
_AZURE_CREDENTIALS = "account_key, sas_token or connection_string"
# Keys that users of other libraries try, and what to pass instead.
_HINTS = {
    "anon": dict.fromkeys(_NAMES, _ANONYMOUS),
    "anonymous": dict.fromkeys(_NAMES, _ANONYMOUS),
    "credentials": {
        "s3": f"pass {_S3_CREDENTIALS}, or credential_provider",
        "gs": f"pass {_GCS_CREDENTIALS}, or credential_provider",
        "az": f"pass {_AZURE_CREDENTIALS}, or credential_provider",
        "": f"pass {_S3_CREDENTIALS} for S3, {_GCS_CREDENTIALS} for GCS, or {_AZURE_CREDENTIALS} for Azure",
    },
    "retries": dict.fromkeys(_NAMES, "retry_config={'retry_timeout': ...} limits the time for retries"),
}


def settings(
    scheme: str,
    config: Config | None,
    client_options: Config | None,
    retry_config: Config | None,
    kwargs: Config,
    provider: Callable[[], dict[str, Any]] | None = None,
) -> tuple[str | None, dict[str, Any]]:
    """Returns the bucket, if a key names it, and the settings of the library's client."""
    keys, _ = _OWN[scheme]
    bucket: str | None = None
    chosen: dict[str, Any] = {} if provider is None else {"credential_provider": provider}
    variables: dict[str, str] = {}
    credentials: dict[str, str] = {}
    # Maps each setting to the key that set it and the value, to find keys that contradict each other.
    by: dict[str, tuple[str, Any]] = {}

    def check(target: str, name: str, value: Any) -> None:
        other, before = by.setdefault(target, (name, value))
        if before != value:
            both = f"{other!r} and {name!r}" if other != name else f"{name!r} is given twice, and the values"
            raise UsageError(f"Duplicate key: {both} contradict each other")

    for given, known, what in (
        (config, keys, "key"),
        (kwargs, keys | {name: key for name, key in _CLIENT.items() if name not in keys}, "key"),
        (client_options, _CLIENT, "client option"),
        (retry_config, _RETRY, "retry option"),
    ):
        for name, value in (given or {}).items():
            bare = _bare(scheme, name) if what == "key" else name.lower()
            if what == "key" and bare in _BUCKET[scheme]:
                check("bucket", name, value)
                bucket = value
                continue
            if bare not in known:
                raise UnknownConfigurationKeyError(f"{_NAMES[scheme]} has no {what} {name!r}{_hint(scheme, bare, known, keys)}")
            match known[bare]:
                case _Refused(why):
                    raise UnknownConfigurationKeyError(f"the {what} {name!r} has no meaning here: {why}")
                case _Variable(variable) if value is not None:
                    variables[variable] = _text(value)
                    check(variable, name, variables[variable])
                case _Setting(setting, of) if value is not None:
                    chosen[setting] = of(value)
                    check(setting, name, chosen[setting])
                case _Credential(part, of) if value is not None and (text := of(value)) is not None:
                    credentials[part] = text
                    check(part, name, text)
                case _Account(switch) if value is not None:
                    check(switch, name, _is(value))
    if credentials:
        chosen["azure_credentials"] = credentials
    if variables:
        chosen["variables"] = {**_environment(), **variables}
    if "https_proxy" in chosen:
        chosen["http_proxy"] = chosen["https_proxy"]
    if scheme in ("gs", "") and not chosen.get("anonymous"):
        check_credentials(by)
    choose_endpoint(chosen, by)
    return bucket, chosen


def _environment() -> dict[str, str]:
    """Returns the process's variables, with the user's home folder even if `HOME` is unset, as in a system service."""
    home = os.path.expanduser("~")
    return ({} if home == "~" else {"HOME": home}) | dict(os.environ)


def _hint(scheme: str, bare: str, known: _Known, keys: _Known) -> str:
    """Returns what to do instead of passing an unknown key, for the end of an error message."""
    if bare in _HINTS:
        return f"; {_HINTS[bare][scheme]}"
    for others, where in ((keys, "config"), (_CLIENT, "client_options"), (_RETRY, "retry_config")):
        if bare in others and not isinstance(others[bare], _Refused):
            return f"; pass it in {where}"
    accepted = [name for name, key in known.items() if not isinstance(key, _Refused)]
    near = get_close_matches(bare, accepted)
    if near:
        return f"; similar keys are {', '.join(near)}"
    helped = f"help(laneway.{_NAMES[scheme]}) lists" if scheme else "the help of the stores' classes lists"
    return f"; {helped} the usual keys"


def is_bucket(scheme: str, name: str) -> bool:
    """Returns whether a key names the bucket."""
    return _bare(scheme, name) in _BUCKET[scheme]


def given_keys(scheme: str, *configs: Config | None) -> set[str]:
    """Returns the keys of some configurations, without the prefixes that they may have."""
    return {_bare(scheme, name) for config in configs for name, value in (config or {}).items() if value is not None}


def azure_credential(name: str, value: Any) -> str | None:
    """Returns the part of Azure's credentials that a key passes, by any name of the key. Returns `None` if it passes none."""
    match _AZURE.get(_bare("az", name)):
        case _Credential(part, of) if value and of(value) is not None:
            return part
    return None


def _bare(scheme: str, name: str) -> str:
    """Returns a key without the prefix that environment variables have: `AWS_REGION` becomes `region`."""
    name = name.lower()
    for prefix in _OWN[scheme][1]:
        if name.startswith(prefix) and name != "s3_express":
            bare = name.removeprefix(prefix)
            # In a job, a key that only Azure has must not have another cloud's prefix.
            return bare if scheme or bare not in _AZURE.keys() - _GCS.keys() - _S3.keys() else name
    return name
