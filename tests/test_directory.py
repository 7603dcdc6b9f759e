"""Who is linked to whom."""

import pytest

from emuml.directory import Directory
from emuml.node import NodeId
from emuml.roster import Roster

ROSTER = Roster.of_counts(client=1, server=2, worker=3)
SERVER, WORKER, CLIENT = NodeId("server", 0), NodeId("worker", 1), NodeId("client", 0)


def directory(**talks_to):
    return Directory(ROSTER, {role: None if roles is None else frozenset(roles) for role, roles in talks_to.items()})


def texts(ids):
    return " ".join(map(str, ids))


def test_peers_leave_out_oneself_and_keep_the_order():
    links = directory(server=["worker"], worker=["server"], client=["server"])

    assert texts(links.peers(WORKER, "worker")) == "worker-0 worker-2"
    assert texts(links.peers(SERVER, "worker")) == "worker-0 worker-1 worker-2"
    assert links.peers(SERVER, "nobody") == ()


def test_one_side_naming_the_other_links_both():
    links = directory(server=[], worker=["server"], client=["worker"])

    assert texts(links.neighbours(SERVER)) == "worker-0 worker-1 worker-2"
    assert texts(links.neighbours(WORKER)) == "client-0 server-0 server-1"
    assert texts(links.neighbours(CLIENT)) == "worker-0 worker-1 worker-2"


def test_naming_nobody_in_particular_links_to_everybody():
    links = directory(server=None, worker=[], client=[])

    assert texts(links.neighbours(SERVER)) == "client-0 server-1 worker-0 worker-1 worker-2"
    assert texts(links.neighbours(WORKER)) == "server-0 server-1"


@pytest.mark.parametrize(
    ("node", "peer", "reason"),
    [
        (WORKER, SERVER, ""),
        (WORKER, WORKER, ""),
        (WORKER, CLIENT, "roles worker and client are not linked (see talks_to of their node classes)"),
        (WORKER, NodeId("worker", 2), "roles worker and worker are not linked (see talks_to of their node classes)"),
        (WORKER, NodeId("server", 2), "no such node in the roster"),
    ],
)
def test_why_a_node_cannot_send(node, peer, reason):
    links = directory(server=["worker"], worker=["server"], client=["server"])

    assert links.why_not(node, peer) == reason
