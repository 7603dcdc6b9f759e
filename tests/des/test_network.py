"""Completion times of flows: SimGrid's to 1e-9, closed forms, and clear refusals; the usual wrong models are caught."""

import io
import json
import tarfile
from math import inf
from pathlib import Path

import numpy as np
import pytest

from emuml.cluster import FatTree, Link, Route, Star, Topology
from emuml.des.network import completion_times
from emuml.errors import UserError
from tests import flow_oracle
from tests.datafiles import data_file
from tests.flow_oracle import Flow

DATA = Path(__file__).parents[1] / "data" / "topologies"
CASES = json.loads((DATA / "simgrid_golden_flows.json").read_text())["cases"]
OWN = [case for case in CASES if case["platform"] != "small_platform"]
PLATFORMS = {name: Topology.from_file(DATA / f"simgrid_{name}.xml") for name in {case["platform"] for case in OWN}}


def error_of(found, case):
    """Largest relative difference from SimGrid's times."""
    return float(np.max(np.abs(np.asarray(found) / np.asarray(case["finish"]) - 1)))


@pytest.mark.parametrize("case", OWN, ids=[f"{case['platform']}-{i}" for i, case in enumerate(OWN)])
def test_times_are_those_of_simgrid(case):
    assert error_of(completion_times(PLATFORMS[case["platform"]], case["flows"]), case) < 1e-9


def test_times_on_its_own_small_platform_are_those_of_simgrid(tmp_path):
    archive = data_file("topologies/simgrid_4.1_platforms.tar.xz")
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as tar:
        member = tar.extractfile("platforms/small_platform.xml")
        (tmp_path / "small_platform.xml").write_bytes(member.read())
    small = Topology.from_file(tmp_path / "small_platform.xml")
    cases = [case for case in CASES if case["platform"] == "small_platform"]

    assert len(cases) == 6
    assert max(error_of(completion_times(small, case["flows"]), case) for case in cases) < 1e-9


# Wrong models: each must differ from SimGrid where the right one does not


def crossed(case, topology):
    """The flows of a case as the oracle takes them, after the latency of their routes."""
    flows = []
    for start_s, source, destination, size in case["flows"]:
        meets = topology.crossing(source, destination)
        weight = 1 / meets.latency_s if meets.latency_s else 1.0
        flows.append(Flow(start_s + meets.latency_s, meets.channels, weight, meets.most_bytes_per_s, size))
    return flows


def finish(topology, flows, rates=flow_oracle.floats):
    return flow_oracle.finish(topology.capacities_bytes_per_s, flows, rates, float)


def undelayed(case, topology, **changed):
    return [
        Flow(start, flow.route, changed.get("weight", flow.weight), flow.most, flow.size)
        for (start, *_), flow in zip(case["flows"], crossed(case, topology), strict=True)
    ]


def simplex(topology):
    """Wrong: both directions of a cable share one capacity."""
    links = tuple(Link(e.name, e.bandwidth_bps, e.latency_s, "shared", e.between) for e in topology.links)
    return Topology(topology.hosts, links, topology.routers, topology.routes)


MODELS = {
    "the right model": lambda case, topology: finish(topology, crossed(case, topology)),
    "no sharing": lambda case, topology: finish(topology, crossed(case, topology), flow_oracle.unshared),
    "one capacity for both directions": lambda case, topology: finish(
        simplex(topology), crossed(case, simplex(topology))
    ),
    "no latency": lambda case, topology: finish(topology, undelayed(case, topology, weight=1.0)),
    "weights without the delay": lambda case, topology: finish(topology, undelayed(case, topology)),
    "delay without weights": lambda case, topology: finish(
        topology, flow_oracle.equally_weighted(crossed(case, topology))
    ),
    "nothing redistributed": lambda case, topology: finish(
        topology, crossed(case, topology), flow_oracle.not_redistributed
    ),
}
CAUGHT = {
    "the right model": 0,
    "no sharing": 25,
    "one capacity for both directions": 19,
    "no latency": 12,
    "weights without the delay": 12,
    "delay without weights": 5,
    "nothing redistributed": 14,
}
"""Cases that tell a model from SimGrid by more than 1e-6."""


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_wrong_models_are_caught(model):
    errors = [error_of(MODELS[model](case, PLATFORMS[case["platform"]]), case) for case in OWN]

    assert sum(error > 1e-6 for error in errors) == CAUGHT[model]


def test_a_fat_pipe_limits_each_flow_alone():
    """As SimGrid 3.32 has it: 1 s for both; a shared link would take 2 s."""
    pipe = Topology(("a", "b"), (Link("pipe", 800.0, 0.0, "fatpipe", ("a", "b")),))

    assert completion_times(pipe, [(0.0, "a", "b", 100), (0.0, "a", "b", 100)]).tolist() == [1.0, 1.0]


def test_what_a_fat_pipe_leaves_of_a_link_goes_to_others():
    """Times of SimGrid 3.32 for this platform: 10, 13 1/3 and 20 s."""
    links = (Link("f", 800.0, 0.0, "fatpipe"), Link("s", 1200.0, 0.0, "shared"))
    routes = tuple(
        Route(source, "c", names, ("up",) * len(names))
        for source, names in (("a", ("f",)), ("b", ("f", "s")), ("d", ("s",)))
    )
    network = Topology(("a", "b", "c", "d"), links, routes=routes)

    found = completion_times(network, [(0.0, "a", "c", 1000), (0.0, "b", "c", 1000), (0.0, "d", "c", 2000)])

    assert found == pytest.approx([10.0, 40 / 3, 20.0], rel=1e-12)


def test_a_flow_without_latency_has_the_weight_of_a_second():
    """Times of SimGrid 3.32: its penalty of a route without latency is 1."""
    links = (Link("z", 800.0, 0.0, "shared"), Link("l", 8000.0, 0.5, "shared"))
    routes = (Route("a", "c", ("z",), ("up",)), Route("b", "c", ("z", "l"), ("up", "up")))
    network = Topology(("a", "b", "c"), links, routes=routes)

    assert completion_times(network, [(0.0, "a", "c", 1000), (0.0, "b", "c", 1000)]) == pytest.approx([20.0, 15.5])


def test_a_link_that_is_crossed_twice_is_used_twice():
    links = (Link("z", 800.0, 0.0, "shared"), Link("l", 8000.0, 0.0, "shared"))
    routes = (Route("a", "c", ("z", "l", "z"), ("up",) * 3), Route("b", "c", ("z", "l"), ("up",) * 2))
    network = Topology(("a", "b", "c"), links, routes=routes)

    assert completion_times(network, [(0.0, "a", "c", 1000), (0.0, "b", "c", 1000)]) == pytest.approx([30.0, 30.0])


# Closed forms


@pytest.mark.parametrize("latency_s", [0.0, 0.25])
def test_incast_of_equal_messages_takes_as_long_as_all_of_them_one_after_the_other(latency_s):
    star = Star(hosts=17, bandwidth_bps=8e6, latency_s=latency_s)
    flows = [(0.0, f"host-{i}", "host-0", 250_000) for i in range(1, 17)]

    assert completion_times(star, flows) == pytest.approx(np.full(16, 16 * 0.25 + 2 * latency_s), rel=1e-12)


def test_broadcast_and_incast_do_not_meet_on_a_full_duplex_link():
    star = Star(hosts=5, bandwidth_bps=8e6)
    there = [(0.0, "host-0", f"host-{i}", 1_000_000) for i in range(1, 5)]
    back = [(0.0, f"host-{i}", "host-0", 1_000_000) for i in range(1, 5)]

    assert completion_times(star, there + back) == pytest.approx(np.full(8, 4.0))


def test_a_permutation_that_a_fat_tree_spreads_without_conflict_has_full_bandwidth():
    tree = FatTree(k=4, bandwidth_bps=8e6).build()
    flows = [(0.0, f"host-{i}", f"host-{i ^ 1}", 1_000_000) for i in range(16)]

    assert completion_times(tree, flows) == pytest.approx(np.ones(16))


def test_messages_within_a_host_take_no_time_and_empty_ones_the_latency():
    star = Star(hosts=2, bandwidth_bps=8.0, latency_s=0.5)

    assert completion_times(star, [(1.0, "host-0", "host-0", 10**9), (1.0, "host-0", "host-1", 0)]).tolist() == [
        1.0,
        2.0,
    ]


def test_no_flows_take_no_time():
    assert completion_times(Star(2), []).tolist() == []


def test_names_and_paths_of_topologies_serve_as_well():
    flows = [(0.0, "worker-0", "server-0", 117_500_000)]

    assert completion_times("laptop-star", flows) == pytest.approx([1.0001])
    assert completion_times(DATA / "topozoo_Abilene.json", [(0.0, "0", "1", 0)]) == pytest.approx([0.0057308])


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        (
            (0.0, "host-0", "hots-1", 1),
            r"flows\[1\]: there is no host 'hots-1'; allowed: host-0, host-1; did you mean 'host-1'\?",
        ),
        ((-1.0, "host-0", "host-1", 1), r"flows\[1\]: start_s is -1.0; allowed: a finite number >= 0"),
        ((inf, "host-0", "host-1", 1), r"flows\[1\]: start_s is inf"),
        ((0.0, "host-0", "host-1", 1.5), r"flows\[1\]: size_bytes is 1.5; allowed: an integer >= 0"),
        ((0.0, "host-0", "host-1", -1), r"flows\[1\]: size_bytes is -1"),
        ((0.0, "host-0", "host-1"), r"flows\[1\]: got \(0.0, 'host-0', 'host-1'\); allowed: \(start_s, source,"),
    ],
)
def test_malformed_flows_are_refused_by_their_number(flow, message):
    with pytest.raises(UserError, match=message):
        completion_times(Star(2), [(0.0, "host-0", "host-1", 1), flow])
