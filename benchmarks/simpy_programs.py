"""Two programs as users of SimPy write them; ``simpy_events.py`` runs this source with the import exchanged.

Each returns its environment, the process to run until, and the trace that the run fills with times and values.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator
from typing import Any

import simpy

Built = tuple[Any, Any, "array[float]"]


def timeouts(processes: int, count: int) -> Built:
    """Build processes that wait ``count`` times each, all for different times."""
    env, trace = simpy.Environment(), array("d")

    def sleeper(seconds: float) -> Generator[Any, Any, None]:
        for _ in range(count):
            yield env.timeout(seconds)

    def sentinel() -> Generator[Any, Any, None]:
        yield env.all_of(sleepers)
        trace.append(env.now)

    sleepers = [env.process(sleeper(1.0 + number / processes)) for number in range(processes)]
    return env, env.process(sentinel()), trace


def parameter_server(workers: int, rounds: int) -> Built:
    """Build a server and workers with a Store each: orders go to all, then all answers are awaited, round by round."""
    env, trace = simpy.Environment(), array("d")

    def worker(number: int, inbox: Any, seconds: float) -> Generator[Any, Any, None]:
        while True:
            clock = yield inbox.get()
            yield env.timeout(seconds)
            yield mailbox.put((number, clock))

    def server() -> Generator[Any, Any, None]:
        for clock in range(rounds):
            for inbox in inboxes:
                yield inbox.put(clock)
            for _ in inboxes:
                number, clock = yield mailbox.get()
                trace.append(env.now)
                trace.append(number)

    mailbox = simpy.Store(env)
    inboxes = [simpy.Store(env) for _ in range(workers)]
    for number, inbox in enumerate(inboxes):
        env.process(worker(number, inbox, 1.0 + 0.5 * ((number * 7919) % workers) / workers))
    return env, env.process(server()), trace
