"""Starts a store (`laneway serve`) for each test run. Tests reach this store in all dialects."""

import asyncio
import os
import signal
import subprocess
import uuid

import laneway
import pytest

# The tests must not depend on settings of a developer's machine.
for name in list(os.environ):
    if name.startswith(("AWS_", "AZURE_", "AZURITE_", "GOOGLE_", "IDENTITY_", "LANEWAY_", "STORAGE_EMULATOR")):
        if name not in ("LANEWAY_PROGRAM",):
            del os.environ[name]

# A shell's background job ignores Ctrl-C. Without this line, tests of Ctrl-C and their children would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The account of Azure. Its key is not that of Microsoft's emulators, so that no test passes with a built-in key.
ACCOUNT, ACCOUNT_KEY = "lakehouse", "bGFuZXdheS1zZWNyZXQta2V5"


@pytest.fixture(scope="session")
def server():
    """The server's URL."""
    program = os.environ.get("LANEWAY_PROGRAM", "laneway")
    command = [program, "serve", "--listen", "127.0.0.1:0", "--bucket", "lake"]
    command += ["--account", ACCOUNT, "--account-key", ACCOUNT_KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def options(scheme, server):
    """Returns the arguments with which stores reach the server in a dialect."""
    if scheme == "s3":
        return {"endpoint": server, "access_key_id": "laneway", "secret_access_key": "lanewaysecret", "region": "us-east-1"}
    if scheme == "az":
        return {"endpoint": f"{server}/{ACCOUNT}", "account_name": ACCOUNT, "account_key": ACCOUNT_KEY}
    return {"base_url": server, "skip_signature": True}


@pytest.fixture
def anywhere(server):
    """Returns the configuration with which a job reaches the server in each dialect."""
    azure = {f"azure_storage_{name}": value for name, value in options("az", server).items()}
    s3 = options("s3", server)
    return {**s3, "base_url": server, **azure}


@pytest.fixture(scope="session")
def filesystem(server):
    """Makes fsspec's filesystems, in any dialect."""
    laneway_fsspec = pytest.importorskip("laneway.fsspec", exc_type=ImportError)
    return lambda scheme, **more: laneway_fsspec.PROTOCOLS[scheme](**options(scheme, server), **more)


@pytest.fixture(params=["s3", "gs", "az"])
def make(request, server):
    """Makes stores in this test's own folder, in each dialect."""
    folder = f"{request.node.originalname}-{uuid.uuid4().hex[:8]}"

    def made(prefix="", **kwargs):
        where = {"prefix": f"{folder}/{prefix}"}
        kinds = {"s3": laneway.S3Store, "gs": laneway.GCSStore, "az": laneway.AzureStore}
        return kinds[request.param]("lake", **where, **(options(request.param, server) | kwargs))

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
