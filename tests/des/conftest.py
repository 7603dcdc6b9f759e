"""What tests of SimPy programs are handed: one kind of SimPy's names, an environment of it, an empty log."""

import pytest

from tests.des.simpy_names import ALL


@pytest.fixture(params=list(ALL))
def names(request):
    return ALL[request.param]


@pytest.fixture
def env(names):
    return names.Environment()


@pytest.fixture
def log():
    return []
