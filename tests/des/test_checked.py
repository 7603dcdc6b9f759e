"""Contract checks on both event cores: nothing changes but that violations are found."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import time
import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.des.emulator import Emulator
from emuml.des.environment import CORE
from emuml.node import Node, NodeId
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.roster import Roster
from emuml.workloads import LogisticRegression


class Clocked(Node):
    def on_start(self, ctx, saved):
        time.time()
        ctx.stop("done")


experiment = emuml.Experiment(
    workload=LogisticRegression(data="two-gaussians:60x2"),
    protocol=GradientCoding(FractionalRepetition(2)),
    cluster=Cluster(workers=6, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
    rounds=6,
    faults=FaultPlan((Crash("worker-1", at_s=0.6, restart_after_s=0.5),)),
)
result = emuml.run(experiment, tier="event")
nodes = {NodeId("worker", 0): ("worker", Clocked)}
error = Emulator(nodes, Cluster(workers=1), Roster.of_counts(worker=1)).run().error
cause = type(getattr(error, "__cause__", None)).__name__
print(result.parameters_sha256, result.duration_s, result.run.events, CORE, cause)
"""


def told(check, pure):
    """Return what a process of its own tells of a run and of a node that reads a clock."""
    environment = {name: value for name, value in os.environ.items() if name not in ("EMUML_CHECK", "EMUML_PURE")}
    environment |= {name: "1" for name, wanted in (("EMUML_CHECK", check), ("EMUML_PURE", pure)) if wanted}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    *found, core, violation = done.stdout.split()
    return found, core, violation


@pytest.mark.slow
@pytest.mark.parametrize("pure", [False, True], ids=["compiled", "pure"])
def test_checks_change_nothing_and_find_violations_on_both_event_cores(pure):
    (plain, core, unseen), (checked, checked_core, seen) = told(False, pure), told(True, pure)

    assert checked == plain
    assert checked_core == core
    assert core == "pure" if pure else core in ("compiled", "pure")  # without kernels there is one
    assert (unseen, seen) == ("NoneType", "ForbiddenCall")
