"""Stable storage of emulated nodes: FIFO operations that take time, versions, atomic commits, what a crash leaves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.blocks import size_of
from emuml.cluster.cluster import Cluster, Storage
from emuml.cluster.faults import Crash
from emuml.errors import NodeFailed
from tests.des.scripted import emulate, on


def cluster(latency_s=0.0, bytes_per_s=None):
    return Cluster(workers=1, storage=Storage(latency_s, bytes_per_s))


blocks = st.dictionaries(st.sampled_from(["a", 3, ("b", 1)]), st.integers(0, 9), min_size=1, max_size=2)
operations = st.lists(st.tuples(st.integers(0, 6), blocks | st.lists(st.sampled_from(["a", 3, ("b", 1)]))), max_size=8)


@given(operations, st.sampled_from([0.0, 0.5, 2.0]), st.sampled_from([None, 16.0]))
def test_operations_are_done_one_after_the_other_and_loads_see_earlier_saves(program, latency_s, bytes_per_s):
    times = sorted(at for at, _ in program)
    steps = [operation for _, operation in program]

    def start(ctx, saved):
        for number, at in enumerate(times):
            ctx.set_timer(f"{number}", at)

    def timer(ctx, name):
        operation = steps[int(name)]
        if isinstance(operation, dict):
            ctx.save(int(name), operation)
        else:
            ctx.load(int(name), operation)

    _, seen = emulate({"worker-0": on(start=start, timer=timer)}, cluster(latency_s, bytes_per_s), until_s=1e3)

    committed, free_s, expected, log = {}, 0.0, [], []
    for number, (at, operation) in enumerate(zip(times, steps, strict=True)):
        durable = {}
        for done_at, written in log:
            durable |= written if done_at <= at else {}
        if isinstance(operation, dict):
            size = size_of(operation)
            committed = committed | operation
        else:
            size = size_of({block: durable[block] for block in operation if block in durable})
        free_s = max(at, free_s) + latency_s + (size / bytes_per_s if bytes_per_s else 0.0)
        if isinstance(operation, dict):
            log.append((free_s, operation))
            expected.append((free_s, "saved", number))
        else:
            found = {block: committed[block] for block in operation if block in committed}
            expected.append((free_s, "loaded", number, found))
    got = [(row[0], *row[3:]) for row in seen if row[3] in ("saved", "loaded")]
    assert [row[1:] for row in got] == [row[1:] for row in expected]
    if bytes_per_s is None:
        assert [row[0] for row in got] == [row[0] for row in expected]


def test_a_save_takes_latency_and_size_over_bandwidth():
    script = on(start=lambda ctx, saved: ctx.save("s", {"a": np.zeros(4)}))
    _, seen = emulate({"worker-0": script}, cluster(0.5, 16.0), until_s=99)

    assert seen.of("worker-0", "saved") == [(0.5 + size_of({"a": np.zeros(4)}) / 16.0, "s")]


def test_what_is_saved_is_what_it_was_at_the_call():
    table, loaded = np.zeros(2), []

    def start(ctx, saved):
        ctx.save("s", {"table": table})
        table[:] = 7.0
        ctx.load("l", ["table"])

    script = on(start=start, loaded=lambda ctx, tag, blocks: loaded.append(blocks["table"]))
    emulate({"worker-0": script}, until_s=9)

    assert loaded[0].tolist() == [0.0, 0.0]
    assert not loaded[0].flags.writeable


def test_a_new_life_begins_with_what_was_committed_and_its_versions():
    versions = []

    def start(ctx, saved):
        versions.append({block: (saved[block], saved.version(block)) for block in saved})
        ctx.save("first", {"a": ctx.incarnation, "b": 1})
        ctx.save("second", {"a": 10 * ctx.incarnation})

    emulate({"worker-0": on(start=start)}, cluster(), [Crash("worker-0", at_s=1, restart_after_s=1)], until_s=9)

    assert versions == [{}, {"a": (10, 2), "b": (1, 1)}]


def test_a_new_life_is_ready_when_its_blocks_are_read():
    script = on(start=lambda ctx, saved: ctx.incarnation == 1 and ctx.save("s", {"a": np.zeros(4)}))
    size = size_of({"a": np.zeros(4)})
    plan = [Crash("worker-0", at_s=10, restart_after_s=1)]
    _, seen = emulate({"worker-0": script}, cluster(0.5, 16.0), plan, until_s=99)

    assert [row[0] for row in seen.of("worker-0", "start")] == [0.0, 11.5 + size / 16.0]


@pytest.mark.parametrize("kept", range(8))
def test_at_a_crash_each_pending_save_is_kept_or_lost_by_itself(kept):
    asked = []

    def choose(name, n):
        if not name.startswith("save/"):
            return 0
        asked.append((name, n))
        return kept >> (len(asked) - 1) & 1

    def start(ctx, saved):
        if ctx.incarnation == 1:
            ctx.save("durable", {"x": 0})
            for number in range(3):
                ctx.save(number, {number: "value", "last": number})

    plan = [Crash("worker-0", at_s=1.5, restart_after_s=1)]
    run, seen = emulate({"worker-0": on(start=start)}, cluster(1.0), plan, until_s=99, choose=choose)

    survivors = [number for number in range(3) if kept >> number & 1]
    saved = {"x": 0, **dict.fromkeys(survivors, "value")}
    if survivors:
        saved["last"] = survivors[-1]
    assert seen.of("worker-0", "start")[1][1] == saved
    assert asked == [(f"save/worker-0/{number}/0", 2) for number in range(3)]
    assert seen.of("worker-0", "saved") == [(1.0, "durable")]
    assert [record.details["tag"] for record in run.trace.of("saved")] == ["durable"]


def test_without_a_choice_pending_saves_are_lost():
    script = on(start=lambda ctx, saved: ctx.save("s", {"a": ctx.incarnation}))
    plan = [Crash("worker-0", at_s=0.5, restart_after_s=1)]
    _, seen = emulate({"worker-0": script}, cluster(1.0), plan, until_s=99)

    assert seen.of("worker-0", "start")[1][1] == {}


def test_a_new_life_does_not_wait_for_the_disk_work_of_the_old_one():
    script = on(start=lambda ctx, saved: [ctx.save(n, {n: 1}) for n in range(9 if ctx.incarnation == 1 else 1)])
    plan = [Crash("worker-0", at_s=0.5, restart_after_s=1)]
    _, seen = emulate({"worker-0": script}, cluster(1.0), plan, until_s=99)

    assert seen.of("worker-0", "saved") == [(2.5, 0)]


def test_values_that_no_store_keeps_are_refused_at_the_call():
    run, _ = emulate({"worker-0": on(start=lambda ctx, saved: ctx.save("s", {"a": object()}))}, until_s=9)

    assert isinstance(run.error, NodeFailed)
