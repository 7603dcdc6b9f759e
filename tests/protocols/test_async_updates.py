"""Asynchronous updates: worked traces, the recursion of starts, what each read holds, and staleness to the last unit.

Reference: Ho et al., NIPS 2013 (stale synchronous parallel); Dutta et al., arXiv:1803.01113 (asynchronous updates).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.protocols.async_updates import ASP, BSP, SSP
from emuml.protocols.async_updates.oracles import shares_of
from emuml.stopping import Updates
from tests.protocols.async_checks import recursion, starts, train

WORKED = np.tile([2.0, 3.1, 7.3], (30, 1))
"""Three workers that always take equally long."""


@pytest.mark.parametrize(
    ("barrier", "expected"),
    [
        (BSP(), [[0, 7.3, 14.6, 21.9]] * 3),
        (SSP(0), [[0, 7.3, 14.6, 21.9]] * 3),
        (SSP(1), [[0, 2.0, 7.3, 14.6, 21.9, 29.2], [0, 3.1, 7.3, 14.6, 21.9, 29.2], [0, 7.3, 14.6, 21.9, 29.2, 36.5]]),
        (SSP(2), [[0, 2.0, 4.0, 7.3, 14.6, 21.9], [0, 3.1, 6.2, 9.3, 14.6, 21.9], [0, 7.3, 14.6, 21.9, 29.2, 36.5]]),
        (ASP(), [[0, 2.0, 4.0, 6.0], [0, 3.1, 6.2, 9.3], [0, 7.3, 14.6, 21.9]]),
        (SSP(None), [[0, 2.0, 4.0, 6.0], [0, 3.1, 6.2, 9.3], [0, 7.3, 14.6, 21.9]]),
    ],
    ids=str,
)
def test_worked_traces(barrier, expected):
    run, _ = train(barrier, WORKED, 8)

    for found, wanted in zip(starts(run, 3), expected, strict=True):
        assert found[: len(wanted)] == pytest.approx(wanted, rel=1e-12)


def test_staleness_of_ten_asynchronous_updates():
    run, _ = train(ASP(), WORKED, 5)  # fifteen pushes; the first ten are the worked ones

    updates = [(time_s, worker, read) for time_s, worker, read in pushes_of(run)][:10]
    expected = [
        (2.0, 0, 0), (3.1, 1, 0), (4.0, 0, 1), (6.0, 0, 3), (6.2, 1, 2), (7.3, 2, 0), (8.0, 0, 4), (9.3, 1, 5),
        (10.0, 0, 7), (12.0, 0, 9),
    ]  # fmt: skip
    assert [(worker, read) for _, worker, read in updates] == [(worker, read) for _, worker, read in expected]
    assert [time_s for time_s, _, _ in updates] == pytest.approx([time_s for time_s, _, _ in expected])


def pushes_of(run):
    """Return time, worker and read version of every push that arrived, in the order of arrival."""
    arrivals, begun = [], {}
    for time_s, node, kind, *details in run.trace.rows:
        if node == "server-0" and kind == "receive" and details[1] == "Update":
            arrivals.append((time_s, int(details[0].split("-")[1])))
        elif kind == "begin":
            begun.setdefault(int(node.split("-")[1]), []).append(time_s)
    found, applied = [], []
    for time_s, worker in arrivals:
        began = begun[worker][sum(w == worker for _, w, _ in found)]
        read = sum(at <= began for at in applied) if began > 0 else 0
        found.append((time_s, worker, read))
        applied.append(time_s)
    return found


BARRIERS = st.sampled_from([BSP(), ASP()]) | st.builds(SSP, st.none() | st.integers(0, 4))


@st.composite
def cases(draw):
    workers, rounds = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    entries = draw(st.sampled_from([st.floats(0.01, 5.0), st.floats(0.01, 5.0) | st.just(30.0)]))
    size = workers * rounds
    delays = np.array(draw(st.lists(entries, min_size=size, max_size=size))).reshape(rounds, workers)
    # Distinct, so that no two events fall on one instant; more rounds than are asked for, because some run ahead.
    more = np.random.default_rng(0).exponential(1.0, (40 * rounds, workers))
    return np.concatenate([delays, more]) + np.random.default_rng(1).random((41 * rounds, workers)), rounds


@pytest.mark.slow
@given(case=cases(), barrier=BARRIERS)
def test_starts_follow_the_recursion_and_reads_hold_what_the_barrier_promises(case, barrier):
    delays, rounds = case
    workers = delays.shape[1]
    run, problem = train(barrier, delays, rounds)

    assert run.error is None
    start, _ = recursion(delays, barrier.slack)
    for worker, found in enumerate(starts(run, workers)):
        assert found == pytest.approx(start[: len(found), worker], rel=1e-12)
    if barrier.slack is not None:
        counts = [len(found) for found in starts(run, workers)]
        assert max(counts) - min(counts) <= barrier.slack + 1
    check_reads(problem, workers, barrier)


def check_reads(problem, workers, barrier):
    """Each read holds its worker's own writes, all updates that the bound promises, and never less than before."""
    newest = {}
    for worker, clock, table in problem.read:
        assert table[worker] == clock  # reads its own writes, all of them
        if barrier.slack is not None:
            assert (table[:workers] >= clock - barrier.slack).all()
        if barrier.in_step:
            assert (table[:workers] == clock).all()
        if worker in newest:
            assert (table >= newest[worker]).all()
        newest[worker] = table


@pytest.mark.slow
@given(case=cases(), barrier=BARRIERS)
def test_nothing_is_lost_or_counted_twice_and_staleness_adds_up(case, barrier):
    delays, rounds = case
    workers = delays.shape[1]
    run, _ = train(barrier, delays, rounds)

    table = run.published[-1].parameters
    assert table[:workers].sum() == workers * rounds
    assert table[-1] == sum(clock + 1 for count in table[:workers] for clock in range(int(count)))
    logs = [log.metrics for log in run.logs]
    tally = {}
    for log in logs:
        for value, count in (item.split(":") for item in log["staleness"].split()):
            tally[int(value)] = tally.get(int(value), 0) + int(count)
    assert sum(tally.values()) == workers * rounds
    if barrier.in_step:
        assert tally == {0: workers * rounds}
    if barrier.slack is None:
        # Every update is stale by each of the P-1 others once, but for those in flight at the end.
        total, updates = sum(value * count for value, count in tally.items()), workers * rounds
        in_flight = updates * (workers - 1) - total
        assert in_flight >= 0
        assert in_flight == sum(updates - read for read in read_at_the_end(run, workers))


def test_updates_and_waiting_of_each_worker_by_hand():
    """Worker 0 takes 1 s, worker 1 takes 2.5 s; a lead of 1 at most: worker 0 waits 0.5, then 1.5 s each time."""
    run, _ = train(SSP(1), [[1.0, 2.5]] * 5, 4)

    logs = [log.metrics for log in run.logs]
    assert [log["worker_updates"] for log in logs] == ["0:2", "0:1 1:1", "0:1 1:1", "0:1 1:1"]
    assert [log["worker_blocked_s"] for log in logs] == ["", "0:0.5", "0:1.5", "0:1.5"]
    assert [log["blocked_s"] for log in logs] == [0.0, 0.5, 1.5, 1.5]


@pytest.mark.slow
@given(case=cases(), barrier=BARRIERS)
def test_shares_of_workers_add_up_to_all_updates_and_all_waiting(case, barrier):
    delays, rounds = case
    workers = delays.shape[1]
    run, _ = train(barrier, delays, rounds)

    shares, pushed = [0] * workers, 0
    for log in (item.metrics for item in run.logs):
        for worker, count in shares_of(log["worker_updates"]).items():
            shares[worker] += int(count)
        pushed += workers
        assert sum(shares) == pushed
        assert sum(shares_of(log["worker_blocked_s"]).values()) == pytest.approx(log["blocked_s"], rel=1e-9)
    assert shares == run.published[-1].parameters[:workers].tolist()


def read_at_the_end(run, workers):
    """Return the version that each worker but the last to push has in its hands when the run ends."""
    pushes = pushes_of(run)
    begun = starts(run, workers)
    last = pushes[-1][1]
    found = []
    for worker in range(workers):
        if worker != last:
            began = begun[worker][-1]
            found.append(sum(time_s <= began for time_s, _, _ in pushes) if began > 0 else 0)
    return found


@pytest.mark.slow
@given(case=cases())
def test_no_bound_is_the_schedule_and_the_sums_of_bulk_synchronous_training(case):
    delays, rounds = case
    one, two = train(BSP(), delays, rounds)[0], train(SSP(0), delays, rounds)[0]

    assert [item.parameters.tobytes() for item in one.published] == [
        item.parameters.tobytes() for item in two.published
    ]
    assert events(one) == events(two)


def events(run):
    """Return the trace without what the logs say and what messages weigh."""
    return [row[: 3 if row[2] == "log" else 5] for row in run.trace.rows]


# Several servers: each its slice, by its own clocks


@pytest.mark.slow
@given(case=cases(), barrier=BARRIERS, servers=st.integers(2, 4))
def test_several_servers_give_the_schedule_and_the_sums_of_one(case, barrier, servers):
    delays, rounds = case
    workers = delays.shape[1]
    servers = min(servers, workers + 1)
    one = train(barrier, delays, rounds)[0]
    many, problem = train(barrier, delays, rounds, servers=servers)

    assert many.error is None
    assert starts(many, workers) == starts(one, workers)
    assert [item.time_s for item in many.published] == [item.time_s for item in one.published]
    assert [item.parameters.tobytes() for item in many.published] == [
        item.parameters.tobytes() for item in one.published
    ]
    check_reads(problem, workers, barrier)


@pytest.mark.parametrize("barrier", [BSP(), SSP(2), ASP()], ids=str)
def test_several_servers_with_latency_keep_what_the_barrier_promises(barrier):
    delays = np.random.default_rng(4).exponential(1.0, (200, 5))
    run, problem = train(barrier, delays, 8, servers=3, latency_s=0.3)

    assert run.error is None
    assert run.published[-1].version == 8
    check_reads(problem, 5, barrier)
    assert run.published[-1].parameters[:5].sum() == 40


def test_the_last_slices_are_gathered_also_in_the_middle_of_a_round():
    delays = np.random.default_rng(4).exponential(1.0, (200, 5))
    run, _ = train(ASP(), delays, 0, servers=3, stop=Updates(12))

    assert run.published[-1].parameters[:5].sum() == 12
    assert run.stopped == "3 rounds done"
