"""Exceptions for failures of this machine's file system."""

import errno
import os
import pickle

import laneway
import pytest
from laneway.exceptions import LocalError, SourceError


def described(error):
    return type(error), error.errno, error.strerror, error.filename


def test_a_local_failure_has_the_code_and_path_of_the_system(store, tmp_path):
    store.put("k", b"bytes")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(LocalError) as raised:
        laneway.copy((store, "k"), tmp_path / "file" / "below")
    assert raised.value.errno == errno.ENOTDIR and raised.value.strerror == os.strerror(errno.ENOTDIR)
    assert raised.value.filename == raised.value.url and str(tmp_path) in raised.value.filename
    assert "can't" in str(raised.value), "the message is Laneway's"
    again = pickle.loads(pickle.dumps(raised.value))
    assert described(again) == described(raised.value) and str(again) == str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_that_may_not_be_written_raises_a_permission_error(store, tmp_path):
    store.put("k", b"bytes")
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(PermissionError) as raised:
        laneway.copy((store, "k"), tmp_path / "closed" / "k")
    assert isinstance(raised.value, LocalError) and raised.value.errno == errno.EACCES


@pytest.mark.parametrize(("code", "kind"), [(errno.EACCES, PermissionError), (errno.EPERM, PermissionError), (errno.EISDIR, IsADirectoryError)])
def test_codes_of_the_system_have_the_classes_of_python(code, kind):
    error = laneway.exceptions._of("local", "/f: can't be created", {"url": "/f", "errno": code})
    assert isinstance(error, kind) and isinstance(error, LocalError) and (error.errno, error.filename) == (code, "/f")
    assert type(pickle.loads(pickle.dumps(error))) is type(error) and str(error) == "/f: can't be created"


def test_a_put_of_a_missing_file_or_a_folder_has_the_class_of_python(store, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        store.put("k", tmp_path / "nothing")
    assert isinstance(raised.value, SourceError)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, str(tmp_path / "nothing"))
    with pytest.raises(IsADirectoryError) as raised:
        store.put("k", tmp_path)
    assert isinstance(raised.value, SourceError) and raised.value.errno == errno.EISDIR


def test_a_missing_source_of_a_job_names_its_path(store, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        laneway.copy(tmp_path / "nothing", (store, "k"))
    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, str(tmp_path / "nothing"))


def test_a_missing_object_has_no_filename(store):
    with pytest.raises(FileNotFoundError) as raised:
        store.get("nothing")
    assert raised.value.errno == errno.ENOENT and raised.value.filename is None and raised.value.url in str(raised.value)
