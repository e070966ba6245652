#!/usr/bin/env python3
"""Runs the verbs of the `laneway` program against googleapis/storage-testbench, with each fault of its Retry Test API.

A cell combines a verb, one kind of request that the verb sends, and one fault that hits this request. The script asks the
testbench for the fault, and passes the header x-retry-test-id to the program, which sends it with each request. A cell passes
if the program succeeds, the objects, files and output are right, and the testbench has used up the fault.

The script prints a line for each cell: ok, FAIL, or skip with the reason why the cell can't exist. It fails if a cell failed.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

MIB = 1 << 20
SMALL = b"a small object\n"
MIDDLE = os.urandom(MIB)
# The program sends objects of more than 16 MiB in an upload session, in chunks of 16 MiB.
LARGE = os.urandom(20 * MIB + 1)
TREE = {"a": b"first file\n", "b c": b"second file\n", "sub/d": b"third file\n", "sub/e": b"fourth file\n"}
# The program gives up after this time. The longest cell waits for a stall of 1 s and some retries.
SECONDS_PER_CELL = 60

# The kinds of requests, by the names that the testbench gives them.
GET, LIST, INSERT, PATCH = "storage.objects.get", "storage.objects.list", "storage.objects.insert", "storage.objects.patch"
DELETE, REWRITE, COPY = "storage.objects.delete", "storage.objects.rewrite", "storage.objects.copy"
COMPOSE, RESTORE = "storage.objects.compose", "storage.objects.restore"
BUCKETS, BUCKET_GET, BUCKET_PATCH = "storage.buckets.list", "storage.buckets.get", "storage.buckets.patch"
BUCKET_INSERT, BUCKET_DELETE = "storage.buckets.insert", "storage.buckets.delete"

# The statuses that GCS's clients retry (https://cloud.google.com/storage/docs/retry-strategy).
STATUSES = [408, 429, 500, 502, 503, 504]
# The first three are the scenarios of GCS's retry conformance tests for all operations.
ALWAYS = [
    ["return-503", "return-503"],
    ["return-reset-connection", "return-reset-connection"],
    ["return-reset-connection", "return-503"],
    *([f"return-{status}"] for status in STATUSES),
    ["return-reset-connection"],
]
ANSWER = [["return-broken-stream"], ["stall-for-1s-after-0K"]]
CONTENT = [
    ["return-broken-stream-after-256K"],
    ["return-broken-stream-after-256K", "return-broken-stream-after-512K"],
    ["stall-for-1s-after-256K"],
]
UPLOAD = [
    *([f"return-{status}-after-256K"] for status in STATUSES),
    ["stall-for-1s-after-256K"],
]
SESSION = [
    ["return-503-after-8192K", "return-408-after-16384K"],
    ["return-503-after-17408K"],
    ["return-broken-stream-final-chunk-after-10B"],
    # After the stall the first chunk passes, so that the next fault hits the second chunk.
    ["stall-for-1s-after-0K", "return-503"],
    ["stall-for-1s-after-0K", "return-reset-connection"],
    ["stall-for-1s-after-0K", "return-broken-stream"],
]
# The session is lost, so the upload begins again.
LOST = [["return-404-after-8192K"], ["return-410-after-17408K"]]
FAULTS = {"always": ALWAYS, "answer": ANSWER, "content": CONTENT, "upload": UPLOAD, "session": SESSION, "lost": LOST}
# The reasons why other requests can't meet the faults of a group.
REASONS = {
    "answer": "the testbench answers this request without a body, so no body can break or stall",
    "content": "the testbench breaks a body after so many bytes only if it is the content of an object of that size",
    "upload": "the testbench counts uploaded bytes only in an upload of that size",
    "session": "the testbench has this fault only for the chunks of an upload session",
    "lost": "the testbench has this fault only for the chunks of an upload session",
}
# The same for upload sessions. "lost" is for a session whose content can't be read twice.
SESSION_REASONS = {
    "answer": "while this fault waits for a body, the testbench answers 200 instead of 308; the last chunk has its own cell",
    "lost": "what the lost session held can't be read from standard input again",
}

Verb = collections.namedtuple("Verb", "name function requests")
VERBS = []


def verb(name, **requests):
    """Registers a verb. Each keyword is a kind of request that it sends, with the groups of faults that can hit the request."""

    def register(function):
        VERBS.append(Verb(name, function, {globals()[kind.upper()]: ["always", *groups] for kind, groups in requests.items()}))
        return function

    return register


class Wrong(Exception):
    """The error for a cell whose outcome is not the expected one."""


class Testbench:
    def __init__(self, url):
        self.url = url

    def ask(self, method, path, body=None, kind="application/json"):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        # When a fault hits one connection, the testbench also closes some others.
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def ask_json(self, *args):
        return json.loads(self.ask(*args))


class Cell:
    """One run of a verb: a bucket and a folder of its own, and the fault."""

    def __init__(self, bench, laneway, folder, bucket):
        self.bench, self.program, self.folder, self.bucket = bench, laneway, Path(folder), bucket
        self.fault = None
        self.begin = lambda: None

    def url(self, key=""):
        return f"gs://{self.bucket}/{key}"

    def beside(self):
        """Returns the same cell with another bucket."""
        return Cell(self.bench, self.program, self.folder, f"{self.bucket}-2")

    def path(self, name):
        return self.folder / name

    def make_bucket(self, **settings):
        self.bench.ask("POST", "/storage/v1/b?project=p", {"name": self.bucket, **settings})

    def put(self, **objects):
        self.put_all(objects)

    def put_all(self, objects):
        # A media upload on the testbench loses the content type.
        for key, content in objects.items():
            described = json.dumps({"name": key, "contentType": "text/x-own"}).encode()
            parts = (b"Content-Type: application/json\r\n\r\n" + described, b"Content-Type: text/x-own\r\n\r\n" + content)
            body = b"".join(b"--=parts=\r\n" + part + b"\r\n" for part in parts) + b"--=parts=--\r\n"
            path = f"/upload/storage/v1/b/{self.bucket}/o?uploadType=multipart"
            self.bench.ask("POST", path, body, 'multipart/related; boundary="=parts="')

    def write(self, name, content):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def write_tree(self, name="tree"):
        for file, content in TREE.items():
            self.write(f"{name}/{file}", content)
        return self.path(name)

    def laneway(self, *args, stdin=b""):
        """Runs the program with the fault, and returns its output."""
        self.begin()
        header = ["--header", f"x-retry-test-id: {self.fault}"] if self.fault else []
        command = [self.program, *map(str, args), *header, "--retry-for", "30s", "--project", "p", "--gcs-endpoint", self.bench.url]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}
        try:
            told = subprocess.run(command, input=stdin, env=env, capture_output=True, timeout=SECONDS_PER_CELL, check=False)
        except subprocess.TimeoutExpired as error:
            raise Wrong(f"the program ran for more than {SECONDS_PER_CELL} s") from error
        if told.returncode:
            raise Wrong(f"exit status {told.returncode}: {told.stderr.decode(errors='replace').strip()}")
        return told.stdout

    def described(self, key):
        return self.bench.ask_json("GET", f"/storage/v1/b/{self.bucket}/o/{urllib.parse.quote(key, safe='')}")

    def expect_objects(self, expected):
        """Compares all objects of the bucket, with their contents."""
        listed = self.bench.ask_json("GET", f"/storage/v1/b/{self.bucket}/o").get("items", [])
        expect("objects", sorted(item["name"] for item in listed), sorted(expected))
        for key, content in expected.items():
            path = f"/storage/v1/b/{self.bucket}/o/{urllib.parse.quote(key, safe='')}?alt=media"
            if self.bench.ask("GET", path) != content:
                raise Wrong(f"the content of {key} is wrong")

    def expect_files(self, expected, name):
        found = {str(path.relative_to(self.path(name))): path.read_bytes() for path in self.path(name).rglob("*") if path.is_file()}
        expect("files", sorted(found), sorted(expected))
        for file, content in expected.items():
            if found[file] != content:
                raise Wrong(f"the content of {file} is wrong")

    def expect_file(self, expected, name):
        if self.path(name).read_bytes() != expected:
            raise Wrong(f"the content of {name} is wrong")


def expect(what, found, expected):
    if found != expected:
        raise Wrong(f"{what}: {found!r} instead of {expected!r}")


def under(prefix, tree=None):
    return {prefix + name: content for name, content in (TREE if tree is None else tree).items()}


@verb("cp up, small", insert=["answer"])
def cp_up_small(cell):
    cell.make_bucket()
    cell.laneway("cp", cell.write("f", SMALL), cell.url("k"), "--content-type", "text/x-own", "--metadata", "colour=red")
    cell.expect_objects({"k": SMALL})
    described = cell.described("k")
    expect("the type", described["contentType"], "text/x-own")
    expect("the metadata", described["metadata"]["colour"], "red")


@verb("cp up, 1 MiB", insert=["answer", "upload"])
def cp_up_middle(cell):
    cell.make_bucket()
    cell.laneway("cp", cell.write("f", MIDDLE), cell.url("k"))
    cell.expect_objects({"k": MIDDLE})


@verb("cp up, resumable", insert=["upload", "session", "lost"])
def cp_up_session(cell):
    # Metadata with capitals needs an upload session, because the XML API can't carry it.
    cell.make_bucket()
    cell.laneway("cp", cell.write("f", LARGE), cell.url("k"), "--content-type", "text/x-own", "--metadata", "Owner=me")
    cell.expect_objects({"k": LARGE})
    described = cell.described("k")
    expect("the type", described["contentType"], "text/x-own")
    expect("the metadata", described["metadata"]["Owner"], "me")


@verb("cp up, resumable after a refused XML upload", insert=["upload", "session", "lost"])
def cp_up_parts(cell):
    cell.make_bucket()
    cell.laneway("cp", cell.write("f", LARGE), cell.url("k"))
    cell.expect_objects({"k": LARGE})


@verb("cp up, --no-clobber", get=["answer"], insert=["answer"])
def cp_up_no_clobber(cell):
    cell.make_bucket()
    cell.put(there=SMALL)
    cell.write_tree()
    cell.write("tree/there", b"another content\n")
    cell.laneway("cp", "-n", cell.path("tree/a"), cell.path("tree/there"), cell.url())
    cell.expect_objects({"a": TREE["a"], "there": SMALL})


@verb("cp up, --no-clobber, resumable", insert=["upload", "session", "lost"])
def cp_up_no_clobber_session(cell):
    cell.make_bucket()
    cell.laneway("cp", "-n", cell.write("f", LARGE), cell.url("k"), "--metadata", "Owner=me")
    cell.expect_objects({"k": LARGE})


@verb("cp up, -r", insert=["answer"])
def cp_up_tree(cell):
    cell.make_bucket()
    cell.laneway("cp", "-r", cell.write_tree(), cell.url("t"))
    cell.expect_objects(under("t/"))


@verb("cp up, from stdin", insert=["upload", "session"])
def cp_up_stdin(cell):
    cell.make_bucket()
    cell.laneway("cp", "-", cell.url("k"), "--metadata", "Owner=me", stdin=LARGE)
    cell.expect_objects({"k": LARGE})


@verb("cp down, small", get=["answer"])
def cp_down_small(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("cp", cell.url("k"), cell.path("f"))
    cell.expect_file(SMALL, "f")


@verb("cp down, large", get=["answer", "content"])
def cp_down_large(cell):
    cell.make_bucket()
    cell.put(k=LARGE)
    cell.laneway("cp", cell.url("k"), cell.path("f"))
    cell.expect_file(LARGE, "f")


@verb("cp down, -r", list=["answer"], get=["answer"])
def cp_down_tree(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    cell.laneway("cp", "-r", cell.url("t"), cell.path("down"))
    cell.expect_files(TREE, "down")


@verb("cp within", rewrite=["answer"])
def cp_within(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("cp", cell.url("k"), cell.url("copy"))
    cell.expect_objects({"k": SMALL, "copy": SMALL})
    expect("the type", cell.described("copy")["contentType"], "text/x-own")


@verb("cp within, in several requests", rewrite=["answer"])
def cp_within_large(cell):
    cell.make_bucket()
    cell.put(k=LARGE)
    cell.laneway("cp", cell.url("k"), cell.url("copy"), "--content-type", "text/x-new")
    cell.expect_objects({"k": LARGE, "copy": LARGE})
    expect("the type", cell.described("copy")["contentType"], "text/x-new")


@verb("cp within, --no-clobber", rewrite=["answer"])
def cp_within_no_clobber(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("cp", "-n", cell.url("k"), cell.url("copy"))
    cell.expect_objects({"k": SMALL, "copy": SMALL})


@verb("cp between buckets", rewrite=["answer"])
def cp_between(cell):
    cell.make_bucket()
    other = cell.beside()
    other.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("cp", cell.url("k"), other.url("k"))
    cell.expect_objects({"k": SMALL})
    other.expect_objects({"k": SMALL})


@verb("cp within, -r", list=["answer"], rewrite=["answer"])
def cp_within_tree(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    cell.laneway("cp", "-r", cell.url("t"), cell.url("u"))
    cell.expect_objects(under("t/") | under("u/"))


@verb("cat", get=["answer", "content"])
def cat(cell):
    cell.make_bucket()
    cell.put(k=MIDDLE)
    expect("the output", cell.laneway("cat", cell.url("k")) == MIDDLE, True)


@verb("cat, a range", get=["answer"])
def cat_range(cell):
    cell.make_bucket()
    cell.put(k=MIDDLE)
    expect("the output", cell.laneway("cat", "-r", "100-199,-100", cell.url("k")), MIDDLE[100:200] + MIDDLE[-100:])


@verb("ls", list=["answer"])
def ls(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    listed = sorted(cell.laneway("ls", cell.url("t/")).decode().splitlines())
    expect("the output", listed, [cell.url(f"t/{name}") for name in ("a", "b c", "sub/")])


@verb("ls, -r -l", list=["answer"])
def ls_recursive(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    lines = cell.laneway("ls", "-r", "-l", cell.url()).decode().splitlines()
    listed = [line.split("gs://")[1] for line in lines if "gs://" in line]
    expect("the output", listed, [f"{cell.bucket}/t/{name}" for name in TREE])


@verb("ls, -a", list=["answer"])
def ls_versions(cell):
    cell.make_bucket(versioning={"enabled": True})
    cell.put(k=SMALL)
    cell.put(k=MIDDLE)
    expect("the versions", len(cell.laneway("ls", "-a", cell.url()).splitlines()), 2)


@verb("ls, of buckets", buckets=["answer"])
def ls_buckets(cell):
    cell.make_bucket()
    expect("the output", f"gs://{cell.bucket}/" in cell.laneway("ls", "gs://").decode().splitlines(), True)


@verb("ls, --soft-deleted", list=["answer"])
def ls_soft_deleted(cell):
    soft_deleted(cell)
    expect("the output", len(cell.laneway("ls", "--soft-deleted", cell.url()).splitlines()), 1)


@verb("du", list=["answer"])
def du(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    total = sum(map(len, TREE.values()))
    expect("the total", int(cell.laneway("du", cell.url()).split(b"\n")[-2].split()[0]), total)


@verb("stat", get=["answer"])
def stat(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    told = json.loads(cell.laneway("stat", "--json", cell.url("k")))
    expect("the size", told["size"], len(SMALL))
    expect("the type", told["content_type"], "text/x-own")


@verb("stat, --acl", get=["answer"])
def stat_acl(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    expect("the owner is told", b"OWNER to" in cell.laneway("stat", "--acl", cell.url("k")), True)


@verb("verify", list=["answer"])
def verify(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    cell.laneway("verify", cell.write_tree(), cell.url("t"))


@verb("rm", delete=[])
def rm(cell):
    cell.make_bucket()
    cell.put(k=SMALL, other=SMALL)
    cell.laneway("rm", cell.url("k"))
    cell.expect_objects({"other": SMALL})


@verb("rm, -r", list=["answer"], delete=[])
def rm_tree(cell):
    cell.make_bucket()
    cell.put(other=SMALL)
    cell.put_all(under("t/"))
    cell.laneway("rm", "-r", cell.url("t"))
    cell.expect_objects({"other": SMALL})


@verb("rm, -a", list=["answer"], delete=[])
def rm_versions(cell):
    cell.make_bucket(versioning={"enabled": True})
    cell.put(k=SMALL)
    cell.put(k=MIDDLE, other=SMALL)
    cell.laneway("rm", "-a", cell.url("k"))
    listed = cell.bench.ask_json("GET", f"/storage/v1/b/{cell.bucket}/o?versions=true")["items"]
    expect("the versions", [item["name"] for item in listed], ["other"])


@verb("mv up", insert=["answer"])
def mv_up(cell):
    cell.make_bucket()
    path = cell.write("f", SMALL)
    cell.laneway("mv", path, cell.url("k"))
    cell.expect_objects({"k": SMALL})
    expect("the file is there", path.exists(), False)


@verb("mv down", get=["answer"], delete=[])
def mv_down(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("mv", cell.url("k"), cell.path("f"))
    cell.expect_objects({})
    cell.expect_file(SMALL, "f")


@verb("mv within", get=["answer"], copy=["answer"], delete=[])
def mv_within(cell):
    # The testbench carries out a move as a copy and a removal, so it injects the faults of both.
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("mv", cell.url("k"), cell.url("moved"))
    cell.expect_objects({"moved": SMALL})


@verb("mv within, -r", list=["answer"], copy=["answer"], delete=[])
def mv_within_tree(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    cell.laneway("mv", "-r", cell.url("t"), cell.url("u"))
    cell.expect_objects(under("u/"))


@verb("mv between buckets", get=["answer"], rewrite=["answer"], delete=[])
def mv_between(cell):
    cell.make_bucket()
    other = cell.beside()
    other.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("mv", cell.url("k"), other.url("moved"))
    cell.expect_objects({})
    other.expect_objects({"moved": SMALL})


@verb("mv up, resumable", insert=["upload", "session", "lost"])
def mv_up_session(cell):
    cell.make_bucket()
    path = cell.write("f", LARGE)
    cell.laneway("mv", path, cell.url("k"), "--metadata", "Owner=me")
    cell.expect_objects({"k": LARGE})
    expect("the file is there", path.exists(), False)


@verb("mv down, large", get=["answer", "content"], delete=[])
def mv_down_large(cell):
    cell.make_bucket()
    cell.put(k=LARGE)
    cell.laneway("mv", cell.url("k"), cell.path("f"))
    cell.expect_objects({})
    cell.expect_file(LARGE, "f")


@verb("sync up, --delete", list=["answer"], insert=["answer"], delete=[])
def sync_up(cell):
    cell.make_bucket()
    cell.put_all({"s/a": TREE["a"], "s/b c": b"outdated\n", "s/extra": SMALL})
    cell.laneway("sync", "--delete", cell.write_tree(), cell.url("s"))
    cell.expect_objects(under("s/"))


@verb("sync down, --delete", list=["answer"], get=["answer"])
def sync_down(cell):
    cell.make_bucket()
    cell.put_all(under("s/"))
    cell.write("down/extra", SMALL)
    cell.laneway("sync", "--delete", cell.url("s"), cell.path("down"))
    cell.expect_files(TREE, "down")


@verb("sync up, resumable", insert=["upload", "session", "lost"])
def sync_up_session(cell):
    cell.make_bucket()
    cell.write("up/k", LARGE)
    cell.laneway("sync", cell.path("up"), cell.url("s"))
    cell.expect_objects({"s/k": LARGE})


@verb("sync down, large", get=["answer", "content"])
def sync_down_large(cell):
    cell.make_bucket()
    cell.put_all({"s/k": LARGE})
    cell.laneway("sync", cell.url("s"), cell.path("down"))
    cell.expect_files({"k": LARGE}, "down")


@verb("sync within, --delete", list=["answer"], rewrite=["answer"], delete=[])
def sync_within(cell):
    cell.make_bucket()
    cell.put_all(under("s/") | {"d/extra": SMALL})
    cell.laneway("sync", "--delete", cell.url("s"), cell.url("d"))
    cell.expect_objects(under("s/") | under("d/"))


@verb("setmeta", patch=["answer"])
def setmeta(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("setmeta", "--content-type", "text/x-new", "--metadata", "colour=red", cell.url("k"))
    described = cell.described("k")
    expect("the type", described["contentType"], "text/x-new")
    expect("the metadata", described["metadata"]["colour"], "red")
    cell.expect_objects({"k": SMALL})


@verb("setmeta, -r", list=["answer"], patch=["answer"])
def setmeta_tree(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    cell.laneway("setmeta", "-r", "--cache-control", "no-store", cell.url("t"))
    for key in under("t/"):
        expect("the cache control", cell.described(key)["cacheControl"], "no-store")


@verb("setmeta, --storage-class", get=["answer"], rewrite=["answer"])
def setmeta_class(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    cell.laneway("setmeta", "--storage-class", "NEARLINE", cell.url("k"))
    expect("the class", cell.described("k")["storageClass"], "NEARLINE")
    cell.expect_objects({"k": SMALL})


@verb("compose", get=["answer"], compose=["answer"])
def compose(cell):
    cell.make_bucket()
    cell.put(a=SMALL, b=MIDDLE)
    cell.laneway("compose", cell.url("a"), cell.url("b"), cell.url("joined"))
    cell.expect_objects({"a": SMALL, "b": MIDDLE, "joined": SMALL + MIDDLE})


@verb("compose, --no-clobber", compose=["answer"])
def compose_no_clobber(cell):
    cell.make_bucket()
    cell.put(a=SMALL, b=MIDDLE)
    cell.laneway("compose", "-n", cell.url("a"), cell.url("b"), cell.url("joined"))
    cell.expect_objects({"a": SMALL, "b": MIDDLE, "joined": SMALL + MIDDLE})


def soft_deleted(cell):
    cell.make_bucket(softDeletePolicy={"retentionDurationSeconds": "604800"})
    cell.put(k=SMALL)
    cell.bench.ask("DELETE", f"/storage/v1/b/{cell.bucket}/o/k")


@verb("restore", list=["answer"], restore=["answer"])
def restore(cell):
    soft_deleted(cell)
    cell.laneway("restore", cell.url("k"))
    cell.expect_objects({"k": SMALL})


@verb("restore, -r", list=["answer"], restore=["answer"])
def restore_tree(cell):
    soft_deleted(cell)
    cell.laneway("restore", "-r", cell.url())
    cell.expect_objects({"k": SMALL})


@verb("mb", bucket_insert=["answer"])
def mb(cell):
    cell.laneway("mb", f"gs://{cell.bucket}")
    cell.expect_objects({})


@verb("rb", bucket_delete=[])
def rb(cell):
    cell.make_bucket()
    cell.laneway("rb", f"gs://{cell.bucket}")
    expect("the bucket is there", bucket_is_there(cell), False)


@verb("rb, --force", list=["answer"], delete=[], bucket_delete=[])
def rb_force(cell):
    cell.make_bucket()
    cell.put_all(under("t/"))
    cell.laneway("rb", "--force", "-y", f"gs://{cell.bucket}")
    expect("the bucket is there", bucket_is_there(cell), False)


def bucket_is_there(cell):
    try:
        cell.bench.ask("GET", f"/storage/v1/b/{cell.bucket}")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    return True


@verb("bucket versioning", bucket_get=["answer"])
def bucket_versioning(cell):
    cell.make_bucket(versioning={"enabled": True})
    expect("the output", json.loads(cell.laneway("bucket", "versioning", f"gs://{cell.bucket}")), {"enabled": True})


@verb("bucket versioning, on", bucket_patch=["answer"])
def bucket_versioning_on(cell):
    cell.make_bucket()
    cell.laneway("bucket", "versioning", f"gs://{cell.bucket}", "on")
    expect("the setting", cell.bench.ask_json("GET", f"/storage/v1/b/{cell.bucket}")["versioning"]["enabled"], True)


@verb("bucket lifecycle", bucket_patch=["answer"])
def bucket_lifecycle(cell):
    cell.make_bucket()
    rules = {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]}
    cell.laneway("bucket", "lifecycle", f"gs://{cell.bucket}", "--set", cell.write("rules", json.dumps(rules).encode()))
    kept = cell.bench.ask_json("GET", f"/storage/v1/b/{cell.bucket}")["lifecycle"]["rule"][0]
    expect("the action", kept["action"], {"type": "Delete"})


@verb("run", insert=["answer"], get=["answer"])
def run_file(cell):
    cell.make_bucket()
    cell.put(k=SMALL)
    commands = f"cp {cell.write('f', SMALL)} {cell.url('up')}\ncp {cell.url('k')} {cell.path('down')}\n"
    cell.laneway("run", cell.write("commands", commands.encode()))
    cell.expect_objects({"k": SMALL, "up": SMALL})
    cell.expect_file(SMALL, "down")


# The verbs that send no request to the store.
SILENT = {
    "sign": "it computes the URL without a request",
    "hash": "it reads local files only",
    "serve": "it is a server",
    "demo": "it runs a server of its own",
    "bench": "it compares speeds, with a server of its own",
    "completions": "it prints a script",
    "man": "it prints a page",
    "help": "it prints a page",
}


@contextlib.contextmanager
def started(checkout, python, log):
    """Starts the testbench, and yields its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "testbench_run.py", "127.0.0.1", str(port), "2"]
    env = os.environ | {"PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
    with open(log, "wb") as output:
        process = subprocess.Popen(command, cwd=checkout, env=env, stdout=output, stderr=output, start_new_session=True)
    try:
        bench = Testbench(f"http://127.0.0.1:{port}")
        for _ in range(300):
            with contextlib.suppress(OSError):
                bench.ask("GET", "/")
                break
            # The testbench doesn't report when it is ready, so try again until it answers.
            time.sleep(0.1)
        else:
            sys.exit(f"the testbench did not start: {Path(log).read_text()}")
        yield bench.url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def befall(bench, program, number, verb, kind, fault):
    """Runs a cell, and returns what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        cell = Cell(bench, program, folder, f"cell-{number}")

        def begin():
            if kind:
                cell.fault = bench.ask_json("POST", "/retry_test", {"instructions": {kind: fault}})["id"]

        cell.begin = begin
        try:
            verb.function(cell)
            if cell.fault:
                test = bench.ask_json("GET", f"/retry_test/{cell.fault}")
                if not test["completed"]:
                    return f"the testbench has left {test['instructions'][kind]}"
        except Wrong as wrong:
            return str(wrong)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laneway", required=True, help="the program")
    parser.add_argument("--checkout", help="a checkout of googleapis/storage-testbench, which the script starts")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with the packages of the testbench")
    parser.add_argument("--url", help="a testbench that runs already")
    parser.add_argument("--log", default="/dev/null", help="a file for what the testbench prints")
    parser.add_argument("-k", dest="chosen", default="", help="run only cells whose names match this regular expression")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        url = args.url or stack.enter_context(started(args.checkout, args.python, args.log))
        sys.exit(1 if judge(Testbench(url), args) else 0)


def judge(bench, args):
    failed, number, run = 0, time.time_ns(), 0
    for name, reason in SILENT.items():
        print(f"skip {name} - {reason}")
    for one in VERBS:
        cells = [(f"{one.name}: no fault", None, None)]
        for kind, groups in one.requests.items():
            for group, faults in FAULTS.items():
                for fault in faults:
                    name = f"{one.name}: {kind.removeprefix('storage.')}: {', '.join(fault)}"
                    if group in groups:
                        cells.append((name, kind, fault))
                    elif not any(fault in FAULTS[other] for other in groups):
                        reasons = REASONS | SESSION_REASONS if "session" in groups else REASONS
                        print(f"skip {name} - {reasons[group]}")
        for name, kind, fault in cells:
            if not re.search(args.chosen, name):
                continue
            number, run = number + 1, run + 1
            wrong = befall(bench, args.laneway, number, one, kind, fault)
            failed += wrong is not None
            line = " ".join(wrong.split())[:400] if wrong else ""
            print(f"{'FAIL' if wrong else 'ok  '} {name}{' - ' + line if wrong else ''}", flush=True)
    print(f"{run} cells, {failed} failed")
    return failed


if __name__ == "__main__":
    main()
