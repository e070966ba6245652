"""A pytest plugin for s3-tests. It leaves out the request to IAM after each test, because the store has no IAM, and
making a client for it takes long. It also lets botocore sign in Python. The suite alters headers and bodies in ways that
the signer of the package awscrt refuses."""

import botocore.auth


def absent():
    raise NotImplementedError("the store has no IAM")


def pytest_collection_finish():
    import s3tests.functional

    s3tests.functional.get_iam_client = absent
    botocore.auth.AUTH_TYPE_MAPS |= {
        "v4": botocore.auth.SigV4Auth,
        "v4-query": botocore.auth.SigV4QueryAuth,
        "s3v4": botocore.auth.S3SigV4Auth,
        "s3v4-query": botocore.auth.S3SigV4QueryAuth,
    }
