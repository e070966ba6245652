#!/usr/bin/env python3
"""Tests whether obstore (the Python package of Rust's object_store) works with a server in all dialects."""

import argparse
import json
import os
import uuid

from checks import MIB, check, finish, raises

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--endpoint", required=True)
parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
parser.add_argument("--bucket", required=True)
parser.add_argument("--access-key", required=True)
parser.add_argument("--secret-key", required=True)
parser.add_argument("--account", required=True, help="Azure's storage account")
parser.add_argument("--account-key", required=True)
args = parser.parse_args()
if args.ca:
    os.environ["SSL_CERT_FILE"] = args.ca

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError
from obstore.store import AzureStore, GCSStore, S3Store

prefix = f"obstore-{uuid.uuid4().hex}"
plain = {"allow_http": True}
# obstore's configuration for GCS emulators: no private key, and an empty token.
account = {"gcs_base_url": args.endpoint, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
stores = {
    "GCS": GCSStore(args.bucket, prefix=prefix, service_account_key=json.dumps(account), client_options=plain),
    "S3": S3Store(
        args.bucket,
        prefix=prefix + "-s3",
        endpoint=args.endpoint,
        region="us-east-1",
        access_key_id=args.access_key,
        secret_access_key=args.secret_key,
        client_options=plain,
    ),
    "Azure": AzureStore(
        args.bucket,
        prefix=prefix + "-azure",
        endpoint=f"{args.endpoint}/{args.account}",
        account_name=args.account,
        account_key=args.account_key,
        client_options=plain,
    ),
}


def verbs(dialect, store):
    def ok(name, condition, detail=""):
        check(f"obstore {dialect}", name, condition, detail)

    obstore.put(store, "small", b"hello, world", attributes={"Content-Type": "text/plain", "colour": "red"})
    got = obstore.get(store, "small")
    ok("a small object is read back", got.bytes() == b"hello, world")
    ok("its attributes are read back", (got.attributes.get("Content-Type"), got.attributes.get("colour")) == ("text/plain", "red"), got.attributes)
    ok("a range is read", obstore.get_range(store, "small", start=7, end=12) == b"world")
    ok("several ranges are read", [bytes(part) for part in obstore.get_ranges(store, "small", starts=[0, 7], ends=[5, 12])] == [b"hello", b"world"])
    ok("the mode create keeps an existing object", raises(lambda: obstore.put(store, "small", b"x", mode="create"), AlreadyExistsError))
    head = obstore.head(store, "small")
    stale = {name: head[name] for name in ("e_tag", "version") if head[name]}
    obstore.put(store, "small", b"second", mode=stale)
    ok("an update of an older version is refused", raises(lambda: obstore.put(store, "small", b"x", mode=stale), PreconditionError))
    data = os.urandom(20 * MIB + 1)
    obstore.put(store, "large", data, use_multipart=True, chunk_size=5 * MIB)
    ok("20 MiB are uploaded in parts and downloaded", obstore.get(store, "large").bytes() == data)
    names = ["tree/a b", "tree/a+b", "tree/d/1", "tree/d/2", "tree/%41", "tree/ä"]
    for name in names:
        obstore.put(store, name, name.encode())
    listed = sorted(meta["path"] for page in obstore.list(store, "tree", chunk_size=2) for meta in page)
    ok("names are listed exactly", listed == sorted(names), listed)
    folded = obstore.list_with_delimiter(store, "tree")
    ok("a delimiter groups names into prefixes", folded["common_prefixes"] == ["tree/d"], folded["common_prefixes"])
    ok("objects with unusual names are read back", all(obstore.get(store, name).bytes() == name.encode() for name in names))
    obstore.copy(store, "large", "copied")
    ok("an object is copied", obstore.head(store, "copied")["size"] == len(data))
    obstore.rename(store, "copied", "renamed")
    ok("an object is renamed", raises(lambda: obstore.head(store, "copied"), NotFoundError, FileNotFoundError))
    everything = [meta["path"] for page in obstore.list(store) for meta in page]
    obstore.delete(store, everything)
    ok("all objects are deleted", not [page for page in obstore.list(store) if len(page)])


for dialect, store in stores.items():
    verbs(dialect, store)
finish("obstore")
