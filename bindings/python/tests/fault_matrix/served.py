"""The program's `serve` with injected faults, and its objects."""

import os
import ssl
import subprocess
import urllib.error
import urllib.request
from typing import Any, Self
from urllib.parse import quote

import laneway


class Served:
    """A separate store, which tests reach in one dialect. The faults don't hit the requests that prepare and check
    objects, because these requests have other verbs or keys."""

    def __init__(self, scheme: str, tls: bool, faults: list[str]) -> None:
        self.scheme = scheme
        command = [os.environ.get("LANEWAY_PROGRAM", "laneway"), "serve", "--listen", "127.0.0.1:0", "--bucket", "lake", "--quiet"]
        command += ["--tls"] if tls else []
        for fault in faults:
            command += ["--fault", fault]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        said = self._process.stdout.readline().removeprefix("laneway serve: listening on ").strip()
        self.url, _, ca = said.partition(" (CA: ")
        self.ca = ca.removesuffix(")") or None
        self._context = ssl.create_default_context(cafile=self.ca) if self.ca else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def where(self, kind: type) -> dict[str, Any]:
        """Returns the arguments with which a store or a filesystem reaches this server."""
        if kind is laneway.S3Store:
            return {"endpoint": self.url, "region": "us-east-1", "skip_signature": True}
        return {"base_url": self.url, "skip_signature": True}

    def anywhere(self) -> dict[str, Any]:
        """Returns the configuration with which a job reaches this server."""
        return {"aws_endpoint": self.url, "region": "us-east-1", "base_url": self.url, "skip_signature": True}

    def _ask(self, method: str, what: str, content: bytes | None = None, **headers: str) -> bytes:
        request = urllib.request.Request(f"{self.url}/lake{what}", content, headers, method=method)
        with urllib.request.urlopen(request, context=self._context) as answer:
            return bytes(answer.read())

    def lay(self, key: str, content: bytes, by_copy: bool) -> None:
        """Stores an object. If faults hit a put of its key, the object is copied from another key."""
        if not by_copy:
            self._ask("PUT", f"/{quote(key)}", content)
            return
        self._ask("PUT", "/laid", content)
        self._ask("PUT", f"/{quote(key)}", b"", **{"x-amz-copy-source": "/lake/laid"})

    def read(self, key: str) -> bytes | None:
        try:
            return self._ask("GET", f"/{quote(key)}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def uploads(self) -> int:
        """Returns the number of uploads that were begun, and neither completed nor aborted."""
        return self._ask("GET", "?uploads").count(b"<Upload>")
