"""Messages of emulated nodes: exact arrival times on FIFO links, discarding, oneself, and permuted ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster.cluster import Cluster, Network
from emuml.errors import MutatedAfterSend, NodeFailed
from emuml.message import size_bytes
from emuml.node import NodeId
from tests.des.scripted import Bulk, Note, chooser, emulate, on

SERVER, WORKERS = NodeId("server", 0), [NodeId("worker", index) for index in range(3)]


def cluster(latency_s=0.0, bytes_per_s=None):
    return Cluster(workers=1, network=Network(latency_s, bytes_per_s and 8 * bytes_per_s))


def sends(plan):
    """Return a script that sends (at_s, peer, size) with timers, each with its number as first element."""

    def start(ctx, saved):
        for number, (at_s, _, _) in enumerate(plan):
            ctx.set_timer(f"{number}", at_s)

    def timer(ctx, name):
        _, peer, size = plan[int(name)]
        value = np.zeros(size)
        value[0] = int(name)
        ctx.send(peer, Bulk(value))

    return on(start=start, timer=timer)


def arrivals(seen, node):
    return [(at_s, int(message.value[0])) for at_s, _, message in seen.of(node, "message")]


plans = st.lists(
    st.tuples(st.integers(0, 12).map(lambda n: n / 7), st.sampled_from(WORKERS[:2]), st.integers(1, 300)), max_size=8
)


@pytest.mark.slow
@given(plans, st.sampled_from([0.0, 0.1, 3.0]), st.sampled_from([None, 70.0, 1e3, 1e9]))
def test_a_message_leaves_when_its_link_is_free_and_arrives_a_latency_later(plan, latency_s, bytes_per_s):
    _, seen = emulate(
        {"server-0": sends(plan), "worker-0": None, "worker-1": None}, cluster(latency_s, bytes_per_s), until_s=1e4
    )

    for peer in WORKERS[:2]:
        expected, free_s = [], 0.0
        for at_s, number, size in sorted((at_s, n, size) for n, (at_s, to, size) in enumerate(plan) if to == peer):
            arrives = at_s
            if bytes_per_s is not None:
                arrives = free_s = max(at_s, free_s) + size_bytes(Bulk(np.zeros(size))) / bytes_per_s
            expected.append((arrives + latency_s, number))
        assert arrivals(seen, f"{peer}") == expected


def test_directions_and_links_do_not_hold_each_other_up():
    both = on(start=lambda ctx, saved: [ctx.broadcast(role, Bulk(np.zeros(100))) for role in ("server", "worker")])
    _, seen = emulate({"server-0": both, "worker-0": both, "worker-1": both}, cluster(0.0, 1e3), until_s=9)

    one = size_bytes(Bulk(np.zeros(100))) / 1e3
    assert [at_s for node in ("server-0", "worker-0", "worker-1") for at_s, *_ in seen.of(node, "message")] == [one] * 6


def test_a_message_to_oneself_comes_in_a_later_step_of_the_same_instant():
    order = []

    def start(ctx, saved):
        ctx.send(ctx.id, Note("mine"))
        order.append("start")

    _, seen = emulate(
        {"worker-0": on(start=start, message=lambda ctx, sender, text: order.append(text))},
        cluster(5.0, 1.0),
        until_s=1,
    )
    assert order == ["start", "mine"]
    assert seen.of("worker-0", "message") == [(0.0, "worker-0", "mine")]


def test_broadcasts_go_out_at_their_place_in_the_roster_order():
    def start(ctx, saved):
        ctx.send(WORKERS[2], Note("first"))
        ctx.broadcast("worker", Note("all"))
        ctx.send(WORKERS[0], Note("last"))

    run, seen = emulate({"server-0": on(start=start), **{f"{w}": None for w in WORKERS}}, until_s=1)

    assert [record.details["peer"] for record in run.trace.of("send")] == [
        "worker-2", "worker-0", "worker-1", "worker-2", "worker-0",
    ]  # fmt: skip
    assert seen.of("worker-0", "message") == [(0.0, "server-0", "all"), (0.0, "server-0", "last")]
    assert seen.of("worker-2", "message") == [(0.0, "server-0", "first"), (0.0, "server-0", "all")]


def test_the_trace_tells_sizes_and_types():
    message = Bulk(np.zeros(10))
    run, _ = emulate(
        {"server-0": on(start=lambda ctx, saved: ctx.send(WORKERS[0], message)), "worker-0": None}, until_s=1
    )
    (sent,), (received,) = run.trace.of("send"), run.trace.of("receive")

    assert sent.details == {"peer": "worker-0", "type": "Bulk", "size_bytes": size_bytes(message)}
    assert received.details == {"peer": "server-0", "type": "Bulk", "size_bytes": size_bytes(message)}


# Other schedules


@pytest.mark.slow
@given(st.lists(st.integers(0, 5), min_size=40, max_size=40), st.sampled_from([0.0, 1.0]))
def test_no_choice_reorders_a_link(picks, latency_s):
    def counts(ctx, saved):
        for number in range(3):
            ctx.broadcast("worker", Note(f"{number}"))

    scripts = {"server-0": on(start=counts), "server-1": on(start=counts), "worker-0": None, "worker-1": None}
    run, seen = emulate(scripts, cluster(latency_s), until_s=99, choose=chooser(picks))

    assert run.error is None
    for worker in ("worker-0", "worker-1"):
        for server in ("server-0", "server-1"):
            assert [text for _, sender, text in seen.of(worker, "message") if sender == server] == ["0", "1", "2"]


def test_choices_of_delay_are_named_by_message_and_add_latencies():
    asked = []

    def choose(name, n):
        asked.append((name, n))
        return 2 if name.endswith("/0") and name.startswith("message") else 0

    twice = on(start=lambda ctx, saved: [ctx.send(WORKERS[0], Note(text)) for text in "ab"])
    _, seen = emulate({"server-0": twice, "worker-0": None}, cluster(0.5), until_s=9, choose=choose)

    assert [row for row in asked if row[0].startswith("message/")] == [
        ("message/server-0/worker-0/Note/0", 6),
        ("message/server-0/worker-0/Note/1", 6),
    ]
    assert seen.of("worker-0", "message") == [(1.5, "server-0", "a"), (1.5, "server-0", "b")]


def test_ties_between_links_can_be_permuted():
    orders = set()
    for pick in (0, 1):
        tells = on(start=lambda ctx, saved: ctx.send(WORKERS[0], Note(f"{ctx.id}")))
        _, seen = emulate(
            {"server-0": tells, "server-1": tells, "worker-0": None}, until_s=1, choose=lambda name, n, p=pick: p % n
        )
        orders.add(tuple(sender for _, sender, _ in seen.of("worker-0", "message")))

    assert orders == {("server-0", "server-1"), ("server-1", "server-0")}


# Check mode


def test_check_mode_delivers_what_the_wire_would(monkeypatch):
    monkeypatch.setenv("EMUML_CHECK", "1")
    given, got = Bulk(np.arange(3.0)), []
    emulate(
        {
            "server-0": on(start=lambda ctx, saved: ctx.send(WORKERS[0], given)),
            "worker-0": on(message=lambda ctx, sender, message: got.append(message)),
        },
        until_s=1,
    )

    assert got == [given]
    assert not np.shares_memory(got[0].value, given.value)
    assert not got[0].value.flags.writeable


def test_check_mode_finds_what_was_changed_after_it_was_sent(monkeypatch):
    monkeypatch.setenv("EMUML_CHECK", "1")
    array = np.zeros(3)

    def start(ctx, saved):
        ctx.send(WORKERS[0], Bulk(array))
        array.flags.writeable = True
        array[0] = 1.0

    run, _ = emulate({"server-0": on(start=start), "worker-0": None}, cluster(1.0), until_s=9)

    error = run.error.__cause__ if isinstance(run.error, NodeFailed) else run.error
    assert isinstance(error, MutatedAfterSend)
    assert error.node == "server-0"
    assert error.message == "Bulk"


@pytest.mark.parametrize("checking", ["0", "1"])
def test_nothing_changes_for_nodes_that_keep_the_rules(monkeypatch, checking):
    monkeypatch.setenv("EMUML_CHECK", checking)
    run, seen = emulate({"server-0": sends([(0.5, WORKERS[0], 9)]), "worker-0": None}, cluster(0.25, 1e3), until_s=9)

    assert run.error is None
    assert arrivals(seen, "worker-0") == [(0.5 + size_bytes(Bulk(np.zeros(9))) / 1e3 + 0.25, 0)]
