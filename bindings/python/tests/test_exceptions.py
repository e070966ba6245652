"""Exceptions for failures of this machine's file system, and for servers that don't answer."""

import errno
import logging
import logging.handlers
import os
import pickle
import queue
import socket

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


def test_an_outage_is_logged_as_a_sentence_and_named_by_the_exception(caplog):
    # Laneway logs on a thread of its own. This handler comes after that of `caplog`.
    arrived = queue.Queue()
    handler = logging.handlers.QueueHandler(arrived)
    logging.getLogger().addHandler(handler)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        options = {"endpoint": endpoint, "region": "r", "skip_signature": True, "retry_config": {"retry_timeout": 1.5}}
        first = laneway.S3Store("lake", **options)
        with pytest.raises(laneway.exceptions.TransportError, match="the time of retry_timeout is over: the server has been away for [1-9]"):
            first.get("k")
        # A new store of the same server fails at once, and says for how long the server has been away.
        with pytest.raises(laneway.exceptions.TransportError, match="away for [1-9].* 1 attempt"):
            laneway.S3Store("lake", **options).get("k")
    arrived.get(timeout=5)
    logging.getLogger().removeHandler(handler)
    (text,) = {record.getMessage() for record in caplog.records}
    assert text.startswith("retrying for up to 1.5 s: ") and endpoint in text and "=" not in text
