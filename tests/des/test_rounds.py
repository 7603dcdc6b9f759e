"""Rounds as arrays: the same times, decode sets, logs and parameters as event by event, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Network
from emuml.cluster.compute import Constant, DelayTrace, Instant, ShiftedExponential
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding, IgnoreStragglers, Uncoded
from tests.des.tiers import check_equal
from tests.protocols.straggler_checks import SEMANTICS
from tests.protocols.training import Tally, regression

NETWORKS = [
    Network(),
    Network(0.25),
    Network(latency_s=0.03),
    Network(bandwidth_bps=8000.0),
    Network(0.01, 20_000.0),
    Network(0.25, 3000.0),
]


@st.composite
def runs(draw, laws):
    workers, rounds = draw(st.integers(1, 9)), draw(st.integers(1, 8))
    replication = draw(st.integers(1, workers))
    collect = draw(st.one_of(st.none(), st.integers(1, workers)))
    code = draw(st.sampled_from([Uncoded(), IgnoreStragglers(), FractionalRepetition(replication, "covered")]))
    if isinstance(code, Uncoded):
        collect = None
    protocol = GradientCoding(code, collect, draw(st.sampled_from(SEMANTICS)))
    cluster = Cluster(workers=workers, compute=draw(laws(workers, rounds)), network=draw(st.sampled_from(NETWORKS)))
    return protocol, cluster, rounds, draw(st.integers(0, 2**64 - 1))


def continuous(workers, rounds):
    seconds = st.floats(0.0, 2.0, allow_subnormal=False)
    return st.builds(ShiftedExponential, seconds, st.floats(1e-3, 2.0), st.sampled_from(["fixed", "scaled"]))


def in_steps(workers, rounds):
    """Return delays that meet again and again, zeros among them."""
    cells = st.lists(st.integers(0, 3), min_size=workers * rounds, max_size=workers * rounds)
    tables = cells.map(lambda cell: DelayTrace(0.25 * np.array(cell, float).reshape(rounds, workers)))
    return st.one_of(tables, st.sampled_from([Instant(), Constant(0.5)]))


@given(runs(continuous))
def test_tiers_agree_on_continuous_laws(run):
    protocol, cluster, rounds, seed = run
    assert check_equal(protocol, Tally, cluster, rounds, seed)


@given(runs(in_steps))
def test_tiers_agree_where_times_meet(run):
    protocol, cluster, rounds, seed = run
    knew = check_equal(protocol, Tally, cluster, rounds, seed)
    assert knew or protocol.stragglers in ("skip-stale", "carry-over")


@pytest.mark.parametrize("stragglers", SEMANTICS)
def test_tiers_agree_on_a_regression_with_uneven_shares(stragglers):
    code = FractionalRepetition(3, "covered")
    cluster = Cluster(workers=10, compute=ShiftedExponential(0.05, 0.5, "scaled"), network=Network(0.01, 1e5))

    assert check_equal(GradientCoding(code, 6, stragglers), regression, cluster, 12)
