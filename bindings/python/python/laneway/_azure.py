"""Finds the storage account of Azure: that of a URL, of an emulator, or of OneLake."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

# The account of Microsoft's emulators, and the URL where Azurite listens.
_EMULATED_ACCOUNT = "devstoreaccount1"
_AZURITE = "http://127.0.0.1:10000"
_ONELAKE = "blob.fabric.microsoft.com"


def named_account(container: str) -> tuple[str, dict[str, Any]]:
    """Returns the container of `container@host`, and the keys of the account that the host names."""
    name, _, host = container.partition("@")
    return name, {"account_name": host.partition(".")[0], "endpoint": f"https://{host}"} if host else {}


def choose_endpoint(chosen: dict[str, Any], by: Mapping[str, tuple[str, Any]]) -> None:
    """Sets the account's endpoint for `use_emulator` and `use_fabric_endpoint`, unless it is already set. `by` has the key
    and the value for each setting that was passed.
    """
    uses_emulator, uses_fabric = (by.get(name, (name, False))[1] for name in ("use_emulator", "use_fabric_endpoint"))
    account = chosen.get("azure_account")
    if uses_fabric and account and not uses_emulator:
        chosen.setdefault("azure_endpoint", f"https://{account}.{_ONELAKE}")
    if not uses_emulator:
        return
    account = chosen.setdefault("azure_account", account or _EMULATED_ACCOUNT)
    url = chosen.get("azure_endpoint") or os.environ.get("AZURITE_BLOB_STORAGE_URL") or _AZURITE
    # Emulators have the account's name in the path.
    chosen["azure_endpoint"] = url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/{account}"
    if not chosen.get("anonymous") and "credential_provider" not in chosen:
        # The library knows the key of Microsoft's emulators by this text.
        emulated = {"connection_string": "UseDevelopmentStorage=true"}
        credentials = chosen.setdefault("azure_credentials", {})
        if not credentials.keys() - {"authority_host", "client_id", "tenant_id"}:
            credentials |= emulated
