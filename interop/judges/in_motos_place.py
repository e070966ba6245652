"""A pytest plugin for s3fs's tests: the store at LANEWAY_SERVED takes the place of the moto servers that they start."""

import os

import requests
from moto.moto_server import threaded_moto_server

SERVED = os.environ["LANEWAY_SERVED"]
post = requests.post


class Served:
    """Has the methods of moto's ThreadedMotoServer that the tests call."""

    def __init__(self, *_args, **_options):
        pass

    def start(self):
        requests.post(f"{SERVED}/_laneway/reset", timeout=60).raise_for_status()

    def stop(self):
        pass


def reset_instead(url, *args, **options):
    if url.endswith("/moto-api/reset"):
        url = f"{SERVED}/_laneway/reset"
    return post(url, *args, **options)


threaded_moto_server.ThreadedMotoServer = Served
requests.post = reset_instead


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items} | {fixtures() for _ in items[:1]}:
        if module is not None and hasattr(module, "endpoint_uri"):
            module.endpoint_uri = f"{SERVED}/"


def fixtures():
    import sys

    return sys.modules.get("s3fs.tests.derived.s3fs_fixtures")
