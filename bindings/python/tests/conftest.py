"""A store of its own for each test run: the program's `serve`, reached in both dialects."""

import os
import subprocess
import uuid

import laneway
import pytest

# What the tests say goes before what a developer's machine says.
for name in list(os.environ):
    if name.startswith(("AWS_", "GOOGLE_", "LANEWAY_", "STORAGE_EMULATOR")):
        if name not in ("LANEWAY_PROGRAM",):
            del os.environ[name]


@pytest.fixture(scope="session")
def server():
    """The server's URL."""
    program = os.environ.get("LANEWAY_PROGRAM", "laneway")
    command = [program, "serve", "--listen", "127.0.0.1:0", "--bucket", "lake"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


@pytest.fixture(params=["s3", "gs"])
def make(request, server):
    """Makes stores of a folder of this test's own, in either dialect."""
    folder = f"{request.node.originalname}-{uuid.uuid4().hex[:8]}"

    def made(prefix="", **kwargs):
        where = {"prefix": f"{folder}/{prefix}"}
        if request.param == "s3":
            options = {"endpoint": server, "access_key_id": "laneway", "secret_access_key": "lanewaysecret", "region": "us-east-1"}
            return laneway.S3Store("lake", **where, **(options | kwargs))
        return laneway.GCSStore("lake", **where, **({"base_url": server, "skip_signature": True} | kwargs))

    return made


@pytest.fixture
def store(make):
    return make()
