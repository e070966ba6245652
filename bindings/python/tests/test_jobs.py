"""Whole jobs."""

import asyncio
import itertools
import logging
import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import laneway
import pytest
from laneway.exceptions import in_python

# Timeouts in seconds. Each store gets another timeout, so it has its own connections.
_TIMEOUTS = itertools.count(1000)


@pytest.fixture
def tree(tmp_path):
    for n in range(30):
        (tmp_path / "tree" / str(n % 3)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / str(n % 3) / f"{n}").write_bytes(b"%d" % n * 1000)
    return tmp_path / "tree"


@pytest.fixture
def reached(anywhere):
    """Returns the arguments with which jobs reach the store."""
    return {"config": anywhere}


class Callback:
    """A callback like fsspec's."""

    def __init__(self):
        self.size = self.value = 0

    def set_size(self, size):
        self.size = size

    def absolute_update(self, value):
        self.value = value


def test_there_and_back_with_progress(store, tree, reached, tmp_path):
    seen = []
    there = laneway.copy(tree, store.url, recursive=True, progress=seen.append, **reached)
    assert (there["files"], there["failed"]) == (30, 0) and seen[-1].items_done == 30 and seen[-1].scan_complete
    assert seen[-1].bytes_done == seen[-1].bytes_found == there["bytes"]
    callback = Callback()
    back = laneway.copy([store.url + "tree/"], tmp_path / "back", recursive=True, progress=callback, **reached)
    assert back["files"] == 30 and callback.size == callback.value == there["bytes"]
    laneway.remove(store.url, recursive=True, progress=True, **reached)
    assert store.list().collect() == []


def test_progress_is_reported_at_most_ten_times_a_second(store, tree, reached):
    for n in range(1000):
        (tree / f"more-{n}").write_bytes(b"x")
    seen = []
    began = time.monotonic()
    laneway.copy(tree, store.url, recursive=True, progress=seen.append, **reached)
    # The first report comes at once, and the last at the end.
    assert len(seen) <= 2 + (time.monotonic() - began) / 0.1
    assert seen[-1].items_done == seen[-1].items_found == 1030 and seen[-1].scan_complete


def test_awaited(store, tree, reached):
    there = asyncio.run(laneway.copy_async(tree, store.url, recursive=True, **reached))
    assert there["files"] == 30
    gone = asyncio.run(laneway.remove_async(store.url, recursive=True, **reached))
    assert gone["files"] == 30


def test_two_places_made_equal(store, tree, reached, tmp_path):
    there = store.url + "synced"
    assert laneway.sync(tree, there, **reached)["files"] == 30
    again = asyncio.run(laneway.sync_async(tree, there, checksum=True, delete=True, **reached))
    assert (again["files"], again["removed"], again["unchanged"]) == (0, 0, 30)
    (tree / "0" / "0").unlink()
    (tree / "new.tmp").write_bytes(b"x")
    (tree / "new").write_bytes(b"x")
    wishes = {"delete": True, "filters": ["*.tmp"], "newer": datetime.now(UTC) - timedelta(days=1)}
    planned = laneway.sync(tree, there, dry_run=True, max_delete=1, **wishes, **reached)
    assert sorted((item["op"], item["source"], item["destination"], item["size"]) for item in planned["planned"]) == [
        ("remove", f"{there}/0/0", None, 1000),
        ("upload", str(tree / "new"), f"{there}/new", 1),
    ]
    done = laneway.sync(tree, there, **wishes, **reached)
    assert done["planned"] == []
    for summary in planned, done:
        assert (summary["files"], summary["removed"], summary["unchanged"]) == (1, 1, 29)
    assert laneway.sync(there, tmp_path / "back", preserve=True, **reached)["files"] == 30
    with pytest.raises(Exception, match="does not exist") as raised:
        laneway.sync(store.url + "nothing", tmp_path / "back", delete=True, **reached)
    assert raised.value.summary["removed"] == 0 and (tmp_path / "back" / "new").exists()
    with pytest.raises(ValueError):
        laneway.sync(there, there + "/inside", **reached)
    with pytest.raises(ValueError):
        laneway.sync(tree, there, filters=["/"], **reached)
    with pytest.raises(TypeError):
        laneway.sync(tree, there, filter=["x"], **reached)


def test_filters_say_what_of_a_tree_is_copied_and_removed(store, tree, reached):
    there = laneway.copy(tree, store.url, recursive=True, filters=["- /0", "- 1*"], min_size=1, **reached)
    names = sorted(meta["path"] for page in [store.list().collect()] for meta in page)
    assert there["files"] == len(names) > 0 and not any("/0/" in name or "/1" in name for name in names)
    assert laneway.remove(store.url, recursive=True, filters="- 2*", **reached)["files"] == 0
    gone = asyncio.run(laneway.remove_async(store.url, recursive=True, min_size=1, **reached))
    assert gone["files"] == len(names) and store.list().collect() == []
    with pytest.raises(ValueError):
        laneway.copy(tree, store.url, recursive=True, filters=["/"], **reached)
    with pytest.raises(ValueError):
        laneway.remove(store.url, recursive=True, filters=["/"], **reached)


def test_copies_keep_the_times_of_files(store, tree, reached, tmp_path):
    made = 1_600_000_000
    os.utime(tree / "0" / "0", (made, made))
    laneway.copy(tree, store.url, recursive=True, contents=True, preserve=True, **reached)
    laneway.copy(store.url + "0/0", tmp_path / "with", preserve=True, **reached)
    laneway.copy(store.url + "0/0", tmp_path / "without", **reached)
    assert (tmp_path / "with").stat().st_mtime == made
    assert (tmp_path / "without").stat().st_mtime != made


def test_syncs_compare_sizes_alone_and_describe_new_objects(store, tree, reached):
    laneway.sync(tree, store.url, attributes={"Content-Type": "text/x", "colour": "blue"}, **reached)
    described = store.head("0/0")
    assert described["content_type"] == "text/x" and described["metadata"] == {"colour": "blue"}
    changed = tree / "0" / "0"
    changed.write_bytes(b"X" * changed.stat().st_size)
    assert laneway.sync(tree, store.url, size_only=True, **reached)["files"] == 0
    changed.write_bytes(b"of another size, and older than its object")
    os.utime(changed, (1_600_000_000, 1_600_000_000))
    assert asyncio.run(laneway.sync_async(tree, store.url, update=True, **reached))["files"] == 0
    assert laneway.sync(tree, store.url, **reached)["files"] == 1


def test_a_file_names_what_is_meant(store, tree, reached, tmp_path):
    there, names = store.url + "named", tmp_path / "names"
    names.write_text("# some of them\n0/0\n1/1\n2/2\n")
    assert laneway.sync(tree, there, files_from=names, **reached)["files"] == 3
    (tree / "0" / "0").unlink()
    (tree / "1" / "1").write_bytes(b"changed")
    with pytest.raises(FileNotFoundError, match="names:2"):
        laneway.sync(tree, there, files_from=names, **reached)
    done = asyncio.run(laneway.sync_async(tree, there, files_from=names, delete=True, **reached))
    assert (done["files"], done["removed"], done["unchanged"]) == (0, 1, 2)
    assert [meta["path"] for meta in store.list("named").collect()] == ["named/1/1", "named/2/2"]
    names.write_text("2/5\n")
    assert laneway.copy(tree, store.url, recursive=True, contents=True, files_from=str(names), **reached)["files"] == 1
    names.write_text("named/1/1\n2/5\n")
    assert laneway.remove(store.url, files_from=names, **reached)["files"] == 2
    names.write_text(f"{there}/2/2\n")
    assert asyncio.run(laneway.remove_async([], files_from=names, **reached))["files"] == 1
    assert store.list().collect() == []
    with pytest.raises(ValueError, match="list of names must be a local file"):
        laneway.sync(tree, there, files_from="s3://lake/names", **reached)


def test_of_an_object_within_a_store(store):
    store.put("a", b"bytes")
    laneway.copy(store, "a", "b")
    asyncio.run(awaited(laneway.copy_async, store, "b", "c", overwrite=False))
    assert store.get("c").bytes() == b"bytes"


def test_what_failed_is_raised(store, tree, reached):
    with pytest.raises(FileNotFoundError) as raised:
        laneway.copy([store.url + "nothing", store.url + "neither"], tree, **reached)
    assert len(raised.value.failures) == 2 and raised.value.summary["failed"] == 2
    assert "1 more" in raised.value.__notes__[0]
    with pytest.raises(ValueError):
        laneway.copy(tree, "ftp://x/", **reached)
    with pytest.raises(TypeError, match=r"^copy\(\) got an unexpected keyword argument 'recusrive'"):
        laneway.copy(tree, store.url, recusrive=True)
    with pytest.raises(TypeError, match=r"^sync\(\) got"):
        laneway.sync(tree, store.url, recusrive=True)
    with pytest.raises(Exception, match="use recursive=True to copy it"):
        laneway.copy(tree, store.url, **reached)
    (tree / "empty").mkdir()
    with pytest.raises(ValueError, match="add allow_empty=True"):
        store.put("full/k", b"x")
        laneway.sync(tree / "empty", store / "full", delete=True)


def test_a_second_copy_beside_the_first_is_refused(store, tree):
    laneway.copy(tree, (store, ""), recursive=True)
    with pytest.raises(ValueError, match=r"holds only the folder tree/.*delete=True would copy everything again.*add force=True"):
        laneway.sync(tree, store, delete=True)
    assert laneway.sync(tree, (store, PurePosixPath("tree")), delete=True)["unchanged"] == 30
    forced = laneway.sync(tree, store, delete=True, force=True)
    assert (forced["files"], forced["removed"]) == (30, 30)


def test_the_options_of_a_message_have_their_names_in_python():
    for message, translated in {
        "remove it yourself, or move with --allow-unverified": "remove it yourself, or move with allow_unverified=True",
        "copy with cp -r instead, and add --no-clobber to skip objects that exist": (
            "use laneway.copy with recursive=True instead, and add no_clobber=True to skip objects that exist"
        ),
        "run aws sso login --profile p, or ls -r --json": "run aws sso login --profile p, or ls -r --json",
        "bucket/a--no-clobber-b": "bucket/a--no-clobber-b",
        "5 bytes are kept; run the same command to continue from there": (
            "5 bytes are kept; make the same call again to continue from there"
        ),
        "gcs_endpoint: the value must be a URL": "base_url: the value must be a URL",
        "s3_endpoint: the value must be a URL": "endpoint: the value must be a URL",
        "have failed; repeat them with `laneway plan retry`": "have failed; repeat them with Plan.retry",
        "use one runner with --single-runner": "use one runner with single_runner=True",
    }.items():
        assert in_python(message) == translated


def test_no_message_names_an_option_that_python_lacks():
    """If a message of the library names an option of the program, the package replaces it with Python's
    name."""
    crates, named = Path(__file__).parents[3] / "crates", set()
    for source in (path for crate in ("laneway", "store", "lanes", "plans") for path in (crates / crate / "src").rglob("*.rs")):
        if "test" in source.stem or source.stem in UNSEEN:
            continue
        code = re.sub(r"(?m)^\s*//.*$", "", source.read_text().partition("#[cfg(test)]")[0])
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL):
            named.update(re.findall(r"(?<![\w-])--[a-z][a-z-]+", in_python(text)))
    assert named == UNREACHED


# Modules whose messages bindings never show, or that contain words with dashes that aren't options.
UNSEEN = {"cases", "address", "directory", "arn"}
# Options of other programs, and options for features that this package doesn't have, such as manifests.
UNREACHED = {
    "--all-versions",
    "--expect-size",
    "--format",
    "--http-put-response-hop-limit",
    "--impersonate-service-account",
    "--json",
    "--output",
    "--overwrite",
    "--preserve",
    "--profile",
    "--quiet",
    "--resource",
    "--sso-session",
}


def test_what_interrupts_a_job_cancels_it(store, tree, reached):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        laneway.copy(tree, store.url, recursive=True, progress=interrupt, **reached)


def test_the_engines_messages_come_to_logging(make, caplog):
    with caplog.at_level(logging.DEBUG, "laneway"):
        # A store with different settings doesn't share connections.
        store = make(client_options={"read_timeout": next(_TIMEOUTS)})
        store.put("k", b"bytes")
        store.get("k").bytes()
        for _ in range(100):
            if any("connection opened" in record.message for record in caplog.records):
                break
            store.head("k")
    assert any("connection opened" in record.message for record in caplog.records)


def test_jobs_reach_stores_with_their_own_configuration(make, store, tree, tmp_path):
    assert laneway.sync(tree, store / "synced")["files"] == 30
    assert laneway.sync((store, "synced"), tmp_path / "back")["files"] == 30
    assert laneway.copy(store / "synced", tmp_path / "copied", recursive=True, contents=True)["files"] == 30
    assert asyncio.run(laneway.copy_async([(store, "synced/0/0")], tmp_path / "one"))["files"] == 1
    with pytest.raises(ValueError, match="the same settings"):
        laneway.sync(*(make(client_options={"read_timeout": next(_TIMEOUTS)}) for _ in range(2)))
    assert laneway.remove(store, recursive=True)["files"] == 30


async def awaited(verb, *args, **kwargs):
    return await verb(*args, **kwargs)
