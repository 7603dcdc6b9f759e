"""The roster: total order of ids, roles, and what is refused."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.directory import Directory
from emuml.errors import UserError
from emuml.node import Node, NodeId
from emuml.roster import Ids, Makers, Roster, group_by_role, listed
from emuml.stopping import Never, Rounds


def test_ids_are_ordered_by_number_and_not_by_how_they_print():
    roster = Roster.of_counts(seed=5, stop=Rounds(2), worker=11, server=2)

    assert [str(id) for id in roster.ids[:2]] == ["server-0", "server-1"]
    assert [id.index for id in roster.of("worker")] == list(range(11))
    assert (roster.seed, roster.stop) == (5, Rounds(2))
    assert roster.of("nobody") == ()


def test_nothing_stops_a_roster_that_was_not_told_when():
    assert Roster.of_counts(worker=1).stop == Never()


@pytest.mark.parametrize("order", [(1, 0), (0, 0)])
def test_disorder_and_repetition_are_refused(order):
    with pytest.raises(UserError, match="repeat or are out of order"):
        Roster(tuple(NodeId("worker", index) for index in order))


@given(st.lists(st.builds(NodeId, st.sampled_from("abc"), st.integers(0, 3))))
def test_grouping_keeps_everybody_in_order(ids):
    groups = group_by_role(ids)

    assert all(node.role == role for role, nodes in groups.items() for node in nodes)
    assert [node for node in ids if node.role == "a"] == list(groups.get("a", ()))
    assert sum(map(len, groups.values())) == len(ids)


def test_ids_by_counts_are_those_of_a_tuple():
    kept, made = Roster.of_counts(server=2, worker=5), Ids({"worker": 5, "idle": 0, "server": 2})
    roster = Roster(made)

    assert tuple(made) == kept.ids
    assert [made[i] for i in range(-7, 7)] == [*kept.ids, *kept.ids]
    assert made[1:4] == kept.ids[1:4]
    assert all(id in made for id in kept.ids)
    assert NodeId("worker", 5) not in made
    assert NodeId("idle", 0) not in made
    assert (roster.roles, tuple(roster.of("worker")), roster.of("idle")) == (kept.roles, kept.of("worker"), ())
    assert hash(made) == hash(Ids({"server": 2, "idle": 0, "worker": 5}))
    with pytest.raises(IndexError):
        made[7]


def test_a_directory_of_ids_by_counts_answers_as_one_of_a_tuple():
    links = {"server": frozenset({"worker"}), "worker": frozenset()}
    server = NodeId("server", 0)

    found = [
        Directory(r, links) for r in (Roster.of_counts(server=1, worker=3), Roster(Ids({"server": 1, "worker": 3})))
    ]

    for ask in (
        lambda one: list(one.peers(server, "worker")), lambda one: one.neighbours(server),
        lambda one: one.why_not(server, NodeId("worker", 3)), lambda one: one.why_not(server, NodeId("worker", 2)),
    ):  # fmt: skip
        assert ask(found[0]) == ask(found[1])


class Numbered(Node):
    def __init__(self, index):
        self.index = index


@pytest.mark.parametrize("ids", [Ids({"server": 1, "worker": 3}), tuple(Ids({"server": 1, "worker": 3}))])
def test_nodes_by_what_makes_them_are_those_of_the_roster(ids):
    nodes = Makers(Roster(ids), {"server": lambda index: Node, "worker": lambda index: partial(Numbered, index)})

    assert list(nodes) == list(ids)
    assert [role for role, _ in nodes.values()] == ["server", "worker", "worker", "worker"]
    assert nodes[NodeId("worker", 2)][1]().index == 2
    assert nodes[NodeId("worker", 2)][1]() is not nodes[NodeId("worker", 2)][1]()
    assert NodeId("worker", 3) not in nodes
    assert nodes.get(NodeId("idle", 0)) is None


@pytest.mark.parametrize(
    ("text", "is_name"),
    [("worker-2", True), ("server-0", True), ("worker-3", False), ("worker-02", False), ("worker-", False),
     ("worker", False), ("", False), ("worker--1", False), ("worker-\u0662", False), ("idle-0", False)],
)  # fmt: skip
def test_a_name_is_known_if_an_id_prints_as_it(text, is_name):
    ids = Ids({"server": 1, "worker": 3})

    assert ids.names(text) is (text in map(str, ids)) is is_name


def test_ids_by_counts_are_listed_once():
    ids = Ids({"worker": 3})

    assert listed(ids) == tuple(ids)
    assert listed(ids) is listed(ids)
    assert listed(tuple(ids)) == tuple(ids)
