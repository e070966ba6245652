#!/usr/bin/env python3
"""Tests whether `laneway serve` answers the calls of google-cloud-storage's classes: it carries a call out, or refuses
it by name (501).

Goes through the public methods and settings of Client, Bucket and Blob that send requests. clients_gcs.py has the rest.
"""

import argparse
import datetime
import io
import os
import uuid

from checks import check, finish

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--endpoint", required=True)
parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
args = parser.parse_args()
# google-cloud-storage reads STORAGE_EMULATOR_HOST when it is imported. The package requests reads REQUESTS_CA_BUNDLE.
os.environ["STORAGE_EMULATOR_HOST"] = args.endpoint
if args.ca:
    os.environ["REQUESTS_CA_BUNDLE"] = args.ca

from google.api_core import exceptions
from google.api_core.iam import Policy
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY

client = storage.Client(project="interop", credentials=AnonymousCredentials())
once = DEFAULT_RETRY.with_timeout(1)
unique = uuid.uuid4().hex[:12]


def ok(name, condition, detail=""):
    check("google-cloud-storage operations", name, condition, detail)


def raises(kind, call):
    """Returns whether the call raises this kind of error."""
    try:
        call()
    except kind:
        return True
    return False


def lacks(name, call, word):
    """Checks that the call is refused with 501, and that the message names what is lacking."""
    try:
        call()
    except exceptions.MethodNotImplemented as error:
        ok(f"{name} is refused by name", word in error.message, error.message)
    except exceptions.GoogleAPICallError as error:
        ok(f"{name} is refused by name", False, repr(error))
    else:
        ok(f"{name} is refused by name", False, "it succeeded")


def settings():
    """Checks that the server keeps and returns the settings of a bucket."""
    bucket = client.bucket(f"set-{unique}")
    bucket.storage_class = "NEARLINE"
    bucket.labels = {"team": "data"}
    bucket.versioning_enabled = True
    bucket.iam_configuration.uniform_bucket_level_access_enabled = True
    bucket.iam_configuration.public_access_prevention = "enforced"
    client.create_bucket(bucket, location="europe-west3")
    found = client.get_bucket(bucket.name)
    ok("a bucket has its location", (found.location, found.location_type) == ("EUROPE-WEST3", "region"), found.location)
    ok("its class", found.storage_class == "NEARLINE")
    ok("its labels", found.labels == {"team": "data"})
    ok("its versions", found.versioning_enabled)
    configuration = found.iam_configuration
    ok("its access", configuration.uniform_bucket_level_access_enabled and configuration.public_access_prevention == "enforced")
    before = found.metageneration
    rule = {"origin": ["*"], "method": ["GET"], "responseHeader": ["ETag"], "maxAgeSeconds": 60}
    found.cors = [rule]
    found.requester_pays = True
    found.configure_website("index.html", "404.html")
    found.default_event_based_hold = True
    found.patch()
    found.reload()
    ok("a patch moves the metageneration", found.metageneration == before + 1, found.metageneration)
    ok("CORS rules are kept", found.cors == [rule], found.cors)
    ok("so are payers and a website", found.requester_pays and found._properties["website"]["mainPageSuffix"] == "index.html")
    ok("and a default hold", found.default_event_based_hold)
    found.disable_website()
    found.labels = {}
    found.default_event_based_hold = False
    found.update()
    ok("an update replaces them", client.get_bucket(bucket.name).labels == {})
    ok("a stale metageneration is refused", raises(exceptions.PreconditionFailed, lambda: found.patch(if_metageneration_match=1)))
    ok("a bucket of one's own isn't made again", raises(exceptions.Conflict, lambda: client.create_bucket(bucket.name)))
    ok("a lookup finds it", client.lookup_bucket(bucket.name) is not None and client.lookup_bucket(f"none-{unique}") is None)
    pages = client.list_buckets(prefix="set-", max_results=1)
    ok("buckets are listed by prefix", [entry.name for entry in pages][:1] != [])
    found.delete()
    ok("it is deleted", not found.exists())
    for name in ["MyBucket", "ab", "a..b", "192.168.1.1", "goog-x"]:
        ok(f"the name {name} is refused", raises((exceptions.BadRequest, ValueError), lambda name=name: client.create_bucket(name)))


def objects(bucket):
    blob = bucket.blob("k")
    blob.custom_time = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    blob.cache_control, blob.content_disposition, blob.content_language = "no-store", "inline", "de"
    blob.metadata = {"colour": "red"}
    blob.upload_from_string("hello", content_type="text/plain")
    found = bucket.get_blob("k")
    ok("headers are kept", (found.cache_control, found.content_disposition, found.content_language) == ("no-store", "inline", "de"))
    ok("so is the custom time", found.custom_time == blob.custom_time)
    found.reload(projection="full")
    ok("so is the access list", [entry["role"] for entry in found._properties["acl"]] == ["OWNER"], found._properties)
    found.update_storage_class("COLDLINE")
    ok("a class is changed", bucket.get_blob("k").storage_class == "COLDLINE")
    ok("a wrong class is refused", raises((exceptions.BadRequest, ValueError), lambda: found.update_storage_class("BOGUS")))
    bucket.copy_blob(found, bucket, "copy")
    bucket.rename_blob(bucket.blob("copy"), "renamed")
    moved = bucket.move_blob(bucket.blob("renamed"), "moved")
    ok("an object is copied, renamed and moved", moved.exists() and not bucket.blob("renamed").exists())
    with bucket.blob("written").open("w") as file:
        file.write("line\n" * 3)
    with bucket.blob("written").open("r") as file:
        ok("a file is written and read", file.read() == "line\n" * 3)
    session = bucket.blob("later").create_resumable_upload_session(content_type="text/plain")
    ok("a session is begun", session.startswith("http"), session)
    buffer = io.BytesIO()
    client.download_blob_to_file(found, buffer)
    ok("an object is downloaded into a file", buffer.getvalue() == b"hello")
    key = os.urandom(32)
    bucket.blob("secret", encryption_key=key).upload_from_string("secret")
    ok("a customer's key opens its object", bucket.blob("secret", encryption_key=key).download_as_bytes() == b"secret")
    ok("and no other does", raises(exceptions.BadRequest, lambda: bucket.blob("secret").download_as_bytes()))
    allowed = bucket.test_iam_permissions(["storage.objects.get", "storage.buckets.get"])
    ok("permissions are told", allowed == ["storage.objects.get", "storage.buckets.get"], allowed)
    ok("the service's account too", "@" in client.get_service_account_email())
    bucket.delete_blobs([bucket.blob(name) for name in ["moved", "written"]])
    bucket.versioning_enabled = True
    bucket.patch()
    bucket.blob("k").upload_from_string("again")
    ok("versions are listed", len(list(bucket.list_blobs(prefix="k", versions=True))) == 2)
    bucket.delete_blobs(list(bucket.list_blobs(prefix="k", versions=True))[:1], preserve_generation=True)
    bucket.versioning_enabled = False
    bucket.patch()
    bucket.blob("folder/").upload_from_string("")
    folders = bucket.list_blobs(delimiter="/", include_trailing_delimiter=True)
    ok("a folder's own object is listed", "folder/" in [entry.name for entry in folders])
    bucket.blob("folder/").delete()
    ok("many are deleted", [entry.name for entry in bucket.list_blobs()] == ["k", "secret"])


def holds(bucket):
    blob = bucket.blob("held")
    blob.upload_from_string("x")
    for hold in ["temporary_hold", "event_based_hold"]:
        setattr(blob, hold, True)
        blob.patch()
        ok(f"a {hold} keeps an object", raises(exceptions.Forbidden, blob.delete))
        ok("and its content", raises(exceptions.Forbidden, lambda: bucket.blob("held").upload_from_string("y")))
        setattr(blob, hold, False)
        blob.patch()
    kept = client.bucket(f"kept-{unique}")
    client.create_bucket(kept, enable_object_retention=True)
    ok("a bucket has retentions", client.get_bucket(kept.name).object_retention_mode == "Enabled")
    retained = kept.blob("k")
    retained.upload_from_string("x")
    retained.retention.mode = "Unlocked"
    retained.retention.retain_until_time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    retained.patch()
    ok("a retention keeps an object", raises(exceptions.Forbidden, retained.delete))
    retained.retention.mode = None
    retained.retention.retain_until_time = None
    retained.patch(override_unlocked_retention=True)
    retained.delete()
    kept.retention_period = 1
    kept.patch()
    kept.lock_retention_policy()
    kept.reload()
    ok("a policy is locked", kept.retention_policy_locked)
    kept.delete()
    blob.delete()


def deletions():
    """Checks that a bucket with soft deletion can restore deleted objects."""
    bucket = client.create_bucket(f"soft-{unique}")
    ok("without a policy no deleted objects are listed", raises(exceptions.BadRequest, lambda: deleted(bucket)))
    bucket.soft_delete_policy.retention_duration_seconds = 604800
    bucket.patch()
    ok("a policy is kept", client.get_bucket(bucket.name).soft_delete_policy.retention_duration_seconds == 604800)
    ok("an object that was never deleted can't be restored", raises(exceptions.NotFound, lambda: bucket.restore_blob("k", generation=1)))
    for content in ["first", "second"]:
        bucket.blob("k").upload_from_string(content)
    bucket.blob("k").delete()
    entries = deleted(bucket)
    ok("overwritten and deleted objects are listed", [entry.name for entry in entries] == ["k", "k"], entries)
    ok("with their times", all(entry.soft_delete_time < entry.hard_delete_time for entry in entries))
    bucket.restore_blob("k", generation=entries[0].generation)
    ok("one is restored", bucket.blob("k").download_as_bytes() == b"first")
    ok("and listed no more", [entry.generation for entry in deleted(bucket)] == [entries[1].generation])
    bucket.delete(force=True)


def deleted(bucket):
    return list(client.list_blobs(bucket, soft_deleted=True))


def folders():
    """Creates a bucket with a hierarchical namespace. The library has no calls for folders."""
    bucket = client.bucket(f"folders-{unique}")
    bucket.hierarchical_namespace_enabled = True
    bucket.iam_configuration.uniform_bucket_level_access_enabled = True
    client.create_bucket(bucket)
    ok("a namespace is hierarchical", client.get_bucket(bucket.name).hierarchical_namespace_enabled)
    bucket.delete()


def absent(bucket):
    """Calls features that the store lacks."""
    blob = bucket.blob("k")
    topic = bucket.notification("topic")
    for name, call, word in [
        ("an IAM policy", lambda: bucket.get_iam_policy(retry=once), "iam"),
        ("setting an IAM policy", lambda: bucket.set_iam_policy(Policy(), retry=once), "iam"),
        ("an access control list", lambda: bucket.acl.reload(), "acl"),
        ("one of new objects", lambda: bucket.default_object_acl.reload(), "defaultObjectAcl"),
        ("one of an object", lambda: blob.acl.reload(), "acl"),
        ("a public object", lambda: blob.make_public(), "acl"),
        ("a public upload", lambda: bucket.blob("public").upload_from_string("x", predefined_acl="publicRead"), "predefinedAcl"),
        ("notifications", lambda: list(bucket.list_notifications()), "notificationConfigs"),
        ("a notification", lambda: topic.create(), "notificationConfigs"),
        ("HMAC keys", lambda: list(client.list_hmac_keys()), "hmacKeys"),
        ("an HMAC key", lambda: client.create_hmac_key("me@example.com"), "hmacKeys"),
        ("a deleted bucket's return", lambda: client.restore_bucket(bucket.name, generation=1), "restore"),
    ]:
        lacks(name, call, word)
    for field, change in [
        ("lifecycle", lambda changed: changed.add_lifecycle_delete_rule(age=1)),
        ("logging", lambda changed: changed.enable_logging("logs")),
        ("autoclass", lambda changed: setattr(changed, "autoclass_enabled", True)),
        ("encryption", lambda changed: setattr(changed, "default_kms_key_name", "projects/p/locations/l/keyRings/r/cryptoKeys/k")),
        ("rpo", lambda changed: setattr(changed, "rpo", "ASYNC_TURBO")),
    ]:
        changed = client.get_bucket(bucket.name)
        change(changed)
        lacks(field, changed.patch, field)


settings()
work = client.create_bucket(f"work-{unique}")
objects(work)
holds(work)
deletions()
folders()
absent(work)
work.delete(force=True)
finish("google-cloud-storage operations")
