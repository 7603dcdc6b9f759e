"""Both protocols stand it that a living node is taken for dead: sessions break and are renewed, nobody starts again."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emuml.lazy import array_of
from emuml.node import NodeId
from emuml.protocols.async_updates import ASP, BSP, SSP, AsyncUpdates
from emuml.protocols.async_updates.oracles import held
from emuml.protocols.gradient_coding import FractionalRepetition, GradientCoding, IgnoreStragglers, Uncoded
from emuml.roster import Roster
from emuml.stopping import Rounds
from emuml.testing.probe import Probe, coded_sum
from tests.protocols.sessions import Sessions

WORKERS, ROUNDS = 3, 3


@st.composite
def runs(draw, servers=1):
    """Return choices, and when which sessions break for how long."""
    choices = draw(st.lists(st.integers(0, 11), max_size=60))
    ends = st.tuples(
        st.integers(0, WORKERS - 1).map(partial(NodeId, "worker")),
        st.integers(0, servers - 1).map(partial(NodeId, "server")),
        st.integers(0, 12),
    )
    return choices, draw(st.dictionaries(st.integers(0, 50), ends, max_size=5))


def sessions(protocol, servers=1, judge=lambda sessions: None):
    roster = Roster.of_counts(0, Rounds(ROUNDS), server=servers, worker=WORKERS)
    return Sessions(protocol.nodes(Probe(WORKERS), roster), roster, judge)


CODED = [
    GradientCoding(code=code, collect=collect, stragglers=stragglers)
    for code, collect in [(Uncoded(), None), (FractionalRepetition(3), 2), (IgnoreStragglers(), 2)]
    for stragglers in ("cancel", "skip-stale", "carry-over", "wait-all")
]


def trained(protocol, logs):
    """Return what a plain loop makes of the logged decode sets, as all versions."""
    problem, code = Probe(WORKERS), protocol.code.build(WORKERS, collect=protocol.collect)
    state, found = problem.start(), [problem.initial]
    for round, log in enumerate(logs):
        received = [group[0] for j, group in enumerate(code.groups) if int(log["covered_set"], 16) >> j & 1]
        weights = code.decode(received).weights
        values = [coded_sum(found[-1], code.assignment(worker), None, round) for worker in received]
        total = sum((weight * value for weight, value in zip(weights, values, strict=True)), np.zeros(WORKERS))
        state, parameters = problem.step(state, found[-1], total, round)
        found.append(parameters)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("protocol", CODED, ids=str)
@given(run=runs())
def test_gradient_coding_ends_with_the_parameters_of_its_decode_sets(protocol, run):
    done = sessions(protocol).run(*run)

    assert done.stopped == f"{ROUNDS} rounds done", [life.node.waiting_for() for life in done.lives.values()]
    expected = trained(protocol, [log for log in done.logs if "covered_set" in log])
    assert [version for version, _ in done.published] == list(range(ROUNDS + 1))
    for (_, found), version in zip(done.published, expected, strict=True):
        assert array_of(found).tobytes() == version.tobytes()
    if protocol.collect is None:
        assert all(log["decode_error"] == 0 or log["lost_rounds"] for log in done.logs if "decode_error" in log)


BARRIERS = [BSP(), SSP(0), SSP(1), SSP(2), ASP()]


@pytest.mark.slow
@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
@given(data=st.data())
def test_updates_that_wait_lose_no_push_and_read_what_the_barrier_promises(barrier, servers, data):
    done = sessions(AsyncUpdates(barrier=barrier), servers).run(*data.draw(runs(servers)))

    assert done.stopped == f"{ROUNDS} rounds done", [life.node.waiting_for() for life in done.lives.values()]
    check_reads(done, barrier)
    counts = held(done.published[-1][1])
    assert None not in counts
    if servers == 1:
        assert sum(counts) == WORKERS * ROUNDS


def check_reads(done, barrier):
    """What each task was given holds what its barrier promises, and the worker's own pushes."""
    for id, task in done.started:
        table, share, clock = task.inputs
        counts = held(array_of(table))
        assert None not in counts
        assert counts[share] == clock
        assert id.index == share
        if barrier.slack is not None:
            assert min(counts) >= clock - barrier.slack
        if barrier.in_step:
            assert counts == [clock] * WORKERS


LATE = ([], {0: (NodeId("worker", 0), NodeId("server", 0), 6), 7: (NodeId("worker", 2), NodeId("server", 0), 0)})
"""A worker is thought dead while it computes, and pushes when the others have made the step without it."""
ALONE = (
    [],
    {
        6: (NodeId("worker", 2), NodeId("server", 0), 0),
        13: (NodeId("worker", 0), NodeId("server", 0), 10),
        22: (NodeId("worker", 1), NodeId("server", 0), 1),
    },
)
"""The last one that counts is thought dead when it may go on by itself; another one comes back first."""


def bounded(slack, sessions):
    """Clocks of those that count are near to each other, and who waits counts."""
    server = sessions.node("server-0")
    members = server.members
    assert slack is None or not members or max(members) - min(members) <= slack + 1
    assert server.evicted.isdisjoint(server.waiting)


@pytest.mark.slow
@pytest.mark.parametrize("barrier", BARRIERS, ids=str)
@given(run=runs())
@example(run=LATE)
@example(run=ALONE)
def test_updates_that_evict_end_and_keep_those_that_count_together(barrier, run):
    protocol = AsyncUpdates(barrier=barrier, on_lost="evict")
    done = sessions(protocol, judge=partial(bounded, barrier.slack)).run(*run)

    assert done.stopped == f"{ROUNDS} rounds done", [life.node.waiting_for() for life in done.lives.values()]
    pushed = [0] * WORKERS
    for log in done.logs:
        for item in log["worker_updates"].split():
            worker, _, count = item.partition(":")
            pushed[int(worker)] += int(count)
    clocks = [[bit for bit in range(53) if int(value) >> bit & 1] for value in array_of(done.published[-1][1])]
    assert [len(found) for found in clocks] == pushed  # each push that was counted is in the table, once
    staleness = [int(item.partition(":")[0]) for log in done.logs for item in log["staleness"].split()]
    if barrier.in_step:
        assert max(staleness) == 0  # pushes of one step were computed from the parameters before it
