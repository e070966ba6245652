#!/usr/bin/env python3
"""Tests whether gcsfs works with a GCS server. Its objects have a prefix of their own, and are removed at the end."""

import argparse
import os
import tempfile
import uuid

from checks import MIB, check, finish, raises

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--endpoint", required=True)
parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
parser.add_argument("--bucket", required=True)
args = parser.parse_args()
if args.ca:
    os.environ["SSL_CERT_FILE"] = args.ca
# Without this variable, gcsfs would wait a minute for a gRPC service for folders. No emulator has this service.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"

# gcsfs reads both variables when it is imported.
import gcsfs

fs = gcsfs.GCSFileSystem(token="anon", project="interop", endpoint_url=args.endpoint, consistency="md5")
root = f"{args.bucket}/gcsfs-{uuid.uuid4().hex}"


def ok(name, condition, detail=""):
    check("gcsfs", name, condition, detail)


fs.pipe(f"{root}/small", b"hello, world")
ok("a small object is read back", fs.cat(f"{root}/small") == b"hello, world")
ok("a range is read", fs.cat_file(f"{root}/small", start=7, end=9) == b"wo")
ok("its MD5 is known", fs.info(f"{root}/small").get("md5Hash"), fs.info(f"{root}/small"))
ok("an exclusive write keeps an existing object", raises(lambda: fs.pipe(f"{root}/small", b"x", mode="create"), FileExistsError))
fs.pipe(f"{root}/empty", b"")
ok("an empty object is read back", fs.cat(f"{root}/empty") == b"" and fs.size(f"{root}/empty") == 0)
with fs.open(f"{root}/in blocks", "wb", block_size=5 * MIB) as file:
    data = os.urandom(20 * MIB + 1)
    file.write(data)
ok("20 MiB are uploaded in a session and downloaded", fs.cat(f"{root}/in blocks") == data)

with tempfile.TemporaryDirectory() as folder:
    for name in ["a b", "d/1", "d/e/2", "ä"]:
        path = os.path.join(folder, "up", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(name)
    fs.put(os.path.join(folder, "up"), f"{root}/tree", recursive=True)
    found = sorted(fs.find(f"{root}/tree"))
    ok("a tree is uploaded", found == [f"{root}/tree/{name}" for name in ["a b", "d/1", "d/e/2", "ä"]], found)
    fs.get(f"{root}/tree", os.path.join(folder, "down"), recursive=True)
    with open(os.path.join(folder, "down/d/e/2"), encoding="utf-8") as file:
        ok("the tree is downloaded", file.read() == "d/e/2")
ok("a pattern finds its objects", fs.glob(f"{root}/tree/**/2") == [f"{root}/tree/d/e/2"], fs.glob(f"{root}/tree/**/2"))
ok("folders are listed", sorted(fs.ls(f"{root}/tree", detail=False)) == [f"{root}/tree/{name}" for name in ["a b", "d", "ä"]], fs.ls(f"{root}/tree", detail=False))
fs.mv(f"{root}/tree/d/1", f"{root}/moved")
ok("an object is moved", fs.cat(f"{root}/moved") == b"d/1" and not fs.exists(f"{root}/tree/d/1"))
fs.cp(f"{root}/in blocks", f"{root}/copied")
ok("an object is copied", fs.checksum(f"{root}/copied") and fs.cat(f"{root}/copied") == data)
fs.merge(f"{root}/merged", [f"{root}/small", f"{root}/moved"])
ok("objects are composed", fs.cat(f"{root}/merged") == b"hello, worldd/1")
fs.setxattrs(f"{root}/small", content_type="text/x-interop", colour="red")
ok("metadata is changed", fs.getxattr(f"{root}/small", "colour") == "red")
fs.rm(root, recursive=True)
fs.invalidate_cache()
ok("all objects are removed", not fs.exists(root))
ok("reading a missing object raises FileNotFoundError", raises(lambda: fs.cat(f"{root}/small"), FileNotFoundError))
finish("gcsfs")
