"""Topologies: shapes have the links they should, routes are the shortest and always the same, nonsense is refused."""

import pickle
from collections import Counter
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.cluster import FatTree, Link, Route, Star, Topology, TwoTier
from emuml.errors import UserError


def line(*names, latency_s=0.0):
    """Places in a row."""
    ends = list(pairwise(names))
    return Topology(names, tuple(Link(f"{a}{b}", 8.0, latency_s, between=(a, b)) for a, b in ends))


def names_of(topology, source, destination):
    return [hop.link for hop in topology.path(source, destination)]


def test_a_crossing_lists_the_capacities_of_its_direction_and_adds_latencies():
    chain = line("a", "b", "c", latency_s=0.25)

    assert chain.capacities_bytes_per_s == (1.0, 1.0, 1.0, 1.0)
    assert chain.crossing("a", "c") == ((0, 2), 0.5, inf)
    assert chain.crossing("c", "a") == ((3, 1), 0.5, inf)
    assert chain.crossing("b", "b") == ((), 0.0, inf)


def test_shared_links_have_one_capacity_and_fat_pipes_none():
    links = (Link("s", 16.0, 0.5, "shared", ("a", "b")), Link("f", 8.0, 0.25, "fatpipe", ("b", "c")))
    mixed = Topology(("a", "b", "c"), links)

    assert mixed.capacities_bytes_per_s == (2.0,)
    assert mixed.crossing("a", "c") == mixed.crossing("c", "a") == ((0,), 0.75, 1.0)


def test_the_shortest_path_is_that_of_least_latency_then_of_fewest_links_then_of_the_least_name():
    def ring(far_s, near_s):
        ends = {"ab": far_s, "bd": far_s, "ac": near_s, "ce": near_s, "ed": near_s}
        return Topology(("a", "b", "c", "d", "e"), tuple(Link(n, 1.0, s, between=tuple(n)) for n, s in ends.items()))

    assert names_of(ring(0.1, 0.01), "a", "d") == ["ac", "ce", "ed"]
    assert names_of(ring(0.3, 0.2), "a", "d") == ["ab", "bd"]  # 0.6 s both: three times 0.2 is more in floating point
    assert names_of(ring(0.0, 0.0), "d", "a") == ["bd", "ab"]
    twice = (Link("z", 1.0, between=("a", "b")), Link("m", 1.0, between=("a", "b")))
    assert names_of(Topology(("a", "b"), twice), "a", "b") == ["m"]


def test_routes_that_are_written_out_win_in_their_direction():
    base = line("a", "b", "c")
    loop = (*base.links, Link("ac", 8.0, between=("a", "c")))
    detour = Route("a", "c", ("ab", "bc"), ("up", "up"))
    network = Topology(base.hosts, loop, routes=(detour,))

    assert names_of(network, "a", "c") == ["ab", "bc"]
    assert names_of(network, "c", "a") == ["ac"]


@pytest.mark.parametrize("routing", ["shortest", "ecmp"])
def test_paths_do_not_depend_on_the_order_in_which_links_are_given(routing):
    tree = FatTree(4).build()
    one, other = (
        Topology(tree.hosts, links, tree.routers, routing=routing) for links in (tree.links, tree.links[::-1])
    )

    for i in range(1, 16):
        assert one.path("host-0", f"host-{i}") == other.path("host-0", f"host-{i}")


def test_equal_cost_paths_spread_flows_and_keep_to_the_shortest():
    tree = FatTree(4).build()
    pairs = [(f"host-{i}", f"host-{j}") for i in range(4) for j in range(4, 16)]
    paths = {pair: tree.path(*pair) for pair in pairs}

    assert {len(path) for path in paths.values()} == {6}
    cores = Counter(path[2].link.rpartition("--")[2] for path in paths.values())
    assert len(cores) == 4
    assert max(cores.values()) <= 2 * len(pairs) / 4
    assert paths == {pair: FatTree(4).build().path(*pair) for pair in pairs}


@pytest.mark.parametrize(("k", "hosts", "switches"), [(2, 2, 5), (4, 16, 20), (8, 128, 80)])
def test_a_fat_tree_has_the_switches_of_its_paper(k, hosts, switches):
    tree = FatTree(k).build()
    ports = Counter(end for link in tree.links for end in link.between)

    assert (len(tree.hosts), len(tree.routers), len(tree.links)) == (hosts, switches, 3 * hosts)
    assert {ports[host] for host in tree.hosts} == {1}
    assert {ports[router] for router in tree.routers} == {k}
    assert len(tree.path("host-0", "host-1")) == (2 if k > 2 else 6)
    assert len(tree.path("host-0", f"host-{hosts - 1}")) == 6


def test_racks_have_their_uplinks():
    racks = TwoTier(racks=3, hosts_per_rack=2, bandwidth_bps=8.0, uplink_bps=16.0, latency_s=0.5).build()

    assert len(racks.hosts) == 6
    assert len(racks.path("host-0", "host-1")) == 2
    assert names_of(racks, "host-1", "host-5") == ["host-1--rack-0", "rack-0--core", "rack-2--core", "host-5--rack-2"]
    assert {racks.capacities_bytes_per_s[channel] for channel in racks.crossing("host-1", "host-5").channels} == {
        1.0,
        2.0,
    }


@given(st.integers(1, 30), st.data())
def test_every_pair_of_a_random_tree_has_the_one_path_there_is(size, data):
    parents = [data.draw(st.integers(0, max(i - 1, 0))) for i in range(size)]
    names = [str(i) for i in range(size)]
    links = tuple(Link(f"l{i}", 8.0, 0.125, between=(str(parents[i]), str(i))) for i in range(1, size))
    tree = Topology(tuple(names), links)

    def up(node):
        return [node, *(up(parents[node]) if node else [])]

    a, b = data.draw(st.sampled_from(range(size))), data.draw(st.sampled_from(range(size)))
    between = set(up(a)) ^ set(up(b))
    assert set(names_of(tree, str(a), str(b))) == {f"l{node}" for node in between}
    assert tree.crossing(str(a), str(b)).latency_s == 0.125 * len(between)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Topology((), ()), "there are no hosts"),
        (lambda: Topology(("a", "a"), ()), "host or router 'a' is there twice"),
        (lambda: Topology(("a", "b"), ()), "nothing leads from 'a' to 'b'; allowed: links or routes that connect"),
        (lambda: Topology(("a", "b", "c", "d"), line("a", "b").links), "nothing leads from 'a' to 'c' and 1 more"),
        (
            lambda: Topology(("alpha",), (Link("l", 1.0, between=("alpha", "alpah")),)),
            "link 'l': there is no host or router 'alpah'; allowed: alpha; did you mean 'alpha'?",
        ),
        (lambda: Topology(("a", "b"), line("a", "b").links * 2), "link 'ab' is there twice"),
        (lambda: Link("l", 0.0), r"Link.bandwidth_bps: got 0.0; allowed: a finite number >= 1e-06"),
        (lambda: Link("l", 1.0, -1.0), "Link.latency_s: got -1.0"),
        (lambda: Link("l", 1.0, sharing="duplex"), "Link.sharing: got 'duplex'"),
        (lambda: Link("l", 1.0, between=("a",)), r"link 'l' lies between \['a'\]; allowed: two places"),
        (lambda: Link("l", 1.0, between=("a", "a")), "allowed: two places"),
        (lambda: Route("a", "b", ("l",), ()), "0 directions of 1 links"),
        (
            lambda: Topology(("a", "b"), line("a", "b").links, routes=(Route("a", "b", ("ba",), ("up",)),)),
            "route from 'a' to 'b': there is no link 'ba'; allowed: ab",
        ),
        (lambda: FatTree(3), "FatTree.k: got 3; allowed: an even integer in 2..64"),
        (lambda: TwoTier(1000, 1000), "1,000,000 hosts; allowed: at most 100,000"),
        (lambda: Star(0), "Star.hosts: got 0"),
        (lambda: line("a", "b").crossing("a", "bb"), "there is no host 'bb'; allowed: a, b"),
    ],
)
def test_nonsense_is_refused_with_what_is_allowed(make, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        make()


def test_a_pair_without_a_route_is_named():
    routes = (Route("a", "b", ("l",), ("up",)), Route("b", "c", ("l",), ("up",)))
    network = Topology(("a", "b", "c"), (Link("l", 1.0),), routes=routes)

    with pytest.raises(UserError, match="there is no route from 'a' to 'c'"):
        network.crossing("a", "c")


def test_topologies_are_values():
    tree = FatTree(4).build()
    tree.crossing("host-0", "host-9")  # which is remembered

    assert tree == FatTree(4).build()
    assert hash(tree) == hash(FatTree(4).build())
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert np.isfinite(tree.capacities_bytes_per_s).all()
