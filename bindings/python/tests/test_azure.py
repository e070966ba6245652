"""Azure's accounts, credentials and URLs."""

import os
import pickle
import sys
from datetime import UTC, datetime, timedelta

import laneway
import pytest
from conftest import ACCOUNT, ACCOUNT_KEY
from laneway._configuration import settings
from laneway.exceptions import InvalidError, UnauthenticatedError, UnknownConfigurationKeyError

# A key that no account has.
WRONG_KEY = "aHVzaC1odXNo"


@pytest.fixture
def endpoint(server):
    return f"{server}/{ACCOUNT}"


@pytest.fixture
def stored(endpoint):
    """Returns the key of an object."""
    laneway.AzureStore("lake", account_name=ACCOUNT, account_key=ACCOUNT_KEY, endpoint=endpoint).put("stored", b"bytes")
    return "stored"


def chosen(store):
    return {name: value for name, value in store._settings().items() if name.startswith("azure")}


@pytest.mark.parametrize(
    ("url", "is_at", "account"),
    [
        ("az://lake/a/b", "az://lake/a/b/", None),
        ("abfs://lake", "az://lake/", None),
        ("abfss://lake@mine.dfs.core.windows.net/a", "az://lake/a/", "https://mine.blob.core.windows.net"),
        ("az://lake@mine.blob.core.windows.net/a", "az://lake/a/", "https://mine.blob.core.windows.net"),
        ("https://mine.blob.core.windows.net/lake/a%20b", "az://lake/a b/", "https://mine.blob.core.windows.net"),
        ("https://mine.dfs.core.usgovcloudapi.net/lake", "az://lake/", "https://mine.blob.core.usgovcloudapi.net"),
    ],
)
def test_urls_name_container_folder_and_account(url, is_at, account):
    for store in (laneway.from_url(url), laneway.AzureStore.from_url(url)):
        assert isinstance(store, laneway.AzureStore) and (store.url, store.bucket) == (is_at, "lake")
        assert chosen(store) == ({"azure_account": "mine", "azure_endpoint": account} if account else {})
        assert pickle.loads(pickle.dumps(store)) == store


def test_a_given_endpoint_goes_before_that_of_the_url(endpoint, stored):
    url = f"abfss://lake@{ACCOUNT}.dfs.core.windows.net/"
    assert laneway.from_url(url, account_key=ACCOUNT_KEY, endpoint=endpoint).get(stored).bytes() == b"bytes"
    assert laneway.from_url(url, config={"azure_endpoint": endpoint}, account_key=ACCOUNT_KEY).get(stored).bytes() == b"bytes"
    with pytest.raises(ValueError, match="the URL names the account lakehouse, and account_name is 'other'"):
        laneway.from_url(url, account_name="other")
    with pytest.raises(ValueError, match="'account_name' and 'azure_storage_account_name' contradict each other"):
        laneway.from_url(url, azure_storage_account_name="other")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://example.com/lake", "unknown scheme https"),
        ("https://mine.blob.core.windows.net/lake?sv=2021&sig=hush", "AZURE_STORAGE_SAS_TOKEN"),
        ("abfss://lake@example.com/k", "user or a password"),
        ("https://mine.blob.core.windows.net/", "names no container"),
    ],
)
def test_urls_that_name_no_container_of_azure_are_refused(url, says):
    with pytest.raises(ValueError, match=says) as raised:
        laneway.from_url(url)
    assert "hush" not in str(raised.value)
    with pytest.raises(ValueError):
        laneway.AzureStore.from_url("s3://lake")


def test_keys_by_all_their_names():
    config = {"AZURE_STORAGE_ACCOUNT_NAME": "mine", "azure_container_name": "lake", "azure_storage_sas_key": "sig=a", "sas_token": "sig=a"}
    store = laneway.AzureStore(config=config)
    assert (store.bucket, chosen(store)) == ("lake", {"azure_account": "mine", "azure_credentials": {"sas_token": "sig=a"}})
    again = laneway.AzureStore(config=store.config)
    assert again.config == store.config and store.config["container_name"] == "lake"
    identity = {"azure_client_id": "c", "azure_storage_client_secret": "s", "authority_id": "t", "azure_authority_host": "h"}
    made = laneway.AzureStore("lake", **identity)
    assert chosen(made) == {"azure_credentials": {"client_id": "c", "client_secret": "s", "tenant_id": "t", "authority_host": "h"}}
    assert chosen(laneway.AzureStore("lake", use_azure_cli=False)) == {}
    fabric = laneway.AzureStore("lake", account_name="onelake", use_fabric_endpoint="true")
    assert chosen(fabric)["azure_endpoint"] == "https://onelake.blob.fabric.microsoft.com"


def test_a_client_id_alone_chooses_an_identity_of_the_machine(endpoint, stored, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_KEY", ACCOUNT_KEY)
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delenv("IDENTITY_HEADER", raising=False)
    assert laneway.AzureStore("lake", endpoint=endpoint).get(stored).bytes() == b"bytes"
    assert laneway.AzureStore("lake", endpoint=endpoint, use_managed_identity=False).get(stored).bytes() == b"bytes"
    for identity in ({"client_id": "c"}, {"use_managed_identity": True}):
        with pytest.raises(UnauthenticatedError, match="IDENTITY_HEADER isn't set"):
            laneway.AzureStore("lake", endpoint=endpoint, **identity).head(stored)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"account_name": "a", "azure_storage_account_name": "b"}, "Duplicate key"),
        ({"container_name": "lake", "azure_container_name": "sea"}, "Duplicate key: the container"),
        ({"account_key": "a", "access_key": "b"}, "Duplicate key"),
        ({"account_key": "a2V5", "sas_token": "sig=a"}, "account_key and sas_token are both credentials"),
        ({"account_key": "a2V5", "credential_provider": dict}, "a credential provider and account_key are both credentials"),
        ({"sas_token": ""}, "sas_token is empty"),
        ({"endpoint": "localhost:10000"}, "^endpoint: "),
        ({"encryption_key": "k"}, "'encryption_key' has no meaning here"),
        ({"msi_endpoint": "http://h"}, "IDENTITY_ENDPOINT"),
        ({"acount_name": "a"}, "AzureStore has no key 'acount_name'; similar keys are account_name"),
        ({"credentials": {}}, "pass account_key, sas_token or connection_string"),
        ({"bucket": "lake"}, "AzureStore has no key 'bucket'"),
        ({"container_name": ""}, "needs the name of a container"),
        ({"container_name": "az://lake"}, "not the name of a container: use laneway.from_url"),
    ],
)
def test_wrong_keys_are_refused_by_name(arguments, says):
    with pytest.raises(ValueError, match=says):
        laneway.AzureStore(**{"container_name": "lake", **arguments})


def test_every_kind_of_credential_reaches_the_account(endpoint, stored):
    key = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY}
    signed = laneway.AzureStore("lake", endpoint=endpoint, **key).sign("GET", stored, timedelta(hours=1))
    string = f"AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={endpoint}"
    for credentials in (
        key | {"endpoint": endpoint},
        {"endpoint": endpoint, "sas_token": signed.partition("?")[2]},
        {"endpoint": endpoint, "sas_key": "?" + signed.partition("?")[2]},
        {"endpoint": endpoint, "token": "any"},
        {"connection_string": string},
        key | {"endpoint": endpoint.removesuffix(f"/{ACCOUNT}"), "use_emulator": True},
    ):
        assert laneway.AzureStore("lake", **credentials).get(stored).bytes() == b"bytes", [*credentials]
    with pytest.raises(UnauthenticatedError):
        laneway.AzureStore("lake", endpoint=endpoint, account_name=ACCOUNT, account_key=WRONG_KEY).get(stored)


def test_passed_credentials_replace_those_of_the_environment(endpoint, stored, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "other")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"AccountName=other;AccountKey={WRONG_KEY}")
    passed = laneway.AzureStore("lake", account_name=ACCOUNT, account_key=ACCOUNT_KEY, endpoint=endpoint)
    assert passed.get(stored).bytes() == b"bytes"
    assert WRONG_KEY.encode() not in pickle.dumps(passed)
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_KEY", ACCOUNT_KEY)
    monkeypatch.setenv("AZURE_STORAGE_SERVICE_ENDPOINT", endpoint)
    found = laneway.AzureStore("lake")
    assert found.get(stored).bytes() == b"bytes" and laneway.from_url("az://lake").get(stored).bytes() == b"bytes"
    assert ACCOUNT_KEY.encode() not in pickle.dumps(found)


def test_azurite_needs_no_other_key():
    _, made = settings("az", {"use_emulator": "true"}, None, None, {})
    assert made == {
        "azure_account": "devstoreaccount1",
        "azure_endpoint": "http://127.0.0.1:10000/devstoreaccount1",
        "azure_credentials": {"connection_string": "UseDevelopmentStorage=true"},
    }
    _, anonymous = settings("az", None, None, None, {"use_emulator": True, "skip_signature": True})
    assert "azure_credentials" not in anonymous
    _, provided = settings("az", None, None, None, {"use_emulator": True}, dict)
    assert "azure_credentials" not in provided


def test_secrets_show_only_in_pickles():
    for name in ("account_key", "sas_token", "token", "client_secret", "connection_string"):
        store = laneway.AzureStore("lake", account_name="mine", **{name: "canary-argument"})
        assert "canary" not in repr(store) and "canary" not in str(store)
        assert b"canary-argument" in pickle.dumps(store) and pickle.loads(pickle.dumps(store)) == store
        with pytest.raises(laneway.exceptions.BaseError) as raised:
            # A token isn't checked on this machine, so its request would reach Azure.
            laneway.AzureStore("ab", account_name="mine", **{name: "canary-argument"}).head("k")
        assert "canary" not in str(raised.value) and b"canary" not in pickle.dumps(raised.value)


def test_a_container_and_an_account_that_cannot_be_are_named(endpoint):
    with pytest.raises(InvalidError, match="3 to 63"):
        laneway.AzureStore("ab", account_name=ACCOUNT, account_key=ACCOUNT_KEY, endpoint=endpoint).head("k")
    with pytest.raises(InvalidError, match="no storage account is set"):
        laneway.AzureStore("lake", account_key=ACCOUNT_KEY).head("k")
    with pytest.raises(UnauthenticatedError, match="base64"):
        laneway.AzureStore("lake", account_name=ACCOUNT, account_key="no base64!").head("k")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_provider_returns_tokens_of_entra_id(endpoint, stored, is_async):
    asked = []

    def hand_out():
        asked.append(1)
        return {"token": "any", "expires_at": datetime.now(UTC) + timedelta(hours=1)}

    async def hand_out_later():
        return hand_out()

    store = laneway.AzureStore("lake", endpoint=endpoint, credential_provider=hand_out_later if is_async else hand_out)
    assert store.get(stored).bytes() == store.get(stored).bytes() == b"bytes" and len(asked) == 1
    refused = laneway.AzureStore("lake", endpoint=endpoint, credential_provider=lambda: {"access_key": "hush", "expires_at": None})
    with pytest.raises(UnauthenticatedError, match="only tokens of Entra ID") as raised:
        refused.head(stored)
    assert "hush" not in str(raised.value)


def test_the_login_of_the_azure_cli_is_used_if_chosen(endpoint, stored, monkeypatch, tmp_path):
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    store = laneway.AzureStore("lake", endpoint=endpoint, use_azure_cli=True)
    with pytest.raises(UnauthenticatedError, match="run: az login"):
        store.head(stored)
    program = tmp_path / "az"
    program.write_text(f"#!{sys.executable}\nprint('{{\"accessToken\": \"any\", \"expires_on\": 4000000000}}')\n")
    program.chmod(0o755)
    (tmp_path / "azureProfile.json").write_text("{}")
    assert laneway.AzureStore("lake", endpoint=endpoint, use_azure_cli=True).get(stored).bytes() == b"bytes"


def test_no_login_takes_the_place_of_a_chosen_managed_identity(endpoint, server, stored, monkeypatch, tmp_path):
    program = tmp_path / "az"
    program.write_text(f"#!{sys.executable}\nprint('{{\"accessToken\": \"any\", \"expires_on\": 4000000000}}')\n")
    program.chmod(0o755)
    (tmp_path / "azureProfile.json").write_text("{}")
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path))
    # The server has no identity to give.
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", server)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert laneway.AzureStore("lake", endpoint=endpoint).get(stored).bytes() == b"bytes"
    with pytest.raises(UnauthenticatedError, match="a managed identity is the only credential"):
        laneway.AzureStore("lake", endpoint=endpoint, use_managed_identity=True).head(stored)


def test_a_job_copies_between_azure_and_another_cloud(make, anywhere, server, endpoint, tmp_path):
    # The settings of both stores hold for the whole job, so neither may be anonymous.
    store = make(skip_signature=False)
    azure = laneway.AzureStore("lake", prefix=f"{store.prefix}azure", endpoint=endpoint, account_name=ACCOUNT, account_key=ACCOUNT_KEY)
    store.put("k", b"bytes")
    laneway.copy((store, "k"), (azure, "copied"))
    assert azure.get("copied").bytes() == b"bytes"
    laneway.copy(f"{azure.url}copied", tmp_path / "copied", config=anywhere)
    assert (tmp_path / "copied").read_bytes() == b"bytes"


def test_a_jobs_keys_of_azure_have_no_other_prefix():
    with pytest.raises(UnknownConfigurationKeyError, match="a job has no key 'aws_account_key'"):
        laneway.copy("a", "az://lake/a", config={"aws_account_key": "hush"})
    with pytest.raises(UnknownConfigurationKeyError, match="'access_key'; similar keys are access_key_id"):
        laneway.copy("a", "s3://lake/a", config={"access_key": "hush"})
    _, chosen = settings("", {"azure_storage_access_key": "k"}, None, None, {})
    assert chosen == {"azure_credentials": {"account_key": "k"}}
    _, chosen = settings("", {"azure_endpoint": "http://h:1/a", "account_name": "a", "endpoint": "http://h:2", "azure_token": "t"}, None, None, {})
    assert chosen == {
        "azure_endpoint": "http://h:1/a",
        "azure_account": "a",
        "s3_endpoint": "http://h:2",
        "azure_credentials": {"token": "t"},
    }
