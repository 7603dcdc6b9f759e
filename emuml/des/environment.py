"""A SimPy environment that also takes plain calls at absolute times, with SimPy's order of ties.

Node events are not SimPy events: a :class:`Call` is a small entry in the same queue, ordered by (time, priority,
schedule number) like everything else, so users' SimPy processes interleave with nodes exactly.

The compiled environment serves unless ``EMUML_PURE=1`` when this module is imported, or the kernels were not built;
``CORE`` says which. Both give the same results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from emuml import switches
from emuml._kernels import event_core

URGENT, NORMAL, TIMER = 0, 1, 2
"""Classes of equal times: faults, all other events, node timers (contract 6.6)."""

Choose = Callable[[str, int], int]
"""Picks one of ``n`` legal things, 0 being what happens without interference."""

CORE = event_core(switches.pure())
"""``"compiled"`` or ``"pure"``."""

if TYPE_CHECKING or CORE == "pure":
    from emuml.des.pure import Call, Environment, is_call, is_dead
else:
    from emuml.des.compiled import Call, Environment, is_call, is_dead

__all__ = ["CORE", "NORMAL", "TIMER", "URGENT", "Call", "Choose", "Environment", "is_call", "is_dead"]
