"""The compiled environment: the kernels' queue, events and processes under SimPy's classes."""

from __future__ import annotations

from simpy import core, events

from emuml._kernels import conditions, environments, occurrences, processes
from emuml._kernels import events as queue
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


class Event(occurrences.Event, events.Event):
    """SimPy's event, compiled."""


class Timeout(occurrences.Timeout, Event, events.Timeout):
    """SimPy's timeout, compiled."""


class Initialize(processes.Initialize, Event, events.Initialize):
    """SimPy's first event of a process, compiled."""


class Interruption(processes.Interruption, Event, events.Interruption):
    """SimPy's interruption, compiled."""


class Process(processes.Process, Event, events.Process):
    """SimPy's process, compiled."""


class Condition(conditions.Condition, Event, events.Condition):
    """SimPy's condition, compiled."""


class AllOf(conditions.AllOf, Condition, events.AllOf):
    """SimPy's conjunction, compiled."""


class AnyOf(conditions.AnyOf, Condition, events.AnyOf):
    """SimPy's disjunction, compiled."""


class Environment(environments.Environment, core.Environment):
    """SimPy's environment, compiled, with calls at absolute times that can be cancelled."""


queue.bind(core.EmptySchedule, core.StopSimulation, core.Infinity)
occurrences.bind(events.PENDING, core.StopSimulation, Condition)
processes.bind(events, Process, Initialize, Interruption)
conditions.bind(events)
environments.bind(core, Event, Timeout, AllOf, AnyOf)
