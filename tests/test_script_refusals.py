"""What a script may not do is raised at its line: foreign awaits, async generators, other mistakes (17.1, 17.6)."""

import asyncio
import sys
import types

import pytest
import simpy

from emuml import Message, Script
from emuml.errors import ContractError, NodeFailed, StaleContext
from emuml.waits import ALLOWED
from tests.lives import SERVER, Text, task
from tests.scripts import Played, kinds, line_in


def line_of(mark):
    return line_in(__file__, mark)


class Endless:
    """An awaitable of somebody else, that yields an object of its own to whoever drives it."""

    def __init__(self, given):
        self.given = given

    def __await__(self):
        return (yield self.given)


@types.coroutine
def bare():
    yield


async def slumber():
    await asyncio.sleep(1.0)  # asleep


async def doze():
    await asyncio.sleep(0)  # dozing


async def gather():
    await asyncio.gather()  # gathering


async def foreign():
    await Endless(simpy.Environment())  # foreign


async def generator():
    await bare()  # bare


async def future():
    await asyncio.Future()  # future


AWAITED = {
    "asleep": (slumber, "asyncio.tasks.sleep"),
    "dozing": (doze, "asyncio.tasks.sleep"),
    "gathering": (gather, "asyncio.tasks.gather"),
    "foreign": (foreign, "an object of type simpy.core.Environment"),
    "bare": (generator, f"{__name__}.bare"),
    "future": (future, "the event loop's get_debug"),
}


@pytest.mark.parametrize("mark", AWAITED)
def test_anything_else_that_is_awaited_is_a_type_error_at_that_line(mark):
    awaits, what = AWAITED[mark]

    async def play(node, tell):
        try:
            await awaits()
        except TypeError as error:
            tell(str(error))
            tell([(frame.tb_lineno, frame.tb_frame.f_code.co_name) for frame in frames(error)])
        await node.receive(Text)

    played = Played(play)
    said, lines = played.told
    assert said == f"a script awaits {what} ({line_of(mark)}); allowed: {ALLOWED}"
    assert (int(line_of(mark).rpartition(":")[2]), awaits.__name__) in lines
    assert kinds(played.message(SERVER, Text("x"))) == []  # it goes on, if the author says so


def frames(error):
    frame = error.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next


def test_a_simpy_event_is_refused_with_what_is_allowed():
    async def play(node, tell):
        await simpy.Environment().timeout(1.0)  # simpy

    with pytest.raises(NodeFailed) as failed:
        Played(play)
    said = f"object Timeout can't be used in 'await' expression; allowed: {ALLOWED} ({line_of('simpy')})"
    assert str(failed.value).endswith(f"TypeError: {said}")


def test_an_await_of_another_nodes_wait_is_refused():
    kept = []

    async def gives(node, tell):
        kept.append(node.receive(Text))
        await node.receive(Text)

    async def takes(node, tell):
        await kept[0]

    Played(gives)
    with pytest.raises(NodeFailed) as failed:
        Played(takes)
    assert isinstance(failed.value.__cause__, StaleContext)


def test_the_loop_that_drives_an_engine_is_out_of_reach_and_comes_back():
    async def play(node, tell):
        try:
            asyncio.get_running_loop().call_later(1.0, tell)
        except TypeError as error:
            tell(str(error))
        await node.receive(Text)

    async def engine():
        loop, hooks = asyncio.get_running_loop(), sys.get_asyncgen_hooks()
        played = Played(play)
        assert asyncio.get_running_loop() is loop
        assert sys.get_asyncgen_hooks() == hooks
        return played

    (said,) = asyncio.run(engine()).told
    assert said.startswith("a script awaits the event loop's call_later (")


def test_async_generators_are_refused_where_they_begin():
    async def numbers(node):
        yield await node.receive(Text)

    async def play(node, tell):
        async for number in numbers(node):  # iterates
            tell(number)

    with pytest.raises(NodeFailed) as failed:
        Played(play)
    assert type(failed.value.__cause__) is TypeError
    assert f"the async generator {__name__}.{numbers.__qualname__}" in str(failed.value.__cause__)
    lines = [frame.tb_lineno for frame in frames(failed.value.__cause__)]
    assert int(line_of("iterates").rpartition(":")[2]) in lines


def test_a_main_that_yields_is_refused_when_the_class_is_made():
    with pytest.raises(ContractError, match=r"Yields\.main yields; allowed: a coroutine"):

        class Yields(Script):
            async def main(self, node):
                yield


def test_a_script_with_handlers_is_refused_when_the_class_is_made():
    with pytest.raises(ContractError, match="Both is a script and has on_message; allowed: main"):

        class Both(Script):
            def on_message(self, ctx, sender, message):
                pass


@pytest.mark.parametrize("main", [lambda self, node: None, Script.main], ids=["plain", "none"])
def test_a_script_needs_a_coroutine(main):
    cls = type("Own", (Script,), {"main": main})
    with pytest.raises(NodeFailed, match="Own") as failed:
        start(cls())
    assert isinstance(failed.value.__cause__, (ContractError, NotImplementedError))


def start(script):
    from emuml import effects as fx
    from emuml.blocks import Saved
    from emuml.directory import Directory
    from emuml.life import Life
    from tests.lives import LINKS, ME, ROSTER

    return Life(script, ME, 1, Directory(ROSTER, LINKS)).handle(fx.Started(Saved()), 0.0)


MISTAKES = {
    "text for a type": (lambda node: node.receive("Text"), ContractError, "receive('Text'); allowed: classes"),
    "class of no message": (lambda node: node.receive(int), ContractError, "allowed: classes of messages, and PeerCh"),
    "id for a type": (lambda node: node.receive(SERVER), ContractError, "allowed: classes of messages"),
    "text for a sender": (lambda node: node.receive(sender="server-0"), ContractError, "allowed: a NodeId"),
    "negative timeout": (lambda node: node.receive(timeout_s=-1), ContractError, "finite seconds >= 0"),
    "no number": (lambda node: node.receive(timeout_s=float("nan")), ContractError, "finite seconds >= 0"),
    "endless sleep": (lambda node: node.sleep(float("inf")), ContractError, "finite seconds >= 0"),
    "no task": (lambda node: node.compute(len), ContractError, "compute needs an emuml.Task"),
    "no part": (lambda node: node.select(), ContractError, "select() needs at least one part"),
    "coroutine": (lambda node: node.select(a=doze()), TypeError, f"select(a=coroutine); allowed: {ALLOWED}"),
    "number": (lambda node: node.select(a=node.sleep(1), b=3), TypeError, "select(b=int)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_raised_at_the_call(mistake):
    call, kind, said = MISTAKES[mistake]

    async def play(node, tell):
        try:
            call(node)
        except kind as error:
            tell(str(error))

    (text,) = Played(play).told
    assert text.startswith("worker-1: ")
    assert said in text


@pytest.mark.parametrize("again", [lambda node, inbox: inbox, lambda node, inbox: node.select(c=inbox)])
def test_one_wait_cannot_be_listed_twice(again):
    async def play(node, tell):
        inbox = node.receive(Text)
        node.select(a=inbox, b=again(node, inbox))

    with pytest.raises(NodeFailed, match=r"select\(a, b\) needs at least one part, and none of them twice"):
        Played(play)


def test_a_sleep_that_lost_a_select_cannot_be_awaited():
    async def play(node, tell):
        nap = node.sleep(5.0)
        await node.select(nap=nap, text=node.receive(Text))
        await nap

    played = Played(play)
    with pytest.raises(NodeFailed, match=r"sleep\(5\) lost a select and was withdrawn"):
        played.message(SERVER, Text("x"))


def test_a_change_of_a_peer_is_no_message_that_can_be_sent():
    from emuml import PeerChange, PeerState

    assert not issubclass(PeerChange, Message)

    async def play(node, tell):
        node.send(SERVER, PeerChange(PeerState.UP))

    with pytest.raises(NodeFailed, match=r"sends a PeerChange; only subclasses of emuml\.Message"):
        Played(play)


CALLS = {
    "send": lambda node, job: node.send(SERVER, Text("x")),
    "send_latest": lambda node, job: node.send_latest(SERVER, Text("x"), "key"),
    "broadcast": lambda node, job: node.broadcast("worker", Text("x")),
    "log": lambda node, job: node.log(x=1),
    "publish": lambda node, job: node.publish(1, [1.0]),
    "stop": lambda node, job: node.stop("x"),
    "peers": lambda node, job: node.peers("worker"),
    "rng": lambda node, job: node.rng("x"),
    "receive": lambda node, job: node.receive(),
    "sleep": lambda node, job: node.sleep(1.0),
    "compute": lambda node, job: node.compute(task()),
    "save": lambda node, job: node.save({}),
    "load": lambda node, job: node.load(),
    "select": lambda node, job: node.select(job=job),
    "cancel": lambda node, job: job.cancel(),
    "await": lambda node, job: job.__await__().send(None),
}


@pytest.mark.parametrize("name", CALLS)
def test_all_that_main_was_handed_is_stale_between_its_steps(name):
    kept = []

    async def play(node, tell):
        kept.extend([node, node.compute(task())])
        await node.receive(Text)

    played = Played(play)
    with pytest.raises(StaleContext) as refused:
        CALLS[name](*kept)
    assert refused.value.args == ("worker-1", name)
    assert played.life.timers == {}
