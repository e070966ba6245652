#!/usr/bin/env python3
"""Compares Laneway's speed in Azure's dialect with azcopy, rclone and obstore, over an imitated link to `laneway serve`.

    speed_azure.py --laneway PROGRAM --rig FOLDER [--runs N] [JOB...]

The rig joins two network namespaces by a link with a delay, a rate and a queue (`rig up DELAY_MS MBIT QUEUE_KIB LOSS`), and
needs root. The server runs in one namespace, and the contenders run in the other one, in turn. Each run has a container of
its own, and its result is checked. The last lines are a table with the median, the least and the greatest seconds of each
contender. For `mixed`, the seconds are those until half of the small objects have arrived. azcopy and rclone must be on
PATH. This interpreter must have azure-storage-blob and obstore (requirements.txt).
"""

import argparse
import asyncio
import datetime
import filecmp
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# The rig's addresses of the server's namespace.
LISTEN = "10.77.0.2:9500"
ENDPOINT = f"http://{LISTEN}/{ACCOUNT}"
# No run takes this long. A contender that hangs counts as this slow.
SECONDS_MAX = 300
# Links as the rig takes them: one-way delay in ms, Mbit/s, queue in KiB, loss in %.
FAR, NEAR, VERY_NEAR = "25 1000 4096 0", "10 1000 2560 0", "1 1000 1024 0"
SMALL, LARGE = 4700, 256 << 20
MIXED_LARGE, MIXED_SMALL = 4, 200


def obstore_store(container):
    from obstore.store import AzureStore

    key = {"account_name": ACCOUNT, "account_key": KEY}
    return AzureStore(container_name=container, endpoint=ENDPOINT, client_options={"allow_http": True}, **key)


async def obstore_mixed(store, keys):
    import obstore

    began, ends = time.monotonic(), []

    async def read(key):
        answer = await obstore.get_async(store, key)
        async for _ in answer.stream(min_chunk_size=1 << 20):
            pass
        ends.append((key, time.monotonic() - began))

    await asyncio.gather(*map(read, keys))
    return ends


def obstore_contender(job, container, path):
    """Does a job with obstore as its users would write it. Runs in a process of its own."""
    import obstore

    store = obstore_store(container)
    if job == "small-up":

        async def upload():
            files = [file for file in Path(path).rglob("*") if file.is_file()]
            await asyncio.gather(*(obstore.put_async(store, f"t/{file.relative_to(path)}", file.read_bytes()) for file in files))

        asyncio.run(upload())
    elif job == "large-up":
        obstore.put(store, "one", Path(path))
    elif job == "large-down":
        with open(path, "wb") as file:
            for part in obstore.get(store, "one").stream(min_chunk_size=8 << 20):
                file.write(part)
    elif job == "list":
        print(sum(len(page) for page in obstore.list(store, "t/")))
    elif job == "delete":
        obstore.delete(store, [meta["path"] for page in obstore.list(store, "t/") for meta in page])
    elif job == "mixed":
        print(json.dumps(asyncio.run(obstore_mixed(store, mixed_keys()))))


def mixed_keys():
    return [f"t/large{n}" for n in range(MIXED_LARGE)] + [f"t/small{n:03}" for n in range(MIXED_SMALL)]


class Rig:
    """The link, the server and the commands of the contenders."""

    def __init__(self, args):
        self.laneway, self.rig = str(args.laneway), str(args.rig / "rig")
        self.data = Path("/dev/shm/laneway-speed-azure")
        self.server = None
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "AZCOPY_", "RCLONE_", "LANEWAY_"))}
        self.env |= {
            "AZURE_STORAGE_SERVICE_ENDPOINT": ENDPOINT,
            "AZURE_STORAGE_KEY": KEY,
            "RCLONE_CONFIG": "/dev/null",
            "RCLONE_CONFIG_AZ_TYPE": "azureblob",
            "RCLONE_CONFIG_AZ_ACCOUNT": ACCOUNT,
            "RCLONE_CONFIG_AZ_KEY": KEY,
            "RCLONE_CONFIG_AZ_ENDPOINT": ENDPOINT,
            "AZCOPY_LOG_LOCATION": str(self.data / "azcopy"),
            "AZCOPY_JOB_PLAN_LOCATION": str(self.data / "azcopy"),
            "AZCOPY_DISABLE_SYSLOG": "true",
        }

    def up(self, link):
        self.down()
        subprocess.run([self.rig, "up", *link.split()], check=True)
        command = [self.rig, "server", self.laneway, "serve", "--listen", LISTEN]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if "listening" not in self.server.stdout.readline():
            sys.exit("laneway serve did not start")

    def down(self):
        if self.server:
            self.server.terminate()
            self.server.wait()
            self.server = None
        subprocess.run([self.rig, "down"], check=False)

    def client(self, *command):
        """Runs a command in the client's namespace. Returns its seconds and its output."""
        began = time.monotonic()
        try:
            ended = subprocess.run(
                [self.rig, "client", *map(str, command)], env=self.env, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            return SECONDS_MAX, ""
        seconds = time.monotonic() - began
        if ended.returncode:
            print("FAIL", *command[:3], ended.stdout[-300:], ended.stderr[-300:], flush=True)
        return seconds, ended.stdout

    def azcopy(self, verb, kinds, *ends):
        return self.client("azcopy", verb, *ends, "--from-to", kinds, "--log-level", "NONE")

    def obstore(self, job, container, path=""):
        return self.client(sys.executable, __file__, "--obstore", job, container, path)

    def seed(self, source, target):
        self.client(self.laneway, "cp", "-q", "-r", source, target)

    def tree(self, name, files, size):
        folder = self.data / name
        if not folder.exists():
            for n in range(files):
                file = folder / f"{n // 1000:02}/f{n:05}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(os.urandom(size))
        return folder

    def file(self, name, size):
        path = self.data / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                for _ in range(size >> 20):
                    file.write(os.urandom(1 << 20))
        return path


def blob(container, key=""):
    """Returns a URL with a SAS token, as azcopy takes it."""
    from azure.storage.blob import generate_container_sas

    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    sas = generate_container_sas(ACCOUNT, container, account_key=KEY, permission="racwdl", expiry=expiry)
    return f"{ENDPOINT}/{container}/{key}?{sas}"


def small_up(rig):
    tree = rig.tree("small", 1000, SMALL)
    yield "laneway", lambda c: rig.client(rig.laneway, "cp", "-q", "-r", tree, f"az://{c}/t")
    yield "azcopy", lambda c: rig.azcopy("copy", "LocalBlob", tree, blob(c), "--recursive")
    yield "rclone", lambda c: rig.client("rclone", "copy", "--transfers", "64", "--checkers", "64", tree, f"az:{c}/t")
    yield "obstore", lambda c: rig.obstore("small-up", c, tree)


def large_up(rig):
    file = rig.file("one", LARGE)
    yield "laneway", lambda c: rig.client(rig.laneway, "cp", "-q", file, f"az://{c}/one")
    yield "azcopy", lambda c: rig.azcopy("copy", "LocalBlob", file, blob(c, "one"))
    yield "rclone", lambda c: rig.client("rclone", "copyto", file, f"az:{c}/one")
    yield "obstore", lambda c: rig.obstore("large-up", c, file)


def large_down(rig):
    file, got = rig.file("one", LARGE), rig.data / "got"

    def checked(run):
        def of(container):
            got.unlink(missing_ok=True)
            seconds, out = run(container)
            if not got.exists() or not filecmp.cmp(got, file, shallow=False):
                print("FAIL the downloaded bytes differ", flush=True)
            return seconds, out

        return of

    yield "laneway", checked(lambda c: rig.client(rig.laneway, "cp", "-q", f"az://{c}/one", got))
    yield "azcopy", checked(lambda c: rig.azcopy("copy", "BlobLocal", blob(c, "one"), got))
    yield "rclone", checked(lambda c: rig.client("rclone", "copyto", f"az:{c}/one", got))
    yield "obstore", checked(lambda c: rig.obstore("large-down", c, got))


def listing(rig):
    yield "laneway", lambda c: rig.client(rig.laneway, "ls", "-q", "-r", f"az://{c}/t/")
    yield "azcopy", lambda c: rig.client("azcopy", "list", blob(c, "t/"), "--location", "Blob", "--machine-readable", "--log-level", "NONE")
    yield "rclone", lambda c: rig.client("rclone", "lsf", "-R", "--files-only", "--fast-list", f"az:{c}/t")
    yield "obstore", lambda c: rig.obstore("list", c)


def delete(rig):
    yield "laneway", lambda c: rig.client(rig.laneway, "rm", "-q", "-f", "-r", f"az://{c}/t/")
    yield "azcopy", lambda c: rig.azcopy("remove", "BlobTrash", blob(c, "t"), "--recursive")
    yield "rclone", lambda c: rig.client("rclone", "delete", "--checkers", "64", f"az:{c}/t")
    yield "obstore", lambda c: rig.obstore("delete", c)


def mixed(rig):
    """GETs of four large objects and 200 small ones at once. Only these two contenders report the time of each object."""

    def half(ends):
        small = sorted(seconds for key, seconds in ends if "small" in key)
        return small[len(small) // 2] if len(small) == MIXED_SMALL else SECONDS_MAX

    def by_laneway(container):
        got = rig.data / "mixed-got"
        shutil.rmtree(got, ignore_errors=True)
        got.mkdir()
        urls = [f"az://{container}/{key}" for key in mixed_keys()]
        _, out = rig.client(rig.laneway, "cp", "--json", *urls, f"{got}/")
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return half([(row["source"], row["end_s"]) for row in rows if row.get("kind") == "item" and not row.get("error")]), out

    def by_obstore(container):
        _, out = rig.obstore("mixed", container)
        return half(json.loads(out or "[]")), out

    yield "laneway", by_laneway
    yield "obstore", by_obstore


def seed_one(rig, container):
    rig.seed(rig.file("one", LARGE), f"az://{container}/one")


def seed_mixed(rig, container):
    folder = rig.data / "mixed"
    for n in range(MIXED_LARGE):
        rig.file(f"mixed/large{n}", LARGE)
    for n in range(MIXED_SMALL):
        (folder / f"small{n:03}").write_bytes(os.urandom(SMALL))
    rig.client(rig.laneway, "sync", "-q", folder, f"az://{container}/t")


# A job's link, its contenders, the function that fills a container, and the number of blobs below t/ after a run.
JOBS = {
    "1000 x 4.7 KB up": (FAR, small_up, None, 1000),
    "256 MiB up": (NEAR, large_up, None, None),
    "256 MiB down": (NEAR, large_down, seed_one, None),
    "list 50,000": (NEAR, listing, lambda rig, c: rig.client(rig.laneway, "sync", "-q", rig.tree("many", 50_000, 1), f"az://{c}/t"), 50_000),
    "delete 5000": (NEAR, delete, lambda rig, c: rig.client(rig.laneway, "sync", "-q", rig.tree("few", 5000, 1), f"az://{c}/t"), 0),
    "mixed, half of the small": (VERY_NEAR, mixed, seed_mixed, None),
}


def run(rig, job, runs):
    """Runs a job's contenders in turn, and returns the seconds of each."""
    link, contenders, seed, expected = JOBS[job]
    rig.up(link)
    seconds = {}
    for n in range(runs):
        for name, measured in contenders(rig):
            container = f"run{n}-{name}"
            rig.client(rig.laneway, "mb", "-q", f"az://{container}")
            if seed:
                seed(rig, container)
            taken, _ = measured(container)
            seconds.setdefault(name, []).append(taken)
            found = len(rig.client(rig.laneway, "ls", "-q", "-r", f"az://{container}/")[1].splitlines()) if expected is not None else None
            if found != expected:
                print(f"FAIL {job}, {name}: {found} blobs are there", flush=True)
            rig.client(rig.laneway, "rb", "-q", "--force", "--yes", f"az://{container}")
            print(f"{job}: {name} {taken:.2f} s", flush=True)
    rig.down()
    return seconds


def table(results):
    names = ["laneway", "azcopy", "rclone", "obstore"]
    print("\n| job, seconds | one-way ms, Mbit/s, KiB, loss % |", *(f"{name} |" for name in names))
    print("|---|---|" + "---|" * len(names))
    for job, seconds in results.items():
        cells = [f"{statistics.median(s):.2f} ({min(s):.2f}-{max(s):.2f})" if (s := seconds.get(name)) else "" for name in names]
        print("|", " | ".join([job, JOBS[job][0], *cells]), "|")


def main():
    if sys.argv[1:2] == ["--obstore"]:
        obstore_contender(*sys.argv[2:5])
        # obstore 0.12.1 sometimes aborts when the interpreter ends.
        sys.stdout.flush()
        os._exit(0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"a regular expression for some of: {'; '.join(JOBS)}")
    parser.add_argument("--laneway", type=Path, required=True, help="a release build of the program")
    parser.add_argument("--rig", type=Path, required=True, help="the folder with the command `rig`")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    chosen = [job for job in JOBS if not args.jobs or any(re.search(pattern, job) for pattern in args.jobs)]
    rig = Rig(args)
    try:
        table({job: run(rig, job, args.runs) for job in chosen})
    finally:
        rig.down()
        shutil.rmtree(rig.data, ignore_errors=True)


if __name__ == "__main__":
    main()
