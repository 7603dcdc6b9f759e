"""What crashes cost asynchronous updates: each update counts once, and bounds hold after a return."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.cluster.faults import Crash
from emuml.directory import Directory
from emuml.life import Life
from emuml.node import NodeId
from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.async_updates.messages import Place, View
from emuml.protocols.async_updates.server import Server
from emuml.protocols.async_updates.worker import Worker
from emuml.roster import Roster
from emuml.stopping import Rounds
from tests.protocols.async_checks import Count, train


class Bits(Count):
    """A problem whose table says which pushes are in it: coordinate ``p`` is the sum of ``2**clock`` over worker p's.

    A push that is applied twice carries into the next bit, so the set is read off exactly.
    """

    def __init__(self, workers):
        super().__init__(workers)
        self.initial = np.zeros(workers)
        self.initial.flags.writeable = False

    def evaluate(self, parameters, share, draw):
        self.read.append((share, draw, np.array(parameters)))
        value = np.zeros_like(parameters)
        value[share] = 2.0**draw
        return value


def applied(table):
    """Return for each worker the clocks whose pushes the table holds."""
    return [{bit for bit in range(53) if int(value) >> bit & 1} for value in table]


def ones(rounds, workers):
    return np.ones((rounds, workers))


def test_a_worker_that_comes_back_goes_on_where_it_was():
    run, _ = train(BSP(), ones(9, 3), 4, problem=Bits(3), faults=[Crash("worker-1", at_s=1.5, restart_after_s=1.0)])

    assert applied(run.published[-1].parameters) == [{0, 1, 2, 3}] * 3
    assert [item.time_s for item in run.published[1:]] == [1.0, 3.5, 4.5, 5.5]


def test_the_others_wait_for_a_worker_that_is_down_no_longer_than_their_slack():
    run, _ = train(SSP(2), ones(9, 3), 3, problem=Bits(3), faults=[Crash("worker-1", at_s=0.5, restart_after_s=9.5)])

    assert [item.time_s for item in run.published[1:]] == [2.0, 3.0, 12.0]
    assert applied(run.published[2].parameters) == [{0, 1, 2}, set(), {0, 1, 2}]


def test_whoever_is_evicted_holds_nobody_back_and_returns_with_the_slowest():
    faults = [Crash("worker-1", at_s=1.5, restart_after_s=2.0)]
    run, _ = train(BSP(), ones(9, 3), 7, problem=Bits(3), faults=faults, on_lost="evict")

    # The crash is noticed at 1.51 s. The second iteration ends without worker-1, which reads again at 3.5 s, when the
    # others compute iteration 3, and has a push in it, computed from the view of the iteration that was open.
    assert run.error is None
    table = applied(run.published[-1].parameters)
    assert table[0] == table[2] == set(range(7))
    assert table[1] == {0, 3, 4, 5, 6}
    assert run.logs[-1].metrics["skipped"] == 2
    assert [log.metrics["evicted"] for log in run.logs] == [0, 1, 1, 0, 0, 0, 0]


def test_after_all_were_evicted_nobody_comes_back_to_an_iteration_that_is_over():
    # worker-2 misses two iterations; when it returns nobody counts, and worker-0, which is further, returns last.
    faults = [
        Crash("worker-2", at_s=0.1, restart_after_s=3.1),
        Crash("worker-1", at_s=1.6, restart_after_s=1.7),
        Crash("worker-0", at_s=2.4, restart_after_s=2.4),
    ]
    for barrier in (BSP(), SSP(0)):
        run, _ = train(barrier, ones(20, 3), 5, problem=Bits(3), faults=faults, on_lost="evict")
        assert run.error is None
        assert [log.metrics["spread"] for log in run.logs if log.metrics["spread"] > 1] == []


def test_a_run_that_waits_for_the_dead_names_them():
    run, _ = train(BSP(), ones(9, 3), 4, problem=Bits(3), faults=[Crash("worker-1", at_s=1.5)])

    assert "updates of iteration 1 from worker-1" in str(run.error)


def test_a_server_that_starts_again_trains_from_scratch():
    run, _ = train(SSP(1), ones(20, 3), 4, problem=Bits(3), faults=[Crash("server-0", at_s=2.5, restart_after_s=0.5)])

    assert run.error is None
    assert applied(run.published[-1].parameters) == [{0, 1, 2, 3}] * 3
    assert [item.version for item in run.published] == [0, 1, 2, 0, 1, 2, 3, 4]


BARRIERS = st.sampled_from([BSP(), ASP()]) | st.builds(SSP, st.integers(0, 3))


@st.composite
def plans(draw, workers, servers=False):
    """Crashes that end: everybody is back after a while."""
    names = [f"worker-{w}" for w in range(workers)] + (["server-0"] if servers else [])
    found = []
    for name in names:
        at_s = 0.0
        for _ in range(draw(st.integers(0, 2))):
            at_s += draw(st.floats(0.05, 4.0))
            found.append(Crash(name, at_s=at_s, restart_after_s=draw(st.floats(0.05, 3.0))))
            at_s += 3.1
    return found


@pytest.mark.slow
@given(
    data=st.data(), barrier=BARRIERS, on_lost=st.sampled_from(["wait", "evict"]), latency_s=st.sampled_from([0.0, 0.2])
)
def test_any_crashes_lose_no_update_that_counted_and_break_no_bound(data, barrier, on_lost, latency_s):
    workers, rounds = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    servers = data.draw(st.booleans())
    delays = 0.3 + np.random.default_rng(data.draw(st.integers(0, 9))).exponential(0.7, (400, workers))
    faults = data.draw(plans(workers, servers))
    run, problem = train(
        barrier, delays, rounds, problem=Bits(workers), faults=faults, on_lost=on_lost, latency_s=latency_s
    )

    assert run.error is None
    table = applied(run.published[-1].parameters)
    assert all(bit < 50 for clocks in table for bit in clocks)
    if on_lost == "wait":
        assert sum(map(len, table)) >= workers * rounds
        assert all(clocks == set(range(len(clocks))) for clocks in table)  # none is missing in between
        if barrier.slack is not None:
            done = [len(clocks) for clocks in table]
            assert max(done) - min(done) <= barrier.slack + 1
        for worker, clock, read in problem.read:
            held = applied(read)
            assert held[worker] == set(range(clock))
            if barrier.slack is not None:
                assert all(held[other] >= set(range(clock - barrier.slack)) for other in range(workers))


def test_a_place_that_comes_late_leads_no_worker_back():
    """What exploration found: asked twice where it was, a worker went on, and the second answer had it ask anew."""
    roster = Roster.of_counts(0, Rounds(9), server=2, worker=1)
    links = {"server": Server.talks_to, "worker": Worker.talks_to}
    life = Life(Worker(BSP(), Bits(2), 0, 2), NodeId("worker", 0), 1, Directory(roster, links))
    life.handle(fx.Started(Saved()), 0.0)

    def hand(message):
        return [e for server in roster.of("server") for e in list(life.handle(fx.Received(server, message), 0.0))]

    hand(Place(0))
    (first,) = hand(View(1, 0, 0, 0, np.zeros(1)))
    life.handle(fx.Computed(first.tag, np.ones(2), first.generation), 0.0)
    assert hand(Place(0)) == []
    (second,) = hand(View(1, 1, 1, 1, np.zeros(1)))
    assert (first.draw, second.draw) == (0, 1)


def test_a_worker_that_was_thought_dead_joins_where_the_server_says():
    roster = Roster.of_counts(0, Rounds(9), server=1, worker=1)
    links = {"server": Server.talks_to, "worker": Worker.talks_to}
    life = Life(Worker(BSP(), Bits(1), 0, 1), NodeId("worker", 0), 1, Directory(roster, links))
    life.handle(fx.Started(Saved()), 0.0)

    def view(clock):
        given = fx.Received(NodeId("server", 0), View(1, clock, clock, clock, np.zeros(1)))
        return [effect for effect in life.handle(given, 0.0) if isinstance(effect, fx.Compute)]

    (first,) = view(0)
    life.handle(fx.Computed(first.tag, np.ones(1), first.generation), 0.0)
    (later,) = view(3)  # it asked for iteration 1, was evicted meanwhile, and joins the others in iteration 3
    assert (first.draw, later.draw) == (0, 3)
