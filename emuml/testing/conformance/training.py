"""A small training with a crash: equal on every engine, replayed from its journals, lazy or not (contract 8, 13).

Its decode sets are a function of the fault plan alone: a round closes when all workers that are up have answered, and a
worker that returns joins the round that is open. So the parameters of equal plans are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from emuml.blocks import Saved
from emuml.cluster.compute import ShiftedExponential
from emuml.cluster.faults import Crash, FaultPlan
from emuml.context import Context
from emuml.journal import Journal, Step
from emuml.lazy import combine
from emuml.message import Array, Message
from emuml.node import Node, NodeId, PeerState
from emuml.outcome import Run
from emuml.task import Task
from emuml.testing.conformance.engine import WORKERS, Nodes, RunNodes, equal, expect, stopped

ROUNDS = 8
CLUSTER = replace(WORKERS, compute=ShiftedExponential(shift_s=0.001, mean_s=0.002))
FAULTS = FaultPlan((Crash("worker-1", after=("round", 2), restart_after=("round", 5)),))


class Ask(Message):
    """Parameters of a round."""

    round: int
    parameters: Array


class Answer(Message):
    """Gradient of a round."""

    round: int
    gradient: Array


def slope(parameters: Array, group: float) -> Array:
    """Return the gradient of a group's loss; irrational enough that every order of sums has other bits."""
    return parameters - np.sin(group + np.arange(parameters.size) / 7.0)


class Master(Node):
    """Averages the answers of all workers that are up, in id order; saves and publishes every round."""

    talks_to = frozenset({"worker"})

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Ask everybody."""
        self.round, self.parameters = 0, np.zeros(50)
        self.up = set(ctx.peers("worker"))
        self.answers: dict[NodeId, Array] = {}
        self._ask(ctx)

    def _ask(self, ctx: Context) -> None:
        self.answers = {}
        for worker in sorted(self.up):
            ctx.send(worker, Ask(self.round, self.parameters))

    def on_message(self, ctx: Context, sender: NodeId, message: Answer) -> None:
        """Take an answer of the open round."""
        if message.round == self.round:
            self.answers[sender] = message.gradient
            self._close(ctx)

    def on_peer(self, ctx: Context, peer: NodeId, state: PeerState) -> None:
        """Wait for nobody who is down; ask who is back."""
        if state is PeerState.DOWN:
            self.up.discard(peer)
            self._close(ctx)
        elif state is PeerState.RESTARTED:
            self.up.add(peer)
            ctx.send(peer, Ask(self.round, self.parameters))

    def _close(self, ctx: Context) -> None:
        if not self.answers or not self.up <= self.answers.keys():
            return
        workers = sorted(self.answers)
        mean = combine([1.0 / len(workers)] * len(workers), [self.answers[worker] for worker in workers])
        self.parameters = self.parameters - 0.3 * mean
        self.round += 1
        ctx.log(round=self.round, answers=len(workers))
        ctx.publish(self.round, self.parameters)
        ctx.save(self.round, {"round": self.round, "parameters": self.parameters})
        if self.round == ROUNDS:
            ctx.stop("done")
        else:
            self._ask(ctx)


class Worker(Node):
    """Computes the gradient of its group; two workers of a group are replicas."""

    talks_to = frozenset({"master"})

    def __init__(self, function: Callable[[Array, float], Array] = slope) -> None:
        self.function = function
        self.rounds = 0

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Load what a former life counted."""
        ctx.load("rounds", ["rounds"])
        ctx.set_timer("wake", 0.001)

    def on_loaded(self, ctx: Context, tag: Any, blocks: Saved) -> None:
        """Go on counting."""
        self.rounds += blocks.get("rounds", 0)

    def on_message(self, ctx: Context, sender: NodeId, message: Ask) -> None:
        """Compute; newer parameters replace what is not done."""
        self.rounds += 1
        ctx.cancel("gradient")
        ctx.compute("gradient", self.task(message, float(ctx.id.index // 2)))
        noise = ctx.rng(f"noise/{message.round}").random(2)
        ctx.save("rounds", {"rounds": self.rounds, ("noise", message.round): noise})
        self.open = message.round

    def task(self, message: Ask, group: float) -> Task:
        """Return the work of a round."""
        parameters = message.parameters
        return Task(self.function, (parameters, group), 1.0, parameters.shape, draw=message.round)

    def on_computed(self, ctx: Context, tag: Any, result: Array) -> None:
        """Answer."""
        ctx.send(NodeId("master", 0), Answer(self.open, result))


def training(worker: Callable[[], Node] = Worker, workers: int = 4) -> Nodes:
    """Return the nodes: one master, four workers in two groups."""
    return {"master-0": ("master", Master), **{f"worker-{i}": ("worker", worker) for i in range(workers)}}


def published(run: Run) -> list[tuple[int, str]]:
    """Return every version of the parameters, as hexadecimal bytes."""
    return [(item.version, np.asarray(item.parameters).tobytes().hex()) for item in run.published]


def expected() -> list[tuple[int, str]]:
    """Return the versions that the fault plan stands for, computed without any engine."""
    parameters, versions = np.zeros(50), []
    for round in range(ROUNDS):
        workers = [0, 2, 3] if 2 <= round < 5 else [0, 1, 2, 3]
        gradients = [slope(parameters, float(worker // 2)) for worker in workers]
        mean = 1.0 / len(workers) * gradients[0]
        for gradient in gradients[1:]:
            mean = mean + 1.0 / len(workers) * gradient
        parameters = parameters - 0.3 * mean
        versions.append((round + 1, parameters.tobytes().hex()))
    return versions


def a_training_with_a_crash_gives_the_bits_of_its_plan(run: RunNodes) -> None:
    """K18, K15 (8.8, 8.9, 10, 13.3): crash and return at logged rounds; parameters equal a plain loop bit for bit."""
    found = stopped(run(training(), cluster=CLUSTER, faults=FAULTS, seed=3))
    answers = [item.metrics["answers"] for item in found.logs]
    equal(answers, [4, 4, 3, 3, 3, 4, 4, 4], "answers by round")
    equal(published(found), expected(), "published parameters")


KINDS = {"start", "message", "timer", "computed", "saved", "loaded", "peer"}
"""Of all events that a journal can hold."""

Replay = Callable[[Nodes, int, dict[tuple[str, int], Journal]], Run]
"""Replays the journals of nodes under a seed; raises Diverged."""


def journals_replay_to_equal_parameters(run: RunNodes, replay: Replay) -> None:
    """K18 (13.2, 13.3): the journals of a run with a kill, fed to fresh nodes: equal digests and parameters."""
    found = stopped(run(training(), cluster=CLUSTER, faults=FAULTS, seed=3))
    kinds = {step.kind for journal in found.journals.values() for step in journal.steps}
    equal(kinds, KINDS, "kinds of events in the journals")
    again = replay(training(), 3, found.journals)
    equal(published(again), published(found), "replayed parameters")
    equal([dict(item.metrics) for item in again.logs if "round" in item.metrics],
          [dict(item.metrics) for item in found.logs], "replayed logs")  # fmt: skip


def changed(journal: Journal, index: int, at: int | None) -> Journal:
    """Return a journal in which one bit of a step is different: of its effects, or of the digest at ``details[at]``."""
    steps = list(journal.steps)
    step = steps[index]
    details = list(step.details)
    if at is not None:
        details[at] ^= 1
    steps[index] = Step(step.index, step.now, step.kind, details, step.effects ^ (at is None))
    return Journal(journal.header, steps)


def alterations(run: Run) -> list[tuple[tuple[str, int], int, Journal]]:
    """Return journals with one changed bit each: of every step's effects, of messages, and of results."""
    found = []
    for key, journal in run.journals.items():
        for index, step in enumerate(journal.steps):
            places = [None, *{"message": [4], "computed": [1]}.get(step.kind, [])]
            found += [(key, index, changed(journal, index, at)) for at in places]
    expect(len(found) > 100, "too few steps to mean anything")
    return found


class Copying(Worker):
    """A worker whose tasks have inputs of their own, so that replicas are evaluated one by one."""

    def task(self, message: Ask, group: float) -> Task:
        """Return the same work on copied parameters."""
        return super().task(Ask(message.round, np.array(message.parameters)), group)
