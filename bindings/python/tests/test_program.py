"""The program that comes with the package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def program():
    beside = shutil.which("laneway", path=str(Path(sys.executable).parent))
    return [beside] if beside else [sys.executable, "-c", "from laneway._program import main; exit(main())"]


def test_the_package_runs_as_a_module():
    line = [sys.executable, "-m", "laneway", "--version"]
    assert subprocess.run(line, capture_output=True, text=True).stdout.startswith("laneway ")


def test_it_is_the_program(program, tmp_path, server):
    assert subprocess.run([*program, "--version"], capture_output=True, text=True).stdout.startswith("laneway ")
    (tmp_path / "file").write_bytes(b"bytes")
    options = ["--gcs-endpoint", server, "--anonymous", "-q"]
    subprocess.run([*program, "cp", tmp_path / "file", "gs://lake/from-the-program", *options], check=True)
    shown = subprocess.run([*program, "cat", "gs://lake/from-the-program", *options], capture_output=True, check=True)
    assert shown.stdout == b"bytes"
    assert subprocess.run([*program, "cp"], capture_output=True).returncode == 2
    assert subprocess.run([*program, "cat", "gs://lake/nothing", *options], capture_output=True).returncode == 1
