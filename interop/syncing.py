"""A tree goes round by `laneway sync`: this machine -> GCS -> S3 -> this machine, killed again and again on the way, and once more when
all is there, which must move nothing. Stores are those at the endpoints; what comes back is compared byte by byte."""

import argparse
import filecmp
import json
import os
import signal
import subprocess
import sys
import time

arguments = argparse.ArgumentParser()
for name in ("laneway", "tree", "work", "gcs", "s3", "ca", "bucket"):
    arguments.add_argument("--" + name, required=True)
arguments.add_argument("--kills", type=int, default=10)
given = arguments.parse_args()

# GCS's own variable for a server that asks for no credentials; S3's come from the environment.
os.environ.update(STORAGE_EMULATOR_HOST=given.gcs, AWS_ENDPOINT_URL_S3=given.s3)
files = sum(len(names) for _, _, names in os.walk(given.tree))
back = os.path.join(given.work, "synced")
os.makedirs(back, exist_ok=True)
gcs, s3 = f"gs://{given.bucket}/synced/", f"s3://{given.bucket}/synced/"
legs = [(given.tree, gcs), (gcs, s3), (s3, back)]


def check(what, holds, detail=""):
    if not holds:
        sys.exit(f"{what}: {detail}")


def sync(source, destination, kill_after=None):
    """Runs a sync to its end, or until so many files have moved: how many moved, and the summary if it came to that."""
    moved, summary = 0, None
    command = [given.laneway, "sync", "--json", "--ca-cert", given.ca, "--delete", source, destination]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            # What was killed may end within a line.
            record = json.loads(line) if line.endswith("\n") else {}
            moved += record.get("kind") == "item"
            if record.get("kind") == "summary":
                summary = record
            if moved == kill_after:
                run.send_signal(signal.SIGKILL)
                run.stdout.read()
                break
        status = run.wait()
    if kill_after is None:
        check(f"{source} to {destination}", status == 0 and summary, f"exit status {status}")
    return moved, summary


def compare(one, other):
    """The number of files that both trees have and that are the same; nothing else may be there."""
    same = 0
    for folder, _, names in os.walk(one):
        beside = os.path.join(other, os.path.relpath(folder, one))
        for name in names:
            check("a file that came back", filecmp.cmp(os.path.join(folder, name), os.path.join(beside, name), shallow=False), name)
            same += 1
    # Killed, a program leaves temporary files of what was under way.
    there = sum(".laneway-" not in name for _, _, names in os.walk(other) for name in names)
    check("files that came back", there == same, f"{there} where {same} are right")
    return same


for number, (source, destination) in enumerate(legs):
    kills = given.kills * (number + 1) // len(legs) - given.kills * number // len(legs)
    began, told = time.monotonic(), 0
    for _ in range(kills):
        told += sync(source, destination, kill_after=files // (2 * kills))[0]
    moved, summary = sync(source, destination)
    # What had moved when it was killed, but wasn't told any more, is there; what was told doesn't move again.
    check(f"{source} to {destination}", summary["files"] + told <= files, f"{summary['files']} moved after {told}")
    check(f"{source} to {destination}", summary["files"] + summary["unchanged"] == files, summary)
    seconds = time.monotonic() - began
    began = time.monotonic()
    _, again = sync(source, destination)
    check(f"{source} to {destination} again", (again["files"], again.get("removed", 0), again["unchanged"]) == (0, 0, files), again)
    print(
        f"{source.split(':')[0]} to {destination.split(':')[0]}: {files} files, killed {kills} times, {seconds:.1f} s;"
        f" {told} were told before, {summary['files']} moved at last; again {time.monotonic() - began:.2f} s, nothing moved",
        flush=True,
    )
print(f"{compare(given.tree, back)} files came back as they were")
