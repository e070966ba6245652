#!/usr/bin/env python3
"""Compares a plan's run with `laneway cp -r` and `rclone copy`: many small objects from S3 to GCS. Both are imitated by
`laneway serve`. rclone also copies from S3 to S3, because its uploads to GCS take much memory.

    speed_plans.py --laneway PROGRAM [--rclone PROGRAM] [--objects N] [--size BYTES] [--part-rows N] [--runs N] [CONTENDER...]

Each contender copies all objects. Then it copies them to another bucket, is killed (SIGKILL) after half of that time, and
is started again by the same command. The script counts the objects that the second command has copied although the first one
had copied them. It checks the number of copies and the bytes of some. The last lines are a table. Its memory is the peak
resident size of the contender's largest process; the servers aren't counted. The server that holds the copies is a new one
for each contender.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# A runner whose lease isn't renewed for this time (and 2 seconds more) loses its part. A second run waits that long.
LEASE = "5s"
# The number of copies whose bytes are compared.
SAMPLE = 100


class Bench:
    """The two servers and the commands of the contenders."""

    def __init__(self, args, work):
        self.args, self.work = args, work
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "GOOGLE_", "RCLONE_", "LANEWAY_"))
        }
        seed = work / "seed/source"
        for number in range(args.objects):
            folder = seed / f"data/{number // 1000:04}"
            if number % 1000 == 0:
                folder.mkdir(parents=True)
            (folder / f"{number:07}").write_bytes(os.urandom(args.size))
        self.source = self.serve("--seed", work / "seed")
        shutil.rmtree(work / "seed")
        self.destination = None

    def serve(self, *options):
        command = [self.args.laneway, "serve", "--listen", "127.0.0.1:0", *map(str, options)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        server.url = server.stdout.readline().split()[-1]
        # Nobody else reads the server's output.
        threading.Thread(target=server.stdout.read, daemon=True).start()
        return server

    def renew_destination(self):
        if self.destination:
            self.destination.terminate()
            self.destination.wait()
        self.destination = self.serve("--bucket", "whole", "--bucket", "killed")
        source, destination = self.source.url, self.destination.url
        self.env |= {
            "AWS_ENDPOINT_URL": source,
            "AWS_ACCESS_KEY_ID": "laneway",
            "AWS_SECRET_ACCESS_KEY": "lanewaysecret",
            "AWS_REGION": "us-east-1",
            "STORAGE_EMULATOR_HOST": destination,
            "RCLONE_CONFIG": "/dev/null",
        }
        s3 = {
            "type": "s3",
            "provider": "Other",
            "region": "us-east-1",
            "access_key_id": "laneway",
            "secret_access_key": "lanewaysecret",
        }
        gcs = {"type": "gcs", "anonymous": "true", "bucket_policy_only": "true", "project_number": "1"}
        remotes = {
            "from": s3 | {"endpoint": source},
            "tos3": s3 | {"endpoint": destination},
            "togcs": gcs | {"endpoint": f"{destination}/storage/v1/"},
        }
        for remote, options in remotes.items():
            for option, value in options.items():
                self.env[f"RCLONE_CONFIG_{remote}_{option}".upper()] = value

    def end(self):
        for server in (self.source, self.destination):
            if server:
                server.terminate()
                server.wait()

    def measured(self, commands, kill_after=None):
        """Runs commands one after another. Returns the seconds of each, and the largest peak memory in MiB.

        With `kill_after`, kills the last command after so many seconds.
        """
        seconds, peak = [], 0
        for number, command in enumerate(commands):
            began = time.monotonic()
            is_killed = kill_after is not None and number == len(commands) - 1
            with tempfile.TemporaryFile("w+", dir=self.work) as log:
                process = subprocess.Popen([str(word) for word in command], env=self.env, stdout=log, stderr=subprocess.STDOUT)
                timer = threading.Timer(kill_after or 0, process.send_signal, [signal.SIGKILL])
                if is_killed:
                    timer.start()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                timer.cancel()
                seconds.append(time.monotonic() - began)
                peak = max(peak, usage.ru_maxrss / 1024)
                if process.returncode and not is_killed:
                    log.seek(0)
                    print("FAIL", *command[:4], log.read()[-500:], flush=True)
        return seconds, peak

    def copies(self, bucket):
        """Returns the generation of each copy by its name."""
        command = [self.args.laneway, "ls", "-r", "--json", f"gs://{bucket}/"]
        listing = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        records = [json.loads(line) for line in listing.stdout.splitlines()]
        return {record["url"]: record["generation"] for record in records if "generation" in record}

    def check(self, bucket, name):
        """Prints a line if copies are missing or differ."""
        copies = self.copies(bucket)
        if len(copies) != self.args.objects:
            print(f"FAIL {name}: {len(copies)} copies", flush=True)
        for url in random.sample(sorted(copies), min(SAMPLE, len(copies))):
            source = "s3://source/data/" + "/".join(url.rsplit("/", 2)[1:])
            bytes_of = [
                subprocess.run([self.args.laneway, "cat", at], env=self.env, capture_output=True, check=False).stdout
                for at in (source, url)
            ]
            if len(bytes_of[0]) != self.args.size or bytes_of[0] != bytes_of[1]:
                print(f"FAIL {name}: {url} differs", flush=True)
        return copies


def by_plan(workers):
    def commands(bench, bucket):
        folder = bench.work / f"plan-{bucket}"
        shutil.rmtree(folder, ignore_errors=True)
        laneway, ends = bench.args.laneway, ("s3://source/data/", f"gs://{bucket}/data/")
        yield [laneway, "plan", "cp", "-q", "--part-rows", bench.args.part_rows, *ends, "--parts", folder]
        yield [laneway, "plan", "run", "-q", "--lease", LEASE, "--workers", workers, folder]

    return commands


def by_cp(*options):
    def commands(bench, bucket):
        manifest = bench.work / f"manifest-{bucket}"
        manifest.unlink(missing_ok=True)
        words = [option.replace("FILE", str(manifest)) for option in options]
        yield [bench.args.laneway, "cp", "-q", "-r", *words, "s3://source/data/", f"gs://{bucket}/data/"]

    return commands


def by_rclone(to):
    def commands(bench, bucket):
        options = ["--transfers", "64", "--checkers", "64", "--fast-list"]
        yield [bench.args.rclone, "copy", *options, "from:source/data", f"{to}:{bucket}/data"]

    return commands


CONTENDERS = {
    "plan, 1 worker": by_plan(1),
    "plan, 2 workers": by_plan(2),
    "cp -r": by_cp(),
    "cp -r --manifest": by_cp("--manifest", "FILE"),
    "rclone copy to GCS": by_rclone("togcs"),
    "rclone copy to S3": by_rclone("tos3"),
}


def run(bench, name):
    """Returns the seconds of each command, the peak memory, the seconds after a kill, and the number of objects copied again."""
    bench.renew_destination()
    seconds, peak = bench.measured(list(CONTENDERS[name](bench, "whole")))
    bench.check("whole", name)
    commands = list(CONTENDERS[name](bench, "killed"))
    bench.measured(commands, kill_after=seconds[-1] / 2)
    before = bench.copies("killed")
    (rest,), _ = bench.measured(commands[-1:])
    after = bench.check("killed", name)
    again = sum(after.get(url) != generation for url, generation in before.items())
    figures = {"seconds": seconds, "peak": peak, "before": len(before), "rest": rest, "again": again}
    print(name, json.dumps(figures), flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "contenders", nargs="*", metavar="CONTENDER", help=f"a regular expression for some of: {'; '.join(CONTENDERS)}"
    )
    parser.add_argument("--laneway", required=True, help="a release build of the program")
    parser.add_argument("--rclone", default="rclone")
    parser.add_argument("--objects", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--part-rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1)
    args = parser.parse_args()
    chosen = [name for name in CONTENDERS if not args.contenders or any(re.search(word, name) for word in args.contenders)]
    results = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None, prefix="laneway-speed-") as work:
        bench = Bench(args, Path(work))
        try:
            for _ in range(args.runs):
                for name in chosen:
                    results.setdefault(name, []).append(run(bench, name))
        finally:
            bench.end()
    print("\n| contender | seconds | objects/s | peak MiB | copied at the kill | seconds of the rest | copied again |")
    print("|---|---|---|---|---|---|---|")
    for name, figures in results.items():

        def median(key, of=figures):
            return statistics.median(figure[key] for figure in of)

        total = statistics.median(sum(figure["seconds"]) for figure in figures)
        shown = f"{total:.1f}"
        if len(figures[0]["seconds"]) > 1:
            shown += f" ({statistics.median(figure['seconds'][0] for figure in figures):.1f} of them to plan)"
        rest = f"{median('before'):.0f} | {median('rest'):.1f} | {median('again'):.0f}"
        print(f"| {name} | {shown} | {args.objects / total:.0f} | {median('peak'):.0f} | {rest} |")


if __name__ == "__main__":
    sys.exit(main())
