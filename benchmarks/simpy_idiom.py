"""The idiomatic SimPy programs that emulated training is compared with: a process and a ``Store`` for each worker.

Durations are random, so that the master keeps up with what arrives: SimPy's ``Store`` gives an item from a backlog in
time proportional to the backlog, which would be counted for us. Nobody is interrupted: SimPy pays dearly for that, too.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import simpy

MEAN_S = 0.5


class Clocks:
    """The barrier of stale synchronous parallel: who may start after a push, O(1) each on average.

    Parameters
    ----------
    workers : int
    staleness : int
        How many iterations a worker may be ahead of the slowest.
    """

    def __init__(self, workers: int, staleness: int) -> None:
        self.clocks = [0] * workers
        self.staleness = staleness
        self.slowest, self.at_slowest = 0, workers
        self.blocked: list[int] = []

    def push(self, worker: int) -> list[int]:
        """Count a push and return who may start now."""
        clocks = self.clocks
        clock = clocks[worker] + 1
        clocks[worker] = clock
        if clock - 1 == self.slowest:
            self.at_slowest -= 1
            if not self.at_slowest:
                self.slowest = min(clocks)
                self.at_slowest = clocks.count(self.slowest)
                freed, self.blocked = self.blocked, []
                freed.append(worker)
                return freed
        if clock - self.slowest > self.staleness:
            self.blocked.append(worker)
            return []
        return [worker]


def rounds(workers: int, count: int) -> None:
    """Send work to all workers and wait for all answers, ``count`` times."""
    env = simpy.Environment()
    inbox = simpy.Store(env)
    boxes = [simpy.Store(env) for _ in range(workers)]
    draw = random.Random(1).expovariate

    def worker(box: simpy.Store) -> Generator[simpy.Event, Any, None]:
        while True:
            round = yield box.get()
            yield env.timeout(draw(1.0 / MEAN_S))
            inbox.put(round)

    def master() -> Generator[simpy.Event, Any, None]:
        for round in range(count):
            for box in boxes:
                box.put(round)
            for _ in boxes:
                yield inbox.get()

    for box in boxes:
        env.process(worker(box))
    env.run(env.process(master()))


def pushes(workers: int, count: int, staleness: int) -> None:
    """Let workers compute and push ``count`` times in all, held back by the slowest."""
    env = simpy.Environment()
    inbox = simpy.Store(env)
    boxes = [simpy.Store(env) for _ in range(workers)]
    draw = random.Random(1).expovariate

    def worker(number: int, box: simpy.Store) -> Generator[simpy.Event, Any, None]:
        while True:
            yield env.timeout(draw(1.0 / MEAN_S))
            inbox.put(number)
            yield box.get()

    def server() -> Generator[simpy.Event, Any, None]:
        barrier = Clocks(workers, staleness)
        for _ in range(count):
            number = yield inbox.get()
            for freed in barrier.push(number):
                boxes[freed].put(True)

    for number, box in enumerate(boxes):
        env.process(worker(number, box))
    env.run(env.process(server()))
