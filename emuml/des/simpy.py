"""SimPy's names on emuml's environment: ``import emuml.des.simpy as simpy`` in a program that says ``import simpy``.

Everything is an instance of SimPy's own class, and happens in the same order, at the same times, with the same values;
the compiled events and resources are many times faster. With ``EMUML_PURE=1``, and where the kernels were not built,
the names are SimPy's own but for the environment. ``simpy.util`` and ``simpy.rt`` are SimPy's.

Not taken: times of other types than int and float (Decimal, Fraction), integer times of 2**53 and more, priorities
outside -32768 to 32767.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TYPE_CHECKING

from simpy import rt, util
from simpy.core import EmptySchedule, Infinity, StopSimulation
from simpy.exceptions import Interrupt, SimPyException
from simpy.resources.store import PriorityItem

from emuml.des.environment import CORE, Environment

if TYPE_CHECKING or CORE == "pure":
    from simpy.events import AllOf, AnyOf, Condition, Event, Process, Timeout
    from simpy.resources.container import Container
    from simpy.resources.resource import PreemptiveResource, PriorityResource, Resource
    from simpy.resources.store import FilterStore, PriorityStore, Store
else:
    from emuml.des.compiled import AllOf, AnyOf, Condition, Event, Process, Timeout
    from emuml.des.compiled_resources import (
        Container,
        FilterStore,
        PreemptiveResource,
        PriorityResource,
        PriorityStore,
        Resource,
        Store,
    )

__all__ = [
    "AllOf",
    "AnyOf",
    "Condition",
    "Container",
    "EmptySchedule",
    "Environment",
    "Event",
    "FilterStore",
    "Infinity",
    "Interrupt",
    "PreemptiveResource",
    "PriorityItem",
    "PriorityResource",
    "PriorityStore",
    "Process",
    "RealtimeEnvironment",
    "Resource",
    "SimPyException",
    "StopSimulation",
    "Store",
    "Timeout",
    "frozen",
    "rt",
    "util",
]


class RealtimeEnvironment(Environment, rt.RealtimeEnvironment):
    """SimPy's environment that waits for the wall clock: one unit of time takes ``factor`` seconds.

    Parameters
    ----------
    initial_time : float
    factor : float
        Seconds of the wall clock per unit of simulated time, > 0.
    strict : bool
        Whether an event that is late by more than one unit is an error (RuntimeError).
    """

    def __init__(self, initial_time: float = 0, factor: float = 1.0, strict: bool = True) -> None:
        Environment.__init__(self, initial_time)
        self.env_start, self._factor, self._strict = initial_time, factor, strict
        self.sync()

    def step(self) -> None:
        """Wait until the next event is due, and process it."""
        at = self.peek()
        if at == Infinity:
            raise EmptySchedule
        due = self.real_start + (at - self.env_start) * self.factor
        late = monotonic() - due
        if self.strict and late > self.factor:
            raise RuntimeError(f"Simulation too slow for real time ({late:.3f}s).")
        while (wait := due - monotonic()) > 0:
            sleep(wait)
        Environment.step(self)


@contextmanager
def frozen() -> Iterator[None]:
    """Keep the collector from going through all that is there now, again and again, while the block runs.

    With tens of thousands of processes, garbage collection takes a large part of a run, which ``with simpy.frozen():
    env.run()`` spares. What is made in the block is collected as ever; cycles of what was there before
    wait for its end.
    """
    if gc.get_freeze_count():  # somebody's who thaws it
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
