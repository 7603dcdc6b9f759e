"""What is called common is common: the same delays draw by draw, so that orderings hold in every single round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml
from emuml.cluster import Cluster, ShiftedExponential
from emuml.experiment.result import Result
from emuml.node import NodeId
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition, IgnoreStragglers, Uncoded
from emuml.workloads import LogisticRegression

LAW = ShiftedExponential(shift_s=0.05, mean_s=0.5)


def result(protocol: Any, seed: int, workers: int = 6, rounds: int = 10) -> Result:
    workload = LogisticRegression(data="two-gaussians:120x3")
    cluster = Cluster(workers=workers, compute=LAW)
    return emuml.run(emuml.Experiment(workload, protocol, cluster, rounds=rounds, seed=seed))


def ends(run: Result) -> dict[tuple[str, int], tuple[float, float]]:
    """Return begin and end of each task that was finished, by worker and draw."""
    began = {(row[1], row[4]): row[0] for row in run.trace.rows if row[2] == "begin"}
    return {(str(row[1]), row[4]): (began[row[1], row[4]], row[0]) for row in run.trace.rows if row[2] == "computed"}


@pytest.mark.parametrize("stragglers", ["cancel", "skip-stale", "carry-over", "wait-all"])
@pytest.mark.parametrize("seed", [0, 7, 2**63])
def test_two_codes_of_one_load_have_the_same_delays_draw_by_draw(seed: int, stragglers: Any) -> None:
    wait_for_all = ends(result(GradientCoding(), seed))
    go_on_early = ends(result(GradientCoding(IgnoreStragglers(), 4, stragglers=stragglers), seed))
    assert len(wait_for_all) == 60
    assert len(go_on_early) >= 4 * 10
    assert set(go_on_early) <= set(wait_for_all)
    for (worker, draw), (began, ended) in go_on_early.items():
        delay_s = LAW.sampler(seed, NodeId("worker", int(worker.partition("-")[2])))(draw, 1.0)
        assert ended == began + delay_s
        other_began, other_ended = wait_for_all[worker, draw]
        assert other_ended == other_began + delay_s


def test_other_seeds_have_other_delays() -> None:
    first, second = (ends(result(GradientCoding(), seed)) for seed in (1, 2))
    assert all(first[key] != second[key] for key in first)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 2**64 - 1), st.integers(2, 9), st.data())
def test_waiting_for_all_is_never_faster_than_for_some_of_them_in_any_round(
    seed: int, workers: int, data: st.DataObject
) -> None:
    collect = data.draw(st.integers(1, workers))
    all_of_them, some = (
        np.diff(result(p, seed, workers).metrics["time_s"])
        for p in (GradientCoding(Uncoded()), GradientCoding(IgnoreStragglers(), collect))
    )
    assert (some <= all_of_them + 1e-12).all()
    assert collect < workers or np.array_equal(some, all_of_them)


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**64 - 1), st.integers(1, 6))
def test_stopping_earlier_never_makes_a_round_of_one_code_longer(seed: int, collect: int) -> None:
    exact, early = (
        np.diff(result(GradientCoding(FractionalRepetition(2), count), seed).metrics["time_s"])
        for count in (None, collect)
    )
    assert (early <= exact + 1e-12).all()
