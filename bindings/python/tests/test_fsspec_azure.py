"""Behaviour of the filesystem of Azure: adlfs's options, credentials, and forms of paths."""

import uuid
from types import SimpleNamespace

import laneway
import pytest

fsspec = pytest.importorskip("fsspec")
laneway_fsspec = pytest.importorskip("laneway.fsspec")


@pytest.fixture
def folder():
    return f"lake/fsspec-{uuid.uuid4().hex[:8]}"


class Token:
    """A credential of azure-identity."""

    def __init__(self, token):
        self.token, self.expires_on = token, 4_000_000_000
        self.scopes = []

    def get_token(self, *scopes):
        self.scopes += scopes
        return self


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"account_name": "a", "account_key": "k"}, {"account_name": "a", "account_key": "k"}),
        ({"account_key": "k", "sas_token": "sig=s", "anon": True}, {"account_key": "k"}),
        ({"account_name": "a", "anon": True}, {"account_name": "a", "skip_signature": True}),
        ({"account_name": "a", "anon": False}, {"account_name": "a"}),
        ({"access_key": "k", "azure_sas_key": "sig=s", "anon": True}, {"access_key": "k"}),
        ({"token": "t", "anon": True}, {"token": "t"}),
        ({"bearer_token": "t", "anon": True}, {"bearer_token": "t"}),
        ({"client_id": "c", "anon": True}, {"client_id": "c"}),
        ({"tenant_id": "t", "anon": True}, {"tenant_id": "t", "skip_signature": True}),
        ({"use_azure_cli": True, "anon": True}, {"use_azure_cli": True}),
        ({"use_azure_cli": False, "anon": True}, {"use_azure_cli": False, "skip_signature": True}),
        (
            {"client_id": "c", "tenant_id": "t", "federated_token_file": "f", "anon": True},
            {"client_id": "c", "tenant_id": "t", "federated_token_file": "f"},
        ),
        ({"config": {"azure_storage_account_key": "k"}, "anon": True}, {"config": {"azure_storage_account_key": "k"}}),
        ({"credential_provider": dict, "account_key": "k", "anon": True}, {"credential_provider": dict}),
        ({"connection_string": "AccountName=a", "account_key": "k", "account_host": "h"}, {"connection_string": "AccountName=a"}),
        ({"account_host": "a.blob.core.chinacloudapi.cn"}, {"endpoint": "https://a.blob.core.chinacloudapi.cn"}),
        ({"credential": "?sv=2021&sig=s"}, {"sas_token": "?sv=2021&sig=s"}),
        ({"credential": "a2V5"}, {"account_key": "a2V5"}),
        ({"credential": "a2V5sig=="}, {"account_key": "a2V5sig=="}),
        ({"credential": "?sig=s"}, {"sas_token": "?sig=s"}),
        ({"credential": SimpleNamespace(signature="sig=s")}, {"sas_token": "sig=s"}),
        (
            {"credential": SimpleNamespace(named_key=SimpleNamespace(name="a", key="k"))},
            {"account_name": "a", "account_key": "k"},
        ),
        ({"blocksize": 5, "location_mode": "primary"}, {"default_block_size": 5}),
        (
            {"tenant_id": "t", "client_id": "c", "client_secret": "s"},
            {"tenant_id": "t", "client_id": "c", "client_secret": "s"},
        ),
    ],
)
def test_options_of_adlfs_have_their_meaning(given, meant):
    from laneway.fsspec._options import of_azure

    assert of_azure(given) == meant
    laneway_fsspec.AzureFileSystem(**given)


def test_a_credential_of_azure_identity_gives_tokens(filesystem, server, folder):
    given = filesystem("az").storage_options
    credential = Token("any")
    fs = laneway_fsspec.AzureFileSystem(account_name=given["account_name"], endpoint=given["endpoint"], credential=credential)
    fs.pipe_file(f"{folder}/k", b"bytes")
    assert filesystem("az").cat_file(f"{folder}/k") == b"bytes"
    assert credential.scopes == ["https://storage.azure.com/.default"]
    provided = laneway_fsspec.AzureFileSystem(anon=True, account_key="a2V5", credential_provider=dict)._settings()
    assert provided == {"credential_provider": dict}
    with pytest.raises(TypeError, match="credential must be"):
        laneway_fsspec.AzureFileSystem(account_name="a", credential=3)
    with pytest.raises(ValueError, match="location_mode"):
        laneway_fsspec.AzureFileSystem(account_name="a", location_mode="secondary")


def test_a_url_of_azure_can_name_the_account(filesystem, folder):
    path, options = f"{folder}/k", filesystem("az").storage_options
    name = options["account_name"]
    laneway_fsspec.register(("az", "abfs", "abfss"))
    urls = [f"az://{path}", f"abfs://{path}", f"abfss://lake@{name}.dfs.core.windows.net/{path.partition('/')[2]}"]
    urls.append(f"abfs://{name}.dfs.core.windows.net/{path}")
    for number, url in enumerate(urls):
        with fsspec.open(url, "wb", **options) as file:
            file.write(b"%d" % number)
        assert filesystem("az", use_listings_cache=False).cat_file(path) == b"%d" % number
        fs, at = fsspec.core.url_to_fs(url, **options)
        assert at == path and fs.unstrip_protocol(at) == f"az://{path}"
    fs, _ = fsspec.core.url_to_fs("abfss://lake@other.dfs.core.chinacloudapi.cn/k")
    assert fs._settings()["azure_account"] == "other"
    assert fs._settings()["azure_endpoint"] == "https://other.blob.core.chinacloudapi.cn"
    url = "abfss://lake@other.dfs.core.windows.net/k"
    for given in ({"account_host": "h"}, {"endpoint": "https://h"}, {"endpoint_url": "https://h"}, {"config": {"azure_endpoint": "https://h"}}):
        fs, _ = fsspec.core.url_to_fs(url, **given)
        assert (fs._settings()["azure_account"], fs._settings()["azure_endpoint"]) == ("other", "https://h")
    with pytest.raises(ValueError, match="user or a password"):
        fsspec.core.url_to_fs("abfss://lake@other.example.com/k")


@pytest.mark.parametrize("path", ["table.parquet/part-0", "v1.2/data", "az://table.parquet/part-0", "mine.example.com/lake/k", "a.txt"])
def test_a_dot_in_the_first_name_makes_it_no_host_of_azure(path):
    assert laneway_fsspec.AzureFileSystem._strip_protocol(path) == path.removeprefix("az://")
    with pytest.raises(laneway.exceptions.InvalidError, match="3 to 63"):
        laneway_fsspec.AzureFileSystem(account_name="a", anon=True).rm(path, recursive=True)


def test_a_host_of_azure_in_a_path_is_not_its_container():
    for host in ("mine.dfs.core.windows.net", "mine.blob.core.chinacloudapi.cn"):
        assert laneway_fsspec.AzureFileSystem._strip_protocol(f"abfs://{host}/lake/k") == "lake/k"
