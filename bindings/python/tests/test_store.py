"""Stores and their configuration."""

import json
import os
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import laneway
import pytest
from laneway.exceptions import UnknownConfigurationKeyError


def test_urls():
    assert laneway.from_url("s3://lake/a/b", region="r").url == "s3://lake/a/b/"
    assert laneway.from_url("gcs://lake").url == "gs://lake/"
    assert isinstance(laneway.from_url("s3a://lake", region="r"), laneway.S3Store)
    with pytest.raises(ValueError, match="unknown scheme ftp"):
        laneway.from_url("ftp://lake")
    with pytest.raises(ValueError, match="needs the name of a bucket"):
        laneway.S3Store()


def test_a_prefix_is_a_folder():
    store = laneway.S3Store("lake", prefix="/a/b")
    assert (store.bucket, store.prefix, store.url) == ("lake", "a/b/", "s3://lake/a/b/")


def test_keys_by_all_their_names():
    laneway.S3Store(config={"AWS_BUCKET": "lake", "aws_region": "r", "REGION": "r"})
    laneway.GCSStore("lake", config={"google_skip_signature": "true"}, client_options={"read_timeout": "20s"})
    laneway.GCSStore("lake", retry_config={"retry_timeout": 3})


@pytest.mark.parametrize(
    ("bucket", "arguments"),
    [
        ("lake", {"config": {"AWS_BUCKET": "sea"}}),
        ("lake", {"region": "a", "aws_region": "b"}),
        ("lake", {"region": "a", "config": {"region": "b"}}),
        ("lake", {"role_arn": "a", "config": {"aws_role_arn": "b"}}),
    ],
)
def test_contradicting_keys_are_refused(bucket, arguments):
    with pytest.raises(ValueError, match="Duplicate key"):
        laneway.S3Store(bucket, **arguments)


def test_the_configuration_of_a_store_makes_another(make):
    store = make()
    again = type(store)(config=store.config)
    assert (again.bucket, again.prefix, again.config) == (store.bucket, None, store.config)
    store.put("k", b"bytes")
    assert again.get(f"{store.prefix}k").bytes() == b"bytes"


def test_a_folder_of_a_store_is_a_store(make):
    store = make()
    below = store / "a" / "b"
    assert below.url == f"{store.url}a/b/" and type(below) is type(store)
    below.put("k", b"bytes")
    assert store.get("a/b/k").bytes() == b"bytes"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"regoin": "r"}, "no key 'regoin'"),
        ({"config": {"disable_tagging": True}}, "'disable_tagging' has no meaning here: tags"),
        ({"client_options": {"http2_only": True}}, "'http2_only' has no meaning here: the engine"),
        ({"client_options": {"region": "r"}}, "no client option 'region'"),
        ({"retry_config": {"max_retries": 3}}, "retry_timeout"),
        ({"regoin": "r"}, "S3Store has no key 'regoin'; similar keys are region"),
        ({"anon": True}, "no key 'anon'; skip_signature=True"),
        ({"aws_anonymous": True}, "skip_signature=True"),
        ({"credentials": {}}, "pass access_key_id and secret_access_key"),
        ({"retries": 3}, "no key 'retries'; retry_config"),
        ({"retry_timeout": 3}, "pass it in retry_config"),
        ({"config": {"read_timeout": 3}}, "pass it in client_options"),
        ({"xyz": 3}, "no key 'xyz'; help.laneway.S3Store. lists the usual keys$"),
    ],
)
def test_keys_that_mean_nothing_are_refused_by_name(arguments, says):
    with pytest.raises(UnknownConfigurationKeyError, match=says):
        laneway.S3Store("lake", **arguments)


def test_keys_that_gcs_lacks_are_refused_by_name():
    for name, says in [("acces_key_id", "GCSStore has no key 'acces_key_id'"), ("credentials", "service_account_key"), ("base_ulr", "base_url")]:
        with pytest.raises(UnknownConfigurationKeyError, match=says):
            laneway.GCSStore("lake", **{name: "x"})
    with pytest.raises(UnknownConfigurationKeyError, match="a job has no key 'anon'; skip_signature=True"):
        laneway.copy("a", "s3://lake/a", config={"anon": True})


def test_gcs_takes_its_endpoint_under_the_names_of_s3_too(server):
    for name in ("endpoint", "endpoint_url"):
        laneway.GCSStore("lake", skip_signature=True, **{name: server}).put(name, b"bytes")
    assert laneway.GCSStore("lake", skip_signature=True, base_url=server).get("endpoint_url").bytes() == b"bytes"


def test_a_url_is_not_the_name_of_a_bucket():
    for kind in (laneway.S3Store, laneway.GCSStore):
        with pytest.raises(ValueError, match="'s3://lake' is a URL, .* use laneway.from_url"):
            kind("s3://lake")


def test_help_names_the_usual_keys():
    for kind, keys in [(laneway.S3Store, ["endpoint", "access_key_id", "skip_signature"]), (laneway.GCSStore, ["base_url", "service_account_key"])]:
        assert all(key in kind.__doc__ for key in keys)


def test_values_that_make_no_sense():
    with pytest.raises(ValueError, match="neither true nor false"):
        laneway.S3Store("lake", skip_signature="perhaps")
    with pytest.raises(ValueError, match="belong together"):
        laneway.S3Store("lake", access_key_id="id")
    with pytest.raises(ValueError, match="not a time"):
        laneway.S3Store("lake", client_options={"read_timeout": "soon"})
    for given in ({"read_timeout": 0}, {"timeout": "0.5ms"}):
        with pytest.raises(ValueError, match="^read_timeout: the value must be at least 1 ms"):
            laneway.S3Store("lake", client_options=given)
    with pytest.raises(ValueError, match="^server_side_encryption: unknown algorithm"):
        laneway.S3Store("lake", server_side_encryption="rot13")
    with pytest.raises(ValueError, match="^sse_customer_key_base64: "):
        laneway.S3Store("lake", sse_customer_key_base64="short")
    for negative in (-1, "-1s", timedelta(seconds=-1), float("nan")):
        with pytest.raises(ValueError, match="not a time: it must not be negative"):
            laneway.S3Store("lake", retry_config={"retry_timeout": negative})


def test_a_process_without_home_still_finds_the_users_folder(monkeypatch):
    import pwd

    monkeypatch.delenv("HOME")
    variables = laneway.S3Store("lake", role_session_name="x")._settings()["variables"]
    assert variables["HOME"] == pwd.getpwuid(os.getuid()).pw_dir
    monkeypatch.setenv("HOME", "/set")
    assert laneway.S3Store("lake", role_session_name="x")._settings()["variables"]["HOME"] == "/set"


def test_pickles_carry_configuration_and_no_secret_of_the_environment(make, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id-of-the-environment")
    pickled = pickle.dumps(laneway.S3Store("lake", region="r", role_session_name="x"))
    assert b"hush" not in pickled and b"id-of-the-environment" not in pickled
    # A pickle must contain the arguments, and no other output may show them.
    given = laneway.S3Store("lake", region="r", access_key_id="id", secret_access_key="canary-argument")
    assert b"canary-argument" in pickle.dumps(given)
    assert "canary" not in repr(given) and "canary" not in str(given)
    store = make()
    again = pickle.loads(pickle.dumps(store))
    assert again == store and again.url == store.url
    store.put("k", b"bytes")
    assert again.get("k").bytes() == b"bytes"


def test_what_was_read_from_the_environment_to_be_used_is_in_no_pickle(server, monkeypatch, tmp_path):
    login = tmp_path / "adc.json"
    secrets = {"refresh_token": "canary-refresh", "client_secret": "canary-client"}
    login.write_text(json.dumps({"type": "authorized_user", "client_id": "id"} | secrets))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(login))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "laneway")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "lanewaysecret")
    s3 = laneway.S3Store("lake", endpoint=server, region="us-east-1")
    s3.put("pickled", b"bytes")
    gcs = laneway.GCSStore("lake", base_url=server)
    assert gcs.get("pickled").bytes() == b"bytes"
    for secret in (b"lanewaysecret", b"canary"):
        assert secret not in pickle.dumps(s3) and secret not in pickle.dumps(gcs)
    with pytest.raises(FileNotFoundError) as raised:
        s3.head("nothing")
    assert b"lanewaysecret" not in pickle.dumps(raised.value)
    assert pickle.loads(pickle.dumps(s3)).get("pickled").bytes() == b"bytes"


def test_exceptions_are_pickled(store):
    with pytest.raises(FileNotFoundError) as raised:
        store.head("nothing")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is laneway.exceptions.NotFoundError
    assert (str(again), again.url, again.status) == (str(raised.value), raised.value.url, 404)


def test_a_key_of_a_service_account_is_given_as_json(server, monkeypatch):
    pem = Path(__file__).parents[3] / "crates/store/tests/credentials/private_key.pem"
    key = {"type": "service_account", "client_email": "signer@p.iam.gserviceaccount.com", "private_key": pem.read_text()}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/adc.json")
    store = laneway.GCSStore("lake", base_url=server, service_account_key=json.dumps(key))
    store.put("signed", b"bytes")
    url = store.sign("GET", "signed", timedelta(hours=1))
    assert "signer%40p.iam.gserviceaccount.com" in url
    with urlopen(url) as answer:
        assert answer.read() == b"bytes"
    assert "PRIVATE" not in repr(store) and pickle.loads(pickle.dumps(store)) == store
    of_dictionary = laneway.GCSStore("lake", base_url=server, service_account_key=key)
    assert "signer%40p.iam.gserviceaccount.com" in of_dictionary.sign("GET", "signed", timedelta(hours=1))
    for wrong, says in [("hush", "a JSON document"), (json.dumps(key | {"type": "authorized_user"}), "authorized_user")]:
        with pytest.raises(laneway.exceptions.UnauthenticatedError, match=says) as raised:
            laneway.GCSStore("lake", base_url=server, service_account_key=wrong).sign("GET", "signed", timedelta(hours=1))
        assert "service_account_key" in str(raised.value) and "hush" not in str(raised.value) and "PRIVATE" not in str(raised.value)


@pytest.mark.parametrize("is_async", [False, True])
def test_credentials_of_a_callable(server, is_async):
    asked = []

    def hand_out():
        asked.append(1)
        end = datetime.now(UTC) + timedelta(hours=1)
        return {"access_key_id": "laneway", "secret_access_key": "lanewaysecret", "expires_at": end}

    async def hand_out_later():
        return hand_out()

    provider = hand_out_later if is_async else hand_out
    store = laneway.S3Store("lake", endpoint=server, region="us-east-1", credential_provider=provider)
    store.put("provided", b"bytes")
    assert store.get("provided").bytes() == b"bytes" and len(asked) == 1

    def fail():
        raise RuntimeError("no vault")

    with pytest.raises(laneway.exceptions.UnauthenticatedError, match="no vault"):
        laneway.S3Store("lake", endpoint=server, region="r", credential_provider=fail).head("provided")


def test_a_store_is_made_of_a_url_of_its_service_and_tells_what_was_passed():
    options = {"region": "r", "config": {"endpoint": "http://localhost:1"}, "client_options": {"user_agent": "x"}}
    store = laneway.S3Store.from_url("s3a://lake/warehouse", **options)
    assert store == laneway.from_url("s3://lake/warehouse", **options) and store.url == "s3://lake/warehouse/"
    assert store.config == {"bucket": "lake", "region": "r", "endpoint": "http://localhost:1"} and store.client_options == {"user_agent": "x"}
    assert store.retry_config is store.credential_provider is None
    with pytest.raises(laneway.exceptions.InvalidPathError, match="S3Store has no URLs with gs://"):
        laneway.S3Store.from_url("gs://lake/warehouse")
    with pytest.raises(laneway.exceptions.InvalidPathError):
        laneway.GCSStore.from_url("lake/warehouse")


def test_list_async_is_list(store):
    store.put("a", b"")
    assert [meta["path"] for chunk in store.list_async(limit=1) for meta in chunk] == ["a"]


KEY = {"type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key": "hush"}


def test_credentials_that_the_endpoint_does_not_get_are_warned_about_once(tmp_path, caplog):
    file = tmp_path / "key.json"
    file.write_text(json.dumps(KEY))
    for n, credentials in enumerate([{"service_account_key": KEY}, {"service_account": file}, {"bearer_token": "hush"}]):
        caplog.clear()
        for _ in range(2):
            laneway.GCSStore("lake", base_url=f"http://u:hush@unsent-{n}.test:1", **credentials)
        (text,) = [record.getMessage() for record in caplog.records]
        assert f"http://unsent-{n}.test:1 are sent without the credentials of {[*credentials][0]}" in text and "hush" not in text
    caplog.clear()
    laneway.GCSStore("lake", service_account_key=KEY)
    laneway.GCSStore("lake", service_account_key=KEY, base_url="https://storage.googleapis.com")
    laneway.GCSStore("lake", service_account_key=KEY | {"universe_domain": "own.test"}, base_url="https://storage.own.test")
    laneway.GCSStore("lake", bearer_token="hush", base_url="https://unsent.test")
    laneway.GCSStore("lake", service_account_key=KEY, base_url="http://unsent.test", skip_signature=True)
    assert not caplog.records
    laneway.GCSStore("lake", service_account_key=KEY, base_url="https://unsent.test")
    assert "only over https:// and to hosts of Google's cloud (googleapis.com)" in caplog.text


def test_credentials_that_cannot_be_read_are_refused_whatever_the_endpoint(tmp_path):
    file = tmp_path / "key.json"
    file.write_text("{}")
    for credentials, says in [
        ({"service_account": tmp_path / "nothing"}, "^service_account: .*nothing can't be read: No such file"),
        ({"application_credentials": file}, "^application_credentials: .*key.json: it isn't a credentials file: it has no `type`"),
        ({"service_account_key": "{hush"}, "^service_account_key: it isn't a JSON document"),
        ({"service_account_key": '"hush"'}, "it has no `type`"),
        ({"service_account_key": {"type": "service_account", "private_key": "hush"}}, "it has no `client_email`"),
    ]:
        for endpoint in ({}, {"base_url": "http://localhost:1"}):
            with pytest.raises(laneway.exceptions.UnauthenticatedError, match=says) as raised:
                laneway.GCSStore("lake", **credentials, **endpoint)
            assert "hush" not in str(raised.value)
