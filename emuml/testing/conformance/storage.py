"""Stable storage: a dictionary with versions that outlives its node (contract 9.1-9.5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from emuml.blocks import Saved
from emuml.cluster.faults import Crash, FaultPlan
from emuml.context import Context
from emuml.message import Message
from emuml.node import Node, NodeId
from emuml.streams import generator
from emuml.testing.conformance.engine import Nodes, RunNodes, canonical, equal, expect, slow_disk, stopped

IDS: tuple[Any, ...] = ("table", "", 0, -7, ("table", 3), ("a", ("b", 1), 2))
OPERATIONS = 40
Model = dict[Any, tuple[int, Any, Any]]
"""Block id -> number of the commit, canonical value, canonical value before."""


class Settled(Message):
    """All operations of a life are durable."""

    life: int


def value(random: np.random.Generator) -> Any:
    """Return a block value in memory of its own."""
    makers: list[Any] = [
        lambda: int(random.integers(-5, 5)),
        lambda: float(random.random()),
        lambda: "wörker",
        lambda: True,
        lambda: None,
        lambda: b"\x00\xff",
        lambda: random.random((3, 2)),
        lambda: random.integers(0, 9, 5).astype(">i4"),
        lambda: np.array(2.5, np.float32),
        lambda: np.zeros((0, 3)),
        lambda: random.random((4, 4))[::2, ::-1],
        lambda: [1, [random.random(2)], "text"],
        lambda: (1, (2.0, [3]), np.arange(3)),
        lambda: {"array": random.random(2), "list": [1, {"deep": (1,)}], "flag": False},
    ]
    return makers[int(random.integers(len(makers)))]()


def operations(life: int) -> list[tuple[str, Any]]:
    """Return the saves (blocks) and loads (ids) of one life; the same each time, in memory of their own."""
    random = generator(0, "", f"conformance/storage/{life}")
    found: list[tuple[str, Any]] = []
    for _ in range(OPERATIONS):
        chosen = [IDS[int(i)] for i in random.permutation(len(IDS))[: int(random.integers(1, 4))]]
        found.append(("save", {id: value(random) for id in chosen}) if random.random() < 0.6 else ("load", chosen))
    return found


def apply(model: Model, commit: int, blocks: Mapping[Any, Any]) -> None:
    """Commit blocks to the model."""
    for id, new in blocks.items():
        model[id] = (commit, canonical(new), model[id][1] if id in model else canonical(None))


def model_after(lives: int) -> tuple[int, Model]:
    """Return the number of commits and the store after some lives."""
    model: Model = {}
    commits = 0
    for life in range(1, lives + 1):
        for kind, what in operations(life):
            if kind == "save":
                commits += 1
                apply(model, commits, what)
    return commits, model


def seen(saved: Saved) -> Model:
    """Return what a store handed over, in the form of the model."""
    return {id: (saved.version(id), canonical(saved[id]), canonical(saved.previous(id))) for id in saved}


def spoil(found: Any) -> None:
    """Change everything in a value that can be changed in place."""
    if isinstance(found, np.ndarray):
        if found.flags.writeable:
            found[...] = 0
    elif isinstance(found, (list, tuple)):
        for item in found:
            spoil(item)
        if isinstance(found, list):
            found.clear()
    elif isinstance(found, dict):
        for item in found.values():
            spoil(item)
        found.clear()


class Keeper(Node):
    """Saves and loads, several operations at a time, and compares what comes back with the model."""

    def __init__(self) -> None:
        self.expected: deque[tuple[str, int, Model]] = deque()

    def on_start(self, ctx: Context, saved: Saved) -> None:
        """Compare what former lives left, then begin."""
        self.commits, self.model = model_after(ctx.incarnation - 1)
        equal(seen(saved), self.model, f"what life {ctx.incarnation} found")
        self.operations = operations(ctx.incarnation)
        self.next = 0
        self._go_on(ctx)

    def _go_on(self, ctx: Context) -> None:
        random = ctx.rng(f"batch/{self.next}")
        for _ in range(int(random.integers(1, 5))):
            if self.next == OPERATIONS:
                break
            self._operate(ctx, *self.operations[self.next])
        if self.next == OPERATIONS and not self.expected:
            ctx.send(NodeId("owner", 0), Settled(ctx.incarnation))

    def _operate(self, ctx: Context, kind: str, what: Any) -> None:
        if kind == "save":
            ctx.save(self.next, what)
            self.commits += 1
            apply(self.model, self.commits, what)
            spoil(what)
            self.expected.append(("saved", self.next, {}))
        else:
            ctx.load(self.next, what)
            there = {id: self.model[id] for id in what if id in self.model}
            self.expected.append(("loaded", self.next, there))
        self.next += 1

    def on_saved(self, ctx: Context, tag: Any) -> None:
        """Saves end in call order, once."""
        equal(("saved", tag), self.expected.popleft()[:2], f"{ctx.id}: end of a storage operation")
        if not self.expected:
            self._go_on(ctx)

    def on_loaded(self, ctx: Context, tag: Any, blocks: Saved) -> None:
        """A load sees exactly the saves recorded before it."""
        kind, number, there = self.expected.popleft()
        equal(("loaded", tag), (kind, number), f"{ctx.id}: end of a storage operation")
        equal(seen(blocks), there, f"{ctx.id}: what load {tag} found")
        for id in blocks:
            for item in (blocks[id], blocks.previous(id)):
                expect(not (isinstance(item, np.ndarray) and item.flags.writeable), f"block {id!r} can be written")
                spoil(item)
        equal(seen(blocks), there, f"{ctx.id}: the same, after the containers in it were changed")
        if not self.expected:
            self._go_on(ctx)


class Owner(Node):
    """Has the keeper killed when a life has settled, and stops after the last."""

    def __init__(self, lives: int) -> None:
        self.lives = lives

    def on_message(self, ctx: Context, sender: NodeId, message: Settled) -> None:
        """Log what the fault plan waits for, or stop."""
        if message.life == self.lives:
            ctx.stop("done")
        else:
            ctx.log(life=message.life)


def storage_is_a_dictionary_with_versions(run: RunNodes) -> None:
    """K14 (9.1, 9.2, 9.4, 9.5): random saves and loads over three lives against a model; snapshots, FIFO, versions."""
    faults = FaultPlan(tuple(Crash("keeper-0", after=("life", n), restart_after=("life", n)) for n in (1, 2)))
    nodes: Nodes = {"keeper-0": ("keeper", Keeper), "owner-0": ("owner", partial(Owner, 3))}
    for cluster in (slow_disk(0.0), slow_disk(0.002)):
        stopped(run(nodes, cluster=cluster, faults=faults))
