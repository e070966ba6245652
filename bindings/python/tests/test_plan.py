"""Plans: several threads and processes run the parts of one plan, and each row has one outcome."""

import csv
import json
import signal
import socket
import subprocess
import sys
import threading
import uuid
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context

import laneway
import pytest
from laneway import plan
from laneway.exceptions import InvalidPathError, UsageError
from laneway.plan import Plan

# A call that takes more seconds than this counts as hanging.
CALL_MAX = 30
ROWS = 30


@pytest.fixture
def filled(store):
    """A store with objects below `from`."""
    for n in range(ROWS):
        store.put(f"from/{n:02}", b"%d" % n * 100)
    return store


@pytest.fixture
def planned(filled, anywhere):
    """Makes a plan of a copy in parts of seven rows, and returns the arguments that open it."""
    folder = filled.url + "plan"
    totals = plan.copy(filled.url + "from", filled.url + "to", folder, part_rows=7, config=anywhere)
    assert totals == {"objects": ROWS, "bytes": sum(len(b"%d" % n * 100) for n in range(ROWS)), "removed": 0, "parts": 5, "resumed_rows": 0}
    return {"folder": folder, "config": anywhere}


def run_all(opened, **options):
    results = []
    while (result := opened.run_next(**options)) is not None:
        results.append(result)
    return results


def test_a_plan_is_made_run_and_verified(filled, planned, tmp_path):
    opened = Plan.open(**planned)
    assert (opened.index["kind"], opened.index["rows"], len(opened.parts)) == ("copy", ROWS, 5)
    assert opened.index["source"] == filled.url + "from/" and opened.folder == planned["folder"]
    before = opened.status()
    assert (before["ended"], before["left"], before["states"]) == (0, ROWS, ["waiting"] * 5)
    missing = []
    check = opened.verify(on_fault=missing.append)
    assert (check["is_clean"], check["missing"]) == (False, ROWS) and {row["class"] for row in missing} == {"missing"}
    first = opened.run_part(3)
    assert (first["number"], first["done"], first["attempt"]) == (3, 7, 1)
    results = [first, *run_all(opened)]
    assert sorted(result["number"] for result in results) == [0, 1, 2, 3, 4]
    assert sum(result["done"] for result in results) == ROWS and not any(result["failed"] for result in results)
    assert opened.run_part(3) == first and opened.run_next() is None
    after = opened.status()
    assert (after["ended"], after["done"], after["left"], after["states"]) == (5, ROWS, 0, ["ended"] * 5)
    assert [meta["path"] for meta in filled.list("to/").collect()] == [f"to/{n:02}" for n in range(ROWS)]
    assert opened.verify() == {"is_clean": True, "same": ROWS, "unverified": 0, "missing": 0, "different": 0, "left": 0, "extra": 0}
    assert opened.verify(3)["same"] == 7
    assert opened.retry(filled.url + "again") is None
    assert opened.report(tmp_path / "report.csv") == ROWS
    rows = list(csv.reader((tmp_path / "report.csv").open()))
    assert len(rows) == ROWS and {row[3] for row in rows} == {"succeeded"}
    with pytest.raises(FileNotFoundError):
        opened.report(tmp_path / "nowhere" / "report.csv")


def test_threads_share_a_plan_and_do_nothing_twice(planned):
    opened, results, failures = Plan.open(**planned), [], []

    def work():
        try:
            results.extend(run_all(opened))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(result["number"] for result in results) == [0, 1, 2, 3, 4]
    assert sum(result["done"] for result in results) == ROWS and opened.verify()["is_clean"]


RUNNER = """
import json, sys
from laneway.plan import Plan
given = json.loads(sys.argv[1])
opened = Plan.open(given["folder"], config=given["config"])
while (result := opened.run_next(lease=given.get("lease"))) is not None:
    print(json.dumps(result), flush=True)
"""


def runner(planned, **more):
    command = [sys.executable, "-c", RUNNER, json.dumps(planned | more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_share_a_plan_and_do_nothing_twice(planned):
    results = []
    with runner(planned) as one, runner(planned) as other:
        for process in one, other:
            out, failure = process.communicate(timeout=CALL_MAX)
            assert process.returncode == 0, failure
            results += map(json.loads, out.splitlines())
    assert sorted(result["number"] for result in results) == [0, 1, 2, 3, 4]
    assert sum(result["done"] for result in results) == ROWS and Plan.open(**planned).verify()["is_clean"]


def run_in_child(opened, results):
    results.put(run_all(opened))


def test_forked_children_run_a_plan_that_their_parent_opened(planned):
    opened, context = Plan.open(**planned), get_context("fork")
    results = [opened.run_part(4)]
    queue = context.Queue()
    children = [context.Process(target=run_in_child, args=(opened, queue)) for _ in range(2)]
    for child in children:
        child.start()
    for _ in children:
        results += queue.get(timeout=CALL_MAX)
    for child in children:
        child.join()
    assert sorted(result["number"] for result in results) == [0, 1, 2, 3, 4] and opened.verify()["is_clean"]


@pytest.fixture
def listening():
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(CALL_MAX)
        yield listening


@pytest.fixture
def between_clouds(anywhere, listening):
    """Makes a plan of one part that copies from S3 to GCS. Returns the arguments that open it, and the same arguments with an
    endpoint of S3 that never answers. A runner with these holds the part for ever.
    """
    here = f"lake/{uuid.uuid4().hex}"
    source = laneway.from_url(f"s3://{here}", **{name: anywhere[name] for name in ("endpoint", "access_key_id", "secret_access_key", "region")})
    for n in range(ROWS):
        source.put(f"from/{n:02}", b"%d" % n * 100)
    planned = {"folder": f"gs://{here}/plan", "config": anywhere}
    plan.copy(f"s3://{here}/from", f"gs://{here}/to", **planned)
    return planned, planned | {"config": anywhere | {"endpoint": f"http://127.0.0.1:{listening.getsockname()[1]}"}}


def test_the_part_of_a_killed_process_is_repeated_after_its_lease(between_clouds, listening):
    planned, held = between_clouds
    opened = Plan.open(**planned)
    with runner(held, lease=1) as process, listening.accept()[0]:
        assert opened.status()["states"] == ["running"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        result = opened.run_part(0, lease=timedelta(seconds=1))
    assert (result["attempt"], result["done"]) == (2, ROWS) and opened.verify()["is_clean"]


def test_ctrl_c_stops_a_part_and_gives_its_lease_up(between_clouds, listening):
    planned, held = between_clouds
    opened = Plan.open(**planned)
    with runner(held, lease="1h") as process, listening.accept()[0]:
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=CALL_MAX)[1]
        assert opened.status()["states"] == ["waiting"]
        assert opened.run_part(0)["done"] == ROWS


def test_failed_rows_are_reported_and_planned_again(filled, planned, anywhere):
    opened, failed = Plan.open(**planned), []
    filled.delete(["from/05", "from/06"])
    results = run_all(opened, on_failure=failed.append)
    assert sorted(row["url"] for row in failed) == [filled.url + "from/05", filled.url + "from/06"]
    assert sum(result["failed"] for result in results) == opened.status()["failed"] == 2
    assert sum(opened.status()["failures"].values()) == 2
    filled.put("from/05", b"another version")
    totals = opened.retry((filled, "again"))
    assert (totals["objects"], totals["removed"], totals["parts"]) == (1, 0, 1)
    again = Plan.open((filled, "again"), config=anywhere)
    assert again.index["retry_of"] == planned["folder"]
    assert [result["done"] for result in run_all(again)] == [1] and again.verify()["is_clean"]
    assert filled.get("to/05").bytes() == b"another version"


def test_a_callback_that_raises_ends_its_call_and_frees_the_part(filled, planned):
    opened = Plan.open(**planned)
    filled.delete(["from/07", "from/08"])

    def interrupt(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened.run_part(1, on_failure=interrupt)
    assert opened.status()["states"][1] in ("waiting", "ended")
    assert opened.run_part(1)["failed"] == 2


def test_a_sync_removes_once_every_copy_has_succeeded(filled, anywhere, tmp_path):
    source, destination = filled / "from", filled / "synced"
    laneway.sync(source, destination, filters=["+ 0*", "- *"])
    destination.put("extra", b"x")
    totals = plan.sync(source, destination, tmp_path / "plan", delete=True, max_delete=1, part_rows=15)
    assert (totals["objects"], totals["removed"], totals["parts"]) == (20, 1, 3)
    opened = Plan.open(tmp_path / "plan", config=anywhere)
    assert [part["action"] for part in opened.parts] == ["copy", "copy", "remove"]
    with pytest.raises(InvalidPathError, match="hasn't ended yet"):
        opened.run_part(2)
    assert sum(result["done"] for result in run_all(opened)) == 21
    plan.verify(source, destination, tmp_path / "compared")
    compared = Plan.open(tmp_path / "compared", config=anywhere)
    assert [(result["done"], result["failed"]) for result in run_all(compared)] == [(ROWS, 0)]
    old = datetime.now(UTC) + timedelta(days=1)
    plan.remove(destination, tmp_path / "removed", filters="- 2*", older=old, min_size=1)
    assert run_all(Plan.open(tmp_path / "removed", config=anywhere))[0]["done"] == 20
    assert [meta["path"] for meta in destination.list().collect()] == [f"{n}" for n in range(20, 30)]


def test_ranges_are_planned_one_by_one_into_one_plan(filled, anywhere):
    places, folder = (filled.url + "from", filled.url + "to"), filled.url + "plan"
    plan.copy(*places, folder, through="09", config=anywhere)
    with pytest.raises(InvalidPathError, match='after "09"'):
        Plan.open(folder, config=anywhere)
    plan.copy(*places, folder, after="09", config=anywhere)
    opened = Plan.open(folder, config=anywhere)
    assert [part["rows"] for part in opened.parts] == [10, 20]
    assert sum(result["done"] for result in run_all(opened, single_runner=True)) == ROWS


def test_a_dry_run_and_a_stopped_plan_leave_no_plan(filled, anywhere):
    places, folder, seen = (filled.url + "from", filled.url + "to"), filled.url + "plan", []
    dry = plan.copy(*places, folder, dry_run=True, progress=seen.append, config=anywhere)
    assert dry["objects"] == ROWS and seen[-1].rows == seen[-1].listed == ROWS

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.copy(*places, folder, dry_run=True, progress=interrupt, config=anywhere)
    with pytest.raises(InvalidPathError, match="no plan in this folder"):
        Plan.open(folder, config=anywhere)


def test_mistakes_raise_the_usual_exceptions(filled, planned, anywhere, tmp_path):
    with pytest.raises(InvalidPathError, match="already has a plan"):
        plan.copy(filled.url + "from", filled.url + "to", planned["folder"], config=anywhere)
    with pytest.raises(UsageError, match="there is no part 5"):
        Plan.open(**planned).run_part(5)
    with pytest.raises(UsageError, match="prefixes of buckets"):
        plan.copy(tmp_path, filled.url, tmp_path / "plan", config=anywhere)
    with pytest.raises(TypeError):
        plan.remove(filled.url, tmp_path / "plan", no_clobber=True)
    filled.put("other/00", b"x")
    with pytest.raises(InvalidPathError, match="more than 1 objects would be removed"):
        plan.sync(filled / "other", filled / "from", tmp_path / "plan", delete=True, max_delete=1)
    with pytest.raises(UsageError, match="needs both runners and bandwidth_limit"):
        plan.copy(filled.url + "from", filled.url + "to", tmp_path / "plan", runners=2, config=anywhere)


def test_runners_share_the_bandwidth_of_their_plan(filled, anywhere, tmp_path, caplog):
    plan.copy(filled / "from", filled / "to", tmp_path / "plan", bandwidth_limit=10_000_000, runners=1)
    opened = Plan.open(tmp_path / "plan", config=anywhere)
    assert opened.index["options"] == {"bandwidth_limit": 10_000_000, "runners": 1}
    assert opened.run_next()["done"] == ROWS and opened.run_next() is None
    assert not any("have no effect" in record.message for record in caplog.records)
