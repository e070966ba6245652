#!/usr/bin/env python3
"""Runs a plan on Spark. Each part is a task, which starts `laneway plan run --part N`.

    spark-submit spark.py s3://my-bucket/plans/1
    spark-submit --conf spark.task.maxFailures=20 spark.py s3://my-bucket/plans/1 --lease 5m

The program `laneway` must be on PATH on every machine, and find its credentials there. Arguments after DIR are passed on to
`laneway plan run`. The exit status is 0 if every object was done.
"""

import argparse
import ctypes
import json
import signal
import subprocess
import sys

# The user's own settings override these.
SETTINGS = {
    "spark.speculation": "true",
    # The loss of an executor counts as a failure of its tasks.
    "spark.task.maxFailures": "10",
}


def end_with_parent():
    """Makes Linux end this process when its parent dies. Spark kills only the Python process of an attempt that it cancels."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def run_part(laneway, folder, part, options):
    """Runs a part in a process. Returns its result, or None if another attempt has made the result.

    Spark can have two attempts of a part at the same time: when it speculates, and when it has lost touch with an executor that
    still works. The plan's lease lets one of them work. The other one waits until the part has ended, or takes over the part if
    the first attempt dies.
    """
    command = [laneway, "plan", "run", "--json", "--part", str(part), *options, folder]
    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=end_with_parent, check=False)
    records = [json.loads(line) for line in ended.stdout.splitlines()]
    result = next((record for record in records if record["kind"] == "part"), None)
    # A result with failed objects also is the part's result. Another attempt would change nothing.
    if result is None and ended.returncode != 0:
        raise RuntimeError(f"part {part}: exit status {ended.returncode}: {ended.stderr.strip()}")
    return result


def status(laneway, folder):
    """Returns the state of a plan."""
    ended = subprocess.run([laneway, "plan", "status", "--json", folder], stdout=subprocess.PIPE, text=True, check=False)
    record = json.loads(ended.stdout.splitlines()[0]) if ended.stdout else {}
    return record if record.get("kind") == "plan-status" else sys.exit(ended.returncode)


def main():
    from pyspark import SparkConf, SparkContext

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laneway", default="laneway", help="the program's path on every machine")
    parser.add_argument("folder", metavar="DIR", help="the plan's folder, which every machine can reach")
    parser.add_argument("options", metavar="OPTION", nargs=argparse.REMAINDER, help="options of `laneway plan run`")
    args = parser.parse_args()
    laneway, folder, options = args.laneway, args.folder, args.options

    parts = status(laneway, folder)["parts"]
    # Until the JVM runs, SparkConf doesn't know the settings of spark-submit.
    SparkContext._ensure_initialized()
    conf = SparkConf()
    for name, value in SETTINGS.items():
        conf.setIfMissing(name, value)
    with SparkContext(conf=conf) as context:
        numbers = context.parallelize(range(parts), max(parts, 1))
        results = numbers.map(lambda part: run_part(laneway, folder, part, options)).collect()
    retried = sum(result is None or result["attempt"] > 1 for result in results)
    state = status(laneway, folder)
    print(f"{state['ended']} of {parts} parts ended, {retried} of them not at the first attempt; {state['failed']} objects failed")
    sys.exit(state["failed"] > 0 or state["left"] > 0)


if __name__ == "__main__":
    main()
