"""Declarations of experiments: defaults, what they derive, and what is refused before anything runs."""

import dataclasses
import json

import numpy as np
import pytest

from emuml import Crash, FaultPlan, Rounds, Seconds, TargetLoss
from emuml.cluster import Cluster, DelayTrace
from emuml.errors import UserError
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.spec import Inputs
from tests.experiment.small import small


def test_stop_conditions_are_joined():
    assert small().stop_condition() == Rounds(8)
    assert small(rounds=None, stop=Seconds(2)).stop_condition() == Seconds(2)
    assert small(stop=Seconds(2) | TargetLoss(0.1)).stop_condition() == Seconds(2) | TargetLoss(0.1) | Rounds(8)


def test_the_roster_has_servers_workers_seed_and_stop():
    roster = small(cluster=Cluster(workers=6)).roster()

    assert [f"{id}" for id in roster.ids] == ["server-0", *(f"worker-{w}" for w in range(6))]
    assert (roster.seed, roster.stop) == (3, Rounds(8))


def test_the_spec_is_plain_and_complete():
    inputs = Inputs()
    spec = small(faults=FaultPlan((Crash("worker-1", at_s=1),))).spec(inputs)

    assert json.loads(json.dumps(spec)) == spec
    assert set(spec) == {"workload", "protocol", "cluster", "rounds", "seed", "stop", "faults", "name"}
    assert spec["protocol"]["code"] == {"kind": "fractional-repetition", "replication": 2, "scale": "none"}
    assert len(inputs.arrays) == 2


def test_equal_experiments_are_equal():
    assert small() == small()
    assert small() != small(seed=4)
    assert dataclasses.replace(small(seed=4), seed=3) == small()


BAD = {
    "no end": ({"rounds": None}, "nothing says when to stop"),
    "no rounds": ({"rounds": 0}, r"Experiment\.rounds: got 0; allowed: a finite number > 0"),
    "half a round": ({"rounds": 1.5}, r"Experiment\.rounds: got 1\.5"),
    "negative seed": ({"seed": -1}, r"Experiment\.seed: got -1"),
    "huge seed": ({"seed": 2**64}, r"allowed: an integer below 2\*\*64"),
    "no protocol": ({"protocol": Uncoded()}, "Uncoded is no protocol"),
    "no workload": ({"workload": "breast-cancer"}, "str is no workload"),
    "no cluster": ({"cluster": 6}, r"Experiment\.cluster: got 6"),
    "no plan": ({"faults": [Crash("worker-0", at_s=1)]}, r"Experiment\.faults"),
    "no condition": ({"stop": 5}, r"Experiment\.stop"),
    "name": ({"name": 7}, r"Experiment\.name: got 7; allowed: text"),
    "two servers": ({"cluster": Cluster(workers=6, servers=2)}, r"cluster\.servers: got 2 servers; allowed: 1"),
    "narrow trace": ({"cluster": Cluster(workers=6, compute=DelayTrace(np.ones((9, 3))))}, "durations for 3 workers"),
    "short trace": ({"cluster": Cluster(workers=6, compute=DelayTrace(np.ones((7, 6))))}, "has 7 rounds, got 8"),
    "short trace, joined": (
        {"rounds": None, "stop": Rounds(10) | Seconds(5), "cluster": Cluster(6, compute=DelayTrace(np.ones((7, 6))))},
        "has 7 rounds, got 10",
    ),
    "a class for a protocol": ({"protocol": GradientCoding}, "the class GradientCoding is no protocol"),
    "few workers": ({"protocol": GradientCoding(FractionalRepetition(7))}, "7 replicas need as many workers, got 6"),
    "collect": ({"protocol": GradientCoding(IgnoreStragglers(), collect=7)}, "collect: got 7; allowed: an integer in"),
    "uncoded collect": ({"protocol": GradientCoding(collect=5)}, "Uncoded waits for all 6 workers"),
    "unbiased": ({"protocol": GradientCoding(FractionalRepetition(2, "unbiased"))}, "needs the number of answers"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_meant_is_refused_at_once(case):
    changed, said = BAD[case]
    with pytest.raises(UserError, match=said):
        small(**changed)


def test_parts_of_another_kind_are_refused_where_they_are_given():
    with pytest.raises(UserError, match=r"GradientCoding\.code: got <class"):
        GradientCoding(code=Uncoded)
    with pytest.raises(UserError, match=r"Cluster\.compute: got 0\.5; allowed: an object of the kind ComputeModel"):
        Cluster(workers=2, compute=0.5)
