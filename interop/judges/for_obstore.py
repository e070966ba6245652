"""A pytest plugin for obstore's tests: `laneway serve` takes the place of the container with MinIO that they start.

The program is in the variable LANEWAY_PROGRAM. The modules `docker` and `minio` have what obstore's conftest.py calls.
"""

import os
import subprocess
import sys
import types


class Container:
    def __init__(self, ports, environment):
        keys = ["--access-key", environment["MINIO_ROOT_USER"], "--secret-key", environment["MINIO_ROOT_PASSWORD"]]
        listen = ["--listen", f"127.0.0.1:{ports['9000/tcp']}"]
        command = [os.environ["LANEWAY_PROGRAM"], "serve", *listen, *keys, "--bucket", "test-bucket"]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.server.stdout.readline()

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def remove(self):
        pass


class Docker:
    @property
    def containers(self):
        return self

    def run(self, _image, _command, *, detach, ports, environment):
        return Container(ports, environment)


class Minio:
    def __init__(self, *_args, **_options):
        pass

    def make_bucket(self, _name):
        pass


docker, minio = types.ModuleType("docker"), types.ModuleType("minio")
docker.from_env, minio.Minio = Docker, Minio
sys.modules.update(docker=docker, minio=minio)


def pytest_plugin_registered(plugin):
    if hasattr(plugin, "wait_for_minio"):
        # The server listens as soon as it has printed its first line.
        plugin.wait_for_minio = lambda endpoint, timeout: None


def pytest_configure(config):
    for mark in ("network", "parallel_threads", "thread_unsafe"):
        config.addinivalue_line("markers", f"{mark}: obstore's own")
