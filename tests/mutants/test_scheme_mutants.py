"""What published programs got wrong around their codes: starts, delays, clocks; and a run of every scheme there is."""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import emuml
from emuml import names
from emuml.cluster import Cluster, ShiftedExponential
from emuml.node import NodeId
from emuml.protocols import GradientCoding, SequentialGradientCoding
from emuml.protocols.gradient_coding import CyclicRepetition, FractionalRepetition, GroupCode, Uncoded
from emuml.protocols.gradient_coding.codes.graphs import Complete
from emuml.protocols.gradient_coding.server import Server
from emuml.theory import expected_round_time, round_time_variance
from emuml.workloads import LogisticRegression
from tests.protocols.training import regression, train

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)
ROUNDS = 300


def check_round_means(code=FractionalRepetition(3), law=LAW, built=None):  # noqa: B008
    """Rounds take what theory says of the code and of the true law, within four standard errors."""
    run = train(regression(rows=90), built or code, 30, ROUNDS, compute=law)
    error_s = (round_time_variance(code, 30, LAW) / ROUNDS) ** 0.5
    assert run.published[-1].time_s / ROUNDS == pytest.approx(expected_round_time(code, 30, LAW), abs=4 * error_s)


class Wrong:
    """Says what the true law says of itself, and draws otherwise, one worker at a time."""

    mean, variance, cdf, ppf = LAW.mean, LAW.variance, LAW.cdf, LAW.ppf


class OneNumber(Wrong):
    """W14: every worker begins the same stream anew, so that all of them draw one number."""

    def sampler(self, seed, node):
        return LAW.sampler(seed, NodeId("worker", 0))


class Half(Wrong):
    """W15: the load scales the tail, but not the shift."""

    def sampler(self, seed, node):
        drawn = ShiftedExponential(0.0, LAW.mean_s, "scaled").sampler(seed, node)
        return lambda draw, load: LAW.shift_s + drawn(draw, load)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "code"),
    [
        (OneNumber, Uncoded()),
        (OneNumber, CyclicRepetition(3)),
        (Half, FractionalRepetition(3)),
        (Half, CyclicRepetition(3)),
    ],
    ids=["w14-uncoded", "w14-cyclic", "w15-repetition", "w15-cyclic"],
)
def test_w14_w15_wrong_delays_are_caught_by_the_mean_of_the_rounds(code, law):
    check_round_means(code)
    with pytest.raises(AssertionError):
        check_round_means(code, law())


class EvaluatesInside(GroupCode):
    """W16: whoever computes a gradient evaluates the model as well, on as many rows as it has partitions for."""

    def task(self, workload, parameters, worker, draw):
        found = super().task(workload, parameters, worker, draw)
        return replace(found, cost=10 * found.cost)


@dataclass(frozen=True)
class Evaluated(FractionalRepetition):
    """Builds that code."""

    def build(self, workers, seed=0, collect=None):
        found = super().build(workers, seed, collect)
        return EvaluatesInside(*(getattr(found, item.name) for item in fields(found) if item.init))


def test_w16_metrics_in_the_timed_loop_are_caught_by_the_mean_of_the_rounds():
    with pytest.raises(AssertionError):
        check_round_means(built=Evaluated(3))


def check_same_start(server=Server):
    """All schemes begin at the parameters of the problem."""
    problem = regression()
    for seed, code in enumerate((Uncoded(), FractionalRepetition(3))):
        first = train(problem, code, 6, 1, server=server, seed=seed).published[0]
        assert first.parameters.tobytes() == problem.initial.tobytes()


class StartsElsewhere(Server):
    """W8: a start of its own."""

    def __init__(self, code, workload, *arguments):
        moved = replace(workload, initial=workload.initial + 0.5)
        super().__init__(code, moved, *arguments)


def test_w8_a_start_of_its_own_is_caught():
    check_same_start()
    with pytest.raises(AssertionError):
        check_same_start(StartsElsewhere)


EXAMPLES = {
    "uncoded": {},
    "ignore-stragglers": {},
    "fractional-repetition": {"replication": 2},
    "balanced-repetition": {"stragglers": 2},
    "cyclic-repetition": {"stragglers": 2},
    "cyclic-mds": {"stragglers": 3},
    "ye-abbe": {"stragglers": 1, "blocks": 2},
    "graph-code": {"graph": Complete()},
    "expander": {"graph": Complete()},
    "bernoulli": {"load": 3.0},
    "stochastic-code": {"replication": 3},
    "heterogeneous-code": {"replication": 3, "absence": (0.1, 0.2) * 5},
    "verified-repetition": {"replication": 3, "adversaries": 1},
    "partial-work": {"replication": 3},
    "sr-sgc": {"burst": 1, "window": 2, "stragglers": 2},
    "m-sgc": {"burst": 1, "window": 2, "stragglers": 2},
}
"""Arguments of each registered code on ten workers, or as many as its graph has edges."""


@pytest.mark.parametrize("kind", sorted(names.REGISTRY["code"]))
def test_w26_every_scheme_that_can_be_named_is_run(kind):
    """All parts of the data are heard at once, so each of them trains; there is no scheme that was never run."""
    code = names.resolve("code", kind)(**EXAMPLES[kind])
    experiment = emuml.Experiment(
        LogisticRegression(data="breast-cancer", l2=1e-3),
        (SequentialGradientCoding if kind.endswith("sgc") else GradientCoding)(code=code),
        Cluster(workers=10, compute=LAW),
        rounds=12,
        seed=3,
    )
    run = emuml.run(experiment)
    assert run.rounds == 12
    losses = run.metrics["train_loss"]
    assert losses[-1] < 0.5 * losses[0]
    assert np.isfinite(run.parameters).all()
