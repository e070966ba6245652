#!/usr/bin/env python3
"""Tests whether pyarrow's file systems for S3 (the AWS SDK for C++) and GCS (google-cloud-cpp) work with a server over HTTP."""

import argparse
import os
import urllib.parse
import uuid

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from checks import MIB, check, finish, raises
from pyarrow import fs

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--endpoint", required=True)
parser.add_argument("--bucket", required=True)
parser.add_argument("--access-key", required=True)
parser.add_argument("--secret-key", required=True)
args = parser.parse_args()
address = urllib.parse.urlsplit(args.endpoint).netloc

stores = {
    "S3": fs.S3FileSystem(
        access_key=args.access_key,
        secret_key=args.secret_key,
        region="us-east-1",
        endpoint_override=address,
        scheme="http",
        background_writes=True,
    ),
    "GCS": fs.GcsFileSystem(anonymous=True, endpoint_override=address, scheme="http", project_id="interop"),
}


def verbs(dialect, store):
    def ok(name, condition, detail=""):
        check(f"pyarrow {dialect}", name, condition, detail)

    root = f"{args.bucket}/pyarrow-{uuid.uuid4().hex}"
    data = os.urandom(20 * MIB + 1)
    for name, content in [("small", b"hello, world"), ("empty", b""), ("large", data)]:
        with store.open_output_stream(f"{root}/{name}") as out:
            out.write(content)
        with store.open_input_stream(f"{root}/{name}") as back:
            ok(f"a {name} object is read back", back.read() == content)
    with store.open_input_file(f"{root}/small") as file:
        ok("a range is read", (file.size(), file.read_at(5, 7)) == (12, b"world"))
    table = pa.table({"n": list(range(100_000)), "part": [n % 3 for n in range(100_000)]})
    ds.write_dataset(table, f"{root}/set", filesystem=store, format="parquet", partitioning=["part"], partitioning_flavor="hive")
    read = ds.dataset(f"{root}/set", filesystem=store, format="parquet", partitioning="hive").to_table()
    ok("a data set is written and read", read.num_rows == table.num_rows)
    pq.write_table(table, f"{root}/one.parquet", filesystem=store)
    ok("a single file is written and read", pq.read_table(f"{root}/one.parquet", filesystem=store, columns=["n"]).num_rows == table.num_rows)
    found = store.get_file_info(fs.FileSelector(root, recursive=True))
    ok("all files are listed", len([info for info in found if info.type == fs.FileType.File]) == 7, found)
    store.copy_file(f"{root}/large", f"{root}/copied")
    ok("an object is copied", store.get_file_info(f"{root}/copied").size == len(data))
    store.move(f"{root}/copied", f"{root}/moved")
    ok("an object is moved", store.get_file_info(f"{root}/copied").type == fs.FileType.NotFound)
    store.delete_file(f"{root}/moved")
    ok("a deleted object can't be read", raises(lambda: store.open_input_stream(f"{root}/moved"), FileNotFoundError))
    store.delete_dir(root)
    ok("all objects are deleted", store.get_file_info(f"{root}/small").type == fs.FileType.NotFound)


for dialect, store in stores.items():
    verbs(dialect, store)
finish("pyarrow")
