"""Scripts on both engines: the same as handlers (K19), replayed, killed without a word (contract 17)."""

import gc
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from emuml import Message, Node, NodeId, PeerChange, PeerState, Script, Task, coroutines
from emuml.cluster.cluster import Cluster, Detection, Network, Storage
from emuml.cluster.compute import ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.des.replay import Replayer
from emuml.errors import Deadlock, Diverged, NodeFailed
from emuml.node import message_types
from emuml.roster import Roster
from emuml.streams import generator
from tests.conformance import ssp
from tests.conformance.engines import ENGINES
from tests.lives import ones
from tests.scripts import line_in

EVERYWHERE = pytest.mark.parametrize("engine", ["des", "tcp", pytest.param("processes", marks=pytest.mark.slow)])
CLUSTER = Cluster(
    workers=ssp.WORKERS,
    compute=ShiftedExponential(shift_s=0.001, mean_s=0.004),
    network=Network(latency_s=0.001),
    storage=Storage(latency_s=0.002),
    detection=Detection(exit_s=0.01),
)
FAULTS = FaultPlan(
    (
        Crash("worker-1", after=("pushes", 4), restart_after_s=0.01),
        Crash("server-0", after=("pushes", 7), restart_after_s=0.01),
        Crash("worker-2", after=("pushes", 11), restart_after_s=0.01),
    )
)


def parsed(nodes):
    return {NodeId.parse(id): given for id, given in nodes.items()}


def replay(nodes, seed, journals):
    return Replayer(parsed(nodes), Roster(tuple(sorted(parsed(nodes))), seed), journals).run()


def tables(run):
    return [item.parameters.tolist() for item in run.published]


# The same as handlers


@EVERYWHERE
def test_a_training_with_crashes_gives_the_bits_of_its_plan_and_is_replayed(engine):
    """K18, K19: three lives end in a crash, the server's among them; the journals of all of them are replayed."""
    run = ENGINES[engine](ssp.nodes(), cluster=CLUSTER, faults=FAULTS, seed=3)
    assert (run.error, run.stopped) == (None, "done")
    assert len(run.journals) == 4 + len(FAULTS.faults)
    assert tables(run) == [ssp.expected(3)]

    again = replay(ssp.nodes(), 3, run.journals)
    assert (again.stopped, tables(again)) == ("done", tables(run))


def test_a_changed_script_diverges_from_its_journals():
    run = ENGINES["des"](ssp.nodes(), cluster=CLUSTER, seed=3)

    with pytest.raises(Diverged, match=r"diverged at index . in effects of message"):
        replay(ssp.nodes(Hasty), 3, run.journals)


class Hasty(ssp.ScriptedWorker):
    """Does not wait for its saves."""

    async def main(self, node):
        for clock in range(node.saved.get("clock", 0), ssp.CLOCKS):
            view = await self.ask(node, ssp.Pull(clock), ssp.View)
            change = await node.compute(ssp.task(node, clock, view.table))
            await self.ask(node, ssp.Push(clock, change), ssp.Applied)
            node.save({"clock": clock + 1})


def schedules(seed):
    """Return a chooser among legal schedules."""
    random = generator(seed, "", "schedule")
    return lambda what, count: int(random.integers(count))


@pytest.mark.parametrize("faults", [FaultPlan(), FAULTS], ids=["calm", "crashes"])
def test_handlers_and_scripts_have_equal_traces_under_equal_schedules(faults):
    """K19: every event and effect of every node, at its time."""
    for seed in range(20):
        scripted, handled = (
            ENGINES["des"](ssp.nodes(form), cluster=CLUSTER, faults=faults, seed=seed, choose=schedules(seed))
            for form in (ssp.ScriptedWorker, ssp.HandlerWorker)
        )
        assert scripted.stopped == "done"
        assert scripted.trace.rows == handled.trace.rows
        assert tables(scripted) == tables(handled) == [ssp.expected(seed)]


@EVERYWHERE
def test_journals_of_scripts_replay_on_handlers(engine):
    """K19 over TCP: handlers that are fed the very events of a script have the very effects of it."""
    run = ENGINES[engine](ssp.nodes(), cluster=CLUSTER, faults=FAULTS, seed=5)

    assert replay(ssp.nodes(ssp.HandlerWorker), 5, run.journals).stopped == "done"


def test_both_forms_meet_in_one_run():
    nodes = {**ssp.nodes(), "worker-1": ("worker", ssp.HandlerWorker)}
    run = ENGINES["tcp"](nodes, cluster=CLUSTER, faults=FAULTS, seed=4)
    assert tables(run) == [ssp.expected(4)]


def test_messages_of_a_script_are_those_of_its_module():
    assert message_types(ssp.ScriptedWorker) == message_types(ssp.Server)
    assert message_types(Hasty) == (ssp.Applied, ssp.Pull, ssp.Push, ssp.View)


# Every wait, on every engine


class Ping(Message):
    number: int


class Everything(Script):
    """Awaits all that can be awaited, and stops with what came of it."""

    messages = (Ping,)

    async def main(self, node):
        echo = NodeId("echo", 0)
        node.send(echo, Ping(1))
        node.send(echo, Ping(2))
        _, second = await node.receive(Ping, where=lambda ping: ping.number == 2)
        _, first = await node.receive(Ping, sender=echo, timeout_s=60.0)
        nothing = await node.receive(Ping, timeout_s=0.01)
        before = node.now
        await node.sleep(0.01)
        slept = node.now - before >= 0.01
        lost = node.compute(Task(ones, (2,), 1.0, (2,)))
        lost.cancel()
        work = node.compute(Task(ones, (3,), 1.0, (3,)))
        name, _ = await node.select(nap=node.sleep(0.0), never=node.receive(PeerChange))
        total = float((await work).sum())
        await node.save({"a": 1, ("b", 2): 2.5})
        blocks = await node.load("a", ("b", 2), "absent")
        node.stop(f"{first.number} {second.number} {nothing} {slept} {name} {total} {dict(blocks)}")


class Echo(Script):
    messages = (Ping,)

    async def main(self, node):
        while True:
            sender, ping = await node.receive(Ping)
            node.send(sender, ping)


@EVERYWHERE
def test_all_waits_mean_the_same_on_every_engine(engine):
    run = ENGINES[engine]({"every-0": ("every", Everything), "echo-0": ("echo", Echo)})

    assert run.error is None
    assert run.stopped == "1 2 None True nap 3.0 {'a': 1, ('b', 2): 2.5}"


# Ends


class Lease(Script):
    """Holds a lease, and would give it back in its ``finally`` block: a killed process gives nothing back."""

    messages = (Ping,)

    def __init__(self, folder):
        self.folder = folder

    async def main(self, node):
        try:
            node.send(NodeId("keeper", 0), Ping(node.incarnation))
            await node.receive(Ping)
        finally:
            (Path(self.folder) / f"{node.id}.{node.incarnation}").touch()
            node.send(NodeId("keeper", 0), Ping(-1))


class Keeper(Node):
    """Waits for the first life and for the second."""

    messages = (Ping,)

    def on_message(self, ctx, sender, message):
        ctx.log(life=message.number)
        if message.number == 2:
            ctx.set_timer("end", 0.05)

    def on_timer(self, ctx, name):
        ctx.stop("done")


@EVERYWHERE
def test_no_finally_block_runs_at_a_crash_nor_at_the_end(engine, tmp_path):
    """17.9: not of the life that was killed, not of the one that the run left suspended; over TCP by a real kill -9."""
    nodes = {"keeper-0": ("keeper", Keeper), "lease-0": ("lease", partial(Lease, str(tmp_path)))}
    faults = FaultPlan((Crash("lease-0", after=("life", 1), restart_after_s=0.01),))
    run = ENGINES[engine](nodes, cluster=CLUSTER, faults=faults)

    assert (run.error, run.stopped) == (None, "done")
    assert [item.metrics["life"] for item in run.logs] == [1, 2]
    assert list(tmp_path.iterdir()) == []
    del run
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_nothing_of_a_run_is_kept_once_the_next_began(engine, tmp_path):
    test_no_finally_block_runs_at_a_crash_nor_at_the_end(engine, tmp_path)
    ENGINES["des"]({"echo-0": ("echo", Echo)}, until_s=1.0)
    kept = [one for held in coroutines._suspended.values() for one in held]

    assert not any(one.__qualname__ == "Lease.main" for one in [*kept, *coroutines._dead])
    assert list(tmp_path.iterdir()) == []


class Silent(Node):
    messages = (Ping,)


class Waiting(Script):
    messages = (Ping,)

    async def main(self, node):
        node.send(node.id, Ping(1))
        await self.wait(node)

    async def wait(self, node):
        await node.select(pong=node.receive(Ping, sender=NodeId("other", 0)), change=node.receive(PeerChange))  # wait


@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_a_deadlock_names_what_a_script_awaits_and_where(engine):
    run = ENGINES[engine]({"waiting-0": ("waiting", Waiting), "other-0": ("other", Silent)})

    assert isinstance(run.error, Deadlock)
    awaited = "select(pong=receive(Ping, sender=other-0), change=receive(PeerChange))"
    assert f"waiting for {awaited} in wait ({line_in(__file__, 'wait')}), 1 unread" in run.error.report


class Failing(Script):
    messages = (Ping,)

    async def main(self, node):
        await node.sleep(0.001)
        await self.fail()

    async def fail(self):
        raise ValueError("own")  # fail


@EVERYWHERE
def test_a_main_that_raises_ends_the_run_and_names_the_line(engine):
    run = ENGINES[engine]({"failing-0": ("failing", Failing), "echo-0": ("echo", Echo)})

    assert isinstance(run.error, NodeFailed)
    assert (run.error.node, run.error.incarnation, run.error.event) == ("failing-0", 1, "on_timer('sleep/0')")
    assert "ValueError: own" in str(run.error)
    told = str(run.error) + getattr(run.error.__cause__, "traceback", "").replace('", line ', ":")
    assert line_in(__file__, "fail") in told


class Stopper(Script):
    messages = (Ping,)

    async def main(self, node):
        node.send(node.id, Ping(1))
        await node.sleep(0.001)
        node.stop("done")
        await node.receive(Ping)
        node.send(node.id, Ping(2))
        await node.receive(Ping)
        node.log(resumed=1)


@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_main_is_not_resumed_after_a_stop(engine):
    run = ENGINES[engine]({"stopper-0": ("stopper", Stopper)})

    assert (run.stopped, run.logs) == ("done", [])
    assert [row[2] for row in run.trace.rows if row[1] == "stopper-0"][-1] == "stop"


class Returning(Script):
    messages = (Ping,)

    async def main(self, node):
        node.log(returned=1)


class Pestering(Script):
    """Sends to a node that has returned, and ends."""

    messages = (Ping,)

    async def main(self, node):
        for number in range(3):
            node.send(NodeId("returning", 0), Ping(number))
        await node.sleep(0.05)
        node.stop("done")


@pytest.mark.parametrize("engine", ["des", "tcp"])
def test_a_node_whose_main_returned_stays_and_ignores_what_comes(engine):
    nodes = {"returning-0": ("returning", Returning), "pestering-0": ("pestering", Pestering)}
    run = ENGINES[engine](nodes)

    assert (run.error, run.stopped) == (None, "done")
    kinds = [step.kind for step in run.journals["returning-0", 1].steps]
    assert kinds == ["start", "message", "message", "message"]


def test_a_message_at_the_deadline_beats_the_timeout():
    """17.4, 6.6, in virtual time."""
    cluster = replace(CLUSTER, network=Network(latency_s=1.0))
    run = ENGINES["des"]({"punctual-0": ("punctual", Punctual), "echo-0": ("echo", Echo)}, cluster=cluster)

    assert run.stopped == "7 at 2.0"


class Punctual(Script):
    messages = (Ping,)

    async def main(self, node):
        node.send(NodeId("echo", 0), Ping(7))
        found = await node.receive(Ping, timeout_s=2.0)
        node.stop("late" if found is None else f"{found[1].number} at {node.now}")


class Watching(Script):
    """Stops with what it heard of its peer, in order with the messages."""

    messages = (Ping,)

    async def main(self, node):
        heard = []
        while not heard or heard[-1] != 2:
            _, message = await node.receive()
            if isinstance(message, Ping):
                node.log(life=message.number)
            heard.append(message.number if isinstance(message, Ping) else message.state)
        changes = [item for item in heard if item is not PeerState.SUSPECT]
        node.stop(" ".join(getattr(item, "name", str(item)) for item in changes))


class Greeting(Script):
    messages = (Ping,)

    async def main(self, node):
        node.send(NodeId("watching", 0), Ping(node.incarnation))
        await node.receive(Ping)


@EVERYWHERE
def test_changes_of_a_peer_come_in_order_with_its_messages(engine):
    faults = FaultPlan((Crash("greeting-0", after=("life", 1), restart_after_s=0.01),))
    nodes = {"watching-0": ("watching", Watching), "greeting-0": ("greeting", Greeting)}
    run = ENGINES[engine](nodes, cluster=CLUSTER, faults=faults)

    assert (run.error, run.stopped) == (None, "1 DOWN RESTARTED 2")
