"""The compiled environment: the kernels' queue, events and processes under SimPy's classes."""

from __future__ import annotations

from simpy import core, events

from emuml._kernels import events as queue
from emuml._kernels import processes as kernel
from emuml._kernels.events import Call, is_call, is_dead

__all__ = [
    "AllOf",
    "AnyOf",
    "Call",
    "Condition",
    "Environment",
    "Event",
    "Process",
    "Timeout",
    "is_call",
    "is_dead",
]


class Event(kernel.Event, events.Event):
    """SimPy's event, compiled."""


class Timeout(kernel.Timeout, Event, events.Timeout):
    """SimPy's timeout, compiled."""


class Initialize(kernel.Initialize, Event, events.Initialize):
    """SimPy's first event of a process, compiled."""


class Interruption(kernel.Interruption, Event, events.Interruption):
    """SimPy's interruption, compiled."""


class Process(kernel.Process, Event, events.Process):
    """SimPy's process, compiled."""


class Condition(kernel.Condition, Event, events.Condition):
    """SimPy's condition, compiled."""


class AllOf(kernel.AllOf, Condition, events.AllOf):
    """SimPy's conjunction, compiled."""


class AnyOf(kernel.AnyOf, Condition, events.AnyOf):
    """SimPy's disjunction, compiled."""


class Environment(kernel.Environment, core.Environment):
    """SimPy's environment, compiled, with calls at absolute times that can be cancelled."""


queue.bind(core.EmptySchedule, core.StopSimulation, core.Infinity)
kernel.bind(
    events,
    core.StopSimulation,
    core.EmptySchedule,
    {made.__name__: made for made in (Event, Timeout, Initialize, Process, Interruption, Condition, AllOf, AnyOf)},
)
