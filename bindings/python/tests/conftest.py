"""Starts a store (`laneway serve`) for each test run. Tests reach this store in both dialects."""

import asyncio
import os
import signal
import subprocess
import uuid

import laneway
import pytest

# The tests must not depend on settings of a developer's machine.
for name in list(os.environ):
    if name.startswith(("AWS_", "GOOGLE_", "LANEWAY_", "STORAGE_EMULATOR")):
        if name not in ("LANEWAY_PROGRAM",):
            del os.environ[name]

# A shell's background job ignores Ctrl-C. Without this line, tests of Ctrl-C and their children would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)


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


def options(scheme, server):
    """Returns the arguments with which stores reach the server in a dialect."""
    if scheme == "s3":
        return {"endpoint": server, "access_key_id": "laneway", "secret_access_key": "lanewaysecret", "region": "us-east-1"}
    return {"base_url": server, "skip_signature": True}


@pytest.fixture(scope="session")
def filesystem(server):
    """Makes fsspec's filesystems, in either dialect."""
    laneway_fsspec = pytest.importorskip("laneway.fsspec", exc_type=ImportError)
    return lambda scheme, **more: laneway_fsspec.PROTOCOLS[scheme](**options(scheme, server), **more)


@pytest.fixture(params=["s3", "gs"])
def make(request, server):
    """Makes stores in this test's own folder, in either dialect."""
    folder = f"{request.node.originalname}-{uuid.uuid4().hex[:8]}"

    def made(prefix="", **kwargs):
        where = {"prefix": f"{folder}/{prefix}"}
        kind = laneway.S3Store if request.param == "s3" else laneway.GCSStore
        return kind("lake", **where, **(options(request.param, server) | kwargs))

    return made


@pytest.fixture
def store(make):
    return make()


@pytest.fixture
def awaited():
    """Calls the asynchronous variant of a verb, and awaits it under asyncio."""

    async def one(verb, *args, **kwargs):
        return await verb(*args, **kwargs)

    return lambda verb, *args, **kwargs: asyncio.run(one(verb, *args, **kwargs))
