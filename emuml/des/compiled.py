"""The compiled environment: the kernels' queue under SimPy's class."""

from __future__ import annotations

import simpy
from simpy.core import EmptySchedule, Infinity, StopSimulation

from emuml._kernels import events
from emuml._kernels.events import Call, is_call, is_dead

__all__ = ["Call", "Environment", "is_call", "is_dead"]

events.bind(EmptySchedule, StopSimulation, Infinity)


class Environment(events.Core, simpy.Environment):  # type: ignore[misc]
    """SimPy's environment with a compiled queue, and calls at absolute times that can be cancelled."""
