"""Runs the examples on local clusters, while their workers are killed at random.

The source and the destination are two processes of `laneway serve`. At the end, every part must have one result, the rows of all
results must be the planned rows, and `laneway plan verify` must find all copies. `LANEWAY_PLAN_OBJECTS=20000` makes a run short.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("LANEWAY_PROGRAM", "laneway")
OBJECTS = int(os.environ.get("LANEWAY_PLAN_OBJECTS", "200000"))
# For the examples that no cluster runs.
FEW = 10000
PART_ROWS = 2500
LEASE = "5s"
# A process is killed each time that this many more parts have ended, so the work always goes on.
KILL_AFTER_PARTS = (1, 5)
RUN_S_MAX = 1500

# A killer that fails in its thread would let a test pass without kills.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


class Stores:
    """A source with many objects, an empty destination, and a folder with links to the programs that the examples call."""

    def __init__(self, work):
        self.work, self.servers = work, []
        (work / "bin").mkdir()
        (work / "bin/laneway").symlink_to(shutil.which(PROGRAM))
        self.env = {
            **os.environ,
            "PATH": f"{work}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "AWS_ACCESS_KEY_ID": "laneway",
            "AWS_SECRET_ACCESS_KEY": "lanewaysecret",
            "AWS_REGION": "us-east-1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            # Ray gives its workers the least priority otherwise. Then they get no time if the machine does other work.
            "RAY_worker_niceness": "0",
        }
        self.env.pop("RAY_ADDRESS", None)
        self.env.pop("SPARK_HOME", None)
        for prefix, objects in (("all", OBJECTS), ("few", FEW)):
            for number in range(objects):
                folder = work / f"seed/source/{prefix}/{number // 1000:03}"
                if number % 1000 == 0:
                    folder.mkdir(parents=True)
                (folder / f"{number:06}").write_text(f"object {number}\n")
        self.env["AWS_ENDPOINT_URL"] = self.serve("--seed", work / "seed", "--bucket", "plans")
        shutil.rmtree(work / "seed")
        self.env["STORAGE_EMULATOR_HOST"] = self.serve("--bucket", "copies")

    def serve(self, *options):
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", *map(str, options)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.servers.append(server)
        return server.stdout.readline().split()[-1]

    def laneway(self, *arguments, status=0):
        """Runs the program, and returns the records that it prints."""
        ended = subprocess.run([PROGRAM, *map(str, arguments)], env=self.env, capture_output=True, text=True, check=False)
        assert ended.returncode == status, (arguments, ended.stdout[-2000:], ended.stderr[-2000:])
        return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]

    def plan(self, name, prefix="few"):
        """Makes a plan in a bucket, and returns its folder. The copies go to a prefix of their own."""
        folder = f"s3://plans/{name}-{os.getpid()}"
        options = ("--json", "--part-rows", PART_ROWS, "--parts", folder)
        (record,) = self.laneway("plan", "cp", *options, f"s3://source/{prefix}/", f"gs://copies/{name}/")
        assert record["parts"] >= 4
        return folder

    def check(self, folder):
        """Compares the plan with its results and with the destination."""
        pyarrow = pytest.importorskip("pyarrow")
        local = self.work / "plan"
        shutil.rmtree(local, ignore_errors=True)
        self.laneway("cp", "-q", "-r", f"{folder}/", f"{local}/")
        (index,) = local.rglob("index.json")
        local = index.parent

        def rows(name):
            with pyarrow.input_stream(str(local / name), compression="zstd") as lines:
                return [json.loads(line) for line in lines.read().splitlines()]

        planned, done = Counter(), Counter()
        for part in sorted((local / "parts").glob("*.jsonl.zst")):
            planned.update(row["url"] for row in rows(f"parts/{part.name}"))
            result = json.loads((local / "results" / part.name.replace(".jsonl.zst", ".json")).read_text())
            outcomes = rows(result["data"])
            assert {row["outcome"] for row in outcomes} == {"done"}
            assert len(outcomes) == result["rows"] == result["done"]
            done.update(row["url"] for row in outcomes)
        assert len(planned) == planned.total(), "the plan has a row twice"
        assert done == planned
        (status,) = self.laneway("plan", "status", "--json", folder)
        assert (status["ended"], status["done"], status["left"]) == (status["parts"], len(planned), 0)
        (check,) = self.laneway("plan", "verify", "--json", folder)
        assert check["same"] == len(planned)
        assert not any(check[kind] for kind in ("unverified", "missing", "different", "left", "extra"))
        return len(planned)


@pytest.fixture(scope="module")
def stores():
    # A disk would spend more time on 200,000 small files than the transfers take.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None, prefix="laneway-plans-") as work:
        stores = Stores(Path(work))
        try:
            yield stores
        finally:
            for server in stores.servers:
                server.terminate()
                server.wait()


# The command lines of the processes that are killed.
KINDS = {
    "executor": re.compile(r"CoarseGrainedExecutorBackend"),
    "worker": re.compile(r"pyspark\.daemon|^ray::run_part"),
    "runner": re.compile(r"^(?!sh |xargs ).*laneway plan run "),
}


class Killer(threading.Thread):
    """Kills processes of a cluster at random. They are descendants of one process, or runners of one plan."""

    def __init__(self, stores, root, folder):
        super().__init__(daemon=True)
        self.stores, self.root, self.folder = stores, root, folder
        self.kills, self.ended = Counter(), threading.Event()

    def run(self):
        # Nothing is killed before the first part runs. A release build runs a part in a third of a second.
        due = 0
        while not self.ended.wait(random.uniform(0.5, 2) if self.kills else 0.02):
            victims = self.victims()
            if "runner" not in victims or self.parts_ended() < due:
                continue
            # The kind that was killed least is next.
            kind = min(victims, key=lambda kind: (self.kills[kind], random.random()))
            # The process may have ended by itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(victims[kind]), signal.SIGKILL)
                self.kills[kind] += 1
            due = self.parts_ended() + random.randint(*KILL_AFTER_PARTS)

    def parts_ended(self):
        (status,) = self.stores.laneway("plan", "status", "--json", self.folder)
        return status["ended"]

    def victims(self):
        parents, commands = {}, {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                state = (process / "stat").read_text()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            parents[int(process.name)] = int(state.rpartition(")")[2].split()[1])
            commands[int(process.name)] = command
        victims = {}
        for process, command in commands.items():
            kind = next((kind for kind, pattern in KINDS.items() if pattern.search(command)), None)
            ancestor = process
            while ancestor and ancestor != self.root:
                ancestor = parents.get(ancestor)
            is_ours = bool(ancestor)
            if kind == "runner":
                # A script's own child is its last step, and not a worker. An orphan is still a runner.
                is_ours = parents[process] != self.root and self.folder in command
            if kind and is_ours:
                victims.setdefault(kind, []).append(process)
        return victims


def run_under_kills(stores, folder, command, kinds):
    """Runs an example to its end, and kills processes of these kinds meanwhile."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as log:
        example = subprocess.Popen(command, env=stores.env, cwd=stores.work, stdout=log, stderr=subprocess.STDOUT)
        killer = Killer(stores, example.pid, folder)
        killer.start()
        try:
            status = example.wait(timeout=RUN_S_MAX)
        finally:
            killer.ended.set()
            killer.join()
            example.terminate()
            example.wait()
        log.seek(0)
        text = log.read()
    assert status == 0, text[-8000:]
    # A short run may end before each kind was killed.
    assert killer.kills.keys() == kinds or 0 < killer.kills.total() < 3 * len(kinds), killer.kills
    rows = stores.check(folder)
    seconds = time.monotonic() - began
    print(f"\n{Path(command[0]).name}: {rows} objects and their check in {seconds:.0f} s; killed: {dict(killer.kills)}")
    print([line for line in text.splitlines() if " ended" in line][-1])


def test_spark_loses_nothing_while_executors_are_killed(stores):
    pytest.importorskip("pyspark")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java")
    folder = stores.plan("spark", "all")
    settings = ["spark.ui.enabled=false", "spark.task.maxFailures=1000", "spark.deploy.maxExecutorRetries=-1"]
    # Spark starts a speculative attempt only on another host, so this cluster starts none. The next tests do what it would do.
    options = ["--master", "local-cluster[2,1,1024]", *(f"--conf={setting}" for setting in settings)]
    command = ["spark-submit", *options, HERE / "spark.py", folder, "--lease", LEASE]
    run_under_kills(stores, folder, command, {"executor", "worker", "runner"})


def test_ray_loses_nothing_while_workers_are_killed(stores):
    pytest.importorskip("ray")
    folder = stores.plan("ray", "all")
    command = [sys.executable, HERE / "ray_plan.py", "--retries", "1000", folder, "--lease", LEASE]
    run_under_kills(stores, folder, command, {"worker", "runner"})


def test_xargs_loses_nothing_while_runners_are_killed(stores):
    folder = stores.plan("xargs")
    run_under_kills(stores, folder, [HERE / "xargs.sh", folder, "2", "--lease", LEASE], {"runner"})


@pytest.fixture
def run_part(stores, monkeypatch):
    """The task of spark.py."""
    monkeypatch.syspath_prepend(HERE)
    for name, value in stores.env.items():
        monkeypatch.setenv(name, value)
    from spark import run_part

    return lambda folder, part: run_part(PROGRAM, folder, part, ["--lease", LEASE])


def test_two_attempts_of_one_part_both_succeed(stores, run_part):
    folder = stores.plan("attempts")
    results = []
    attempts = [threading.Thread(target=lambda: results.append(run_part(folder, 0))) for _ in range(2)]
    for attempt in attempts:
        attempt.start()
    for attempt in attempts:
        attempt.join()
    assert len(results) == 2
    assert [result["done"] for result in results if result] == [PART_ROWS]


def test_an_attempt_takes_over_the_part_of_one_that_hangs(stores, run_part):
    folder = stores.plan("hanging")
    command = [PROGRAM, "plan", "run", "--part", "0", "--lease", LEASE, folder]
    with subprocess.Popen(command, env=stores.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as hanging:
        while not stores.laneway("plan", "status", "--json", folder)[0]["running"]:
            assert hanging.poll() is None
        hanging.send_signal(signal.SIGSTOP)
        try:
            result = run_part(folder, 0)
        finally:
            hanging.send_signal(signal.SIGCONT)
    assert (result["attempt"], result["done"]) == (2, PART_ROWS)
    # The process that hung has changed nothing when it went on.
    stores.laneway("plan", "run", "-q", folder)
    stores.check(folder)


def test_slurm_tasks_and_the_job_after_them_end_the_plan(stores):
    folder = stores.plan("slurm")
    # The tasks of the other parts never ran. The second job runs these parts.
    for variables, arguments in (({"SLURM_ARRAY_TASK_ID": "1"}, ["2"]), ({}, [])):
        subprocess.run([HERE / "slurm.sh", folder, *arguments], env=stores.env | variables, check=True)
    stores.check(folder)


def test_the_manifest_fits_the_schema_of_kubernetes():
    yaml = pytest.importorskip("yaml")
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    job = yaml.safe_load((HERE / "kubernetes.yaml").read_text())
    # The versions from the first with the release of backoffLimitPerIndex.
    for version in ("1.33", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(job, version, strict=True)
    job["spec"]["backOffLimitPerIndex"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.33", strict=True)


def test_the_manifest_runs_the_part_of_each_index(stores):
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((HERE / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    folder = stores.plan("kubernetes")
    for index in range(2):
        # Kubernetes replaces $(NAME) by the variable's value.
        arguments = [argument.replace("$(JOB_COMPLETION_INDEX)", str(index)) for argument in container["args"]]
        assert arguments[-1] == "s3://my-bucket/plans/1"
        (record,) = stores.laneway(*arguments[:-1], folder)
        assert (record["kind"], record["number"], record["done"]) == ("part", index, PART_ROWS)
