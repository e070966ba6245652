"""Checks Google's credentials that are passed to a store or a job."""

import json
import logging
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from laneway.exceptions import UnauthenticatedError

_LOGGER = logging.getLogger("laneway")
ACCOUNT_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_GOOGLE = "googleapis.com"


def json_text(value: str | Mapping[str, Any]) -> str:
    """Returns the JSON of credentials that are a dictionary. Returns a string unchanged."""
    return json.dumps(dict(value)) if isinstance(value, Mapping) else str(value)


def check_credentials(by: Mapping[str, tuple[str, Any]]) -> None:
    """Checks the credentials among the settings and variables of a store or a job. `by` has the key and the value for
    each. If Laneway won't send the credentials to the endpoint, logs a warning. Without it, the only sign would be that
    the endpoint refuses the requests.
    """
    if "bearer_token" in by:
        name, universe = by["bearer_token"][0], None
    elif "service_account_key" in by:
        name, text = by["service_account_key"]
        universe = _universe(name, text, "service_account")
    elif ACCOUNT_FILE in by:
        name, path = by[ACCOUNT_FILE]
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise UnauthenticatedError(f"{name}: {path} can't be read: {error.strerror}") from None
        universe = _universe(f"{name}: {path}", content, None)
    else:
        return
    endpoint = str(by["gcs_endpoint"][1] if "gcs_endpoint" in by else os.environ.get("STORAGE_EMULATOR_HOST", ""))
    if not endpoint:
        return
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
    except ValueError:
        # The library refuses such an endpoint, and names the mistake.
        return
    host = parts.hostname or ""
    if parts.scheme != "https" or universe and not f".{host}".endswith(f".{universe}"):
        hosts = f" and to hosts of Google's cloud ({universe})" if universe else ""
        _warn_unsent(name, f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", hosts)


@cache
def _warn_unsent(name: str, endpoint: str, hosts: str) -> None:
    _LOGGER.warning("requests to %s are sent without the credentials of %s: Laneway sends them only over https://%s", endpoint, name, hosts)


def _universe(name: str, text: str | bytes, kind: str | None) -> str:
    """Checks that a text has Google's credentials, and returns the domain of their cloud. Error messages don't contain
    the text, because it is secret.
    """
    try:
        document = json.loads(text)
    except ValueError:
        raise UnauthenticatedError(f"{name}: it isn't a JSON document") from None
    found = document.get("type") if isinstance(document, dict) else None
    if not isinstance(found, str) or kind not in (None, found):
        said = f"its `type` is {found!r}" if isinstance(found, str) else "it has no `type`"
        raise UnauthenticatedError(f"{name}: it isn't {'a service account key' if kind else 'a credentials file'}: {said}")
    for field in ("client_email", "private_key") if kind else ():
        if not isinstance(document.get(field), str):
            raise UnauthenticatedError(f"{name}: it isn't a service account key: it has no `{field}`")
    return os.environ.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or str(document.get("universe_domain") or _GOOGLE)
