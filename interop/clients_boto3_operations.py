#!/usr/bin/env python3
"""Tests whether `laneway serve` answers each of boto3's operations as OPERATIONS.md says: it carries the operation out,
or refuses it by name.

Calls the operations that the page marks "yes" in a sensible order, and each of the others with the smallest parameters
that boto3's model of S3 permits. An operation that the page doesn't list fails.
"""

import argparse
import datetime
import re
import uuid
from pathlib import Path

import boto3
from botocore.client import Config
from botocore.exceptions import ClientError
from checks import MIB, check, finish

PAGE = Path(__file__).resolve().parent.parent / "crates/server/OPERATIONS.md"
# Older names of operations, each with the newer operation that sends the same request.
OLDER = {
    "GetBucketLifecycle": "GetBucketLifecycleConfiguration",
    "GetBucketNotification": "GetBucketNotificationConfiguration",
    "PutBucketLifecycle": "PutBucketLifecycleConfiguration",
    "PutBucketNotification": "PutBucketNotificationConfiguration",
}
# boto3 sends each of these operations to a host of its own, so a test with a fixed endpoint can't receive them.
ELSEWHERE = {"CreateSession", "ListDirectoryBuckets", "WriteGetObjectResponse"}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--endpoint", required=True)
parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
parser.add_argument("--access-key", required=True)
parser.add_argument("--secret-key", required=True)
args = parser.parse_args()

s3 = boto3.client(
    "s3",
    endpoint_url=args.endpoint,
    verify=args.ca or None,
    region_name="us-east-1",
    aws_access_key_id=args.access_key,
    aws_secret_access_key=args.secret_key,
    config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
)
done = set()


def note(model, http_response, **_):
    if http_response.status_code < 300:
        done.add(model.name)


s3.meta.events.register("after-call.s3", note)
model = s3.meta.service_model


def ok(name, condition, detail=""):
    check("boto3 operations", name, condition, detail)


def refused(call, *codes):
    """Returns whether the call is refused with one of these codes."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"] in codes
    return False


def page():
    """Returns what the page says about each operation of S3."""
    section = PAGE.read_text(encoding="utf-8").split("## Amazon S3")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| (\w+) \| `[^|]+ \| (\w+) \|$", section, re.MULTILINE))


def smallest(shape, name="x"):
    """Returns the smallest value of a shape that boto3 sends."""
    if shape.type_name == "structure":
        chosen = list(shape.members)[:1] if shape.is_tagged_union else shape.required_members
        return {member: smallest(shape.members[member], member) for member in chosen}
    if shape.type_name == "list":
        return [smallest(shape.member, name)]
    if shape.type_name == "map":
        return {}
    if shape.type_name == "boolean":
        return False
    if shape.type_name in ("integer", "long", "float", "double"):
        return 1
    if shape.type_name == "timestamp":
        return datetime.datetime(2126, 1, 1, tzinfo=datetime.timezone.utc)
    if shape.type_name == "blob":
        return b"x"
    return shape.enum[0] if getattr(shape, "enum", None) else "x" * shape.metadata.get("min", 1)


def snake(name):
    return next(method for method, operation in s3.meta.method_to_api_mapping.items() if operation == name)


def walk(bucket):
    """Calls the operations that the page marks "yes"."""
    s3.create_bucket(Bucket=bucket)
    s3.head_bucket(Bucket=bucket)
    ok("the bucket is listed", bucket in [entry["Name"] for entry in s3.list_buckets()["Buckets"]])
    ok("its location is the first region", s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None)
    put = s3.put_object(Bucket=bucket, Key="k", Body=b"hello", Tagging="a=1")
    ok("tags come in a header", s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [{"Key": "a", "Value": "1"}])
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging={"TagSet": [{"Key": "b", "Value": "2"}]})
    ok("and are counted", s3.get_object(Bucket=bucket, Key="k")["TagCount"] == 1)
    s3.delete_object_tagging(Bucket=bucket, Key="k")
    ok("and taken away", s3.get_object_tagging(Bucket=bucket, Key="k")["TagSet"] == [])
    s3.head_object(Bucket=bucket, Key="k")
    s3.put_bucket_acl(Bucket=bucket, ACL="private")
    ok("a bucket's list is the owner's", [grant["Permission"] for grant in s3.get_bucket_acl(Bucket=bucket)["Grants"]] == ["FULL_CONTROL"])
    s3.put_object_acl(Bucket=bucket, Key="k", ACL="private")
    access = s3.get_object_acl(Bucket=bucket, Key="k")
    grants = [(grant["Grantee"]["ID"], grant["Permission"]) for grant in access["Grants"]]
    ok("a list of access is set and told", grants == [(access["Owner"]["ID"], "FULL_CONTROL")], access)
    asked = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ETag", "Checksum", "ObjectSize", "StorageClass"])
    ok("attributes are told", (asked["ETag"], asked["ObjectSize"]) == (put["ETag"].strip('"'), 5), asked)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "k"})
    ok("both are listed", [entry["Key"] for entry in s3.list_objects(Bucket=bucket)["Contents"]] == ["copy", "k"])
    owners = [entry["Owner"]["ID"] for entry in s3.list_objects_v2(Bucket=bucket, FetchOwner=True)["Contents"]]
    ok("with their owner", owners == ["000000000000"] * 2, owners)

    upload = s3.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    first = s3.upload_part(Bucket=bucket, Key="large", UploadId=upload, PartNumber=1, Body=bytes(5 * MIB))
    second = s3.upload_part_copy(Bucket=bucket, Key="large", UploadId=upload, PartNumber=2, CopySource={"Bucket": bucket, "Key": "k"})
    ok("an upload is listed", [entry["UploadId"] for entry in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [upload])
    ok("with its parts", len(s3.list_parts(Bucket=bucket, Key="large", UploadId=upload)["Parts"]) == 2)
    parts = [{"PartNumber": 1, "ETag": first["ETag"]}, {"PartNumber": 2, "ETag": second["CopyPartResult"]["ETag"]}]
    s3.complete_multipart_upload(Bucket=bucket, Key="large", UploadId=upload, MultipartUpload={"Parts": parts})
    ok("and completed", s3.head_object(Bucket=bucket, Key="large")["ContentLength"] == 5 * MIB + 5)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="none")["UploadId"]
    s3.abort_multipart_upload(Bucket=bucket, Key="none", UploadId=upload)

    rule = {"AllowedMethods": ["GET"], "AllowedOrigins": ["https://example.com"], "MaxAgeSeconds": 60}
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    ok("CORS rules come back", s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == [rule])
    s3.delete_bucket_cors(Bucket=bucket)
    ok("and go", refused(lambda: s3.get_bucket_cors(Bucket=bucket), "NoSuchCORSConfiguration"))
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "team", "Value": "data"}]})
    ok("tags of a bucket come back", s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "team", "Value": "data"}])
    s3.delete_bucket_tagging(Bucket=bucket)
    ok("and go", refused(lambda: s3.get_bucket_tagging(Bucket=bucket), "NoSuchTagSet"))
    s3.put_object(Bucket=bucket, Key="cold", Body=b"x", StorageClass="GLACIER")
    ok("an archived object can't be read", refused(lambda: s3.get_object(Bucket=bucket, Key="cold"), "InvalidObjectState"))
    s3.restore_object(Bucket=bucket, Key="cold", RestoreRequest={"Days": 1})
    ok("a restoration is under way", 'ongoing-request="true"' in s3.head_object(Bucket=bucket, Key="cold")["Restore"])

    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    ok("versions are kept", s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled")
    s3.delete_object(Bucket=bucket, Key="k")
    listed = s3.list_object_versions(Bucket=bucket)
    ok("a deletion leaves a marker", [entry["Key"] for entry in listed["DeleteMarkers"]] == ["k"])
    everything = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in listed["Versions"] + listed["DeleteMarkers"]]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": everything})
    ok("all versions are deleted at once", len(answer["Deleted"]) == len(everything) and "Errors" not in answer, answer)
    s3.delete_bucket(Bucket=bucket)
    ok("and the bucket", refused(lambda: s3.head_bucket(Bucket=bucket), "404"))


def locks(bucket):
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    ok("a bucket has locks", s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]["ObjectLockEnabled"] == "Enabled")
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"hello")["VersionId"]
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    s3.put_object_retention(Bucket=bucket, Key="k", Retention={"Mode": "GOVERNANCE", "RetainUntilDate": until})
    ok("a retention is told", s3.get_object_retention(Bucket=bucket, Key="k")["Retention"]["Mode"] == "GOVERNANCE")
    s3.put_object_legal_hold(Bucket=bucket, Key="k", LegalHold={"Status": "ON"})
    ok("so is a legal hold", s3.get_object_legal_hold(Bucket=bucket, Key="k")["LegalHold"]["Status"] == "ON")

    def delete(**more):
        s3.delete_object(Bucket=bucket, Key="k", VersionId=version, **more)

    ok("a held version stays", refused(lambda: delete(BypassGovernanceRetention=True), "AccessDenied"))
    s3.put_object_legal_hold(Bucket=bucket, Key="k", LegalHold={"Status": "OFF"})
    ok("so does a retained one", refused(delete, "AccessDenied"))
    delete(BypassGovernanceRetention=True)
    default = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=default)
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"hello")["VersionId"]
    ok("a default retention is given", s3.head_object(Bucket=bucket, Key="k")["ObjectLockMode"] == "GOVERNANCE")
    s3.delete_object(Bucket=bucket, Key="k", VersionId=version, BypassGovernanceRetention=True)
    s3.delete_bucket(Bucket=bucket)


def others(bucket, said):
    """Calls the operations that the page marks with a status. The server must refuse each of them by name and change
    nothing.
    """
    s3.create_bucket(Bucket=bucket)
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"hello")["ETag"]
    for name in model.operation_names:
        status = said.get(OLDER.get(name, name))
        if status is None:
            ok(f"{name} is on the page", False)
        if status in (None, "yes") or name in ELSEWHERE:
            continue
        shape = model.operation_model(name).input_shape
        parameters = smallest(shape)
        parameters |= {name: value for name, value in {"Bucket": bucket, "Key": "k"}.items() if name in shape.members}
        try:
            getattr(s3, snake(name))(**parameters)
            ok(f"{name} is refused", False)
        except ClientError as error:
            answer = error.response
            told = (str(answer["ResponseMetadata"]["HTTPStatusCode"]), answer["Error"]["Code"])
            ok(f"{name} is refused by name", told == (status, "NotImplemented"), answer["Error"])
    ok("the object is unchanged", s3.head_object(Bucket=bucket, Key="k")["ETag"] == etag)
    s3.delete_object(Bucket=bucket, Key="k")
    s3.delete_bucket(Bucket=bucket)


said = page()
unique = uuid.uuid4().hex[:12]
walk(f"walk-{unique}")
locks(f"locks-{unique}")
others(f"others-{unique}", said)
missing = sorted(name for name, status in said.items() if status == "yes" and name not in done and name in model.operation_names)
ok("what the page marks was done", not missing, missing)
finish("boto3 operations")
