"""Links as one node sees them, against the table of contract 3.4 and a plain model of sessions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emuml.links import Links
from emuml.node import NodeId, PeerState

OWN, PEER, OTHER = NodeId("worker", 0), NodeId("server", 0), NodeId("server", 1)
UP, SUSPECT, DOWN, RESTARTED = PeerState

# From state, event -> next state; nothing else may be handed over.
TABLE = {
    ("up", SUSPECT): "suspect",
    ("suspect", UP): "up",
    ("up", DOWN): "down",
    ("suspect", DOWN): "down",
    ("down", UP): "up",
    ("down", RESTARTED): "up",
    ("joining", UP): "up",
    ("joining", DOWN): "down",
}
START = {"at the start of a run": "up", "absent at the start": "joining", "in a later life": "joining"}


def links(start):
    absent = frozenset([PEER]) if start == "absent at the start" else frozenset()
    return Links(start == "in a later life", OWN, 1, {PEER: 4}, absent)


@pytest.mark.parametrize("start", START)
@given(events=st.lists(st.sampled_from(PeerState)))
def test_every_sequence_is_judged_by_the_table(start, events):
    ours, state = links(start), START[start]
    for session, event in enumerate(events, start=5):
        following = TABLE.get((state, event))
        assert ours.allows(PEER, event) == (following is not None)
        if following is None:
            with pytest.raises(ValueError, match=f"link to server-0 is {state}; {event.name} cannot follow"):
                ours.change(PEER, event, session)
        else:
            ours.change(PEER, event, session)
            state = following
        assert ours.of(PEER).state == state
        assert ours.of(PEER).carries == (state in ("up", "suspect"))


@pytest.mark.parametrize("start", START)
@given(events=st.lists(st.sampled_from([*PeerState, "send", "send"])))
def test_messages_are_counted_by_session_and_wait_while_joining(start, events):
    ours, state, session, sent, waiting = links(start), START[start], 4, 0, []
    for step, event in enumerate(events):
        link = ours.of(PEER)
        if event == "send":
            if link.carries:
                sent += 1
                assert (link.session, link.next_seq()) == (session, sent)
            elif link.state == "joining":
                link.waiting.append(step)
                waiting.append(step)
        elif (state, event) in TABLE:
            opens = state in ("down", "joining") and event in (UP, RESTARTED)
            released = ours.change(PEER, event, 100 + step)
            assert released == (waiting if opens or event is DOWN else [])
            state = TABLE[state, event]
            if opens:
                session, sent = 100 + step, 0
            if opens or event is DOWN:
                waiting = []
        assert link.session == session


def test_the_link_to_oneself_is_up_in_a_session_of_its_own():
    first, second = Links(True, OWN, 1), Links(True, OWN, 2)

    assert (first.of(OWN).carries, first.of(OWN).session) == (True, 1)
    assert (second.of(OWN).carries, second.of(OWN).session) == (True, 2)


def test_sessions_given_at_the_start_are_used():
    ours = Links(False, OWN, 1, {PEER: 9})

    assert (ours.of(PEER).session, ours.of(OTHER).session) == (9, 0)


def test_reports_name_what_is_not_up():
    ours = Links(False, OWN, 1)
    ours.change(PEER, SUSPECT, 0)
    ours.change(OTHER, DOWN, 0)

    assert ours.states() == {"server-0": "suspect", "server-1": "down"}
    ours.change(PEER, UP, 0)
    assert ours.states() == {"server-1": "down"}
