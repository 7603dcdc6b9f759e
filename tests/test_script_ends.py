"""How the coroutine of a dead life ends: without a word, whenever and by whomever it is forgotten (contract 17.9)."""

import gc
import subprocess
import sys
import weakref
from typing import ClassVar

import pytest

from emuml import coroutines
from emuml.directory import Directory
from emuml.errors import StaleContext
from tests.lives import LINKS, ROSTER, SERVER, Text, task
from tests.scripts import Played


class Leaving:
    """A context manager that tells when it is left."""

    def __init__(self, tell):
        self.tell = tell

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.tell("aexit")


class Table:
    """A large local; its destructor is Python code."""

    forgotten: ClassVar = []

    def __del__(self):
        Table.forgotten.append(self.name)

    def __init__(self, name):
        self.name = name


async def guarded(node, tell):
    try:
        await node.receive(Text)
    except BaseException:
        tell("except")
        raise
    finally:
        tell("inner finally")


async def cautious(node, tell):
    table = Table("table")
    try:
        async with Leaving(tell):
            await guarded(node, tell)
    finally:
        tell(table.name)
        node.send(SERVER, Text("goodbye"))


def forget(played):
    """Drop all that an engine has of a life, as it does at a crash."""
    del played.life, played.script
    gc.collect()
    return played.told


def forget_run(played):
    """Drop all that an engine has of a run; when the next one begins, those of the former end."""
    directory, (coroutine,) = weakref.ref(played.directory), coroutines._suspended[played.directory]
    told = forget(played)
    del played.directory
    gc.collect()
    assert directory() is None
    assert coroutine.cr_frame is not None
    Played(at_once)
    assert coroutine.cr_frame is None
    return told


async def at_once(node, tell):
    """End at the start."""


def test_a_dead_life_runs_none_of_its_code_when_its_run_is_forgotten():
    Table.forgotten.clear()
    assert forget_run(Played(cautious)) == []
    assert Table.forgotten == ["table"]  # and what it held is freed


def test_a_dead_life_is_kept_as_long_as_its_run():
    Table.forgotten.clear()
    directory = Directory(ROSTER, LINKS)
    first, second = Played(cautious, directory=directory), Played(cautious, directory=directory, incarnation=2)
    told = forget(first)
    assert (told, Table.forgotten) == ([], [])
    second.message(SERVER, Text("x"))  # the new life ends by itself
    assert second.told == ["inner finally", "aexit", "table"]
    assert Table.forgotten == ["table"]
    del directory, first.directory
    forget_run(second)
    assert told == []
    assert Table.forgotten == ["table", "table"]


def test_a_life_that_ended_by_itself_is_not_kept():
    async def play(node, tell):
        Table("short")
        await node.receive(Text)

    played = Played(play)
    held = coroutines._suspended[played.directory]
    assert len(held) == 1
    played.message(SERVER, Text("x"))
    assert held == set()


@pytest.mark.parametrize("suspended_on", ["sleep", "select", "job", "nothing"])
def test_it_does_not_matter_what_it_waited_for(suspended_on):
    waits = {
        "sleep": lambda node: node.sleep(1.0),
        "select": lambda node: node.select(nap=node.sleep(1.0), job=node.compute(task())),
        "job": lambda node: node.save({"a": 1}),
        "nothing": lambda node: node.receive(where=lambda message: False),
    }

    async def play(node, tell):
        try:
            await waits[suspended_on](node)
        finally:
            tell("finally")

    assert forget_run(Played(play)) == []


def test_it_ends_in_silence_deep_in_a_stack_and_in_numbers():
    directory = Directory(ROSTER, LINKS)
    told = [Played(cautious, directory=directory).told for _ in range(50)]
    del directory
    gc.collect()

    def dive(depth):
        if depth:
            dive(depth - 1)
        else:
            Played(at_once)

    assert len(coroutines._dead) == 50
    dive(sys.getrecursionlimit() // 2)
    assert told == [[]] * 50
    assert coroutines._dead == []
    assert gc.isenabled()


class Costly(Exception):
    """An exception in whose making garbage is collected."""

    def __init__(self):
        gc.collect()


def test_a_run_may_be_forgotten_while_an_exception_is_made():
    played = Played(cautious)
    told = forget(played)
    cycle = [played.directory]
    cycle.append(cycle)
    del played, cycle
    try:
        raise Costly
    except Costly:
        assert len(coroutines._dead) == 1
    Played(at_once)
    assert told == []


def test_an_interpreter_that_runs_them_all_the_same_never_gets_the_chance(monkeypatch):
    """On such an interpreter coroutines are kept for ever."""
    monkeypatch.setattr(coroutines, "_unwinds_silently", lambda: False)
    monkeypatch.setattr(coroutines, "_for_ever", [])
    directory = Directory(ROSTER, LINKS)
    told = Played(cautious, directory=directory).told
    del directory
    gc.collect()
    Played(at_once)

    (kept,) = coroutines._for_ever
    assert (kept.cr_frame is None, told) == (False, [])
    monkeypatch.undo()
    coroutines.bury([kept])
    assert told == []


@pytest.mark.slow
@pytest.mark.parametrize("error", ["", "raise SystemExit(0)"], ids=["end", "exit"])
def test_it_ends_in_silence_with_the_program(error):
    program = f"""
from tests.lives import Text
from tests.scripts import Played

async def play(node, tell):
    try:
        await node.receive(Text)
    finally:
        print("finally")

played = Played(play)
cycle = [played]
cycle.append(cycle)
print("end")
{error}
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("end\n", "")


def test_a_dead_life_that_runs_all_the_same_has_no_effect():
    """2.4: whoever closes a coroutine by force finds all that it was handed stale."""

    async def play(node, tell):
        job = node.compute(task())
        try:
            await node.receive(Text)
        finally:
            tell("finally")
            try:
                await job
            finally:
                node.send(SERVER, Text("goodbye"))

    played = Played(play)
    (coroutine,) = coroutines._suspended[played.directory]
    with pytest.raises(StaleContext) as refused:
        coroutine.close()
    assert refused.value.args == ("worker-1", "send")
    assert refused.value.__context__.args == ("worker-1", "await")
    assert (played.told, played.life.sent) == (["finally"], {})
