"""An emulator that shows every step to a judge, after the step's effects were executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emuml import effects as fx
from emuml.des.emulator import Emulator
from emuml.des.machine import Machine
from emuml.node import Node, NodeId

AfterStep = Callable[[NodeId, list[fx.Effect]], str | None]
"""Told who made a step and with which effects; a returned text ends the run."""
Cover = Callable[[NodeId, Node, fx.Event], None]
"""Told who met which event, after its effects."""


class Watched(Emulator):
    """Steps that happen within the effects of another one are shown when that one is through."""

    after_step: AfterStep | None = None
    cover: Cover | None = None
    _depth = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._steps: list[tuple[NodeId, list[fx.Effect]]] = []

    def step(self, machine: Machine, event: fx.Event, kind: str, details: Callable[[], list[Any]]) -> None:
        """See :class:`Emulator`."""
        life = machine.life
        assert life is not None
        self._depth += 1
        try:
            super().step(machine, event, kind, details)
        finally:
            self._depth -= 1
        if self.cover is not None:
            self.cover(machine.id, life.node, event)
        self._steps.append((machine.id, life.effects))
        if self._depth == 0:
            steps, self._steps = self._steps, []
            for id, effects in steps:
                reason = None if self.after_step is None else self.after_step(id, effects)
                if reason is not None:
                    self.result.stopped = reason
                    return
