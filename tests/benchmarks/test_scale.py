"""Benchmarks of scale: the least servers decide what SimPy's do, on both tiers, and figures come out in one form."""

from __future__ import annotations

import random

import pytest

from benchmarks import growth, lean, scale, scale_training, simpy_idiom
from emuml.cluster import Cluster, Constant
from emuml.des.pushes import PushTier
from emuml.des.rounds import RoundTier
from emuml.roster import Roster
from emuml.shapes import Count


def test_clocks_let_those_start_who_may_and_nobody_else() -> None:
    clocks, waiting, draws = simpy_idiom.Clocks(5, staleness=2), set(range(5)), random.Random(3)
    may_run = waiting
    for _ in range(500):
        worker = draws.choice(sorted(may_run))
        may_run.discard(worker)
        may_run.update(clocks.push(worker))
        slowest = min(clocks.clocks)
        assert may_run == {w for w in range(5) if clocks.clocks[w] - slowest <= 2}


def test_the_least_servers_run_on_array_tiers() -> None:
    roster, cluster = Roster.of_counts(1, server=1, worker=6), Cluster(workers=6, compute=Constant(0.5))
    rule = Count(6, 4)

    runs = [RoundTier(lean.asking(one, 3), cluster, roster, 1.0).run() for one in (rule, lean.OneByOne(rule))]
    runs.append(PushTier(lean.pushing(6, 2, 18), cluster, roster, 1.0).run())

    assert [(run.stopped, run.duration_s) for run in runs] == [("done", 1.5)] * 3


def test_simpy_programs_come_to_their_end() -> None:
    simpy_idiom.rounds(5, 3)
    simpy_idiom.pushes(5, 30, staleness=2)


@pytest.mark.slow
def test_figures_of_speeds_have_targets() -> None:
    found = scale_training.replicas(brief=True)

    assert all(figure.target == 3.5 and figure.ratio is not None for figure in found.values())
    assert scale.covered(40, 2).iterations == 80


@pytest.mark.slow
def test_growth_is_measured_of_every_contestant_at_every_size() -> None:
    found = growth.seconds(1, sizes=(100, 200), least=0.001)

    assert found.keys() == growth.NAMES.keys()
    assert all(len(each) == 2 and min(each) > 0 for each in found.values())
