"""Any plan of all faults keeps the node contract: the table of peer events, fence and prefix rule; nothing is lost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster import Star, TopologyNetwork
from emuml.cluster.cluster import Cluster, Detection, Network
from emuml.cluster.compute import Constant
from emuml.cluster.faults import Hang, Lossy, Partition, SlowLink, SlowNode
from tests.des.plans import NAMES, crashes, others, plans
from tests.des.scripted import chooser, emulate, emulator, gossip, on
from tests.des.test_crashes import TABLE
from tests.des.test_slots import task


def chatter(sent):
    """Return a script: everybody tells everybody (life, number) a few times a second, and whoever comes up at once."""

    everybody, peer = gossip(sent)

    def start(ctx, saved):
        everybody(ctx)
        if ctx.role == "worker":
            ctx.compute("work", task())

    def computed(ctx, tag, result):
        if ctx.now < 8:
            ctx.compute("work", task())

    return on(start=start, timer=everybody, peer=peer, computed=computed)


def noisy(latency_s, bandwidth_bps, detection):
    return Cluster(workers=1, compute=Constant(0.3), network=Network(latency_s, bandwidth_bps), detection=detection)


detections = st.sampled_from(
    [Detection(0.2), Detection(0.0, suspect_s=0.5, down_s=1.0), Detection(2.0, suspect_s=0.0, down_s=0.25)]
)


@pytest.mark.slow
@given(
    plan=plans(crashes | others, most=7),
    latency_s=st.sampled_from([0.0, 0.3]),
    bandwidth_bps=st.sampled_from([None, 3e4]),
    detection=detections,
    picks=st.none() | st.lists(st.integers(0, 5), max_size=60),
)
def test_any_plan_keeps_the_table_the_fence_and_the_prefix_rule(plan, latency_s, bandwidth_bps, detection, picks):
    cluster, sent = noisy(latency_s, bandwidth_bps, detection), {}
    script = dict.fromkeys(NAMES, chatter(sent))
    run, seen = emulate(script, cluster, plan, until_s=60, choose=chooser(picks))

    assert run.error is None
    for node in NAMES:
        for life in sorted({row[2] for row in seen if row[1] == node}):
            for peer in NAMES:
                if peer != node:
                    check_one_link(seen, node, life, peer, "up" if life == 1 else "joining")
    check_that_all_are_together_again(run, seen)


@pytest.mark.slow
@given(plans(crashes | others, most=7), detections)
def test_any_plan_keeps_them_on_shared_links_too(plan, detection):
    plan = [replace(fault, slowdown=1.0) if isinstance(fault, SlowLink) else fault for fault in plan]
    star = TopologyNetwork(topology=Star(hosts=3, bandwidth_bps=3e4, latency_s=0.1))
    cluster = Cluster(workers=2, compute=Constant(0.3), network=star, detection=detection)
    run, seen = emulate(dict.fromkeys(NAMES, chatter({})), cluster, plan, until_s=60)

    assert run.error is None
    for node in NAMES:
        for life in sorted({row[2] for row in seen if row[1] == node}):
            for peer in NAMES:
                if peer != node:
                    check_one_link(seen, node, life, peer, "up" if life == 1 else "joining")
    check_that_all_are_together_again(run, seen)


def check_one_link(seen, node, life, peer, state):
    """Check all that one life of a node saw of one peer: the table, one life per session, and no gap in its numbers."""
    session_life, last = None, 0 if state == "up" else None
    for row in seen:
        if row[1:3] != (node, life) or row[3] not in ("peer", "message") or row[4] != peer:
            continue
        if row[3] == "peer":
            assert (state, row[5]) in TABLE
            if state == "down":
                session_life, last = None, None
            state = TABLE[state, row[5]]
        else:
            assert state in ("up", "suspect")
            sender_life, number = map(int, row[5].split())
            assert sender_life == (session_life or sender_life)
            assert number == (number if last is None else last + 1)
            session_life, last = sender_life, number


def check_that_all_are_together_again(run, seen):
    """Check that long after the last fault whoever lives takes part in a session with everybody who lives."""
    living = {f"{id}" for id in run.nodes}
    for node in living:
        last = {peer: state for *_, peer, state in seen.of(node, "peer")}
        assert all(last.get(peer, "UP") in ("UP", "RESTARTED") for peer in living - {node})
    for node in set(NAMES) - living:
        for other in living:
            assert {peer: state for *_, peer, state in seen.of(other, "peer")}[node] == "DOWN"


@pytest.mark.slow
@given(plans(others, most=6), st.sampled_from([None, 3e4]))
def test_nothing_is_lost_or_doubled_while_nobody_loses_patience(plan, bandwidth_bps):
    """Every message arrives exactly once, in order, however links and nodes are held up; all tasks end."""
    plan = [fault for fault in plan if type(fault).__name__ != "GroupCrash"]
    detection, sent = Detection(suspect_s=1.0, down_s=1e3), {}
    run, seen = emulate(dict.fromkeys(NAMES, chatter(sent)), noisy(0.1, bandwidth_bps, detection), plan, until_s=900)

    for node in NAMES:
        for peer in NAMES:
            if peer != node:
                got = [text for _, sender, text in seen.of(node, "message") if sender == peer]
                assert got == [f"1 {number}" for number in range(1, sent[peer, 1, node] + 1)]
        assert {state for *_, state in seen.of(node, "peer")} <= {"SUSPECT", "UP"}
    assert len(run.trace.of("begin")) == len(run.trace.of("computed"))


@pytest.mark.slow
@given(plans(crashes, most=5), st.sampled_from([None, 3e4]), st.none() | st.lists(st.integers(0, 5), max_size=60))
def test_links_that_faults_might_touch_but_do_not_carry_the_same_trace(plan, bandwidth_bps, picks):
    """The path of messages and tasks under faults gives what the ordinary one gives, to the last bit."""
    after = ("never", 1)
    never = [
        Hang("worker-0", 1.0, after=after), SlowLink("worker-0", "server-0", 1.0, 1.0, after=after),
        Lossy("worker-0", "server-0", 0.5, 1.0, after=after), SlowNode("worker-0", 2.0, 1.0, after=after),
        Partition(("worker-0",), (), 1.0, after=after),
    ]  # fmt: skip
    cluster = noisy(0.3, bandwidth_bps, Detection(0.2))
    digests = []
    for faults in (plan, [*plan, *never]):
        engine, _ = emulator(dict.fromkeys(NAMES, chatter({})), cluster, faults, choose=chooser(picks))
        assert engine.faults.touches_links == engine.faults.touches_compute == (faults is not plan)
        digests.append(engine.run(until_s=60).trace.digest())

    assert digests[0] == digests[1]
