"""What closed forms say of a run, against all sets of workers of small codes."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates, Barrier
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.protocols.gradient_coding.codes import GroupCode
from emuml.report.expected import decode_error, group_code, round_law
from emuml.theory import covered_chances, expected_pushes_time, ignore_error, repetition_error
from emuml.workloads import LinearRegression

SCALES: tuple[Literal["none", "unbiased", "covered"], ...] = ("none", "unbiased", "covered")


def enumerated(code: GroupCode, collect: int) -> tuple[list[float], float]:
    """Return the chance of each group and the mean error over all sets of ``collect`` workers."""
    decoded = [code.decode(workers) for workers in combinations(range(code.workers), collect)]
    chances = [sum(j in one.covered for one in decoded) / len(decoded) for j in range(code.n_groups)]
    return chances, float(np.mean([one.error for one in decoded]))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("collect", [1, 3, 5, 8])
def test_repetition_is_as_over_all_sets(scale: Literal["none", "unbiased", "covered"], collect: int) -> None:
    code = FractionalRepetition(2, scale=scale).build(8, collect=collect)
    chances, error = enumerated(code, collect)
    assert covered_chances(code).tolist() == pytest.approx(chances)
    assert decode_error(code) == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("scale", ["none", "unbiased"])
def test_unequal_groups_are_as_over_all_sets(scale: Literal["none", "unbiased"]) -> None:
    code = FractionalRepetition(2, scale=scale).build(7, collect=3)
    chances, error = enumerated(code, 3)
    assert len(set(code.group_sizes)) == 2
    assert covered_chances(code).tolist() == pytest.approx(chances)
    assert decode_error(code) == pytest.approx(error)


def test_of_unequal_groups_scaled_by_those_covered_nothing_is_known() -> None:
    assert decode_error(FractionalRepetition(2, scale="covered").build(7, collect=3)) is None


@pytest.mark.parametrize("scale", ["none", "covered"])
def test_errors_are_those_of_theory(scale: Literal["none", "covered"]) -> None:
    assert decode_error(IgnoreStragglers(scale).build(30, collect=15)) == pytest.approx(ignore_error(30, 15, scale))
    assert decode_error(FractionalRepetition(3).build(30, collect=15)) == pytest.approx(repetition_error(30, 3, 15))


@pytest.mark.parametrize("code", [Uncoded(), FractionalRepetition(3), FractionalRepetition(3, scale="covered")])
def test_codes_that_wait_for_all_groups_miss_nothing(code: Uncoded | FractionalRepetition) -> None:
    built = code.build(6)
    assert covered_chances(built).tolist() == [1.0] * built.n_groups
    assert decode_error(built) == 0.0


def experiment(**changes: object) -> emuml.Experiment:
    cluster = Cluster(workers=6, compute=ShiftedExponential(0.05, 0.5))
    protocol = GradientCoding(FractionalRepetition(2), collect=4, **changes)  # type: ignore[arg-type]
    return emuml.Experiment(LinearRegression(), protocol, cluster, rounds=3)


def test_the_code_of_a_run_is_the_one_it_ran_with() -> None:
    code = group_code(experiment())
    assert code is not None
    assert (code.workers, code.n_groups, code.collect) == (6, 3, 4)


def test_a_slower_clock_stretches_the_law() -> None:
    fast, slow = round_law(experiment()), round_law(experiment(), 3.0)
    assert fast.mean_s is not None
    assert slow.mean_s == pytest.approx(3 * fast.mean_s)
    assert fast.cdf is not None
    assert slow.cdf is not None
    t = np.linspace(0.0, 2.0, 9)
    assert slow.cdf(3 * t).tolist() == fast.cdf(t).tolist()


def test_what_is_not_known_has_a_reason() -> None:
    law = round_law(experiment(stragglers="carry-over"))
    assert law.mean_s is None
    assert law.cdf is None
    assert law.reason


@pytest.mark.parametrize("barrier", [BSP(), SSP(0), SSP(2), ASP()])
def test_rounds_of_asynchronous_updates_have_a_mean_and_no_distribution(barrier: Barrier) -> None:
    cluster = Cluster(workers=6, compute=ShiftedExponential(0.0, 0.5))
    law = round_law(emuml.Experiment(LinearRegression(), AsyncUpdates(barrier), cluster, rounds=3), 2.0)
    assert law.mean_s == pytest.approx(2.0 * expected_pushes_time(barrier, 6, cluster.compute))
    assert law.cdf is None
    assert law.reason


def test_slack_without_exponential_times_has_a_reason_instead() -> None:
    cluster = Cluster(workers=6, compute=ShiftedExponential(0.05, 0.5))
    law = round_law(emuml.Experiment(LinearRegression(), AsyncUpdates(SSP(2)), cluster, rounds=3))
    assert law.mean_s is None
    assert "not exponential" in law.reason
