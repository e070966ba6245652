"""Syncs a tree with `laneway sync` from this machine to GCS, on to S3, and back. Each sync is killed several times on the way. Then it is
run twice more, and the second time it must transfer nothing. At the end the tree is compared byte by byte with the original."""

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

# STORAGE_EMULATOR_HOST names a GCS server that needs no credentials. The S3 credentials come from the environment.
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
    """Runs a sync, and kills it after `kill_after` files. Returns how many files it reported, and its summary if it ended."""
    moved, summary = 0, None
    command = [given.laneway, "sync", "--json", "--ca-cert", given.ca, "--delete", source, destination]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            # The last line of a killed program may be incomplete.
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
    """Checks that both trees have the same files with the same bytes. Returns their number."""
    same = 0
    for folder, _, names in os.walk(one):
        beside = os.path.join(other, os.path.relpath(folder, one))
        for name in names:
            check("a downloaded file differs", filecmp.cmp(os.path.join(folder, name), os.path.join(beside, name), shallow=False), name)
            same += 1
    # A killed program leaves temporary files of unfinished downloads. They don't count.
    there = sum(".laneway-" not in name for _, _, names in os.walk(other) for name in names)
    check("files of the original and of the downloaded tree", there == same, f"{same} and {there}")
    return same


for number, (source, destination) in enumerate(legs):
    kills = given.kills * (number + 1) // len(legs) - given.kills * number // len(legs)
    began, told = time.monotonic(), 0
    for _ in range(kills):
        told += sync(source, destination, kill_after=files // (2 * kills))[0]
    moved, summary = sync(source, destination)
    # Files that were transferred before a kill, but not reported, count as unchanged now. Reported files must not be transferred again.
    check(f"{source} to {destination}", summary["files"] + told <= files, f"{summary['files']} moved after {told}")
    check(f"{source} to {destination}", summary["files"] + summary["unchanged"] == files, summary)
    seconds = time.monotonic() - began
    began = time.monotonic()
    _, again = sync(source, destination)
    check(f"{source} to {destination} again", (again["files"], again.get("removed", 0), again["unchanged"]) == (0, 0, files), again)
    print(
        f"{source.split(':')[0]} to {destination.split(':')[0]}: {files} files, killed {kills} times, {seconds:.1f} s;"
        f" {told} were reported before, the last run moved {summary['files']}; another run took {time.monotonic() - began:.2f} s and moved none",
        flush=True,
    )
print(f"{compare(given.tree, back)} files are unchanged after the round trip")
