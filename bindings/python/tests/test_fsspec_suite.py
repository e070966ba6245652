"""fsspec's own suite for filesystems, on all dialects: https://filesystem-spec.readthedocs.io/en/latest/developer.html"""

import uuid

import pytest

abstract = pytest.importorskip("fsspec.tests.abstract")


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture(scope="class", params=["s3", "gs", "az"])
    @classmethod
    def fs(cls, request, filesystem):
        return filesystem(request.param)

    @pytest.fixture
    def fs_path(self):
        return f"lake/suite-{uuid.uuid4().hex[:8]}"


class TestCopy(Fixtures, abstract.AbstractCopyTests):
    pass


class TestGet(Fixtures, abstract.AbstractGetTests):
    pass


class TestPut(Fixtures, abstract.AbstractPutTests):
    pass


class TestOpen(Fixtures, abstract.AbstractOpenTests):
    pass


class TestPipe(Fixtures, abstract.AbstractPipeTests):
    pass
