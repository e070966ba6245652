"""Storage options: the configuration keys of stores, and the names that s3fs and gcsfs use for the same things."""

from __future__ import annotations

import json
import os
from typing import Any

_S3FS = {"key": "access_key_id", "secret": "secret_access_key", "anon": "skip_signature"}
_CLIENT_KWARGS = {"endpoint_url": "endpoint", "region_name": "region"}
_GCSFS = {"endpoint_url": "base_url"}


def of_s3(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options for an `S3Store`. Of s3fs's `client_kwargs`, the endpoint and the region have a meaning here."""
    options = _renamed(options, _S3FS)
    client = options.pop("client_kwargs", None) or {}
    return _renamed(client, _CLIENT_KWARGS) | options


def of_gcs(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options for a `GCSStore`. gcsfs's `token` is `"anon"`, a file of credentials, a service account's key, or
    a default source.
    """
    options = _renamed(options, _GCSFS)
    token = options.pop("token", None)
    if token == "anon":
        options["skip_signature"] = True
    elif isinstance(token, dict):
        options["service_account_key"] = json.dumps(token)
    elif isinstance(token, str | os.PathLike) and token not in ("google_default", "cloud"):
        options["application_credentials"] = token
    elif token is not None and not isinstance(token, str):
        raise TypeError("token is 'anon', the path of a file of credentials or a service account's key: `credential_provider` gives tokens")
    return options


def _renamed(options: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in options.items()}
