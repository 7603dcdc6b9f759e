"""The engines under test, by name."""

from functools import partial

from emuml.runtime.settings import RuntimeSettings
from emuml.testing import run_nodes

SETTINGS = RuntimeSettings(stall_s=0.6, start_deadline_s=60.0, drain_s=5.0)

ENGINES = {
    "des": partial(run_nodes, engine="des"),
    "tcp": partial(run_nodes, engine="tcp", processes="shared", runtime=SETTINGS),
    "processes": partial(run_nodes, engine="tcp", processes="each", runtime=SETTINGS),
}
"""The emulator; TCP with all nodes on one loop; TCP with a process for each node."""


def name(check):
    """Return a check's name, for the ids of tests."""
    return check.__name__
