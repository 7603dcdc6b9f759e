"""Compute slots against a queue model, cancel lag, lazy results, and what equal tasks cost."""

from heapq import heappop, heappush
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster
from emuml.cluster.compute import Constant, DelayTrace, ShiftedExponential
from emuml.errors import ContractError, NodeFailed
from emuml.node import NodeId
from emuml.task import Task
from tests.des.scripted import emulate, on


def one(value=1.0):
    return np.array([value])


def task(draw=None, function=one, inputs=(), cost=1.0):
    return Task(function, inputs, cost, (1,), draw=draw)


# A program: tasks with durations, begun and cancelled at given times, in quarters of a second.

actions = st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.integers(1, 9)), min_size=1, max_size=12)


def model(program, cores, lag):
    """Return (at, task) for everything delivered, and (at, task) for everything begun; completions precede timers."""
    order, events, queue, running, busy = count(), [], [], set(), 0
    delivered, begun = [], []
    for number, (at, computes, number_or_length) in enumerate(program):
        heappush(events, (at, 2, next(order), "compute" if computes else "cancel", number, number_or_length))

    def fill(now):
        nonlocal busy
        while queue and busy < cores:
            number, length = queue.pop(0)
            busy += 1
            running.add(number)
            begun.append((now, number))
            heappush(events, (now + length, 1, next(order), "end", number, 0))

    while events:
        now, _, _, what, number, extra = heappop(events)
        if what == "compute":
            queue.append((number, extra))
        elif what == "cancel":
            number = extra - 1
            queue = [item for item in queue if item[0] != number]
            if number in running:
                running.discard(number)
                if lag:
                    heappush(events, (now + lag, 1, next(order), "free", number, 0))
                else:
                    busy -= 1
        elif what == "free":
            busy -= 1
        elif number in running:
            running.discard(number)
            busy -= 1
            delivered.append((now, number))
        fill(now)
    return sorted(delivered), sorted(begun)


@pytest.mark.slow
@given(actions, st.integers(1, 4), st.sampled_from([0, 1, 3]))
def test_slots_serve_in_call_order_and_cancelled_tasks_deliver_nothing(program, cores, lag):
    lengths = np.array([[length / 4 if computes else 0.25] for _, computes, length in program])

    def start(ctx, saved):
        for number, (at, _, _) in enumerate(program):
            ctx.set_timer(f"{number}", at / 4)

    def timer(ctx, name):
        number = int(name)
        _, computes, extra = program[number]
        if computes:
            ctx.compute(number, task(draw=number))
        else:
            ctx.cancel(extra - 1)

    cluster = Cluster(workers=1, compute=DelayTrace(lengths), cores=cores, cancel_lag_s=lag / 4)
    run, seen = emulate({"worker-0": on(start=start, timer=timer)}, cluster, until_s=1e3)

    delivered, begun = model(program, cores, lag)
    assert sorted((4 * at_s, tag) for at_s, tag in seen.of("worker-0", "computed")) == delivered
    assert sorted((4 * record.time_s, record.details["tag"]) for record in run.trace.of("begin")) == begun


def starts(*tags, then=None):
    return on(start=lambda ctx, saved: [ctx.compute(tag, task()) for tag in tags], **(then or {}))


def test_a_slot_is_free_for_the_next_task_a_lag_after_a_cancel():
    def computed(ctx, tag, result):
        if tag == "b":
            ctx.cancel("c")

    script = on(
        start=lambda ctx, saved: [
            *[ctx.compute(tag, task()) for tag in "acd"],
            ctx.cancel("a"),
            ctx.compute("b", task()),
        ],
        computed=computed,
    )
    run, seen = emulate({"worker-0": script}, Cluster(workers=1, compute=Constant(2), cancel_lag_s=0.5), until_s=99)

    assert seen.of("worker-0", "computed") == [(2.5, "c"), (4.5, "d"), (6.5, "b")]
    assert [(record.time_s, record.details["tag"]) for record in run.trace.of("freed")] == [(0.5, "a")]


def test_a_cancelled_tag_can_be_used_again_at_once_and_its_first_result_never_comes():
    def start(ctx, saved):
        ctx.compute("g", task(draw=0))
        ctx.set_timer("again", 0.5)

    def timer(ctx, name):
        ctx.cancel("g")
        ctx.compute("g", task(draw=1))

    trace = DelayTrace(np.array([[1.0], [3.0]]))
    _, seen = emulate({"worker-0": on(start=start, timer=timer)}, Cluster(workers=1, compute=trace), until_s=99)

    assert seen.of("worker-0", "computed") == [(3.5, "g")]


@pytest.mark.parametrize("cancel", [False, True])
def test_a_result_of_the_instant_in_which_it_is_cancelled(cancel):
    def message(ctx, sender, text):
        if cancel:
            ctx.cancel("b")

    # Both tasks end at t=1; the first result's handler cancels the second, whose end is already due.
    def computed(ctx, tag, result):
        message(ctx, None, None)

    cluster = Cluster(workers=1, compute=Constant(1), cores=2)
    _, seen = emulate({"worker-0": starts("a", "b", then={"computed": computed})}, cluster, until_s=99)

    assert seen.of("worker-0", "computed") == ([(1.0, "a")] if cancel else [(1.0, "a"), (1.0, "b")])


def test_load_is_cost_over_the_unit_and_only_workers_follow_the_law():
    script = on(start=lambda ctx, saved: ctx.compute("g", task(cost=30.0)))
    cluster = Cluster(workers=1, compute=Constant(0.5))
    run, seen = emulate({"server-0": script, "worker-0": script}, cluster, until_s=99, unit_cost=10.0)

    assert seen.of("server-0", "computed") == [(0.0, "g")]
    assert seen.of("worker-0", "computed") == [(1.5, "g")]
    assert [record.details["load"] for record in run.trace.of("compute")] == [3.0, 3.0]


# Lazy results


class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self, *inputs):
        self.calls += 1
        return one()


def test_a_result_that_nobody_reads_is_never_evaluated(monkeypatch):
    monkeypatch.setenv("EMUML_CHECK", "0")
    counter = Counter()
    script = on(start=lambda ctx, saved: ctx.compute("g", task(function=counter)))

    emulate({"worker-0": script}, until_s=1)
    assert counter.calls == 0


@pytest.mark.parametrize("switch", ["EMUML_EAGER", "EMUML_CHECK"])
def test_switches_make_evaluation_eager(monkeypatch, switch):
    monkeypatch.setenv(switch, "1")
    counter = Counter()
    emulate({"worker-0": on(start=lambda ctx, saved: ctx.compute("g", task(function=counter)))}, until_s=1)

    assert counter.calls == 1


def test_equal_tasks_of_many_nodes_are_evaluated_once():
    counter, shared, results = Counter(), np.zeros(2), []
    script = on(
        start=lambda ctx, saved: ctx.compute("g", task(function=counter, inputs=(shared, 3))),
        computed=lambda ctx, tag, result: results.append(result),
    )
    emulate({f"worker-{index}": script for index in range(5)}, until_s=1)

    assert len({id(result.value()) for result in results}) == 1
    assert counter.calls == 1


def test_equal_looking_tasks_with_other_inputs_are_not_confused():
    results = []

    def start(ctx, saved):
        ctx.compute("g", Task(np.copy, (np.full(1, float(ctx.id.index)),), 1.0, (1,)))

    script = on(start=start, computed=lambda ctx, tag, result: results.append(result))
    emulate({f"worker-{index}": script for index in range(3)}, until_s=1)

    assert [result.value()[0] for result in results] == [0.0, 1.0, 2.0]


def test_results_are_forgotten_when_nobody_holds_them():
    counter, shared = Counter(), np.zeros(1)

    def computed(ctx, tag, result):
        result.value()
        if tag < 3:
            ctx.compute(tag + 1, task(function=counter, inputs=(shared,)))

    script = on(start=lambda ctx, saved: ctx.compute(0, task(function=counter, inputs=(shared,))), computed=computed)
    emulate({"worker-0": script}, until_s=1)

    assert counter.calls == 4


def fails():
    raise ZeroDivisionError("no rows")


@pytest.mark.parametrize("journal", [False, True])
def test_a_task_that_raises_is_named_with_its_node(journal):
    script = on(
        start=lambda ctx, saved: ctx.compute("g", task(function=fails)),
        computed=lambda ctx, tag, result: result.value(),
    )
    run, _ = emulate({"worker-3": script}, Cluster(workers=1, compute=Constant(2)), until_s=9, journal=journal)

    assert isinstance(run.error, NodeFailed)
    assert isinstance(run.error.__cause__, ZeroDivisionError)
    assert (run.error.node, run.error.now) == ("worker-3", 2.0)
    assert run.error.__cause__.__notes__ == ["while evaluating the result of task 'g' of worker-3"]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.sampled_from(["0", "1"]))
def test_shares_take_their_part_of_the_whole(costs, pure):
    """Each takes its part of the time of the whole in one draw, and all together take that of the whole."""
    law, whole = ShiftedExponential(shift_s=0.1, mean_s=0.5), float(sum(costs))

    def start(ctx, saved):
        for number, cost in enumerate(costs):
            ctx.compute(number, Task(one, (), float(cost), (1,), draw=3, whole=whole))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMUML_PURE", pure)
        _, seen = emulate({"worker-0": on(start=start)}, Cluster(workers=1, compute=law))
    seconds = law.sampler(0, NodeId("worker", 0))(3, whole)
    expected, now = [], 0.0
    for cost in costs:
        now = now + seconds * (cost / whole)
        expected.append(now)
    assert [at for at, *_ in seen.of("worker-0", "computed")] == expected
    assert expected[-1] == pytest.approx(seconds, rel=1e-15 * (len(costs) + 1))


def test_a_share_is_no_more_than_its_whole():
    assert Task(one, (), 2.0, (1,), whole=2.0).seconds(lambda draw, load: 8.0 * load, 0, 4.0) == 4.0
    assert Task(one, (), 1.0, (1,), whole=4.0).seconds(lambda draw, load: 8.0 * load, 0, 4.0) == 2.0
    for whole in (1.0, np.inf, np.nan):
        with pytest.raises(ContractError, match="share"):
            Task(one, (), 2.0, (1,), whole=whole)
