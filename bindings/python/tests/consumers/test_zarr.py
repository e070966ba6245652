"""Tests zarr, with zarr's own tests of stores, and xarray."""

import asyncio
import uuid

import laneway
import pytest

zarr = pytest.importorskip("zarr")

from laneway.zarr import Store
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests


def store_of(filesystem, scheme):
    return laneway.from_url(f"{scheme}://lake/zarr-{uuid.uuid4().hex[:8]}", **filesystem(scheme).storage_options)


class Suite(StoreTests[Store, cpu.Buffer]):
    store_cls = Store
    buffer_cls = cpu.Buffer
    scheme = ""

    async def set(self, store, key, value):
        store.store.put(key, value.to_bytes())

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(store.store.get(key).bytes())

    @pytest.fixture
    def store_kwargs(self, filesystem):
        return {"store": store_of(filesystem, self.scheme), "read_only": False}

    @pytest.fixture
    def store(self, open_kwargs):
        return asyncio.run(Store.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return Store(**store_kwargs)

    def test_store_repr(self, store):
        assert repr(store) == f"laneway.zarr.Store({store.store.url!r})" and str(store) == store.store.url

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


class TestS3(Suite):
    scheme = "s3"


class TestGCS(Suite):
    scheme = "gs"


def test_a_url_with_the_options_of_a_store(filesystem, folder):
    store = Store(f"gs://{folder}", **filesystem("gs").storage_options)
    array = zarr.create_array(store, shape=(100,), chunks=(10,), dtype="i4")
    array[:] = range(100)
    assert zarr.open_array(Store(store.store, read_only=True))[42] == 42
    with pytest.raises(TypeError, match="own configuration"):
        Store(store.store, base_url="http://localhost")


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_xarray_writes_and_opens_through_it(filesystem, scheme):
    xarray = pytest.importorskip("xarray")
    store = store_of(filesystem, scheme)
    cube = xarray.Dataset({"t": (("x", "y"), [[float(x * y) for y in range(50)] for x in range(40)])}, {"x": range(40)})
    before = store.counters()["requests"]
    cube.to_zarr(Store(store), encoding={"t": {"chunks": (10, 50)}})
    written = store.counters()["requests"]
    assert written > before
    assert xarray.open_zarr(Store(store, read_only=True)).load().identical(cube)
    assert store.counters()["requests"] > written
