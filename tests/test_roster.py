"""The roster: total order of ids, roles, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.errors import UserError
from emuml.node import NodeId
from emuml.roster import Roster, group_by_role
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
