import urllib.request
from datetime import timedelta

import laneway
import pytest


def test_sign(make, awaited):
    store = make()
    hour = timedelta(hours=1)
    if store.scheme == "gs":
        # Nothing can be signed without credentials.
        with pytest.raises(laneway.exceptions.UnauthenticatedError, match="^sign a URL of gs://"):
            store.sign("GET", "k", hour)
        return
    store.put("k", b"bytes")
    with urllib.request.urlopen(store.sign("GET", "k", hour)) as answer:
        assert answer.read() == b"bytes"
    urls = awaited(laneway.sign_async, store, "PUT", ["a", "b"], hour)
    # Azure needs the kind of a new blob.
    headers = {"x-ms-blob-type": "BlockBlob"} if store.scheme == "az" else {}
    with urllib.request.urlopen(urllib.request.Request(urls[1], b"put", headers, method="PUT")):
        assert store.get("b").bytes() == b"put"
    with pytest.raises(ValueError):
        store.sign("FETCH", "k", hour)
    with pytest.raises(ValueError, match="expires_in must not be negative"):
        store.sign("GET", "k", -hour)
