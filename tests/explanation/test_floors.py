"""Floors of the loss: the closed form against long runs, and against a plain recursion."""

from itertools import pairwise

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.explanation.floors import Optimum, optimum
from emuml.explanation.sampling import sample
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers
from emuml.workloads import LinearRegression, LogisticRegression
from emuml.workloads.optimizers import AcceleratedGradientDescent, GradientDescent

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)


def data(rows=120, columns=3, seed=0):
    draws = np.random.default_rng(seed)
    features = draws.normal(size=(rows, columns))
    return features, features @ np.arange(1.0, columns + 1) + draws.normal(size=rows) + 0.1 * np.arange(rows) / rows


def regression(rate=0.05, l2=0.01):
    return LinearRegression(
        data=data(), l2=l2, validation=0.0, standardize=False, intercept=False, optimizer=GradientDescent(rate)
    )


def test_the_optimum_has_no_slope():
    for workload in (regression(), LogisticRegression(data="breast-cancer", l2=1e-3)):
        problem = workload.problem(0)
        found = optimum(problem)
        assert isinstance(found, Optimum)
        slope = problem.gradient(found.parameters, (0,), 1, draw=0).run() / problem.rows
        assert np.abs(slope + 2 * problem.l2 * found.parameters).max() < 1e-9


@pytest.mark.parametrize(
    ("code", "collect"),
    [(FractionalRepetition(2, scale="covered"), 5), (FractionalRepetition(2), 5), (IgnoreStragglers(), 6)],
)
def test_a_plain_recursion_settles_where_the_form_says(code, collect):
    """Averages over 3,000 independent chains of 400 steps: the standard error of their mean is below 2 %."""
    problem = regression().problem(0)
    found = optimum(problem)
    weights = sample(code, 10, LAW, collect=collect, rounds=4000).weights
    draws, partitions = np.random.default_rng(1), weights.shape[1]
    bounds = problem.partition_bounds(partitions)
    parts = [(problem.features[a:b], problem.targets[a:b]) for a, b in pairwise(bounds)]
    curved = np.array([2.0 * x.T @ x for x, _ in parts])
    pulled = np.array([-2.0 * x.T @ y for x, y in parts])
    chains = np.tile(found.parameters, (3000, 1))
    for _ in range(400):
        gamma = weights[draws.integers(len(weights), size=len(chains))]
        slopes = np.einsum("ci,ijk,ck->cj", gamma, curved, chains) + gamma @ pulled
        chains = chains - 0.05 * (slopes / problem.rows + 2 * problem.l2 * chains)
    losses = [problem.loss(one) for one in chains[::1]]
    excess = float(np.mean(losses)) - problem.loss(found.parameters)
    assert found.excess(weights) == pytest.approx(excess, rel=0.1)


@pytest.mark.slow
def test_an_emulated_run_stays_about_its_floor():
    """The tail of 4,000 rounds: about 400 independent losses in three directions, so its standard error is 4 %."""
    code, workload = FractionalRepetition(2, scale="covered"), regression()
    run = emuml.run(
        emuml.Experiment(
            workload, GradientCoding(code=code, collect=5), Cluster(workers=10, compute=LAW), rounds=4000, seed=1
        ),
        tier="array",
        trace=False,
    )
    found = optimum(workload.problem(1))
    least = found.problem.loss(found.parameters)
    tail = float(np.mean(run.metrics["train_loss"][500:])) - least
    assert found.excess(sample(code, 10, LAW, 1, collect=5, rounds=4000).weights) == pytest.approx(tail, rel=0.16)


def test_the_noise_of_a_sample_is_no_bias():
    """Few rounds of an unbiased code tell of the floor of many: 17 directions are flat enough to magnify a bias."""
    found = optimum(LogisticRegression(data="breast-cancer", l2=1e-4).problem(7))
    floors = [found.excess(sample(IgnoreStragglers(), 12, LAW, 1, collect=6, rounds=r).weights) for r in (300, 6_000)]
    assert floors[0] == pytest.approx(floors[1], rel=0.2)


def test_a_bias_that_a_sample_can_tell_counts():
    found = optimum(regression().problem(0))
    leaning = np.tile(np.linspace(0.7, 1.3, 10), (400, 1))
    noisy = leaning + np.random.default_rng(0).normal(scale=0.01, size=leaning.shape)
    assert found.excess(leaning) > 0.0
    assert found.excess(noisy) == pytest.approx(found.excess(leaning), rel=0.02)


def test_an_exact_code_has_no_floor():
    found = optimum(regression().problem(0))
    assert found.excess(np.ones((5, 10))) == 0.0


def test_who_learns_nothing_has_none():
    assert optimum(regression().problem(0)).excess(np.zeros((5, 10))) is None


def test_a_step_beyond_the_curvature_has_none():
    found = optimum(regression(rate=5.0).problem(0))
    assert found.excess(np.random.default_rng(0).uniform(0.5, 1.5, (50, 10))) is None


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        (LogisticRegression(data="breast-cancer", batch=4), "batches"),
        (LogisticRegression(data="breast-cancer", optimizer=AcceleratedGradientDescent()), "constant rate"),
    ],
)
def test_what_the_form_is_not_for_is_said(workload, why):
    assert why in optimum(workload.problem(0))
    assert optimum(object()) == "the workload is no regression"
