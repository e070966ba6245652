#!/usr/bin/env python3
"""Tests whether boto3 works with an S3 server, or whether boto3 reads the objects that another program wrote.

Without --read-back, it tests the operations on any server (the embedded one, MinIO, ...). Its objects have a prefix of
their own, and are removed at the end. With --read-back DIR --prefix P, it compares the objects under P with the files
under DIR, in both directions. It prints a line for each check, and exits with 1 if one failed.
"""

import argparse
import base64
import hashlib
import os
import ssl
import sys
import tempfile
import urllib.request
import uuid
import zlib

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

MIB = 1 << 20
failures = 0


def check(name, condition, detail=""):
    global failures
    failures += not condition
    print(f"{'ok  ' if condition else 'FAIL'} boto3: {name}{' - ' + str(detail) if detail and not condition else ''}")


def refused(call, *codes):
    """Returns the error's code if the server refuses the call with one of these codes, otherwise False."""
    try:
        call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        status = str(error.response["ResponseMetadata"]["HTTPStatusCode"])
        return code if code in codes or status in codes else False
    return False


def client(args):
    return boto3.client(
        "s3",
        endpoint_url=args.endpoint,
        verify=args.ca or None,
        region_name=args.region,
        aws_access_key_id=args.access_key,
        aws_secret_access_key=args.secret_key,
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
    )


def listed(s3, bucket, prefix, **options):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **options)
    return [entry for page in pages for entry in page.get("Contents", [])]


def verbs(s3, args, bucket, prefix):
    def key(name):
        return prefix + name

    try:
        s3.create_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
            raise
    s3.head_bucket(Bucket=bucket)
    check("the bucket is listed", bucket in [entry["Name"] for entry in s3.list_buckets()["Buckets"]])
    check("a missing bucket is 404", refused(lambda: s3.list_objects_v2(Bucket="no-such-" + uuid.uuid4().hex), "NoSuchBucket"))
    check("a missing key is NoSuchKey", refused(lambda: s3.get_object(Bucket=bucket, Key=key("nothing")), "NoSuchKey"))

    body = b"hello, world"
    put = s3.put_object(Bucket=bucket, Key=key("small"), Body=body, ContentType="text/plain", Metadata={"colour": "red"})
    check("the ETag of a small object is its MD5", put["ETag"].strip('"') == hashlib.md5(body).hexdigest(), put["ETag"])
    got = s3.get_object(Bucket=bucket, Key=key("small"))
    check("it is read back", got["Body"].read() == body)
    check("its type and metadata are read back", (got["ContentType"], got["Metadata"]) == ("text/plain", {"colour": "red"}))
    head = s3.head_object(Bucket=bucket, Key=key("small"), ChecksumMode="ENABLED")
    crc32 = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
    check("HEAD returns the CRC32 that boto3 sent", head.get("ChecksumCRC32") == crc32, head.get("ChecksumCRC32"))
    check("HEAD without ChecksumMode returns no CRC32", "ChecksumCRC32" not in s3.head_object(Bucket=bucket, Key=key("small")))
    ranged = s3.get_object(Bucket=bucket, Key=key("small"), Range="bytes=7-")
    check("a range is read", (ranged["Body"].read(), ranged["ContentRange"]) == (b"world", "bytes 7-11/12"))
    suffix = s3.get_object(Bucket=bucket, Key=key("small"), Range="bytes=-3")
    check("a suffix is read", suffix["Body"].read() == b"rld")
    check("a range beyond the end gets 416", refused(lambda: s3.get_object(Bucket=bucket, Key=key("small"), Range="bytes=12-"), "InvalidRange", "416"))
    check("If-Match with the object's ETag succeeds", s3.get_object(Bucket=bucket, Key=key("small"), IfMatch=put["ETag"])["ContentLength"] == 12)
    check("If-Match with another ETag fails", refused(lambda: s3.get_object(Bucket=bucket, Key=key("small"), IfMatch='"0"'), "PreconditionFailed", "412"))
    check("If-None-Match: * keeps the object", refused(lambda: s3.put_object(Bucket=bucket, Key=key("small"), Body=b"x", IfNoneMatch="*"), "PreconditionFailed", "412"))
    wrong = base64.b64encode(b"\0" * 4).decode()
    check("a wrong checksum is refused", refused(lambda: s3.put_object(Bucket=bucket, Key=key("bad"), Body=body, ChecksumCRC32C=wrong), "BadDigest", "XAmzContentChecksumMismatch", "InvalidRequest", "400"))
    check("the refused object isn't stored", refused(lambda: s3.head_object(Bucket=bucket, Key=key("bad")), "404"))
    s3.put_object(Bucket=bucket, Key=key("empty"), Body=b"")
    check("an empty object is read back", s3.get_object(Bucket=bucket, Key=key("empty"))["Body"].read() == b"")
    for algorithm in ["CRC32", "CRC32C", "SHA1", "SHA256"]:
        put = s3.put_object(Bucket=bucket, Key=key("sum"), Body=body, ChecksumAlgorithm=algorithm)
        head = s3.head_object(Bucket=bucket, Key=key("sum"), ChecksumMode="ENABLED")
        name = "Checksum" + algorithm
        check(f"{algorithm} in a trailer is verified and kept", put.get(name) and put[name] == head.get(name), head)

    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
        data = os.urandom(20 * MIB + 1)
        with open(source, "wb") as file:
            file.write(data)
        parts = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB, max_concurrency=4)
        s3.upload_file(source, bucket, key("large"), Config=parts)
        s3.download_file(bucket, key("large"), target, Config=parts)
        with open(target, "rb") as file:
            check("20 MiB are uploaded in parts and downloaded in ranges", file.read() == data)
    digests = [hashlib.md5(data[at : at + 8 * MIB]).digest() for at in range(0, len(data), 8 * MIB)]
    expected = hashlib.md5(b"".join(digests)).hexdigest() + "-3"
    etag = s3.head_object(Bucket=bucket, Key=key("large"))["ETag"].strip('"')
    check("the ETag of an upload in parts is the MD5 of MD5s", etag == expected, etag)

    upload = s3.create_multipart_upload(Bucket=bucket, Key=key("aborted"))["UploadId"]
    s3.upload_part(Bucket=bucket, Key=key("aborted"), UploadId=upload, PartNumber=1, Body=b"x")
    check("a part is listed", [part["PartNumber"] for part in s3.list_parts(Bucket=bucket, Key=key("aborted"), UploadId=upload)["Parts"]] == [1])
    s3.abort_multipart_upload(Bucket=bucket, Key=key("aborted"), UploadId=upload)
    check("an aborted upload is gone", refused(lambda: s3.list_parts(Bucket=bucket, Key=key("aborted"), UploadId=upload), "NoSuchUpload"))
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key("tiny"))["UploadId"]
    etags = [s3.upload_part(Bucket=bucket, Key=key("tiny"), UploadId=upload, PartNumber=n, Body=b"x")["ETag"] for n in (1, 2)]
    listing = {"Parts": [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, 1)]}
    check("parts that are too small are refused", refused(lambda: s3.complete_multipart_upload(Bucket=bucket, Key=key("tiny"), UploadId=upload, MultipartUpload=listing), "EntityTooSmall"))
    s3.abort_multipart_upload(Bucket=bucket, Key=key("tiny"), UploadId=upload)
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key("assembled"))["UploadId"]
    source = {"Bucket": bucket, "Key": key("large")}
    copied = s3.upload_part_copy(Bucket=bucket, Key=key("assembled"), UploadId=upload, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=0-{5 * MIB - 1}")
    last = s3.upload_part(Bucket=bucket, Key=key("assembled"), UploadId=upload, PartNumber=2, Body=b"end")
    listing = {"Parts": [{"PartNumber": 1, "ETag": copied["CopyPartResult"]["ETag"]}, {"PartNumber": 2, "ETag": last["ETag"]}]}
    s3.complete_multipart_upload(Bucket=bucket, Key=key("assembled"), UploadId=upload, MultipartUpload=listing)
    assembled = s3.get_object(Bucket=bucket, Key=key("assembled"))["Body"].read()
    check("a part is copied from a range", assembled == data[: 5 * MIB] + b"end")

    s3.copy_object(Bucket=bucket, Key=key("copy"), CopySource={"Bucket": bucket, "Key": key("small")})
    copy = s3.get_object(Bucket=bucket, Key=key("copy"))
    check("a copy keeps bytes and metadata", (copy["Body"].read(), copy["Metadata"]) == (body, {"colour": "red"}))
    s3.copy_object(Bucket=bucket, Key=key("copy"), CopySource={"Bucket": bucket, "Key": key("small")}, MetadataDirective="REPLACE", Metadata={"a": "b"})
    check("a copy can get other metadata", s3.head_object(Bucket=bucket, Key=key("copy"))["Metadata"] == {"a": "b"})

    names = ["tree/a b", "tree/a+b", "tree/%41", "tree/\u00e4/\u65e5\u672c", "tree/d/1", "tree/d/2", "tree/e"]
    for name in names:
        s3.put_object(Bucket=bucket, Key=key(name), Body=name.encode())
    found = [entry["Key"] for entry in listed(s3, bucket, key("tree/"), PaginationConfig={"PageSize": 2})]
    check("keys are listed exactly, in byte order, over pages", found == sorted(map(key, names), key=str.encode), found)
    page = s3.list_objects_v2(Bucket=bucket, Prefix=key("tree/"), Delimiter="/")
    prefixes = [entry["Prefix"] for entry in page["CommonPrefixes"]]
    check("a delimiter groups keys into prefixes", prefixes == [key("tree/d/"), key("tree/\u00e4/")], prefixes)
    after = s3.list_objects_v2(Bucket=bucket, Prefix=key("tree/"), StartAfter=key("tree/d/1"))
    check("a listing starts after a key", after["Contents"][0]["Key"] == key("tree/d/2"))
    old = s3.list_objects(Bucket=bucket, Prefix=key("tree/"), MaxKeys=3)
    check("ListObjects (version 1) works", len(old["Contents"]) == 3 and old["IsTruncated"])
    check("objects with unusual keys are read back", all(s3.get_object(Bucket=bucket, Key=key(name))["Body"].read() == name.encode() for name in names))
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key("small")})
    check("a presigned URL is served", presigned(url, args.ca) == body)
    stranger = argparse.Namespace(**{**vars(args), "secret_key": "not the secret"})
    check("a wrong signature is refused", refused(lambda: client(stranger).get_object(Bucket=bucket, Key=key("small")), "SignatureDoesNotMatch"))

    everything = [entry["Key"] for entry in listed(s3, bucket, prefix)]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": name} for name in everything + [key("never was")]]})
    check("many objects are deleted at once, including a missing one", len(answer.get("Deleted", [])) == len(everything) + 1 and not answer.get("Errors"), answer.get("Errors"))
    check("the deleted objects are gone", listed(s3, bucket, prefix) == [])
    s3.delete_object(Bucket=bucket, Key=key("never was"))
    check("deleting a missing object succeeds", True)


def presigned(url, ca):
    context = ssl.create_default_context(cafile=ca) if ca else None
    with urllib.request.urlopen(url, context=context) as answer:
        return answer.read()


def read_back(s3, bucket, prefix, folder):
    files = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            files[prefix + os.path.relpath(path, folder).replace(os.sep, "/")] = path
    objects = {entry["Key"]: entry["Size"] for entry in listed(s3, bucket, prefix)}
    check(f"{len(files)} files and {len(objects)} objects have the same names", files.keys() == objects.keys(), sorted(files.keys() ^ objects.keys())[:5])
    different = []
    for key in sorted(files.keys() & objects.keys()):
        with open(files[key], "rb") as file:
            if s3.get_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")["Body"].read() != file.read():
                different.append(key)
    check("files and objects have the same bytes", not different, different[:5])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True, help="URL of the server")
    parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
    parser.add_argument("--bucket", required=True, help="created if it is missing")
    parser.add_argument("--access-key", default="laneway")
    parser.add_argument("--secret-key", default="lanewaysecret")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--read-back", metavar="DIR", help="compare the objects under --prefix with these files")
    parser.add_argument("--prefix", default="", help="prefix of the objects, with its trailing slash")
    args = parser.parse_args()
    connected = client(args)
    if args.read_back:
        read_back(connected, args.bucket, args.prefix, args.read_back)
    else:
        verbs(connected, args, args.bucket, args.prefix or f"boto3-{uuid.uuid4().hex}/")
    print(f"boto3: {failures} failed" if failures else "boto3: all passed")
    sys.exit(1 if failures else 0)
