"""Nodes for tests of the runtime, importable by node processes."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from emuml.message import Array, Message
from emuml.node import Node, NodeId, PeerState
from emuml.protocols.gradient_coding.protocol import GradientCoding
from emuml.protocols.gradient_coding.server import Server
from emuml.protocols.gradient_coding.worker import Worker
from emuml.task import Task

HEAVY = ("sklearn", "scipy", "pydantic", "simpy", "networkx", "yaml", "rich", "typer", "pandas")
unpickled: list[str] = []

if "EMUML_RUN" in os.environ:  # this is a node process
    sys.addaudithook(lambda event, details: unpickled.append(str(details)) if event == "pickle.find_class" else None)


class Ball(Message):
    number: int
    value: Array


class Player(Node):
    """Returns every ball with the next number; the server serves, and serves again to whoever comes back.

    Parameters
    ----------
    rallies : int
        The server stops the run after so many returns; 0 for never.
    size : int
        Numbers in the ball's array.
    """

    talks_to: ClassVar[frozenset[str] | None] = None

    def __init__(self, rallies: int = 0, size: int = 1) -> None:
        self.rallies, self.size = rallies, size

    def on_start(self, ctx: Any, saved: Any) -> None:
        self.returns = 0
        ctx.log(started=ctx.incarnation)
        for peer in ctx.peers("worker") if ctx.role == "server" else ():
            ctx.send(peer, Ball(1, np.arange(float(self.size))))

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        if ctx.role == "server":
            self.returns += 1
            ctx.log(returns=self.returns, number=message.number)
            if self.returns == self.rallies:
                ctx.stop("enough")
        ctx.send(sender, Ball(message.number + 1, message.value))

    def on_peer(self, ctx: Any, peer: NodeId, state: PeerState) -> None:
        ctx.log(peer=str(peer), state=state.value)
        if ctx.role == "server" and state in (PeerState.UP, PeerState.RESTARTED):
            ctx.send(peer, Ball(1, np.arange(float(self.size))))

    def waiting_for(self) -> str:
        return "the ball"


class Thrower(Player):
    """Raises at the third ball."""

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        if message.number >= 5:
            raise LookupError("the ball is lost")
        super().on_message(ctx, sender, message)


class Unborn(Node):
    """Cannot be built: it dies, or never comes to an end."""

    def __init__(self, how: str) -> None:
        print("a line before the end", flush=True)
        if how == "raise":
            raise RuntimeError("no such data set")
        if how == "exit":
            os._exit(7)
        time.sleep(1e6)


class Stuck(Player):
    """Never returns from its second handler, and does not hear that the run is over."""

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        os.write(2, b"stuck\n")
        os.read(os.pipe()[0], 1)


def square(values: np.ndarray) -> np.ndarray:
    return values * values


class Lean(Node):
    """Computes, saves, loads and talks to itself, then logs what it should not have."""

    def on_start(self, ctx: Any, saved: Any) -> None:
        ctx.compute("square", Task(square, (np.arange(3.0),), 1.0, (3,)))

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        ctx.save("saved", {"result": result})

    def on_saved(self, ctx: Any, tag: Any) -> None:
        ctx.load("loaded", ["result"])

    def on_loaded(self, ctx: Any, tag: Any, blocks: Any) -> None:
        ctx.send(ctx.id, Ball(1, blocks["result"]))

    def on_message(self, ctx: Any, sender: NodeId, message: Ball) -> None:
        report_weight(ctx)
        ctx.stop("seen")


def report_weight(ctx: Any) -> None:
    """Log which large libraries this process has loaded, and what it unpickled."""
    ctx.log(heavy=" ".join(name for name in HEAVY if name in sys.modules), unpickled=" ".join(unpickled))


class WeighedServer(Server):
    def report(self, ctx: Any) -> None:
        report_weight(ctx)
        super().report(ctx)


class WeighedWorker(Worker):
    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        report_weight(ctx)
        super().on_computed(ctx, tag, result)


class FaultyWorker(Worker):
    """Worker 1 raises in round 3."""

    def on_computed(self, ctx: Any, tag: Any, result: Any) -> None:
        if ctx.id.index == 1 and self.open.round == 3:
            raise FloatingPointError("a gradient exploded")
        super().on_computed(ctx, tag, result)


@dataclass(frozen=True)
class Altered(GradientCoding):
    """Gradient coding with other node classes."""

    server: str = "Server"
    worker: str = "Worker"

    def nodes(self, workload: Any, roster: Any) -> Any:
        kinds = {"server": globals()[self.server], "worker": globals()[self.worker]}
        return {
            id: (role, partial(kinds[role], *factory.args))  # type: ignore[attr-defined]
            for id, (role, factory) in super().nodes(workload, roster).items()
        }
