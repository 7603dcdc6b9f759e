"""Experiments on networks whose messages share links: written in files, planned, run, reported and run again."""

import io
import lzma

import numpy as np
import pytest

import emuml
from emuml.cluster import Cluster, Constant, FatTree, LatencyMatrix, Network, ServerCosts, Star, TopologyNetwork
from emuml.errors import UserError
from emuml.experiment.config import load
from emuml.experiment.plan import plan
from emuml.protocols import AsyncUpdates, GradientCoding
from emuml.protocols.async_updates import SSP
from emuml.report.facts import facts
from emuml.report.view import View
from emuml.workloads import LogisticRegression
from tests.datafiles import data_file

X = np.random.default_rng(0).standard_normal((24, 40))
WORKLOAD = LogisticRegression(data=(X, np.where(X[:, 0] > 0, 1.0, -1.0)), validation=0.0)

FILE = """\
workload: {kind: logistic-regression, data: breast-cancer}
protocol: gradient-coding
cluster:
  workers: 4
  network: {kind: topology-network, topology: laptop-star}
  server_costs: {nic_bps: 1e9, cpu_s_per_message: 1e-4}
rounds: 2
"""


def experiment(network=None, protocol=None, **options):
    cluster = Cluster(4, compute=Constant(1.0), network=network or Network(), **options)
    return emuml.Experiment(WORKLOAD, protocol or GradientCoding(), cluster, rounds=3, seed=1)


def star(bandwidth_bps=1e6, **options):
    return TopologyNetwork(Star(5, bandwidth_bps, **options))


def written(tmp_path, text=FILE):
    path = tmp_path / "exp.yaml"
    path.write_text(text)
    return path


def test_files_name_topologies_that_come_with_the_package(tmp_path):
    cluster = load(written(tmp_path)).experiment.cluster

    assert cluster.network == TopologyNetwork("laptop-star")
    assert cluster.network.network.hosts[0] == "server-0"
    assert cluster.server_costs == ServerCosts(1e9, 1e-4)


def test_files_name_shapes_and_files_beside_them(tmp_path):
    shaped = FILE.replace("laptop-star", "{kind: fat-tree, k: 4, bandwidth_bps: 1e9}")
    assert load(written(tmp_path, shaped)).experiment.cluster.network == TopologyNetwork(FatTree(4, 1e9))

    (tmp_path / "own.yaml").write_text("format: 1\nshape: {kind: star, hosts: 5}\n")
    beside = FILE.replace("laptop-star", "own.yaml")
    assert load(written(tmp_path, beside)).experiment.cluster.network == TopologyNetwork(Star(5).build())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "laptop-star",
            "laptop-sta",
            "exp.yaml:5:47: .*no topology 'laptop-sta'; allowed: abilene, .*, or a file; did you mean 'laptop-star'",
        ),
        ("workers: 4", "workers: 40", "exp.yaml:5:12: .*41 nodes .servers and workers. need as many hosts.* has 9"),
        ("topology-network,", "topology-netwrk,", "'topology-netwrk' is unknown.*did you mean 'topology-network'"),
        ("nic_bps", "nic_bsp", "cluster.server_costs.nic_bsp: unknown key; did you mean 'nic_bps'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(tmp_path, old, new, message):
    with pytest.raises(Exception, match=message):
        load(written(tmp_path, FILE.replace(old, new)))


def test_a_run_on_a_shared_network_is_kept_and_run_again_bit_for_bit(tmp_path):
    first = emuml.run(experiment(star()), out=tmp_path / "first")
    again = emuml.run(load(tmp_path / "first" / "config.yaml").experiment)

    assert list(again.trace.rows) == list(first.trace.rows)
    assert again.duration_s == first.duration_s > 3.0


def test_rounds_take_what_the_closed_form_says():
    """A round: the question to four workers shares the server's link, all compute 1 s, the answers share it again."""
    result = emuml.run(experiment(star(bandwidth_bps=8e4, latency_s=0.25)))
    sizes = {}
    for _, _, kind, *details in result.trace.rows:
        if kind == "send":
            sizes.setdefault(details[1], details[2])
    question, answer = sizes.values()

    assert result.metrics["time_s"][1] == pytest.approx(1.0 + 4 * 0.25 + 4 * (question + answer) / 1e4, rel=1e-9)


@pytest.mark.parametrize("protocol", [GradientCoding(), AsyncUpdates(SSP(1))], ids=["rounds", "pushes"])
def test_plans_of_shared_networks_are_bounds_and_say_so(protocol):
    wanted = experiment(star(bandwidth_bps=8e4, latency_s=0.25), protocol)
    found, took_s = plan(wanted), emuml.run(wanted).duration_s

    assert found.basis == "bound"
    assert found.duration_s.mean < took_s
    assert "not counted: how long messages wait for each other on links and at servers" in found.notes


def test_free_messages_are_said_loudly():
    free, costly = experiment(), experiment(server_costs=ServerCosts(cpu_s_per_message=1e-3))
    said = [dict(facts(View.of_result(emuml.run(each))))["messages"] for each in (free, costly)]

    assert said[0].startswith("FREE: no latency, no bandwidth, no work of servers")
    assert said[1] == "network; server-costs(cpu_s_per_message=0.001)"
    assert any(note.startswith("messages are FREE") for note in plan(free).notes)
    assert not any("FREE" in note for note in plan(costly).notes)


@pytest.mark.parametrize("protocol", [GradientCoding(), AsyncUpdates(SSP(1))], ids=["rounds", "pushes"])
@pytest.mark.parametrize("costs", [ServerCosts(cpu_s_per_message=0.5), ServerCosts(nic_bps=1e4)], ids=["cpu", "nic"])
def test_what_servers_have_to_do_counts_whatever_could_serve_a_run_without(protocol, costs):
    free, costly = (emuml.run(experiment(protocol=protocol, server_costs=each)) for each in (ServerCosts(), costs))

    assert costly.duration_s > free.duration_s + 0.5
    assert costly.summary()["tier"] == "event"


def test_reports_name_a_topology_by_its_size():
    result = emuml.run(experiment(TopologyNetwork("laptop-star")))

    assert dict(facts(View.of_result(result)))["messages"] == (
        "topology-network(topology=laptop-star: 9 hosts, 9 links); free for servers"
    )


# Matrices and placements


def test_a_matrix_that_lacks_what_a_run_needs_is_refused_or_mirrored():
    gaps = np.array([[0.0, 0.5, np.nan], [0.25, 0.0, 0.1], [0.125, 0.1, 0.0]])
    with pytest.raises(UserError, match=r"nothing was measured from place 0 to place 2; .*missing: reverse"):
        emuml.run(experiment(LatencyMatrix(gaps, placement=(0, 1, 2, 1, 2))))

    wires = LatencyMatrix(gaps, missing="reverse").wires(experiment().roster().ids)
    server, *workers = experiment().roster().ids
    assert [wires.crossing(server, worker).latency_s for worker in workers[:2]] == [0.5, 0.125]
    emuml.run(experiment(LatencyMatrix(gaps, placement=(0, 1, 1, 1, 1))))  # place 2 has no nodes


def test_tables_of_round_trips_are_joined_by_name(tmp_path):
    """The columns stand in another order than the rows, and each has a place that the other lacks."""
    path = tmp_path / "regions.csv"
    path.write_text("from,east,west,moon\nwest,80,2,\neast,4,,900\nsouth,1,1,1\n")

    found = LatencyMatrix.from_round_trips(path, missing="reverse", bandwidth_bps=1e9)

    assert found == LatencyMatrix(np.array([[0.001, 0.04], [np.nan, 0.002]]), 1e9, missing="reverse")
    swapped = LatencyMatrix.from_round_trips(path, ["east", "west"]).latency_s
    assert np.array_equal(swapped, found.latency_s[::-1, ::-1], equal_nan=True)
    with pytest.raises(UserError, match="there is no place 'eats'; allowed: 2 names; did you mean 'east'"):
        LatencyMatrix.from_round_trips(path, ["eats"])
    path.write_text("from,east\neast,fast\n")
    with pytest.raises(UserError, match="from east to east is 'fast'; allowed: milliseconds"):
        LatencyMatrix.from_round_trips(path)
    with pytest.raises(UserError, match=r"none\.csv: cannot be read: No such file"):
        LatencyMatrix.from_round_trips(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("name", "places", "apart_ms"),
    [("aws_region_rtt_p50_1y_ms.csv", 32, 11.8), ("azure_region_rtt_ms.csv", 49, 6.0)],
)
def test_round_trips_between_regions_of_clouds(name, places, apart_ms):
    matrix = LatencyMatrix.from_round_trips(data_file(f"network/{name}"))
    seconds = matrix.latency_s

    assert seconds.shape == (places, places)
    assert 2000 * np.nanmax(np.abs(seconds - seconds.T)) <= apart_ms + 0.05
    assert 0.3 < 2 * np.nanmax(seconds) < 0.45


def test_planetlab_as_a_matrix_breaks_the_triangle_inequality():
    raw = lzma.decompress(data_file("network/planetlab_rtt_490.npz.xz").read_bytes())
    seconds = np.load(io.BytesIO(raw))["rtt_10us"][0] / 1e5 / 2
    matrix = LatencyMatrix(seconds)
    ids = experiment().roster().ids
    wires = matrix.wires(ids)

    assert wires.crossing(ids[0], ids[1]).latency_s == seconds[0, 1]
    draws = np.random.default_rng(0).integers(0, 490, (20_000, 3))
    a, b, c = draws[(np.diff(np.sort(draws), axis=1) > 0).all(axis=1)].T
    broken = np.mean(seconds[a, c] > seconds[a, b] + seconds[b, c])
    assert 0.04 < broken < 0.08  # 5.8 % of triples, published; which is no error here


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LatencyMatrix(np.zeros((2, 3))), r"got shape \(2, 3\); allowed: a square array"),
        (lambda: LatencyMatrix(np.array([[-1.0]])), r"entry \[0, 0\] is -1.0; allowed: seconds from 0"),
        (lambda: LatencyMatrix("far"), "got 'far'; allowed: an array of seconds"),
        (lambda: LatencyMatrix(np.zeros((2, 2)), placement=(0, 2)), r"got 2; allowed: integers in 0..1"),
        (lambda: LatencyMatrix(np.zeros((2, 2)), placement=(0, 1)).wires(range(3)), "2 places for 3 nodes"),
        (lambda: TopologyNetwork(Star(2), ("host-0",)).hosts(range(2)), "1 hosts for 2 nodes"),
        (lambda: TopologyNetwork(Star(2), ("host-0", "host-2")).hosts(range(2)), "there is no host 'host-2'"),
        (lambda: TopologyNetwork(3), "TopologyNetwork.topology: got 3"),
        (lambda: ServerCosts(nic_bps=0.0), "ServerCosts.nic_bps: got 0.0"),
    ],
)
def test_networks_that_cannot_be_meant_are_refused(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_latencies_that_are_written_as_text_are_refused():
    with pytest.raises(UserError, match=r"(?s)latency-matrix.latency_s: got .*; allowed: an array of seconds"):
        LatencyMatrix(np.array([["0", "0.1"], ["0.1", "0"]]))
