"""Makes a table of several files, in folders named after the values of a column."""

import asyncio
import inspect
import uuid
from contextlib import contextmanager

import pytest

laneway_fsspec = pytest.importorskip("laneway.fsspec", exc_type=ImportError)

YEARS = (2024, 2025)


@pytest.fixture(params=["s3", "gs"])
def scheme(request):
    laneway_fsspec.register()
    return request.param


@pytest.fixture
def storage(scheme, filesystem):
    """The options that pandas and Dask pass on."""
    return filesystem(scheme).storage_options


@pytest.fixture
def fs(scheme, filesystem):
    return filesystem(scheme)


@pytest.fixture
def by_laneway(fs):
    """Fails if Laneway sends no request in a `with` block, because then the tested library has used another client."""

    @contextmanager
    def block():
        store, _ = fs._at("lake")
        before = store.counters()["requests"]
        yield
        assert store.counters()["requests"] > before, "Laneway sent no request"

    return block


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs tests that are coroutines, such as zarr's own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture
def folder():
    return f"lake/consumers-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def table():
    """Returns rows of two years, in mixed order."""
    pyarrow = pytest.importorskip("pyarrow")
    rows = range(20_000)
    columns = {"row": list(rows), "year": [YEARS[row % 2] for row in rows], "name": [f"name {row % 97}" for row in rows]}
    return pyarrow.table(columns)


@pytest.fixture
def total(table):
    """Returns the sum of column `row` over the rows of the later year."""
    return sum(row for row, year in zip(table["row"].to_pylist(), table["year"].to_pylist(), strict=True) if year == YEARS[1])
