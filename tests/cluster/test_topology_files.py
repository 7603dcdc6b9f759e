"""Topologies in files: each form is read as it is meant, and what is wrong is told with its place."""

import json
from pathlib import Path

import pytest

from emuml.cluster import FatTree, Topology
from emuml.cluster.networks import shipped_topologies
from emuml.errors import UserError
from tests.datafiles import data_file

DATA = Path(__file__).parents[1] / "data" / "topologies"

OWN = """\
format: 1
name: pair
hosts: [a, b]
routers: [s]
links:
  - {between: [a, s], bandwidth_bps: 10e9, latency_s: 1e-6}
  - {between: [s, b], bandwidth_bps: 8, sharing: shared, name: slow}
routes:
  - {from: a, to: b, through: [a--s, slow]}
"""

SIMGRID = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="1Gf"><prop id="x" value="y"/></host>
    <host id="b" speed="1Gf"/>
    <router id="r"/>
    <link id="d" bandwidth="10MBps" latency="5ms" sharing_policy="SPLITDUPLEX"/>
    <link id="s" bandwidth="1kbps" latency="1us"/>
    <link id="f" bandwidth="1GiBps" latency="2" sharing_policy="FATPIPE"/>
    <route src="a" dst="b"><link_ctn id="d" direction="UP"/><link_ctn id="s"/><link_ctn id="f"/></route>
    <route src="a" dst="a" symmetrical="NO"><link_ctn id="f"/></route>
  </zone>
</platform>
"""


def given(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", sorted(shipped_topologies()))
def test_every_topology_that_comes_with_the_package_connects_its_hosts(name):
    network = Topology.from_file(shipped_topologies()[name])
    first = network.hosts[0]

    for host in network.hosts[1:]:
        there, back = network.crossing(first, host), network.crossing(host, first)
        assert there.latency_s == pytest.approx(back.latency_s)
        assert len(there.channels) == len(back.channels) > 0


def test_some_topologies_come_with_the_package():
    known = shipped_topologies()

    assert {"laptop-star", "rack-10g", "two-racks-25g", "fat-tree-k4", "fat-tree-k8", "abilene"} <= set(known)
    assert len(Topology.from_file(known["fat-tree-k8"]).hosts) == 128


def test_own_form(tmp_path):
    found = Topology.from_file(given(tmp_path, "pair.yaml", OWN))

    assert (found.name, found.hosts, found.routers) == ("pair", ("a", "b"), ("s",))
    assert [(link.name, link.bandwidth_bps, link.latency_s, link.sharing) for link in found.links] == [
        ("a--s", 10e9, 1e-6, "split-duplex"),
        ("slow", 8.0, 0.0, "shared"),
    ]
    assert found.crossing("a", "b") == ((0, 2), 1e-6, float("inf"))
    assert found.crossing("b", "a") == ((2, 1), 1e-6, float("inf"))


def test_one_way_routes_leave_the_way_back_to_the_shortest_path(tmp_path):
    text = OWN.replace("slow]}", "slow], one_way: true}")

    assert len(Topology.from_file(given(tmp_path, "pair.yaml", text)).routes) == 1


def test_own_form_of_a_shape(tmp_path):
    text = "format: 1\nshape: {kind: fat-tree, k: 4, bandwidth_bps: 10e9}\n"

    assert Topology.from_file(given(tmp_path, "tree.yaml", text)) == FatTree(4, 10e9).build()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format: 1", "format: 2", ":1:9: format is 2; allowed: 1"),
        ("hosts:", "host:", ":3:1: unknown key 'host'; allowed: format, name, .*; did you mean 'hosts'"),
        ("bandwidth_bps: 10e9", "bandwidth: 10e9", ":6:23: unknown key 'bandwidth'.*did you mean 'bandwidth_bps'"),
        ("bandwidth_bps: 10e9", "bandwidth_bps: fast", ":6:5: Link.bandwidth_bps: got 'fast'; allowed: a number"),
        ("bandwidth_bps: 10e9, ", "", ":6:5: bandwidth_bps is missing"),
        ("sharing: shared", "sharing: shard", ":7:5: Link.sharing: got 'shard'"),
        ("between: [a, s]", "between: [a, c]", ":9:32: there is no link 'a--s'; allowed: a--c, slow"),
        ("[a--s, slow]", "[slow, a--s]", ":9:32: 'slow' does not begin at 'a'; allowed: s - b"),
        ("[a--s, slow]", "[a--s, slo]", ":9:38: there is no link 'slo'; allowed: a--s, slow; did you mean 'slow'"),
        ("[a--s, slow]", "[a--s]", ":9:5: the route ends at 's'; allowed: 'b'"),
        ("hosts: [a, b]", "hosts: a", ":3:8: got 'a'; allowed: a list"),
        ("hosts: [a, b]", "hosts: [a, [b]]", ":3:12: got a list; allowed: a name"),
        ("name: pair", "name: pair\nname: pair", ":3:1: 'name' is there twice"),
        ("name: pair", "name: [", r"is no YAML: .* in \S+\.yaml, line 2"),
        ("hosts: [a, b]\n", "", ":1:1: hosts is missing"),
    ],
)
def test_mistakes_in_own_form_are_told_with_their_place(tmp_path, old, new, message):
    path = given(tmp_path, "pair.yaml", OWN.replace(old, new))
    with pytest.raises(UserError, match=f"pair.yaml.*{message}"):
        Topology.from_file(path)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("{kind: fat-tee, k: 4}", ":2:15: kind is 'fat-tee'; allowed: star, two-tier, fat-tree"),
        ("{kind: fat-tree}", ":2:8: missing 1 required positional argument: 'k'"),
        ("{kind: fat-tree, k: 4, hosts: 3}", ":2:38: unknown key 'hosts'"),
        ("{kind: fat-tree, k: 5}", ":2:8: FatTree.k: got 5"),
    ],
)
def test_mistakes_in_shapes_are_told_with_their_place(tmp_path, shape, message):
    with pytest.raises(UserError, match=message):
        Topology.from_file(given(tmp_path, "tree.yaml", f"format: 1\nshape: {shape}\n"))


def test_simgrid_platforms(tmp_path):
    found = Topology.from_file(given(tmp_path, "small.xml", SIMGRID))

    assert (found.name, found.hosts, found.routers) == ("z", ("a", "b"), ("r",))
    rates = {link.name: (link.bandwidth_bps, link.latency_s, link.sharing) for link in found.links}
    assert rates == {
        "d": (80e6, 0.005, "split-duplex"),
        "s": (1e3, 1e-6, "shared"),
        "f": (8 * 2.0**30, 2.0, "fatpipe"),
    }
    assert found.crossing("a", "b") == ((0, 2), pytest.approx(2.005001), 2.0**30)
    assert found.crossing("b", "a").channels == (2, 1)
    assert found.crossing("a", "a") == ((), 2.0, 2.0**30)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<router id="r"/>', '<cluster id="c"/>', ":7: <cluster> is not read; allowed: zone, AS, host, router, link"),
        ('routing="Full"', 'routing="Floyd"', ":4: routing='Floyd' is not read; allowed: 'Full'"),
        ('<router id="r"/>', '<zone id="y" routing="Full"/>', ":7: a second zone is not read"),
        ("10MBps", "10MB", ":8: bandwidth is '10MB'; allowed: a number with one of bps, "),
        ("5ms", "5 min", ":8: latency is '5 min'"),
        ("SPLITDUPLEX", "SPLITDUPLX", ":8: sharing_policy is 'SPLITDUPLX'; .*did you mean 'SPLITDUPLEX'"),
        (' direction="UP"', "", ":11: direction of 'd' is 'NONE'; allowed: UP or DOWN"),
        ('<link_ctn id="s"/>', '<link_ctn id="t"/>', ":11: there is no link 't' before"),
        ('dst="b">', 'to="b">', ":11: <route> has no dst"),
        ('id="s" b', 'id="s" bandwidth_file="x" b', ":9: bandwidth_file of a link is not read"),
        ('id="b" s', 'id="b" state_file="x" s', ":6: state_file of a host is not read"),
        ("</platform>", "", "is no XML: "),
        ('<host id="b" speed="1Gf"/>', "", "route from 'a' to 'b': there is no host or router 'b'"),
    ],
)
def test_what_is_not_read_of_simgrid_is_named_with_its_line(tmp_path, old, new, message):
    assert old in SIMGRID
    with pytest.raises(UserError, match=f"small.xml.*{message}"):
        Topology.from_file(given(tmp_path, "small.xml", SIMGRID.replace(old, new, 1)))


def test_node_link_graphs_have_latencies_by_distance_and_say_what_is_assumed():
    abilene = Topology.from_file(DATA / "topozoo_Abilene.json")
    given_rate = Topology.from_file(DATA / "topozoo_Abilene.json", bandwidth_bps=2.5e9)

    assert (len(abilene.hosts), len(abilene.links)) == (11, 14)
    assert abilene.links[0].latency_s == pytest.approx(1146.16 / 200_000)
    assert abilene.description == "14 of 14 links state no bandwidth: 1e+10 bit/s assumed"
    assert {link.bandwidth_bps for link in abilene.links} == {10e9}
    assert ({link.bandwidth_bps for link in given_rate.links}, given_rate.description) == ({2.5e9}, "")


def test_the_shipped_abilene_is_that_of_the_topology_zoo():
    zoo, shipped = (
        Topology.from_file(DATA / "topozoo_Abilene.json"),
        Topology.from_file(shipped_topologies()["abilene"]),
    )
    names = {node["id"]: node["name"] for node in json.loads((DATA / "topozoo_Abilene.json").read_text())["nodes"]}

    assert [names[host] for host in zoo.hosts] == list(shipped.hosts)
    for theirs, ours in zip(zoo.links, shipped.links, strict=True):
        assert tuple(names[end] for end in theirs.between) == ours.between
        assert theirs.latency_s == pytest.approx(ours.latency_s, rel=1e-12)


@pytest.mark.parametrize("name", ["topozoo_Geant2012.json", "sndlib_germany50.json"])
def test_larger_node_link_graphs_are_read(name):
    path = data_file(f"topologies/{name}")
    graph = json.loads(path.read_text())

    found = Topology.from_file(path)

    assert (len(found.hosts), len(found.links)) == (len(graph["nodes"]), len(graph["edges"]))
    assert found.crossing(found.hosts[0], found.hosts[-1]).latency_s > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "is no node-link graph; allowed: an object with the lists 'nodes' and 'edges'"),
        ('{"nodes": [{"name": "x"}], "edges": []}', "node 0 has no 'id'"),
        ('{"nodes": [{"id": 1}], "edges": [{"source": 1}]}', "edge 0 has no 'target'"),
        (
            '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2, "dist": "far"}]}',
            r"edge 0 \(1 - 2\): dist is 'far'; allowed: a number",
        ),
        ('{"nodes": [{"id": 1}, {"id": 2, "kind": "hots"}], "edges": []}', "node '2': there is no kind 'hots'"),
    ],
)
def test_malformed_graphs_are_refused(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        Topology.from_file(given(tmp_path, "graph.json", text))


def test_graphml(tmp_path):
    import networkx as nx

    graph = nx.Graph(name="zoo")
    graph.add_node("s", kind="router")
    graph.add_edge("a", "s", LinkSpeedRaw=1e9, latency_s=0.25)
    graph.add_edge("s", "b", bandwidth_bps=8.0, sharing="shared", dist=200.0)
    nx.write_graphml(graph, tmp_path / "zoo.graphml")

    found = Topology.from_file(tmp_path / "zoo.graphml")

    assert (found.hosts, found.routers) == (("a", "b"), ("s",))
    assert found.crossing("a", "b") == ((1, 2), 0.251, float("inf"))
    assert found.capacities_bytes_per_s == (1.25e8, 1.25e8, 1.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.yaml", "none.yaml: cannot be read: No such file"),
        ("graph.gexf", "graph.gexf: .gexf says nothing of the form; allowed: .yaml, .graphml"),
        ("nothing", "no suffix says nothing"),
    ],
)
def test_files_that_are_not_there_or_of_another_form_are_refused(tmp_path, name, message):
    with pytest.raises(UserError, match=message):
        Topology.from_file(tmp_path / name)


def test_damaged_graphml_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no GraphML"):
        Topology.from_file(given(tmp_path, "zoo.graphml", "<graphml><graph>"))


@pytest.mark.parametrize(("name", "depth"), [("deep.yaml", 3_000), ("deep.json", 100_000)])
def test_a_file_that_is_nested_too_deeply_is_refused_by_name(tmp_path, name, depth):
    path = given(tmp_path, name, "[" * depth)

    with pytest.raises(UserError, match=f"{name}: is nested too deeply"):
        Topology.from_file(path)


def test_a_shape_that_is_not_known_is_refused_with_the_nearest_one(tmp_path):
    path = given(tmp_path, "tree.yaml", "format: 1\nshape: {kind: fat-treee, k: 4}\n")

    with pytest.raises(UserError, match=r"tree.yaml:2:15: kind is 'fat-treee'.*did you mean 'fat-tree'\?"):
        Topology.from_file(path)
