"""Pushes from one heap: the same times, versions, logs and parameters as event by event, ties included."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml._kernels.pushes import Pool as CompiledPool
from emuml.cluster.cluster import Cluster, Network
from emuml.cluster.compute import Constant, DelayTrace, Instant, ShiftedExponential
from emuml.des import rows
from emuml.des.pool import Pool
from emuml.des.pushes import PushTier
from emuml.des.rows import Rows
from emuml.errors import Deadlock, Livelock, NodeFailed
from emuml.node import NodeId
from emuml.protocols import AsyncUpdates
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.pushes import PushNodes
from emuml.roster import Roster
from emuml.stopping import Rounds, Seconds, Updates
from emuml.workloads.optimizers import GradientDescent
from tests.des.tiers import event_tier, push_tier, record
from tests.protocols.async_checks import Count
from tests.protocols.training import regression

NETWORKS = [Network(), Network(0.25), Network(0.03), Network(bandwidth_bps=8000.0), Network(0.01, 20_000.0)]
BARRIERS = [BSP(), ASP(), *map(SSP, (0, 1, 2, 5, None))]


class Shared(Count):
    """A problem that is asked for pushes alone."""

    def gradient(self, *arguments, **options):
        raise AssertionError("nobody asks for gradients of partitions")

    step = gradient


POOLS = [CompiledPool, Pool]


def check_equal(barrier, cluster, stop, seed=0, problem=None):
    problem = problem or (lambda: Shared(cluster.workers))
    protocol = AsyncUpdates(barrier)
    expected = record(event_tier(protocol, problem(), cluster, stop, seed))
    for pool in POOLS:
        assert record(push_tier(protocol, problem(), cluster, stop, seed, pool=pool)) == expected
    return expected


@st.composite
def runs(draw, laws):
    workers, rounds = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    cluster = Cluster(workers=workers, compute=draw(laws(workers)), network=draw(st.sampled_from(NETWORKS)))
    stop = draw(st.sampled_from([Rounds(rounds), Updates(rounds), Seconds(0.7 * rounds) | Rounds(20)]))
    return draw(st.sampled_from(BARRIERS)), cluster, stop, draw(st.integers(0, 2**64 - 1))


def continuous(workers):
    return st.builds(
        ShiftedExponential, st.floats(0.0, 2.0), st.floats(1e-3, 2.0), st.sampled_from(["fixed", "scaled"])
    )


def in_steps(workers):
    """Return delays that meet again and again; the fastest of workers may get out of what is recorded."""
    cells = st.lists(st.integers(1, 3), min_size=workers * 12, max_size=workers * 12)
    return st.one_of(cells.map(lambda cell: DelayTrace(0.25 * np.reshape(cell, (12, workers)))), st.just(Constant(0.5)))


@given(runs(continuous))
def test_tiers_agree_on_continuous_laws(run):
    check_equal(*run)


@given(runs(in_steps))
def test_tiers_agree_where_times_meet(run):
    check_equal(*run)


@pytest.mark.parametrize("barrier", BARRIERS)
def test_tiers_agree_on_work_that_takes_no_time(barrier):
    check_equal(barrier, Cluster(workers=4, compute=Instant()), Rounds(5))


@pytest.mark.parametrize("barrier", [BSP(), ASP(), SSP(2)])
def test_tiers_agree_on_a_regression_with_uneven_shares(barrier):
    cluster = Cluster(workers=7, compute=ShiftedExponential(0.05, 0.5, "scaled"), network=Network(0.01, 1e5))

    check_equal(barrier, cluster, Rounds(6), problem=lambda: regression(optimizer=GradientDescent(rate=0.5)))


@pytest.mark.parametrize("barrier", [ASP(), SSP(9)])
def test_workers_that_are_far_ahead_draw_for_themselves(barrier, monkeypatch):
    monkeypatch.setattr(rows, "KEPT", 0)  # two iterations
    delays = np.random.default_rng(3).exponential(1.0, (60, 4)) * [0.1, 1.0, 1.0, 3.0]

    check_equal(barrier, Cluster(workers=4, compute=DelayTrace(delays)), Rounds(8))


def test_a_recorded_law_that_ends_ends_both_alike():
    cluster = Cluster(workers=2, compute=DelayTrace(np.array([[0.1, 5.0]] * 3)))

    assert check_equal(ASP(), cluster, Rounds(4))["error"] == "RunFailed"


class Mute:
    """A server that lets nobody begin."""

    talks_to = frozenset({"worker"})

    def on_start(self, ctx, saved):
        pass

    def asked(self, ctx, worker, start):
        pass

    def waiting_for(self):
        return "nothing"

    up_bytes = down_bytes = pushed = asked


class Endless(Mute):
    """A server that never stops."""

    def asked(self, ctx, worker, start):
        start(worker, 0, 0)

    def pushed(self, ctx, worker, reads, start):
        start(worker, 0, 0)


class Broken(Endless):
    """A server that fails at the first push."""

    def pushed(self, ctx, worker, reads, start):
        raise KeyError("push")


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("server", "error"), [(Mute, Deadlock), (Endless, Livelock), (Broken, NodeFailed)])
def test_runs_that_cannot_go_on_say_so(server, error, pool):
    nodes = PushNodes(NodeId("server", 0), server, lambda: np.ones(2))
    roster, cluster = Roster.of_counts(0, Rounds(1), server=1, worker=2), Cluster(workers=2, compute=Instant())

    assert isinstance(PushTier(nodes, cluster, roster, 1.0, pool=pool).run().error, error)


class Log:
    """A server's calls, in order; it lets workers begin as a script says."""

    def __init__(self, script):
        self.script, self.calls = script, []

    def up_bytes(self, worker, clock, reads):
        return 10 + worker

    def down_bytes(self, worker, clock):
        return 20 + clock

    def asked(self, ctx, worker, start):
        self.calls.append((ctx.now, "asked", worker))
        self.follow(start)

    def pushed(self, ctx, worker, reads, start):
        self.calls.append((ctx.now, "pushed", worker, reads))
        self.follow(start)

    def follow(self, start):
        for order in self.script.pop(0) if self.script else ():
            start(*order)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), max_size=3), max_size=40),
    st.sampled_from(NETWORKS),
)
def test_pools_agree_on_whatever_a_server_does(script, network):
    found = []
    for pool in POOLS:
        log = Log([list(orders) for orders in script])
        times = Rows(Constant(0.25), 0, np.array([1.0, 1.0, 2.0, 3.0]))
        one = pool(4, times, network.latency_s, network.bandwidth_bps or 0.0, log.up_bytes, log.down_bytes, 10**6)
        one.ask()
        one.run(SimpleNamespace(now=None), [], log.asked, log.pushed, None)
        found.append((log.calls, one.now_s))
    assert found[0] == found[1]
