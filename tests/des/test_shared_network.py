"""Messages of emulated nodes that share links: exact times, order, crashes, and what servers have to do for them."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emuml.des.network
from emuml._kernels import reference_flows
from emuml.cluster import Cluster, Detection, LatencyMatrix, Link, Network, ServerCosts, Star, Topology, TopologyNetwork
from emuml.cluster.faults import Crash, SlowLink
from emuml.des import pushes, rounds
from emuml.errors import UserError
from emuml.message import size_bytes
from emuml.node import NodeId
from tests import flow_oracle
from tests.des.scripted import Bulk, Note, chooser, emulate, on
from tests.des.test_mail import sends
from tests.flow_oracle import Flow

SERVER, WORKERS = NodeId("server", 0), [NodeId("worker", index) for index in range(3)]
NODES = [SERVER, *WORKERS]
HEAD = size_bytes(Bulk(np.zeros(1))) - 8


def bulk(size):
    """A message of so many bytes on the wire."""
    return Bulk(np.zeros((size - HEAD) // 8))


def sized(size):
    return size_bytes(bulk(size))


def star(bytes_per_s=1000.0, latency_s=0.0, **options):
    network = TopologyNetwork(Star(hosts=4, bandwidth_bps=8 * bytes_per_s, latency_s=latency_s / 2))
    return Cluster(workers=3, network=network, **options)


def run(plans, cluster, faults=(), **options):
    scripts = {str(id): sends(plans[id]) if id in plans else None for id in NODES}
    return emulate(scripts, cluster, faults, until_s=1e6, **options)


def arrivals(seen, node):
    return [(at_s, sender, int(message.value[0])) for at_s, sender, message in seen.of(str(node), "message")]


def times(seen, node):
    return [at_s for at_s, _, _ in arrivals(seen, node)]


# Against a slow model


def expected_arrivals(cluster, plans):
    """When each message arrives, by the slow model, with messages of one pair one after the other."""
    wires = cluster.network.wires(NODES)
    queues = {}
    for sender, plan in plans.items():
        for at_s, number, to, size in sorted((at_s, n, to, size) for n, (at_s, to, size) in enumerate(plan)):
            queues.setdefault((sender, to), []).append((at_s, number, size_bytes(Bulk(np.zeros(size)))))
    meets = {pair: wires.crossing(*pair) for pair in queues}
    now, left, found = 0.0, {}, {}
    while any(queues.values()):
        heads = {pair: queue[0] for pair, queue in queues.items() if queue}
        begins = {pair: head[0] + meets[pair].latency_s for pair, head in heads.items()}
        there = [pair for pair in heads if begins[pair] <= now]
        flows = [
            Flow(0.0, meets[p].channels, 1 / meets[p].latency_s if meets[p].latency_s else 1.0, inf, 1.0) for p in there
        ]
        rates = dict(zip(there, flow_oracle.floats(wires.capacities_bytes_per_s, flows), strict=True))
        ends = {pair: now + left.setdefault(pair, heads[pair][2]) / rates[pair] for pair in there}
        at = min([*ends.values(), *(begins[pair] for pair in heads if pair not in there)])
        for pair in there:
            left[pair] -= rates[pair] * (at - now)
            if ends[pair] <= at * (1 + 1e-13):
                found[*pair, queues[pair].pop(0)[1]] = at
                del left[pair]
        now = at
    return found


def plans_of(peers):
    return st.lists(
        st.tuples(st.integers(0, 12).map(lambda n: n / 7), st.sampled_from(peers), st.integers(1, 300)), max_size=6
    )


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.tuples(plans_of(WORKERS), *[plans_of([SERVER])] * 3), st.sampled_from([0.0, 0.1, 3.0]))
def test_messages_arrive_when_the_slow_model_says(all_plans, latency_s):
    plans = dict(zip(NODES, all_plans, strict=True))
    cluster = star(latency_s=latency_s)
    _, seen = run(plans, cluster)

    found = {(NodeId.parse(sender), to, number): at_s for to in NODES for at_s, sender, number in arrivals(seen, to)}
    assert found == pytest.approx(expected_arrivals(cluster, plans), rel=1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.tuples(plans_of(WORKERS), *[plans_of([SERVER])] * 3), st.sampled_from([0.0, 0.5]), st.sampled_from([None, 8e3])
)
def test_where_all_latencies_are_equal_a_matrix_is_the_plain_network(all_plans, latency_s, bandwidth_bps):
    plans = dict(zip(NODES, all_plans, strict=True))
    matrix = LatencyMatrix(np.full((4, 4), latency_s), bandwidth_bps)
    found = [
        {(to, sender, number): at_s for to in NODES for at_s, sender, number in arrivals(seen, to)}
        for _, seen in (run(plans, Cluster(3, network=n)) for n in (matrix, Network(latency_s, bandwidth_bps)))
    ]

    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_kernel_and_twin_give_the_same_trace(monkeypatch):
    plans = {SERVER: [(0.1 * i, WORKERS[i % 3], 50 + i) for i in range(20)]}
    plans |= {worker: [(0.07 * i, SERVER, 90 - i) for i in range(20)] for worker in WORKERS}
    traces = []
    for system in (emuml.des.network.FlowSystem, reference_flows.FlowSystem):
        monkeypatch.setattr(emuml.des.network, "FlowSystem", system)
        traces.append(list(run(plans, star(latency_s=0.01))[0].trace.rows))

    assert traces[0] == traces[1]
    assert len(traces[0]) > 100


# By hand


def test_three_messages_to_one_server_share_its_link_and_arrive_in_the_order_sent():
    size = 1000 - HEAD
    plans = {worker: [(0.0, SERVER, size // 8)] for worker in reversed(WORKERS)}
    _, seen = run(plans, star(bytes_per_s=1000))

    assert times(seen, SERVER) == pytest.approx([3 * sized(1000) / 1000] * 3)
    assert [sender for _, sender, _ in arrivals(seen, SERVER)] == ["worker-0", "worker-1", "worker-2"]


def test_messages_of_one_pair_stay_in_their_order_though_the_second_is_small():
    _, seen = run({SERVER: [(0.0, WORKERS[0], 1000), (0.0, WORKERS[0], 1)]}, star())

    assert [number for _, _, number in arrivals(seen, WORKERS[0])] == [0, 1]


def test_what_an_instant_sends_is_one_solve():
    class Counted(emuml.des.network.Carrier):
        pass

    from emuml.des.environment import Environment

    env = Environment()
    carrier = Counted(env, star(), NODES)
    arrived = []
    for worker in WORKERS:
        carrier.send(SERVER, worker, 500, lambda at_s, left_s: arrived.append(at_s))
    while env.live:
        env.step()

    assert arrived == pytest.approx([1.5, 1.5, 1.5])
    assert carrier.fillings == 1


def test_messages_within_a_host_arrive_at_once():
    network = TopologyNetwork(Star(hosts=2, bandwidth_bps=8000.0, latency_s=0.25), "cyclic")
    _, seen = run({SERVER: [(0.0, WORKERS[1], 100), (0.0, WORKERS[0], 100)]}, Cluster(3, network=network))

    assert times(seen, WORKERS[1]) == [0.0]
    assert times(seen, WORKERS[0]) == pytest.approx([0.5 + size_bytes(Bulk(np.zeros(100))) / 1000])


def test_latencies_of_a_matrix_differ_by_direction():
    matrix = LatencyMatrix(np.array([[0.0, 0.25], [0.75, 0.0]]), placement=(0, 1, 1, 1))
    _, seen = run({SERVER: [(0.0, WORKERS[0], 1)], WORKERS[0]: [(0.0, SERVER, 1)]}, Cluster(3, network=matrix))

    assert (times(seen, WORKERS[0]), times(seen, SERVER)) == ([0.25], [0.75])


# Crashes


def test_what_goes_to_a_node_that_crashes_makes_room_at_once():
    plans = {SERVER: [(0.0, WORKERS[0], 1000), (0.0, WORKERS[1], 1000)]}
    size = size_bytes(Bulk(np.zeros(1000)))
    _, seen = run(plans, star(bytes_per_s=1000.0, latency_s=0.5), [Crash("worker-0", at_s=2.0)])

    assert times(seen, WORKERS[0]) == []
    assert times(seen, WORKERS[1]) == pytest.approx([2.0 + (size - 750) / 1000])


def test_what_a_node_had_sent_when_it_crashed_arrives_and_fills_the_link_until_then():
    """Bytes travel for a second: those that left before the crash at 3 s arrive until 4 s."""
    plans = {WORKERS[0]: [(0.0, SERVER, 100), (0.0, SERVER, 9000)], WORKERS[1]: [(0.0, SERVER, 1000)]}
    first, other = (size_bytes(Bulk(np.zeros(size))) for size in (100, 1000))
    _, seen = run(plans, star(1000.0, 1.0, detection=Detection(9.0)), [Crash("worker-0", at_s=3.0)])

    assert arrivals(seen, SERVER) == [
        (pytest.approx(1.0 + 2 * first / 1000), "worker-0", 0),
        (pytest.approx(4.0 + (other - 1500) / 1000), "worker-1", 0),
    ]


def test_a_message_that_is_through_just_when_the_last_byte_may_be_arrives():
    size = size_bytes(Bulk(np.zeros(100)))
    at_s = size / 1024
    for late_s, count in ((0.0, 1), (-(2.0**-20), 0)):
        cluster = star(bytes_per_s=1024.0, latency_s=1.0, detection=Detection(exit_s=9.0))
        _, seen = run({WORKERS[0]: [(0.0, SERVER, 100)]}, cluster, [Crash("worker-0", at_s=at_s + late_s)])
        assert len(times(seen, SERVER)) == count


def test_a_new_session_does_not_wait_for_what_the_old_one_had_on_the_way():
    def peer(ctx, who, state):
        if state in ("RESTARTED", "UP"):
            ctx.send(NodeId.parse(who), Note("again"))

    start = on(start=lambda ctx, saved: ctx.send(WORKERS[0], Bulk(np.zeros(10**6))), peer=peer)
    cluster = star(bytes_per_s=1000.0, latency_s=0.5, detection=Detection(exit_s=0.1))
    scripts = {"server-0": start, "worker-0": None, "worker-1": None, "worker-2": None}
    _, seen = emulate(scripts, cluster, [Crash("worker-0", at_s=1.0, restart_after_s=1.0)], until_s=100.0)

    ((at_s, _, _),) = seen.of("worker-0", "message")
    assert at_s == pytest.approx(2.0 + 0.5 + 0.5 + size_bytes(Note("again")) / 1000)


def test_how_fast_bytes_leave_is_no_fault_of_one_link_where_links_are_shared():
    with pytest.raises(UserError, match=r"slowdown: got 2 where messages share links"):
        run({}, star(), [SlowLink("server-0", "worker-0", 0.5, 2, at_s=1.0, slowdown=2.0)])


# Costs of servers


def test_a_network_card_is_shared_by_all_messages_of_a_server():
    """The plain network has no shared links; each message alone would take 1 s."""
    size = sized(1000)
    costs = ServerCosts(nic_bps=8 * 1000.0)
    plans = {worker: [(0.0, SERVER, (1000 - HEAD) // 8)] for worker in WORKERS}
    cluster = Cluster(3, network=Network(0.5, 8 * 1000.0), server_costs=costs)
    _, seen = run(plans, cluster)
    assert times(seen, SERVER) == pytest.approx([0.5 + 3 * size / 1000] * 3)

    slow = Cluster(3, network=Network(0.5, 8 * 100.0), server_costs=costs)
    assert times(run(plans, slow)[1], SERVER) == pytest.approx([0.5 + size / 100] * 3)


def test_a_processor_works_on_one_message_after_the_other_in_both_directions():
    size = size_bytes(Bulk(np.zeros(1)))
    costs = ServerCosts(cpu_s_per_message=1.0, cpu_s_per_byte=0.125)
    each = 1.0 + 0.125 * size
    cluster = Cluster(3, network=Network(0.25), server_costs=costs)
    plans = {worker: [(0.0, SERVER, 1)] for worker in WORKERS}
    _, seen = run(plans | {SERVER: [(100.0, worker, 1) for worker in WORKERS]}, cluster)

    assert times(seen, SERVER) == pytest.approx([0.25 + each, 0.25 + 2 * each, 0.25 + 3 * each])
    for i, worker in enumerate(WORKERS, 1):
        assert times(seen, worker) == pytest.approx([100.25 + i * each])


@pytest.mark.parametrize("cluster", [star(), Cluster(3, server_costs=ServerCosts(cpu_s_per_message=1e-9))])
def test_tiers_without_events_serve_no_such_run(cluster):
    assert pushes.why_not(cluster) == "messages wait for each other"
    assert rounds.why_not(None, cluster) == "messages wait for each other"


def test_costs_of_nothing_leave_the_plain_network_as_it_is():
    assert Cluster(3, network=Network(0.5)).shares_nothing
    assert not Cluster(3, server_costs=ServerCosts(cpu_s_per_byte=1e-9)).shares_nothing
    assert Cluster(3).has_free_messages
    assert not Cluster(3, server_costs=ServerCosts(1e9)).has_free_messages
    assert not Cluster(3, network=Network(0.5)).has_free_messages
    assert not star().has_free_messages


def test_a_topology_of_its_own_serves_as_well():
    pipe = Topology(("x", "y"), (Link("l", 8000.0, 0.5, "fatpipe", ("x", "y")),))
    cluster = Cluster(3, network=TopologyNetwork(pipe, placement=("x", "y", "y", "y")))
    _, seen = run({SERVER: [(0.0, worker, 100) for worker in WORKERS]}, cluster)

    assert {times(seen, worker)[0] for worker in WORKERS} == {0.5 + size_bytes(Bulk(np.zeros(100))) / 1000}


# Explored


@settings(max_examples=40, deadline=None)
@given(st.tuples(plans_of(WORKERS), *[plans_of([SERVER])] * 3), st.lists(st.integers(0, 5), max_size=30))
def test_messages_of_a_pair_stay_in_order_whatever_an_explorer_picks(all_plans, picks):
    plans = dict(zip(NODES, all_plans, strict=True))
    _, seen = run(plans, star(latency_s=0.25), choose=chooser(picks))

    for to in NODES:
        for sender, plan in plans.items():
            got = [number for _, who, number in arrivals(seen, to) if who == str(sender)]
            assert sorted(got) == [i for i, (_, peer, _) in enumerate(plan) if peer == to]
            assert [plan[number][0] for number in got] == sorted(plan[number][0] for number in got)
