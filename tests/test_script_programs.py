"""Scripts against a plain state machine: random programs, random events, equal effects step by step (17.2-17.5)."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emuml import effects as fx
from emuml.blocks import Saved
from emuml.directory import Directory
from emuml.errors import NodeFailed
from emuml.life import Life
from emuml.node import PeerState
from tests.lives import LINKS, ME, ROSTER, Text, note
from tests.script_programs import SENDERS, TYPES, AsHandlers, AsScript

SECONDS = st.sampled_from([0.0, 1.0, 2.5])
RECEIVES = st.tuples(
    st.just("receive"),
    st.lists(st.sampled_from(sorted(TYPES)), max_size=2),
    st.none() | st.sampled_from(SENDERS),
    st.booleans(),
    st.none() | SECONDS,
)
SIMPLE = RECEIVES | st.tuples(st.just("started"), st.integers(0, 3)) | st.tuples(st.just("sleep"), SECONDS)
SELECTS = st.tuples(st.just("select"), st.lists(SIMPLE, min_size=1, max_size=4))
NESTED = st.tuples(st.just("select"), st.lists(SIMPLE | SELECTS, min_size=1, max_size=3))
WAITS = st.tuples(st.just("await"), SIMPLE | SELECTS | NESTED)
STARTS = st.tuples(st.just("start"), st.sampled_from(["compute", "save", "load", "sleep", "sleep"]), st.integers(0, 3))
OTHERS = st.tuples(st.just("cancel"), st.integers(0, 9)) | st.just(("send",))
PROGRAMS = st.lists(WAITS | WAITS | STARTS | OTHERS, max_size=12)


def possible(life, waiting):
    """Return the events that may come next; waiting are saves and loads, in call order."""
    found = [fx.Received(sender, Text("x" * size)) for sender in SENDERS[:2] for size in (1, 2)]
    found += [fx.Received(SENDERS[2], note("y")), fx.PeerChanged(SENDERS[0], PeerState.UP)]
    found += [fx.TimerFired(name, generation) for name, generation in life.timers.items()]
    found += [fx.Computed(tag, f"result of {tag}", generation) for tag, generation in life.tasks.items()]
    for effect in waiting[:1]:
        is_save = isinstance(effect, fx.Save)
        found.append(fx.SaveDone(effect.tag) if is_save else fx.LoadDone(effect.tag, Saved({"block": ((1, 7),)})))
    # Messages and changes of peers are always possible; what was begun should end as often.
    return found[::-1]


def handled(life, event, now):
    """Return the effects of a step, or which error ended it."""
    try:
        return life.handle(event, now)
    except NodeFailed as failed:
        return type(failed.__cause__)


def play(program, choices):
    """Hand the same events to both forms, and compare what they do; return the steps."""
    lives = [Life(form(program), ME, 1, Directory(ROSTER, LINKS)) for form in (AsScript, AsHandlers)]
    waiting, steps, event = [], [], fx.Started(Saved())
    for number, choice in enumerate([*choices, 0]):
        effects, expected = (handled(life, event, float(number)) for life in lives)
        assert effects == expected, f"step {number}, {event}"
        assert lives[0].timers == lives[1].timers
        steps.append(effects)
        if isinstance(effects, type) or any(isinstance(effect, fx.Stop) for effect in effects):
            break
        waiting = waiting[isinstance(event, (fx.SaveDone, fx.LoadDone)) :]
        waiting += [effect for effect in effects if isinstance(effect, (fx.Save, fx.Load))]
        events = possible(lives[0], waiting)
        event = events[choice % len(events)]
    return steps


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(PROGRAMS, st.lists(st.integers(0, 19), max_size=30))
@example(
    [("await", ("select", [("receive", ["note"], None, False, 1.0), ("receive", [], None, True, 0.0)]))], [9, 2, 2]
)
def test_a_script_does_what_the_same_handlers_do_event_by_event(program, choices):
    play(program, choices)


@pytest.mark.slow
def test_the_programs_meet_what_they_are_about():
    """Sometimes: each kind of outcome, of every kind of wait."""
    seen = set()

    @settings(deadline=None, max_examples=300, derandomize=True, database=None)
    @given(PROGRAMS, st.lists(st.integers(0, 19), max_size=30))
    def look(program, choices):
        for step in play(program, choices):
            seen.update(
                [step.__name__]
                if isinstance(step, type)
                else [effect.metrics["outcome"] for effect in step if isinstance(effect, fx.Log)]
            )

    look()
    for what in ("ContractError", "cancelled", "None", "result of compute/", "{'block': 7}", "worker-2 y", "UP"):
        assert any(what in outcome for outcome in seen), what
    assert any(re.match("part1: server-0", outcome) for outcome in seen)
    assert any(re.match("part.: part.: ", outcome) for outcome in seen)
