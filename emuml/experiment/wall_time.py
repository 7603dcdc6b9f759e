"""How long an emulation takes on this machine: one gradient and one evaluation of the metrics are made and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from emuml.blas import single_threaded
from emuml.experiment.expectations import built_code
from emuml.experiment.training import Training
from emuml.protocol import Problem

EVENT_S = 25e-6
"""Of an event of a node in the emulator, its trace included: it differs less by machine than gradients by problem."""


ARRAY_MESSAGE_S = 25e-9
"""Of a message in the array tier: the share of a worker and round in what is done with whole arrays."""


def emulation_s(
    training: Training, problem: Problem, rounds: float, covered: float, messages: float, tier: str = "event"
) -> float:
    """Return about how many seconds of wall time an emulation takes, without loading the data and the report.

    Parameters
    ----------
    training : Training
    problem : Problem
    rounds : float
        How many there will be.
    covered : float
        Share of the groups whose answers are decoded: results that nobody reads are never made, and replicas share one.
    messages : float
        Of the whole run; in the event tier each is an event, and so is each task.
    tier : {"event", "array"}
    """
    code: Any = built_code(training)
    owned = next((held for held in map(code.assignment, range(code.workers)) if held), (0,))  # some may hold nothing
    task = problem.gradient(problem.initial, owned, code.partitions, draw=0)
    with single_threaded():
        gradient_s, metrics_s = _timed(task.run), _timed(lambda: problem.metrics(problem.initial))
    message_s = ARRAY_MESSAGE_S if tier == "array" else 2.0 * EVENT_S
    return (
        rounds * (metrics_s + covered * float(getattr(code, "n_groups", code.workers)) * gradient_s)
        + messages * message_s
    )


def _timed(work: Callable[[], Any]) -> float:
    """Return the seconds of the faster of two runs: the first one warms up."""
    found = []
    for _ in range(2):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)
