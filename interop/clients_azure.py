#!/usr/bin/env python3
"""Tests whether azure-storage-blob works with a server in Azure's dialect."""

import argparse
import datetime
import hashlib
import os
import sys
import urllib.error
import urllib.request
import uuid

from azure.core import MatchConditions
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    StandardBlobTier,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)
from checks import MIB, check, finish, raises

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--endpoint", required=True, help="the URL of the account")
parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
parser.add_argument("--account", required=True)
parser.add_argument("--key", required=True)
parser.add_argument("--sas", action="store_true", help="only print a SAS token of the account, for other clients")
args = parser.parse_args()
if args.ca:
    os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = args.ca

TOMORROW = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
YESTERDAY = TOMORROW - datetime.timedelta(days=2)
if args.sas:
    print(generate_account_sas(args.account, args.key, "sco", "rwdlacut", TOMORROW))
    sys.exit(0)
# Requests in several parts are tested with little data.
SMALL = {"max_single_put_size": 4 * MIB, "max_block_size": MIB, "max_single_get_size": 4 * MIB, "max_chunk_get_size": MIB}
service = BlobServiceClient(args.endpoint, credential={"account_name": args.account, "account_key": args.key}, **SMALL)
name = f"azure-{uuid.uuid4().hex}"
container = service.get_container_client(name)


def ok(text, condition, detail=""):
    check("azure-storage-blob", text, condition, detail)


def refused(call, status, code):
    """Returns whether the call fails with this status and error code."""
    try:
        call()
    except HttpResponseError as error:
        return (error.status_code, getattr(error, "error_code", None)) == (status, code)
    return False


def containers():
    container.create_container(metadata={"team": "red"})
    ok("a container is made once", raises(container.create_container, ResourceExistsError))
    ok("it is listed with its metadata", [c.metadata for c in service.list_containers(name, include_metadata=True)] == [{"team": "red"}])
    ok("its metadata is read", container.get_container_properties().metadata == {"team": "red"})
    container.set_container_metadata({"team": "blue"})
    ok("its metadata is replaced", container.get_container_properties().metadata == {"team": "blue"})
    lease = container.acquire_lease(15)
    ok("a lease protects it", refused(container.delete_container, 412, "LeaseIdMissing"))
    lease.release()
    ok("a missing container can't be listed", raises(lambda: list(service.get_container_client("no-" + name[:30]).list_blobs()), ResourceNotFoundError))


def objects():
    blob = container.get_blob_client("small")
    settings = ContentSettings("text/plain", "identity", "de", cache_control="no-store", content_disposition="inline")
    blob.upload_blob(b"hello, world", metadata={"colour": "red"}, content_settings=settings, tags={"kind": "test"}, standard_blob_tier=StandardBlobTier.COOL, validate_content=True)
    read = blob.download_blob()
    ok("a small blob is read back", read.readall() == b"hello, world")
    found = blob.get_blob_properties()
    kept = found.content_settings
    ok("its properties are read back", (kept.content_type, kept.content_encoding, kept.content_language) == ("text/plain", "identity", "de"), kept)
    ok("its cache control and disposition are read back", (kept.cache_control, kept.content_disposition) == ("no-store", "inline"), kept)
    ok("its metadata is read back", found.metadata == {"colour": "red"}, found.metadata)
    ok("its tier is read back", found.blob_tier == "Cool", found.blob_tier)
    ok("its MD5 is right", bytes(kept.content_md5) == hashlib.md5(b"hello, world").digest())
    ok("a range is read", blob.download_blob(7, 5).readall() == b"world")
    ok("a range is read with its MD5", blob.download_blob(7, 5, validate_content=True).readall() == b"world")
    ok("a range beyond the end is refused", refused(lambda: blob.download_blob(100, 5).readall(), 416, "InvalidRange"))
    ok("tags are read back", blob.get_blob_tags() == {"kind": "test"})
    blob.set_blob_tags({"kind": "other", "a b": "c+d"})
    ok("tags are replaced", blob.get_blob_tags() == {"kind": "other", "a b": "c+d"})
    ok("blobs are found by tags", [b.name for b in container.find_blobs_by_tags("\"kind\"='other'")] == ["small"])
    blob.set_http_headers(ContentSettings(content_type="text/x-own"))
    blob.set_blob_metadata({"i0": "a", "i_": "b", "Upper": "c"})
    found = blob.get_blob_properties()
    ok("properties are replaced", (found.content_settings.content_type, found.content_settings.cache_control) == ("text/x-own", None))
    ok("metadata with an underscore and a digit in one place is signed", {k.lower(): v for k, v in found.metadata.items()} == {"i0": "a", "i_": "b", "upper": "c"})
    blob.set_standard_blob_tier(StandardBlobTier.HOT)
    ok("the tier is changed", blob.get_blob_properties().blob_tier == "Hot")
    blob.set_standard_blob_tier(StandardBlobTier.ARCHIVE)
    ok("an archived blob can't be read", refused(blob.download_blob, 409, "BlobArchived"))
    missing = container.get_blob_client("missing")
    ok("a missing blob does not exist", not missing.exists() and raises(missing.download_blob, ResourceNotFoundError))
    ok("a missing blob with a condition is not found", refused(lambda: missing.download_blob(etag="0x1", match_condition=MatchConditions.IfNotModified), 404, "BlobNotFound"))
    wrong = lambda: blob.upload_blob(b"x", overwrite=True, headers={"Content-MD5": "XUFAKrxLKna5cZ2REBfFkg=="})
    ok("a wrong MD5 is refused", refused(wrong, 400, "Md5Mismatch"))


def conditions():
    blob = container.get_blob_client("conditional")
    first = blob.upload_blob(b"1")["etag"]
    ok("an upload keeps an existing blob", refused(lambda: blob.upload_blob(b"2"), 409, "BlobAlreadyExists"))
    blob.upload_blob(b"2", overwrite=True, etag=first, match_condition=MatchConditions.IfNotModified)
    stale = lambda: blob.upload_blob(b"3", overwrite=True, etag=first, match_condition=MatchConditions.IfNotModified)
    ok("an update of an older state is refused", raises(stale, ResourceModifiedError) and blob.download_blob().readall() == b"2")
    now = blob.get_blob_properties()
    unchanged = lambda: blob.download_blob(etag=now.etag, match_condition=MatchConditions.IfModified)
    ok("a read unless changed has no body", refused(unchanged, 304, "ConditionNotMet"))
    since = lambda: blob.delete_blob(if_unmodified_since=now.last_modified - datetime.timedelta(hours=1))
    ok("a delete unless modified since is refused", refused(since, 412, "ConditionNotMet"))
    lease = blob.acquire_lease()
    ok("a lease protects a blob", refused(lambda: blob.upload_blob(b"4", overwrite=True), 412, "LeaseIdMissing"))
    blob.upload_blob(b"5", overwrite=True, lease=lease)
    lease.break_lease(0)
    blob.delete_blob()
    ok("a deleted blob is gone", not blob.exists())


def blocks():
    data = os.urandom(9 * MIB + 7)
    blob = container.get_blob_client("large")
    blob.upload_blob(data, max_concurrency=4, validate_content=True)
    ok("9 MiB are uploaded in blocks and downloaded in ranges", blob.download_blob(max_concurrency=4).readall() == data)
    ok("committed blocks are listed", [b.size for b in blob.get_block_list("committed")[0]] == [MIB] * 9 + [7])
    own = container.get_blob_client("blocks")
    ids = [f"{n:08}" for n in range(3)]
    for n, block in enumerate(ids):
        own.stage_block(block, bytes([65 + n]) * 5, validate_content=True)
    ok("uncommitted blocks are listed, and the blob doesn't exist", len(own.get_block_list("uncommitted")[1]) == 3 and not own.exists())
    listed = [b.name for b in container.list_blobs("blocks", include=["uncommittedblobs"])]
    ok("a blob with only uncommitted blocks is listed if asked for", listed == ["blocks"] and not list(container.list_blobs("blocks")))
    ok("ids of another length are refused", refused(lambda: own.stage_block("1", b"x"), 400, "InvalidBlobOrBlock"))
    ok("unknown blocks are refused", refused(lambda: own.commit_block_list([BlobBlock("99999999")]), 400, "InvalidBlockList"))
    own.commit_block_list([BlobBlock(block) for block in reversed(ids)], metadata={"a": "b"})
    ok("blocks are committed in the order of the list", own.download_blob().readall() == b"CCCCCBBBBBAAAAA")
    own.stage_block("00000009", b"new")
    own.commit_block_list([BlobBlock(ids[0]), BlobBlock("00000009")])
    ok("committed and new blocks are combined", own.download_blob().readall() == b"AAAAAnew")
    exclusive = lambda: own.commit_block_list([], match_condition=MatchConditions.IfMissing)
    ok("a commit keeps an existing blob", refused(exclusive, 409, "BlobAlreadyExists"))
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block(b"one,")
    log.append_block(b"two")
    ok("blocks are appended", log.download_blob().readall() == b"one,two")
    ok("an append at the wrong place is refused", refused(lambda: log.append_block(b"x", appendpos_condition=1), 412, "AppendPositionConditionNotMet"))


def listings():
    names = ["tree/a b", "tree/a+b", "tree/d/1", "tree/d/2", "tree/%41", "tree/ä", "tree/&<>\"'", "tree/\ufffe"]
    for key in names:
        container.upload_blob(key, key.encode(), metadata={"m": "1"})
    pages = list(container.list_blobs("tree/", include=["metadata"], results_per_page=3).by_page())
    found = [blob for page in [list(page) for page in container.list_blobs("tree/", include=["metadata"], results_per_page=3).by_page()] for blob in page]
    ok("names are listed exactly, in order and in pages", [b.name for b in found] == sorted(names) and len(pages) == 3, [b.name for b in found])
    ok("metadata is listed", all(b.metadata == {"m": "1"} for b in found))
    folded = [entry.name for entry in container.walk_blobs("tree/", delimiter="/")]
    ok("a delimiter groups names into prefixes", "tree/d/" in folded and "tree/d/1" not in folded, folded)
    ok("blobs with unusual names are read back", all(container.download_blob(key).readall() == key.encode() for key in names))
    ok("names are listed", sorted(container.list_blob_names(name_starts_with="tree/d")) == ["tree/d/1", "tree/d/2"])
    results = list(container.delete_blobs(*names))
    ok("a batch deletes blobs", [answer.status_code for answer in results] == [202] * len(names))
    results = list(container.delete_blobs("tree/d/1", "conditional", raise_on_any_failure=False))
    ok("a batch tells which blobs are missing", [answer.status_code for answer in results] == [404, 404])


def copies():
    source = container.get_blob_client("large")
    sas = generate_blob_sas(args.account, name, "large", account_key=args.key, permission="r", expiry=TOMORROW)
    url = f"{source.url}?{sas}"
    copied = container.get_blob_client("copied")
    copied.start_copy_from_url(url, metadata={"c": "d"})
    done = copied.get_blob_properties()
    ok("a copy ends with success", (done.copy.status, done.size, done.metadata) == ("success", 9 * MIB + 7, {"c": "d"}), done.copy)
    copied.upload_blob_from_url(url, overwrite=True, content_settings=ContentSettings("text/x-own"))
    ok("Put Blob From URL sets properties", copied.get_blob_properties().content_settings.content_type == "text/x-own")
    copied.stage_block_from_url("00000001", url, source_offset=MIB, source_length=10)
    copied.commit_block_list([BlobBlock("00000001")])
    ok("a block is copied from a range", copied.download_blob().readall() == source.download_blob(MIB, 10).readall())
    denied = lambda: copied.upload_blob_from_url(source.url, overwrite=True)
    ok("a source without authorization isn't copied", raises(denied, HttpResponseError))


def snapshots():
    blob = container.get_blob_client("snapped")
    blob.upload_blob(b"old")
    taken = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"new", overwrite=True)
    at = container.get_blob_client("snapped", snapshot=taken)
    ok("a snapshot keeps the old bytes", at.download_blob().readall() == b"old" and blob.download_blob().readall() == b"new")
    ok("snapshots are listed", [b.snapshot for b in container.list_blobs("snapped", include=["snapshots"])] == [taken, None])
    ok("a blob with snapshots isn't deleted", refused(blob.delete_blob, 409, "SnapshotsPresent"))
    blob.delete_blob(delete_snapshots="only")
    ok("snapshots alone are deleted", raises(at.get_blob_properties, ResourceNotFoundError) and blob.exists())
    blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    ok("a blob is deleted with its snapshots", not list(container.list_blobs("snapped", include=["snapshots"])))


class Token:
    """An identity of Microsoft Entra ID. The server accepts any token."""

    def get_token(self, *_scopes, **_options):
        return AccessToken("token", int(TOMORROW.timestamp()))


def signatures():
    container.upload_blob("shared", b"shared")

    def read(sas, key="shared"):
        try:
            with urllib.request.urlopen(f"{container.url}/{key}?{sas}") as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return (error.code, error.headers["x-ms-error-code"])

    common = {"account_key": args.key, "permission": "r", "expiry": TOMORROW}
    ok("a SAS of a blob reads it", read(generate_blob_sas(args.account, name, "shared", **common)) == b"shared")
    other = generate_blob_sas(args.account, name, "other", **common)
    ok("a SAS of another blob doesn't", read(other) == (403, "AuthenticationFailed"), read(other))
    ok("a SAS of a container reads its blobs", read(generate_container_sas(args.account, name, **common)) == b"shared")
    expired = generate_container_sas(args.account, name, **common | {"expiry": YESTERDAY})
    ok("an expired SAS doesn't", read(expired) == (403, "AuthenticationFailed"), read(expired))
    whole = generate_account_sas(args.account, args.key, "sco", "rwdlac", TOMORROW)
    ok("a SAS of the account reads blobs", read(whole) == b"shared")
    by_sas = ContainerClient.from_container_url(f"{container.url}?{whole}")
    by_sas.upload_blob("by-sas", b"x")
    ok("it also writes and lists them", "by-sas" in list(by_sas.list_blob_names()))
    reader = BlobClient.from_blob_url(f"{container.url}/by-sas?{generate_container_sas(args.account, name, **common)}")
    ok("a SAS for reads doesn't write", refused(lambda: reader.upload_blob(b"y", overwrite=True), 403, "AuthorizationPermissionMismatch"))
    wrong = BlobServiceClient(args.endpoint, credential={"account_name": args.account, "account_key": "d3Jvbmc="})
    ok("a wrong key is refused", raises(lambda: list(wrong.list_containers()), ClientAuthenticationError))
    if args.ca:
        entra = BlobServiceClient(args.endpoint, credential=Token())
        ok("a token of Entra ID is accepted", name in [c.name for c in entra.list_containers()])
        delegated = entra.get_user_delegation_key(YESTERDAY, TOMORROW)
        sas = generate_blob_sas(args.account, name, "shared", user_delegation_key=delegated, permission="r", expiry=TOMORROW)
        ok("a SAS of a user reads a blob", read(sas) == b"shared", read(sas))
    container.set_container_access_policy({}, public_access="blob")
    ok("a public container is read by anyone", read("") == b"shared")
    container.set_container_access_policy({}, public_access=None)
    ok("a private container isn't", read("") == (404, "ResourceNotFound"), read(""))


containers()
objects()
conditions()
blocks()
listings()
copies()
snapshots()
signatures()
container.delete_container()
ok("a deleted container is gone", not container.exists())
finish("azure-storage-blob")
