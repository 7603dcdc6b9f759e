"""A plugin that runs SimPy's own tests on emuml's environment: ``pytest -p simpy_suite`` (``make simpy-tests``).

They make everything through ``simpy.NAME``. ``SIMPY_NAMES=environment`` replaces the environment alone, so that SimPy's
own events and resources run on it; ``SIMPY_NAMES=all`` replaces every name that ``emuml.des.simpy`` has.

One test is left out on the compiled environment: it compares the text of a traceback, frames ``run`` and ``step`` of
``simpy/core.py`` included, which compiled code does not have. ``tests/des/test_simpy_events.py`` runs the same
scenario and checks the chain of exceptions. Nothing is left out with ``EMUML_PURE=1``.
"""

import os

import pytest
import simpy

from emuml.des import environment
from emuml.des import simpy as ours

REPLACED = {"environment": ["Environment"], "all": [name for name in simpy.__all__ if name != "RealtimeEnvironment"]}
LEFT_OUT = "test_exception_chaining"


def pytest_report_header(config):
    """Say what is tested."""
    return f"SimPy {simpy.__version__}; environment: {environment.CORE}; replaced: {os.environ['SIMPY_NAMES']}"


@pytest.fixture(autouse=True)
def emuml_names(monkeypatch, request):
    """Put emuml's names in place of SimPy's."""
    for name in REPLACED[os.environ["SIMPY_NAMES"]]:
        monkeypatch.setattr(simpy, name, getattr(ours, name))
    if hasattr(request.module, "RealtimeEnvironment"):
        monkeypatch.setattr(request.module, "RealtimeEnvironment", ours.RealtimeEnvironment)


def pytest_collection_modifyitems(config, items):
    """Leave one test out, by name."""
    if environment.CORE == "compiled":
        left_out = [item for item in items if item.name == LEFT_OUT]
        assert len(left_out) == 1, left_out
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
