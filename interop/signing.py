"""Compares Laneway's signed URLs with those of boto3 and google-cloud-storage.

    signing.py            checks that the URLs in crates/store/tests/signing/cases.json are those of the two libraries
    signing.py --write    writes the libraries' URLs to that file
    signing.py --laneway PROGRAM --s3 URL --ca PEM --bucket B
                          checks that the program's URLs are those of the libraries, and that an S3 server accepts them
"""

import argparse
import datetime
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import unittest.mock
import urllib.error
import urllib.parse
import urllib.request

# boto3's signer in C always uses the current time, but these cases have a fixed time.
os.environ["BOTO_DISABLE_CRT"] = "true"

import boto3
import botocore.auth
import botocore.config
import google.auth.credentials
import google.cloud.storage
import google.oauth2.service_account

tests = pathlib.Path(__file__).parent.parent / "crates/store/tests"
cases_file = tests / "signing/cases.json"
KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ACCOUNT = {
    "type": "service_account",
    "client_email": "signer@laneway.iam.gserviceaccount.com",
    "private_key": (tests / "credentials/private_key.pem").read_text(),
    "private_key_id": "1",
    "token_uri": "https://oauth2.googleapis.com/token",
    "project_id": "laneway",
}
OPERATIONS = {"GET": "get_object", "PUT": "put_object", "HEAD": "head_object", "DELETE": "delete_object"}
# The names of boto3's parameters for headers and query parameters.
PARAMETERS = {
    "Content-Type": "ContentType",
    "response-content-disposition": "ResponseContentDisposition",
    "versionId": "VersionId",
}


def by_boto3(case, at, key_id=KEY_ID, secret=SECRET):
    path_style = case.get("path_style", bool(case.get("endpoint")))
    style = "path" if path_style or "." in case["bucket"] else "virtual"
    config = botocore.config.Config(
        signature_version="s3v4", s3={"addressing_style": style}, request_checksum_calculation="when_required"
    )
    client = boto3.client(
        "s3",
        region_name=case.get("region", "eu-west-1"),
        endpoint_url=case.get("endpoint"),
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        aws_session_token=case.get("session_token"),
        config=config,
    )
    params = {"Bucket": case["bucket"], "Key": case["key"]}
    for name, value in (case.get("headers", {}) | case.get("query", {})).items():
        if name.startswith("x-amz-meta-"):
            params.setdefault("Metadata", {})[name.removeprefix("x-amz-meta-")] = value
        else:
            params[PARAMETERS[name]] = value
    if case.get("requester_pays"):
        # boto3 signs this as a header, which would have to be sent with the URL. S3 accepts it in the query as well.
        client.meta.events.register(
            "before-sign.s3.*", lambda request, **_: request.params.update({"x-amz-request-payer": "requester"})
        )
    operation = OPERATIONS[case.get("method", "GET")]
    moment = lambda *_, **__: at.replace(tzinfo=None)
    with unittest.mock.patch.object(botocore.auth, "get_current_datetime", moment):
        return client.generate_presigned_url(operation, Params=params, ExpiresIn=case.get("expires_s", 3600))


def by_google(case, at):
    credentials = google.oauth2.service_account.Credentials.from_service_account_info(ACCOUNT)
    client = google.cloud.storage.Client(project="laneway", credentials=credentials)
    blob = client.bucket(case["bucket"]).blob(case["key"])
    from google.cloud.storage._signing import generate_signed_url_v4

    # `Blob.generate_signed_url` calls this function, but doesn't take the time as an argument.
    quoted = urllib.parse.quote(blob.name.encode(), safe=b"/~")
    return generate_signed_url_v4(
        credentials,
        resource=f"/{case['bucket']}/{quoted}",
        expiration=datetime.timedelta(seconds=case.get("expires_s", 3600)),
        api_access_endpoint=case.get("endpoint", "https://storage.googleapis.com"),
        method=case.get("method", "GET"),
        headers=dict(case.get("headers", {})),
        query_parameters=dict(case.get("query", {})),
        _request_timestamp=at.strftime("%Y%m%dT%H%M%SZ"),
    )


def cases(write):
    document = json.loads(cases_file.read_text())
    at = datetime.datetime.fromisoformat(document["at"].replace("Z", "+00:00"))
    differ = []
    for store, sign in (("s3", by_boto3), ("gcs", by_google)):
        for case in document[store]:
            url = sign(case, at)
            if case.get("url") != url:
                differ.append(f"{case['name']}: expected {url}\n    but the file has {case.get('url')}")
                case["url"] = url
    if write:
        cases_file.write_text(json.dumps(document, indent=1) + "\n")
    elif differ:
        sys.exit("\n".join(differ))
    print(f"{sum(len(document[store]) for store in ('s3', 'gcs'))} URLs equal those of boto3 and google-cloud-storage")


def by_laneway(program, url, environment, *options):
    command = [program, "sign", "--json", url, *options]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "GOOGLE_", "STORAGE_"))}
    answer = subprocess.run(command, env=clean | environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)["url"]


def signed_at(url, name):
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
    return datetime.datetime.strptime(query[name][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)


def ask(url, method, ca, body=None, headers={}):
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        context = ssl.create_default_context(cafile=ca) if ca else None
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def program(laneway, endpoint, ca, bucket):
    key_id, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    environment = {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1"}
    key = "signed/a b+\u00e9"

    def sign(*options, at=endpoint):
        return by_laneway(laneway, f"s3://{bucket}/{key}", environment, "--s3-endpoint", at, *options)

    url = sign("--expires", "10m")
    case = {"bucket": bucket, "key": key, "endpoint": endpoint, "region": "us-east-1", "expires_s": 600}
    assert url == by_boto3(case, signed_at(url, "X-Amz-Date"), key_id, secret), url
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(ACCOUNT, file)
        file.flush()
        of_google = by_laneway(laneway, f"gs://{bucket}/{key}", {"GOOGLE_APPLICATION_CREDENTIALS": file.name})
    assert of_google == by_google({"bucket": bucket, "key": key}, signed_at(of_google, "X-Goog-Date")), of_google

    typed = {"Content-Type": "text/x-signed"}
    put = sign("--method", "PUT", "--header", "Content-Type: text/x-signed")
    assert ask(put, "PUT", ca, b"by a URL", typed)[0] == 200
    assert ask(put, "PUT", ca, b"by a URL", {"Content-Type": "text/other"})[0] == 403
    assert ask(url, "GET", ca) == (200, b"by a URL")
    assert ask(url, "PUT", ca, b"by a URL")[0] == 403
    assert ask(url[:-1] + ("0" if url[-1] != "0" else "1"), "GET", ca)[0] == 403
    assert ask(sign("--method", "HEAD"), "HEAD", ca)[0] == 200
    named = sign("--query", "response-content-disposition=attachment")
    assert ask(named, "GET", ca)[0] == 200
    late = sign("--expires", "1s")
    while datetime.datetime.now(datetime.timezone.utc) < signed_at(late, "X-Amz-Date") + datetime.timedelta(seconds=3):
        pass
    assert ask(late, "GET", ca)[0] == 403
    assert ask(sign("--method", "DELETE"), "DELETE", ca)[0] == 204
    assert ask(url, "GET", ca)[0] == 404
    print("the program's URLs equal those of the libraries, and the server accepts them")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    for option in ("--laneway", "--s3", "--ca", "--bucket"):
        arguments.add_argument(option)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    if given.laneway:
        program(given.laneway, given.s3, given.ca, given.bucket)
    else:
        cases(given.write)
