#!/usr/bin/env python3
"""Tests whether google-cloud-storage works with a GCS server, or whether it reads the objects that another program wrote.

Without --read-back, it tests the operations on any server (the embedded one, fake-gcs-server, ...). Its objects have a
prefix of their own, and are removed at the end. With --read-back DIR --prefix P, it compares the objects under P with the
files under DIR, in both directions. It prints a line for each check, and exits with 1 if one failed.
"""

import argparse
import base64
import hashlib
import os
import sys
import tempfile
import uuid

MIB = 1 << 20
failures = 0


def check(name, condition, detail=""):
    global failures
    failures += not condition
    print(f"{'ok  ' if condition else 'FAIL'} google-cloud-storage: {name}{' - ' + str(detail) if detail and not condition else ''}")


def client(args):
    # google-cloud-storage reads STORAGE_EMULATOR_HOST when it is imported. The package requests reads REQUESTS_CA_BUNDLE.
    os.environ["STORAGE_EMULATOR_HOST"] = args.endpoint
    if args.ca:
        os.environ["REQUESTS_CA_BUNDLE"] = args.ca
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    return storage.Client(project="demo", credentials=AnonymousCredentials())


def crc32c(data):
    import google_crc32c

    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def raised(call, *kinds):
    try:
        call()
    except kinds:
        return True
    return False


def verbs(storage, lacks, bucket_name, prefix):
    from google.api_core.exceptions import BadRequest, Conflict, NotFound, PreconditionFailed

    def unless(feature):
        if feature in lacks:
            print(f"--   google-cloud-storage: {feature}: skipped, because the server doesn't have it")
        return feature not in lacks

    try:
        storage.create_bucket(bucket_name)
    except Conflict:
        pass
    bucket = storage.bucket(bucket_name)
    check("the bucket exists", bucket.exists())
    check("the bucket is listed", bucket_name in [found.name for found in storage.list_buckets()])
    check("a missing object does not exist", not bucket.blob(prefix + "nothing").exists())
    check("a missing object can't be read", raised(lambda: bucket.blob(prefix + "nothing").download_as_bytes(), NotFound))
    check("a missing bucket can't be listed", raised(lambda: list(storage.list_blobs("no-such-" + uuid.uuid4().hex)), NotFound))

    body = b"hello, world"
    blob = bucket.blob(prefix + "small")
    blob.metadata = {"colour": "red"}
    blob.upload_from_string(body, content_type="text/plain", checksum="crc32c")
    check("a small object is read back", bucket.blob(prefix + "small").download_as_bytes() == body)
    found = bucket.get_blob(prefix + "small")
    check("its metadata is read back", (found.content_type, found.metadata, found.size) == ("text/plain", {"colour": "red"}, 12))
    check("its CRC32C is right", found.crc32c == crc32c(body), found.crc32c)
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    check("its MD5 is right", found.md5_hash == md5, found.md5_hash)
    check("a range is read", found.download_as_bytes(start=7, end=9) == b"wor")
    if unless("suffix-range"):
        check("a suffix is read", found.download_as_bytes(start=-3) == b"rld")
    check("if_generation_match=0 keeps an existing object", raised(lambda: bucket.blob(prefix + "small").upload_from_string(b"x", if_generation_match=0), PreconditionFailed))
    generation = found.generation
    bucket.blob(prefix + "small").upload_from_string(body, if_generation_match=generation)
    check("if_generation_match with its generation replaces it", bucket.get_blob(prefix + "small").generation > generation)
    bucket.blob(prefix + "empty").upload_from_string(b"")
    check("an empty object is read back", bucket.blob(prefix + "empty").download_as_bytes() == b"")
    if unless("checksum-verification"):
        wrong = bucket.blob(prefix + "wrong")
        wrong.crc32c = "AAAAAA=="
        check("a wrong checksum is refused", raised(lambda: wrong.upload_from_string(body, checksum=None), BadRequest))
        check("the refused object isn't stored", not bucket.blob(prefix + "wrong").exists())

    found = bucket.get_blob(prefix + "small")
    found.cache_control = "no-store"
    found.metadata = {"a": "b"}
    if unless("patch"):
        found.patch()
        again = bucket.get_blob(prefix + "small")
        check("metadata is patched", (again.cache_control, again.metadata.get("a")) == ("no-store", "b"), again.metadata)

    data = os.urandom(20 * MIB + 1)
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
        with open(source, "wb") as file:
            file.write(data)
        blob = bucket.blob(prefix + "large", chunk_size=4 * MIB)
        blob.upload_from_filename(source, checksum="crc32c")
        bucket.blob(prefix + "large").download_to_filename(target)
        with open(target, "rb") as file:
            check("20 MiB are uploaded in a resumable session and downloaded", file.read() == data)
        chunked = bucket.blob(prefix + "large", chunk_size=1 * MIB)
        chunked.download_to_filename(target)
        with open(target, "rb") as file:
            check("20 MiB are downloaded in ranges", file.read() == data)
        if unless("xml-multipart"):
            from google.cloud.storage import transfer_manager

            blob = bucket.blob(prefix + "parallel")
            transfer_manager.upload_chunks_concurrently(source, blob, chunk_size=8 * MIB, max_workers=2, worker_type=transfer_manager.THREAD)
            check("20 MiB are uploaded in parts through the XML API", bucket.get_blob(prefix + "parallel").crc32c == crc32c(data))
        transfer = bucket.blob(prefix + "large")
        transfer.reload()
    check("the large object's CRC32C is right", transfer.crc32c == crc32c(data), transfer.crc32c)

    if unless("gzip-transcoding"):
        import gzip

        packed = bucket.blob(prefix + "packed")
        packed.content_encoding = "gzip"
        stored = gzip.compress(body * 100)
        packed.upload_from_string(stored, content_type="text/plain")
        check("an object with gzip encoding is decompressed", bucket.blob(prefix + "packed").download_as_bytes() == body * 100)
        check("it can be read as it is stored", bucket.blob(prefix + "packed").download_as_bytes(raw_download=True) == stored)

    names = ["tree/a b", "tree/a+b", "tree/%41", "tree/\u00e4/\u65e5\u672c", "tree/d/1", "tree/d/2", "tree/e"]
    for name in names:
        bucket.blob(prefix + name).upload_from_string(name.encode())
    listing = [found.name for found in storage.list_blobs(bucket, prefix=prefix + "tree/", page_size=2)]
    check("names are listed exactly, in byte order, over pages", listing == sorted((prefix + name for name in names), key=str.encode), listing)
    folded = storage.list_blobs(bucket, prefix=prefix + "tree/", delimiter="/")
    direct = [found.name for found in folded]
    check("a delimiter groups names into prefixes", folded.prefixes == {prefix + "tree/d/", prefix + "tree/\u00e4/"} and len(direct) == 4, folded.prefixes)
    between = [found.name for found in storage.list_blobs(bucket, start_offset=prefix + "tree/d/2", end_offset=prefix + "tree/e", prefix=prefix)]
    check("offsets bound a listing", between == [prefix + "tree/d/2"], between)
    check("objects with unusual names are read back", all(bucket.blob(prefix + name).download_as_bytes() == name.encode() for name in names))

    if unless("compose"):
        composed = bucket.blob(prefix + "composed")
        composed.compose([bucket.blob(prefix + "small"), bucket.blob(prefix + "tree/e")])
        check("objects are composed", composed.download_as_bytes() == body + b"tree/e")
        composed.reload()
        check("the composed object's CRC32C is right", composed.crc32c == crc32c(body + b"tree/e"))
    copied = bucket.blob(prefix + "rewritten")
    token, _, _ = copied.rewrite(bucket.blob(prefix + "large"))
    while token is not None:
        token, _, _ = copied.rewrite(bucket.blob(prefix + "large"), token=token)
    check("an object is rewritten", copied.download_as_bytes() == data)

    gone = [found for found in storage.list_blobs(bucket, prefix=prefix + "tree/")]
    if unless("batch"):
        with storage.batch():
            for found in gone:
                found.delete()
        check("a batch deletes many", not list(storage.list_blobs(bucket, prefix=prefix + "tree/")))
    for found in storage.list_blobs(bucket, prefix=prefix):
        found.delete()
    check("all objects are deleted", not list(storage.list_blobs(bucket, prefix=prefix)))
    check("deleting a missing object raises NotFound", raised(lambda: bucket.blob(prefix + "never was").delete(), NotFound))


def read_back(storage, bucket, prefix, folder):
    files = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            files[prefix + os.path.relpath(path, folder).replace(os.sep, "/")] = path
    objects = {found.name: found for found in storage.list_blobs(bucket, prefix=prefix)}
    check(f"{len(files)} files and {len(objects)} objects have the same names", files.keys() == objects.keys(), sorted(files.keys() ^ objects.keys())[:5])
    different = []
    for name in sorted(files.keys() & objects.keys()):
        with open(files[name], "rb") as file:
            if objects[name].download_as_bytes(raw_download=True) != file.read():
                different.append(name)
    check("files and objects have the same bytes", not different, different[:5])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True, help="URL of the server")
    parser.add_argument("--ca", help="PEM file with the CA of a server with TLS")
    parser.add_argument("--bucket", required=True, help="created if it is missing")
    parser.add_argument("--read-back", metavar="DIR", help="compare the objects under --prefix with these files")
    parser.add_argument("--prefix", default="", help="prefix of the objects, with its trailing slash")
    parser.add_argument(
        "--lacks",
        action="append",
        default=[],
        choices=["suffix-range", "checksum-verification", "patch", "xml-multipart", "gzip-transcoding", "compose", "batch"],
        help="a feature that the server doesn't have; its checks are skipped",
    )
    args = parser.parse_args()
    connected = client(args)
    if args.read_back:
        read_back(connected, args.bucket, args.prefix, args.read_back)
    else:
        verbs(connected, args.lacks, args.bucket, args.prefix or f"gcs-{uuid.uuid4().hex}/")
    print(f"google-cloud-storage: {failures} failed" if failures else "google-cloud-storage: all passed")
    sys.exit(1 if failures else 0)
