"""Behaviour that fsspec's own suite doesn't test: caches, exceptions, forks, files, times."""

import asyncio
import gc
import io
import os
import pickle
import shutil
import signal
import uuid
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from types import SimpleNamespace
from urllib.parse import quote
from urllib.request import Request, urlopen

import laneway
import pytest

fsspec = pytest.importorskip("fsspec")
laneway_fsspec = pytest.importorskip("laneway.fsspec")

from laneway.fsspec import _listing, _openings
from laneway.fsspec._ahead import Ahead
from laneway.fsspec._order import AGE_MAX_S

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


@pytest.fixture(params=["s3", "gs", "az"])
def fs(request, filesystem):
    return filesystem(request.param, skip_instance_cache=True)


@pytest.fixture
def folder():
    return f"lake/fsspec-{uuid.uuid4().hex[:8]}"


def requests(fs):
    return fs._at("lake")[0].counters()["requests"]


def read(fs, path):
    return fs.cat_file(path)


def test_ranges_of_a_file_are_one_plan(fs, folder):
    fs.pipe({f"{folder}/a": bytes(range(256)) * 40, f"{folder}/b": b"0123456789"})
    before = requests(fs)
    a, b = f"{folder}/a", f"{folder}/b"
    assert fs.cat_ranges([a] * 50 + [b], [100 * n for n in range(50)] + [2], [100 * n + 3 for n in range(50)] + [5]) == [
        bytes([(100 * n + k) % 256 for k in range(3)]) for n in range(50)
    ] + [b"234"]
    assert requests(fs) - before <= 3


def test_ranges_are_slices(fs, folder):
    path = f"{folder}/k"
    fs.pipe_file(path, b"0123456789")
    for start, end in [(None, None), (3, None), (None, 4), (-3, None), (-5, -2), (2, -1), (8, 50), (20, 30), (5, 5), (-50, 2)]:
        assert fs.cat_file(path, start, end) == b"0123456789"[start:end], (start, end)
        assert fs.cat_ranges([path, path], [start, 0], [end, 1]) == [b"0123456789"[start:end], b"0"], (start, end)
    missing = fs.cat_ranges([path, f"{folder}/nothing"], 0, 2)
    assert missing[0] == b"01" and isinstance(missing[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([path, f"{folder}/nothing"], 0, 2, on_error="raise")


def test_listings_are_kept_until_something_is_written(fs, folder):
    fs.pipe({f"{folder}/a/1": b"1", f"{folder}/a/b/2": b"22", f"{folder}/c": b""})
    assert fs.find(folder) == [f"{folder}/a/1", f"{folder}/a/b/2", f"{folder}/c"]
    before = requests(fs)
    assert fs.ls(folder, detail=False) == [f"{folder}/a", f"{folder}/c"]
    assert fs.info(f"{folder}/a/b/2")["size"] == 2 and fs.isdir(f"{folder}/a/b") and fs.glob(f"{folder}/*") == fs.ls(folder, False)
    assert requests(fs) == before
    fs.pipe_file(f"{folder}/a/b/3", b"")
    assert fs.ls(f"{folder}/a/b", detail=False) == [f"{folder}/a/b/2", f"{folder}/a/b/3"]
    # The filesystem finds another writer's object, although the cached listing lacks it.
    store, key = fs._at(f"{folder}/new")
    store.put(key, b"new")
    assert fs.size(f"{folder}/new") == 3
    fs.rm(f"{folder}/a", recursive=True)
    assert fs.find(folder, withdirs=True) == [folder, f"{folder}/c", f"{folder}/new"]


def test_an_object_is_told_of_without_waiting_for_what_is_below_its_name(fs, folder, monkeypatch):
    fs.pipe({f"{folder}/k": b"bytes", f"{folder}/d/x": b""})
    ends = []

    async def never(store, prefix):
        try:
            await asyncio.Event().wait()
        finally:
            ends.append(prefix)

    with monkeypatch.context() as patch:
        patch.setattr(_listing, "_first", never)
        assert fs.info(f"{folder}/k")["size"] == 5 and fs.exists(f"{folder}/k")
    # Once the next call has run in the same event loop, both lookups have been cancelled.
    assert fs.isdir(f"{folder}/d") and not fs.exists(f"{folder}/nothing")
    assert len(ends) == 2


def test_find_and_glob_to_a_depth(fs, folder):
    names = [f"year={year}/month={month}/{part}.parquet" for year in (1, 2) for month in (1, 2) for part in (0, 1)]
    fs.pipe({f"{folder}/{name}": b"" for name in names})
    assert fs.find(folder, maxdepth=2, withdirs=True) == [folder] + [
        f"{folder}/{name}" for name in sorted({n.rpartition("/")[0] for n in names} | {"year=1", "year=2"})
    ]
    assert fs.glob(f"{folder}/year=*/month=1/*.parquet") == [f"{folder}/{name}" for name in names if "month=1" in name]
    assert fs.glob(f"{folder}/ye*") == [f"{folder}/year=1", f"{folder}/year=2"]
    assert fs.find(f"{folder}/nothing") == [] and fs.find(f"{folder}/{names[0]}") == [f"{folder}/{names[0]}"]
    assert fs.find(folder, prefix="year=2/month=2/1") == [f"{folder}/{names[-1]}"]


def test_what_is_missing_or_forbidden_is_pythons_own(fs, folder):
    path = f"{folder}/k"
    for failing in (fs.info, fs.ls, fs.cat_file, fs.open, fs.rm, fs.modified, lambda path: fs.cp_file(path, f"{path}2")):
        with pytest.raises(FileNotFoundError):
            failing(path)
    with pytest.raises(FileNotFoundError):
        fs.info("no-such-bucket")
    assert not fs.exists(path) and not fs.exists("no-such-bucket/k") and fs.isdir("lake")
    fs.pipe_file(path, b"x")
    for failing in (lambda: fs.open(path, "xb"), lambda: fs.pipe_file(path, b"", mode="create")):
        with pytest.raises(FileExistsError):
            failing()
    for failing in (lambda: fs.rm(folder), lambda: fs.cat_file("lake"), lambda: fs.modified(folder)):
        with pytest.raises(IsADirectoryError):
            failing()
    for failing in (lambda: fs.rm(folder), lambda: fs.mv(folder, f"{folder}2")):
        with pytest.raises(IsADirectoryError, match="is a directory; pass recursive=True$"):
            failing()
    with pytest.raises(ValueError, match="'rb', 'wb', 'xb' or 'ab'"):
        fs.open(path, "r+b")


def test_options_are_judged_at_once(filesystem):
    with pytest.raises(ValueError, match="S3Store has no key 'colour'"):
        filesystem("s3", colour="blue")
    s3 = laneway_fsspec.S3FileSystem(key="k", secret="s", client_kwargs={"endpoint_url": "http://localhost:1", "region_name": "r"})
    assert s3._at("b/k")[0].url == "s3://b/"
    laneway_fsspec.GCSFileSystem(token="anon", endpoint_url="http://localhost:1")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"requester_pays": True}, {"request_payer": True}),
        ({"username": "a", "password": "b"}, {"access_key_id": "a", "secret_access_key": "b"}),
        ({"use_ssl": False, "client_kwargs": {"endpoint_url": "minio:9000"}}, {"endpoint": "http://minio:9000"}),
        ({"use_ssl": False, "endpoint_url": "http://minio:9000"}, {"endpoint_url": "http://minio:9000"}),
        (
            {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}},
            {"server_side_encryption": "aws:kms", "sse_kms_key_id": "k"},
        ),
        (
            {"config_kwargs": {"s3": {"addressing_style": "path"}, "signature_version": "unsigned", "read_timeout": 7}},
            {"virtual_hosted_style_request": False, "skip_signature": True, "read_timeout": 7},
        ),
        ({"version_aware": False, "default_block_size": 5}, {"default_block_size": 5}),
    ],
)
def test_options_of_s3fs_have_their_meaning(given, meant):
    from laneway.fsspec._options import of_s3

    assert of_s3(given) == meant
    laneway_fsspec.S3FileSystem(**{"region": "r", **given})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"project": "p"}, {"project": "p"}),
        ({"project": "p", "requester_pays": True}, {"project": "p", "user_project": "p"}),
        ({"project": "p", "requester_pays": "q"}, {"project": "p", "user_project": "q"}),
        ({"access": "read_only"}, {"is_read_only": True}),
        ({"access": "full_control"}, {}),
        ({"block_size": 5, "cache_timeout": 0}, {"default_block_size": 5, "listings_expiry_time": 0}),
    ],
)
def test_options_of_gcsfs_have_their_meaning(given, meant):
    from laneway.fsspec._options import of_gcs

    assert of_gcs(given) == meant
    laneway_fsspec.GCSFileSystem(**given)


def test_options_without_a_meaning_are_logged_in_one_line(caplog):
    laneway_fsspec.GCSFileSystem(consistency="md5", default_location="EU", skip_instance_cache=True)
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["consistency, default_location"]


def test_a_bypass_by_arrow_is_logged_once(monkeypatch, caplog):
    installed = {"pandas"}
    monkeypatch.setattr(laneway_fsspec, "_is_warned", False)
    monkeypatch.setattr(laneway_fsspec.importlib.util, "find_spec", lambda name: name if name in installed else None)
    laneway_fsspec.register()
    assert caplog.records == []
    installed.add("pyarrow")
    for _ in range(2):
        laneway_fsspec.register()
    assert ["storage_options={}" in record.message for record in caplog.records] == [True]


WRITES = {
    "pipe": lambda fs, path: fs.pipe_file(path, b"x"),
    "open": lambda fs, path: fs.open(path, "wb"),
    "append": lambda fs, path: fs.open(path, "ab"),
    "put": lambda fs, path: fs.put(__file__, path),
    "put a tree": lambda fs, path: fs.put(os.path.dirname(__file__), path, recursive=True),
    "copy": lambda fs, path: fs.cp_file(path, f"{path}2"),
    "move": lambda fs, path: fs.mv(path, f"{path}2"),
    "remove": lambda fs, path: fs.rm(path),
    "touch": lambda fs, path: fs.touch(path),
    "mkdir": lambda fs, path: fs.mkdir(f"{path}/d"),
    "makedirs": lambda fs, path: fs.makedirs(f"{path}/d", exist_ok=True),
    "rmdir": lambda fs, path: fs.rmdir(path.rpartition("/")[0]),
    "setxattr": lambda fs, path: fs.setxattr(path, colour="blue"),
    "sign": lambda fs, path: fs.sign(path, method="PUT"),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_filesystem_with_access_to_read_forbids_writes(filesystem, folder, write):
    path = f"{folder}/k"
    filesystem("gs").pipe_file(path, b"bytes")
    fs = pickle.loads(pickle.dumps(filesystem("gs", access="read_only")))
    with pytest.raises(PermissionError, match="read_only"):
        WRITES[write](fs, path)
    assert fs.cat_file(path) == b"bytes" and fs.find(folder) == [path]
    with pytest.raises(ValueError, match="access is"):
        filesystem("gs", access="all")


@pytest.mark.parametrize(
    "given",
    [
        {"version_aware": True},
        {"use_ssl": False},
        {"s3_additional_kwargs": {"ACL": "public-read"}},
        {"config_kwargs": {"inject_host_prefix": True}},
        {"client_kwargs": {"verify": False}},
        {"key": "a", "username": "b"},
    ],
)
def test_options_that_would_change_what_happens_are_refused(given):
    with pytest.raises(ValueError):
        laneway_fsspec.S3FileSystem(**given)


def test_block_sizes_and_cache_timeouts_reach_fsspec():
    assert laneway_fsspec.S3FileSystem(default_block_size=5).blocksize == 5
    assert not laneway_fsspec.GCSFileSystem(cache_timeout=0).dircache.use_listings_cache


def test_buckets_are_neither_made_nor_removed_in_silence(fs):
    with pytest.raises(NotImplementedError, match="can't create buckets"):
        fs.mkdir("no-such-bucket")
    with pytest.raises(NotImplementedError, match="can't create buckets"):
        fs.makedirs("no-such-bucket", exist_ok=True)
    with pytest.raises(FileExistsError):
        fs.mkdir("lake")
    fs.makedirs("lake", exist_ok=True)


def test_buckets_are_listed(filesystem):
    for fs in (filesystem("s3"), filesystem("gs", project="p"), filesystem("az")):
        assert "lake" in fs.ls("", detail=False) and "lake" in fs.ls("/", detail=False)
        assert {"name": "lake", "size": 0, "type": "directory"} in fs.ls(f"{fs.protocol[0]}://")
        with pytest.raises(ValueError, match="begins with the name of a bucket"):
            fs.find("")
    with pytest.raises(laneway.exceptions.InvalidError, match="give project, or set GOOGLE_CLOUD_PROJECT"):
        filesystem("gs").ls("")


def test_metadata_of_objects_is_read_and_changed(fs, folder):
    path = f"{folder}/k"
    fs.pipe_file(path, b"bytes", attributes={"colour": "blue", "taste": "sweet", "Content-Type": "text/x"})
    assert fs.metadata(path) == {"colour": "blue", "taste": "sweet"} and fs.getxattr(path, "colour") == "blue"
    fs.setxattr(path, colour="red", taste=None, size="large")
    assert fs.metadata(path) == {"colour": "red", "size": "large"} and fs.getxattr(path, "taste") is None
    assert fs.cat_file(path) == b"bytes" and fs.info(path)["content_type"] == "text/x"
    with pytest.raises(FileNotFoundError):
        fs.setxattr(f"{folder}/nothing", colour="red")
    with pytest.raises(NotImplementedError, match="can't change the metadata"):
        fs.setxattr(f"{folder}/*", colour="red")


def test_versions_are_told(fs, folder):
    path = f"{folder}/k"
    fs.pipe({path: b"bytes", f"{path}2": b"other"})
    [version] = fs.object_version_info(path)
    assert (version["name"], version["size"], version["delete_marker"]) == (path, 5, False)
    # A container of Azure that keeps no versions doesn't name them.
    assert version["version"] or "az" in fs.protocol
    with pytest.raises(FileNotFoundError):
        fs.object_version_info(f"{folder}/nothing")


def test_a_url_of_an_object(filesystem, folder):
    path = f"{folder}/a b"
    filesystem("s3").pipe_file(path, b"bytes")
    for url in (filesystem("s3").url(path, expires=60), filesystem("gs").url(path), filesystem("az").url(path, expires=60)):
        assert urlopen(url).read() == b"bytes"
    with pytest.raises(ValueError, match="client_method"):
        filesystem("s3").url(path, client_method="list_objects")


def test_what_is_open_says_what_it_is(fs, folder):
    path = f"{folder}/k"
    with fs.open(path, "wb") as writer:
        assert repr(writer) == f"<laneway.fsspec.Writer {fs.unstrip_protocol(path)} mode='wb'>"
    with fs.open(path) as reader:
        assert repr(reader) == f"<laneway.fsspec.Reader {fs.unstrip_protocol(path)}>"


def test_only_an_empty_directory_is_removed_by_rmdir(fs, folder):
    fs.pipe_file(f"{folder}/full/k", b"x")
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir(f"{folder}/full")
    with pytest.raises(NotADirectoryError):
        fs.rmdir(f"{folder}/full/k")
    with pytest.raises(FileNotFoundError):
        fs.rmdir(f"{folder}/nothing")
    fs.mkdir(f"{folder}/empty")
    store, key = fs._at(folder)
    store.put(f"{key}/marked/", b"")
    for name in ("empty", "marked"):
        fs.rmdir(f"{folder}/{name}")
        assert not fs.exists(f"{folder}/{name}")


def test_touch_says_that_it_sets_no_time(fs, folder):
    fs.touch(f"{folder}/k", truncate=False)
    with pytest.raises(NotImplementedError, match="truncate=False can't set the time"):
        fs.touch(f"{folder}/k", truncate=False)


def test_files(fs, folder):
    path = f"{folder}/lines.txt"
    with fs.open(path, "w") as file:
        file.write("one\ntwo\n")
    with fs.open(path, "a") as file:
        file.write("three\n")
    with fs.open(path) as file:
        assert file.size == 14 and file.readline() == b"one\n" and file.tell() == 4
        again = pickle.loads(pickle.dumps(file))
        assert list(file) == [b"two\n", b"three\n"]
        assert again.read() == b"two\nthree\n"
        into = bytearray(3)
        assert (file.seek(-6, 2), file.readinto(into), bytes(into)) == (8, 3, b"thr")
        assert file.details["size"] == fs.info(path)["size"]
    with fs.open(path, "r") as file:
        assert file.read().splitlines() == ["one", "two", "three"]
    with fs.open(path, "rb", cache_type="readahead", block_size=4) as file:
        assert file.read(5) == b"one\nt" and file.read() == b"wo\nthree\n"
    with fs.open(f"{folder}/x.gz", "wt", compression="infer") as file:
        file.write("packed")
    with fs.open(f"{folder}/x.gz", "rt", compression="infer") as file:
        assert file.read() == "packed"


@pytest.fixture
def clock(monkeypatch):
    """Replaces the clock that decides when files are opened ahead. The new clock advances only when a test
    sets it."""
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(_openings, "monotonic", lambda: clock.now_s)
    return clock


@pytest.fixture
def timers(monkeypatch):
    """Collects the timers that were started. Tests fire them."""
    begun = []

    class Timer:
        def __init__(self, interval_s, function, args):
            self.interval_s, self.fire, self.daemon = interval_s, lambda: function(*args), False

        def start(self):
            assert self.daemon
            begun.append(self)

    monkeypatch.setattr(_openings, "Timer", Timer)
    return begun


def some_are_ahead(fs, folder):
    """Opens the first two of some files in order, so that the next files are opened ahead. Returns the names of all
    files."""
    names = [f"{folder}/{number}.parquet" for number in range(9)]
    fs.pipe({name: name.encode() for name in names})
    fs.find(folder)
    for name in names[:2]:
        fs.open(name).close()
    assert [*fs.openings._coming] == names[2:4]
    return names


def test_what_was_opened_ahead_is_let_go_of_though_nothing_is_opened(fs, folder, clock, timers):
    names = some_are_ahead(fs, folder)
    assert [timer.interval_s for timer in timers] == [AGE_MAX_S]
    clock.now_s += 0.5
    fs.open(names[2]).close()
    assert [*fs.openings._coming] == names[3:7] and len(timers) == 1, "one timer at a time"
    clock.now_s += AGE_MAX_S - 0.25
    timers[0].fire()
    assert [*fs.openings._coming] == names[4:7]
    assert [timer.interval_s for timer in timers] == [AGE_MAX_S, 0.25]
    clock.now_s += 0.5
    timers[1].fire()
    assert not fs.openings._coming and len(timers) == 2, "none while nothing is held"
    assert fs.open(names[4]).read() == names[4].encode()


def test_a_filesystem_is_given_up_though_its_timer_runs(filesystem, folder, clock, timers):
    fs = filesystem("s3", skip_instance_cache=True)
    some_are_ahead(fs, folder)
    openings = weakref.ref(fs.openings)
    del fs
    gc.collect()
    assert openings() is None
    timers[0].fire()
    assert len(timers) == 1


def test_files_open_though_no_thread_begins_any_more(fs, folder, clock, monkeypatch):
    def refuses(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(_openings.Timer, "start", refuses)
    names = some_are_ahead(fs, folder)
    assert fs.open(names[2]).read() == names[2].encode()


def test_what_any_filesystem_of_the_process_writes_is_opened_anew(filesystem, folder, clock):
    s3 = filesystem("s3", skip_instance_cache=True)
    others = [filesystem(scheme, skip_instance_cache=True) for scheme in ("s3", "gs", "az")]
    for other in others:
        names = some_are_ahead(s3, folder)
        assert s3.openings._coming[names[2]].result() is not None
        other.pipe_file(names[2], b"written")
        file = s3.open(names[2])
        assert not file._is_early and file.size == 7 and file.read() == b"written"
        s3.invalidate_cache()


def test_what_is_wrong_with_other_files_is_no_matter_of_one_that_is_opened(fs, folder, clock, monkeypatch):
    names = some_are_ahead(fs, folder)
    bad = fs.openings._coming[names[3]]

    def begin(one, room):
        raise ValueError("no footer")

    with monkeypatch.context() as patch:
        patch.setattr(_openings._Coming, "begin", lambda one, room: begin(one, room) if one is bad else 0)
        assert fs.open(names[2]).read() == names[2].encode()
    assert [*fs.openings._coming] == names[4:7] == [*fs.openings._order._begun]

    def place(path):
        if path == names[7]:
            raise PermissionError(path)
        return fs._object(path)

    monkeypatch.setattr(fs.openings, "_place", place)
    assert fs.open(names[4]).read() == names[4].encode()
    assert names[7] not in fs.openings._order._begun and names[8] in fs.openings._coming


def test_footers_of_other_files_are_looked_through_outside_of_the_lock(fs, folder, clock, monkeypatch):
    names = some_are_ahead(fs, folder)
    for one in fs.openings._coming.values():
        assert one.result() is not None
    opened = []

    def begin(ahead, room):
        # If this thread held the lock, the other thread would have to wait, and the test would fail.
        with ThreadPoolExecutor(1) as other:
            opened.append(other.submit(lambda: fs.openings._lock.acquire(timeout=60) and fs.openings._lock.release() is None).result())
        return 0

    monkeypatch.setattr(Ahead, "begin", begin)
    fs.open(names[2]).close()
    assert opened and all(opened)


def test_files_are_opened_ahead_in_the_order_of_their_listing(fs, folder, clock):
    names = [f"{folder}/{number}.parquet" for number in range(6)]
    fs.pipe({name: name.encode() for name in names})
    assert fs.find(folder) == names

    def contents(names):
        return [fs.open(name).read().decode() for name in names]

    before = requests(fs)
    assert contents(names) == names
    # Each file takes one request, even if it was opened ahead. Azure has no ranges from the end, so the size of a file takes
    # another one there.
    assert requests(fs) - before == len(names) * (2 if "az" in fs.protocol else 1)
    store, key = fs._at(folder)

    # If this filesystem writes a file that was opened ahead, it opens the file again. If it removes such a
    # file, opening the file fails.
    assert fs.find(folder) == names and contents(names[:3]) == names[:3]
    fs.pipe_file(names[3], b"written")
    assert contents([names[3]]) == ["written"]
    fs.find(folder)
    contents(names[:3])
    fs.rm(names[3])
    with pytest.raises(FileNotFoundError):
        fs.open(names[3])
    # Another writer removes a file before it is opened ahead. When the reader opens the file in its turn, the
    # call reports that it is missing.
    fs.invalidate_cache()
    fs.find(folder)
    store.delete(f"{key}/4.parquet")
    assert contents(names[:3]) == names[:3]
    with pytest.raises(FileNotFoundError):
        fs.open(names[4])
    # Once the reader has opened a file, the file stays at one version, even if it was opened ahead.
    fs.pipe({name: bytes(100_000) for name in names})
    fs.find(folder)
    assert [len(content) for content in contents(names[:2])] == [100_000] * 2
    opened = [fs.open(name) for name in names[:3]]
    store.put(f"{key}/2.parquet", bytes(200_000))
    # The reader has no bytes of the third file yet, so the filesystem opens this file again.
    assert opened[2].read() == bytes(200_000)


CHANGED = laneway.exceptions.PreconditionError, FileNotFoundError


@pytest.fixture
def early(fs, folder, clock):
    """Returns a file that was opened ahead, and that another writer replaced before its turn."""
    names = [f"{folder}/{number:02}.parquet" for number in range(4)]
    fs.pipe({name: b"o" * 200_000 for name in names})
    fs.find(folder)
    for name in names[:2]:
        fs.open(name).close()
    store, key = fs._at(names[2])
    assert fs.openings._coming[names[2]].result() is not None
    store.put(key, b"n" * 300_000)
    file = fs.open(names[2])
    assert file._is_early and file._file.size == 200_000
    return file, store, key


@pytest.mark.parametrize(
    "read",
    [
        lambda file: file.read(),
        lambda file: file.read(1000) + file.read(),
        lambda file: file.readline(),
        lambda file: next(file),
        lambda file: b"".join(file.readlines()),
        lambda file: file.read1(-1) + file.read(),
        lambda file: bytes(memoryview(into := bytearray(300_000))[: file.readinto(into)]) + file.read(),
    ],
    ids=["read", "read-1000", "readline", "next", "readlines", "read1", "readinto"],
)
def test_a_file_that_was_written_after_it_was_opened_early_is_opened_anew(early, read):
    file, store, key = early
    assert read(file) == b"n" * 300_000
    assert file.size == file.info()["size"] == file.seek(0, 2) == 300_000
    # From here on the file stays at one version.
    store.put(key, b"p" * 300_000)
    file.seek(0)
    with pytest.raises(CHANGED):
        file.read()


def test_a_size_that_was_told_is_taken_back_where_the_whole_file_is_read(early):
    file, _, _ = early
    assert file.size == 200_000
    assert file.read() == b"n" * 300_000 and file.size == 300_000


@pytest.mark.parametrize("told", [lambda file: file.size, lambda file: file.info()["size"], lambda file: file.seek(0, 2)])
def test_who_counts_on_a_size_that_is_no_more_is_told_so(early, told):
    file, _, _ = early
    size = told(file)
    file.seek(0)
    with pytest.raises(CHANGED):
        file.read(size - 100_000)
    assert size == file.size == 200_000


def test_a_file_that_was_opened_early_and_is_gone_is_missing(early):
    file, store, key = early
    store.delete(key)
    with pytest.raises(FileNotFoundError):
        file.read()


def test_where_listings_are_not_kept_nothing_is_opened_ahead(filesystem, folder):
    fs = filesystem("s3", use_listings_cache=False, skip_instance_cache=True)
    names = [f"{folder}/{number}.csv" for number in range(6)]
    fs.pipe({name: b"x" for name in names})
    assert fs.find(folder) == names
    before = requests(fs)
    for name in names[:3]:
        fs.open(name).close()
    store, key = fs._at(names[3])
    store.put(key, b"written")
    assert fs.open(names[3]).read() == b"written"
    assert requests(fs) - before == 6


def test_a_file_that_an_exception_leaves_is_given_up(fs, folder):
    with pytest.raises(ZeroDivisionError), fs.open(f"{folder}/k", "wb") as file:
        file.write(b"x")
        raise ZeroDivisionError
    assert not fs.exists(f"{folder}/k")


def test_a_transaction_writes_all_or_nothing(fs, folder):
    with fs.transaction:
        for name in "ab":
            with fs.open(f"{folder}/{name}", "wb") as file:
                file.write(name.encode())
        assert not fs.exists(f"{folder}/a")
    assert fs.cat(folder + "/*") == {f"{folder}/a": b"a", f"{folder}/b": b"b"}
    with pytest.raises(ZeroDivisionError), fs.transaction:
        with fs.open(f"{folder}/c", "wb") as file:
            file.write(b"c")
        raise ZeroDivisionError
    assert not fs.exists(f"{folder}/c")


def test_awaited(filesystem, request, folder):
    async def main(scheme):
        fs = filesystem(scheme, asynchronous=True, skip_instance_cache=True)
        await fs._pipe_file(f"{folder}/k", b"bytes")
        async with await fs.open_async(f"{folder}/k") as file:
            assert file.size == 5 and await file.read(2) == b"by" and await file.read() == b"tes"
        async with await fs.open_async(f"{folder}/w", "wb") as file:
            await file.write(b"w")
        assert await fs._cat([f"{folder}/k", f"{folder}/w"]) == {f"{folder}/k": b"bytes", f"{folder}/w": b"w"}

    for scheme in ("s3", "gs", "az"):
        asyncio.run(main(scheme))


def test_trees_go_there_and_back(fs, folder, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    for n in range(30):
        (there / f"{n % 3}").mkdir(parents=True, exist_ok=True)
        (there / f"{n % 3}/{n}").write_bytes(bytes([n]) * n * 1000)
    callback = fsspec.Callback()
    fs.put(f"{there}", folder, recursive=True, callback=callback)
    assert (callback.size, callback.value) == (30, 30)
    counted = fsspec.Callback()
    fs.get(folder, f"{back}", recursive=True, callback=counted)
    assert (counted.size, counted.value) == (30, 30)
    # `get` copies a tree into an existing folder under the tree's name. If the source ends in a slash, it
    # copies only the content.
    fs.get(folder, f"{back}/again/", recursive=True)
    fs.get(f"{folder}/", f"{back}/again", recursive=True)
    again = back / "again"
    assert sorted(p.name for p in again.iterdir()) == sorted(["0", "1", "2", folder.rpartition("/")[2]])
    shutil.rmtree(again)
    fs.put(f"{there}/", f"{folder}/described", recursive=True, attributes={"Content-Type": "text/x-described"})
    assert fs.info(f"{folder}/described/2/2")["content_type"] == "text/x-described"
    fs.rm(f"{folder}/described", recursive=True)
    assert {p.relative_to(there): p.read_bytes() for p in there.rglob("*") if p.is_file()} == {
        p.relative_to(back): p.read_bytes() for p in back.rglob("*") if p.is_file()
    }
    into = io.BytesIO()
    fs.get_file(f"{folder}/1/1", into)
    assert into.getvalue() == b"\1" * 1000
    with pytest.raises(FileNotFoundError):
        fs.get_file(f"{folder}/nothing", f"{back}/nothing")
    assert not (back / "nothing").exists()
    fs.mv(f"{folder}/1", f"{folder}/moved", recursive=True)
    assert fs.isfile(f"{folder}/moved/1") and not fs.exists(f"{folder}/1")


def test_markers_are_directories(fs, folder):
    store, key = fs._at(folder)
    store.put(f"{key}/empty/", b"")
    assert fs.isdir(f"{folder}/empty") and fs.ls(f"{folder}/empty") == [] and fs.find(folder) == []
    assert fs.ls(folder, detail=False) == [f"{folder}/empty"]
    fs.rm(folder, recursive=True)
    assert not fs.exists(folder)


def test_a_directory_that_was_made_is_there(fs, folder):
    fs.makedirs(f"{folder}/made")
    assert fs.isdir(f"{folder}/made") and fs.ls(f"{folder}/made") == []
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{folder}/made")
    fs.touch(f"{folder}/made/k")
    assert fs.ls(f"{folder}/made", detail=False) == [f"{folder}/made/k"]
    fs.rm(f"{folder}/made", recursive=True)
    assert not fs.exists(f"{folder}/made")


def test_times_and_states(fs, folder):
    path = f"{folder}/k"
    fs.pipe_file(path, b"one")
    assert isinstance(fs.modified(path), datetime) and fs.created(path) == fs.modified(path)
    if "gs" in fs.protocol:
        # New metadata counts as a change, but doesn't make a new object.
        store, key = fs._at(path)
        url = f"{fs.storage_options['base_url']}/storage/v1/b/{store.bucket}/o/{quote(key, safe='')}"
        change = Request(url, b'{"metadata": {"k": "v"}}', {"Content-Type": "application/json"}, method="PATCH")
        created = fs.created(path)
        urlopen(change).close()
        fs.invalidate_cache()
        assert fs.modified(path) > created == fs.created(path)
    before = fs.checksum(path), fs.ukey(path)
    fs.ls(folder)
    assert (fs.checksum(path), fs.ukey(path)) == before
    fs.pipe_file(path, b"two")
    assert fs.checksum(path) != before[0] and fs.ukey(path) != before[1]


def test_a_signed_url_needs_no_credentials(filesystem, folder):
    fs = filesystem("s3")
    fs.pipe_file(f"{folder}/k", b"bytes")
    with urlopen(fs.sign(f"{folder}/k", expiration=60)) as answer:
        assert answer.read() == b"bytes"


def test_forks_and_pools(fs, folder):
    path = f"{folder}/k"
    fs.pipe_file(path, b"bytes")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            assert fs.cat_file(path) == b"bytes" and fs.open(path).read() == b"bytes" and fs.find(folder) == [path]
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for method in ("fork", "spawn"):
        with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
            assert [job.result(60) for job in [pool.submit(read, fs, path) for _ in range(4)]] == [b"bytes"] * 4


def test_register(server, folder):
    laneway_fsspec.register()
    for protocol in laneway_fsspec.PROTOCOLS:
        assert fsspec.get_filesystem_class(protocol) is laneway_fsspec.PROTOCOLS[protocol]
    laneway_fsspec.register("gs")
    with fsspec.open(f"gs://{folder}/k", "wb", base_url=server, skip_signature=True) as file:
        file.write(b"k")
    assert fsspec.filesystem("gcs", base_url=server, skip_signature=True).cat_file(f"gs://{folder}/k") == b"k"
    with pytest.raises(ValueError, match="unknown protocol 'ftp'"):
        laneway_fsspec.register("ftp")
