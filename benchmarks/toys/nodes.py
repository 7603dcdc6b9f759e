"""The toys as nodes of our contract, right and with planted bugs; ``tasks.py`` has the same logic in asyncio.

Rounds: a master closes a round on the answers of all workers but one. Staleness: a server lets a worker read once all
others are at most ``SLACK`` iterations behind. Keeper: numbers are acknowledged once they are durable; it may crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import emuml.testing as et
from emuml.message import Message
from emuml.node import Node, NodeId, PeerState
from emuml.task import Task

WORKERS, ROUNDS, SLACK, LAST = 3, 3, 1, 4
MASTER, SERVER, KEEPER, CLIENT = (NodeId(role, 0) for role in ("master", "server", "keeper", "client"))


class Numbered(Message):
    """What all messages of the toys hold: a round, a clock or a number."""

    number: int


class Work(Numbered):
    pass


class Answer(Numbered):
    pass


class Read(Numbered):
    pass


class View(Numbered):
    slowest: int


class Update(Numbered):
    pass


class Keep(Numbered):
    pass


class Kept(Numbered):
    pass


def nothing() -> NDArray[Any]:
    """Return nothing: tasks of the toys take time only."""
    return np.zeros(())


TASK = Task(nothing, (), 1.0, ())


class Master(Node):
    messages = (Work, Answer)

    def __init__(self, any_round: bool = False) -> None:
        self.any_round = any_round

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.round = 0
        self.closed: list[list[int]] = []
        self.answers: dict[NodeId, int] = {}
        ctx.broadcast("worker", Work(0))

    def on_message(self, ctx: Any, sender: NodeId, message: Any) -> None:
        if message.number == self.round or self.any_round:
            self.answers[sender] = message.number
        if len(self.answers) == WORKERS - 1:
            self.closed.append(list(self.answers.values()))
            self.round, self.answers = self.round + 1, {}
            if self.round == ROUNDS:
                ctx.stop("done")
            else:
                ctx.broadcast("worker", Work(self.round))


class Labourer(Node):
    messages = (Work, Answer)

    def on_message(self, ctx: Any, sender: NodeId, message: Any) -> None:
        ctx.compute(message.number, TASK)

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        ctx.send(MASTER, Answer(tag))


class Server(Node):
    messages = (Read, View, Update)

    def __init__(self, behind: int = SLACK) -> None:
        self.behind = behind

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.completed = [0] * WORKERS
        self.waiting: dict[NodeId, int] = {}

    def on_message(self, ctx: Any, sender: NodeId, message: Any) -> None:
        if isinstance(message, Read):
            self.waiting[sender] = message.number
        else:
            self.completed[sender.index] = message.number + 1
        slowest = min(self.completed)
        if slowest == ROUNDS:
            ctx.stop("done")
        for worker, clock in sorted(self.waiting.items()):
            if slowest >= clock - self.behind:
                del self.waiting[worker]
                ctx.send(worker, View(clock, slowest))


class Learner(Node):
    messages = (Read, View, Update)

    def on_start(self, ctx: Any, saved: Any) -> None:
        ctx.send(SERVER, Read(0))

    def on_message(self, ctx: Any, sender: NodeId, message: Any) -> None:
        ctx.compute(message.number, TASK)

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        ctx.send(SERVER, Update(tag))
        if tag + 1 < ROUNDS:
            ctx.send(SERVER, Read(tag + 1))


class Client(Node):
    messages = (Keep, Kept)

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.kept = 0
        ctx.send(KEEPER, Keep(1))

    def on_message(self, ctx: Any, sender: NodeId, message: Any) -> None:
        if message.number == self.kept + 1:
            self.kept += 1
            if self.kept == LAST:
                ctx.stop("done")
            else:
                ctx.send(KEEPER, Keep(self.kept + 1))

    def on_peer(self, ctx: Any, peer: NodeId, state: PeerState) -> None:
        if state in (PeerState.UP, PeerState.RESTARTED):
            ctx.send(KEEPER, Keep(self.kept + 1))


class Keeper(Node):
    messages = (Keep, Kept)

    def __init__(self, hasty: bool = False, torn: bool = False) -> None:
        self.hasty, self.torn = hasty, torn

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.number = self.durable = saved.get("number", 0)
        self.proof = saved.get("proof", 0)

    def on_message(self, ctx: Any, sender: NodeId, message: Any) -> None:
        if message.number == self.number + 1:
            self.number = self.proof = message.number
            if self.torn:
                ctx.save("proof", {"proof": self.proof})
                ctx.save(self.number, {"number": self.number})
            else:
                ctx.save(self.number, {"number": self.number, "proof": self.proof})
            if self.hasty:
                ctx.send(CLIENT, Kept(self.number))
        elif message.number <= self.durable:
            ctx.send(CLIENT, Kept(message.number))

    def on_saved(self, ctx: Any, tag: Any) -> None:
        if tag != "proof":
            self.durable = tag
            if not self.hasty:
                ctx.send(CLIENT, Kept(tag))


@dataclass(frozen=True)
class Toy:
    """A toy protocol: how to build it with or without a bug, what must hold, what may fail."""

    nodes: Callable[..., Mapping[str, Any]]
    holds: Callable[[Any], object]
    faults: Any
    bugs: Mapping[str, Mapping[str, object]]

    def make(self, bug: str = "") -> Callable[[], Mapping[str, Any]]:
        """Return what builds the nodes."""
        return partial(self.nodes, **self.bugs.get(bug, {}))

    def describe(self, run: Any) -> None:
        """State the invariant, and that the run ends."""
        run.always(self.holds, "the invariant")
        run.eventually("done", within_s=100.0)


def _with_workers(role: str, middle: type[Node], worker: type[Node], **bug: object) -> Mapping[str, Any]:
    workers = {f"worker-{i}": ("worker", worker) for i in range(WORKERS)}
    return {f"{role}-0": (role, partial(middle, **bug)), **workers}


def _rounds_agree(nodes: Any) -> bool:
    return all(set(answers) == {round} for round, answers in enumerate(nodes["master"].closed))


def _spread_is_bounded(nodes: Any) -> bool:
    """Whoever reads iteration c finds all others at c - SLACK at least; so clocks differ by SLACK + 1 at most."""
    completed = nodes["server"].completed
    return max(completed) - min(completed) <= SLACK + 1


def _keeps_its_word(nodes: Any) -> bool:
    keeper = nodes["keeper"]
    return keeper.number >= nodes["client"].kept and keeper.number == keeper.proof


def _keeper(**bug: object) -> Mapping[str, Any]:
    return {"client-0": ("client", Client), "keeper-0": ("keeper", partial(Keeper, **bug))}


TOYS = {
    "rounds": Toy(
        partial(_with_workers, "master", Master, Labourer),
        _rounds_agree,
        et.faults(crash=0, cut=0, pause=0, slow=0),
        {"answers of any round": {"any_round": True}},
    ),
    "staleness": Toy(
        partial(_with_workers, "server", Server, Learner),
        _spread_is_bounded,
        et.faults(crash=0, cut=0, pause=0, slow=0),
        {"bound off by one": {"behind": SLACK + 1}},
    ),
    "keeper": Toy(
        _keeper,
        _keeps_its_word,
        et.faults(crash=1, cut=0, pause=0, slow=0, keep={"client"}),
        {"acknowledged before durable": {"hasty": True}, "number and proof in two saves": {"torn": True}},
    ),
}
